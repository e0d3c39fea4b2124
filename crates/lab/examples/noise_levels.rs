//! Accuracy of a trained run against the level of each noise, to choose the default severities by measurement.
//!
//!     cargo run --release -p leaklab-lab --example noise_levels -- RUN [IMAGES]

use leaklab_engine::noise::{Noise, NoiseSetting, SEVERITIES};
use leaklab_engine::{Isa, Packed};
use leaklab_lab::evaluate::{evaluate, presentation};
use leaklab_lab::run::{TrainedRun, Weights};
use leaklab_lab::train::threads;
use std::path::Path;

/// Levels to try.
fn levels(noise: Noise) -> &'static [f32] {
    match noise {
        Noise::Gaussian => {
            &[0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0]
        }
        Noise::Jitter => &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0],
        Noise::Impulse => &[0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0],
        Noise::Deletion => &[0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.75, 0.85, 0.9, 0.95, 0.98, 0.99],
        Noise::StuckPixel | Noise::SaltAndPepper => {
            &[0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8]
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let run = arguments.first().ok_or("usage: noise_levels RUN [IMAGES]")?;
    let mut run = TrainedRun::open(Path::new(run), Weights::Last)?;
    if let Some(images) = arguments.get(1) {
        run.config.test_limit = Some(images.parse()?);
    }
    let dataset = run.dataset()?;
    let pool = threads(Some(1))?;
    let packed = Packed::new(&run.network, Isa::best())?;
    let clean = presentation(&run.config, &dataset);
    let accuracy = |setting: Option<NoiseSetting>| -> Result<f64, Box<dyn std::error::Error>> {
        let mut noisy = clean.clone();
        noisy.encoding = noisy.encoding.with_noise(setting);
        let found = evaluate(&packed, &run.config.network, &noisy, &dataset.test, &pool, &mut |_| true)?;
        Ok(found.ok_or("stopped")?.accuracy())
    };
    println!("clean {:.1} % of {} images", 100.0 * accuracy(None)?, dataset.test.len());
    for (noise, scenario, _) in SEVERITIES {
        print!("{noise}/{scenario}:");
        for &level in levels(noise) {
            print!(" {level}: {:.1}", 100.0 * accuracy(Some(NoiseSetting::new(noise, scenario, level)?))?);
        }
        println!();
    }
    Ok(())
}
