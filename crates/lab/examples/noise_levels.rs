//! Prints the accuracy of a trained run at every level of the severity table, to choose the default levels.
//!
//!     cargo run --release -p leaklab-lab --example noise_levels -- RUN [IMAGES]

use leaklab_engine::noise::{NoiseSetting, SEVERITIES};
use leaklab_engine::{Isa, Packed};
use leaklab_lab::evaluate::{evaluate, presentation};
use leaklab_lab::run::{TrainedRun, Weights};
use leaklab_lab::train::threads;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let run = arguments.first().ok_or("usage: noise_levels RUN [IMAGES]")?;
    let mut run = TrainedRun::open(Path::new(run), Weights::Last)?;
    if let Some(images) = arguments.get(1) {
        run.config.test_limit = Some(images.parse()?);
    }
    let dataset = run.dataset()?;
    let pool = threads(None)?;
    let packed = Packed::new(&run.network, Isa::best())?;
    let clean = presentation(&run.config, &dataset);
    let accuracy = |setting: Option<NoiseSetting>| -> Result<f64, Box<dyn std::error::Error>> {
        let mut noisy = clean.clone();
        noisy.encoding = noisy.encoding.with_noise(setting);
        let found = evaluate(&packed, &run.config.network, &noisy, &dataset.test, &pool, &mut |_| true)?;
        Ok(found.ok_or("stopped")?.accuracy())
    };
    println!("clean {:.1} % of {} images", 100.0 * accuracy(None)?, dataset.test.len());
    for (noise, scenario, levels) in SEVERITIES {
        print!("| {noise}/{scenario} |");
        for level in levels {
            print!(" {level}: {:.1} |", 100.0 * accuracy(Some(NoiseSetting::new(noise, scenario, level)?))?);
        }
        println!();
    }
    Ok(())
}
