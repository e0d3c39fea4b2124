//! Trains, evaluates and analyses a small network repeatedly in one process, and measures its memory.
//!
//! A round is a training with its evaluation and analyses. `soak MINUTES` measures the highest resident
//! memory of each round, prints its median for each sixth of the time (ten minutes of an hour), and fails if
//! the median varies by more than 5 % after the first sixth. A memory leak that is small in one run becomes
//! visible here. Single rounds vary more, because threads overlap by chance and the system may reclaim pages.
//! Linux only.

use leaklab_engine::{Isa, Packed};
use leaklab_lab::analysis::{Analysis, Options, analyse};
use leaklab_lab::config::{RunConfig, Settings};
use leaklab_lab::evaluate::{evaluate, presentation};
use leaklab_lab::run::{TrainedRun, Weights};
use leaklab_lab::train::{self, Control};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SETTINGS: [&str; 9] = [
    "dataset=digits",
    "network=1x8x8-16C3-2P-64FC-10o",
    "time_steps=40",
    "train_limit=400",
    "test_limit=100",
    "batch=40",
    "epochs=2",
    "noise=[\"gaussian/pixel\", \"impulse/channel\"]",
    "presentations=1",
];
const FLAT: f64 = 0.05;

/// Resident memory of this process in bytes.
fn resident() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(1024 * line.trim().trim_end_matches("kB").trim().parse::<u64>()?)
}

/// One round: trains a new run, evaluates and analyses it, and removes it from the disk.
fn round(folder: &Path, seed: u64) -> Result<(), Box<dyn Error>> {
    let mut settings = Settings::default();
    for setting in SETTINGS {
        settings.assign(setting)?;
    }
    settings.set("tau", if seed.is_multiple_of(2) { f64::INFINITY } else { 30.0 });
    settings.set("seed", seed as i64);
    let config = RunConfig::resolve(settings)?;
    let run = folder.join("run");
    train::train(&config, &run, &train::Options::default(), &mut |_| Control::Continue)?;
    let trained = TrainedRun::open(&run, Weights::Last)?;
    let dataset = trained.dataset()?;
    let pool = Arc::new(train::threads(None)?);
    let (shown, packed) =
        (presentation(&trained.config, &dataset), Packed::new(&trained.network, Isa::best())?);
    evaluate(&packed, &trained.network.architecture, &shown, &dataset.test, &pool, &mut |_| true)?;
    let options = Options::as_trained(pool);
    analyse(&run, &[Analysis::Robustness, Analysis::Spectrum], &options, &mut |_| true)?;
    fs::remove_dir_all(&run)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let minutes: f64 = std::env::args().nth(1).ok_or("usage: soak MINUTES")?.parse()?;
    let length = Duration::from_secs_f64(60.0 * minutes);
    let folder = std::env::temp_dir().join(format!("leaklab-soak-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let (started, rounds) = (Instant::now(), AtomicU64::new(0));
    // The highest memory of each round, by part of the time.
    let mut parts = vec![Vec::new(); 6];
    std::thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        let worker = scope.spawn(|| {
            let mut result = Ok(());
            while result.is_ok() && started.elapsed() < length {
                let seed = rounds.fetch_add(1, Ordering::Relaxed);
                result = round(&folder, seed).map_err(|e| e.to_string());
            }
            result
        });
        let (mut current, mut highest) = (0, 0);
        while !worker.is_finished() {
            let now = rounds.load(Ordering::Relaxed);
            if now > current {
                let share = started.elapsed().as_secs_f64() / length.as_secs_f64();
                let part = ((share * parts.len() as f64) as usize).min(parts.len() - 1);
                parts[part].extend((current > 0).then_some(highest));
                (current, highest) = (now, 0);
            }
            highest = highest.max(resident()?);
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(worker.join().map_err(|_| "the work panicked")??)
    })?;
    fs::remove_dir_all(&folder)?;
    let mut medians = Vec::new();
    for (i, part) in parts.iter_mut().enumerate() {
        part.sort_unstable();
        let (Some(&least), Some(&most)) = (part.first(), part.last()) else {
            return Err("too short: a sixth of the time has no complete round".into());
        };
        medians.push(part[part.len() / 2]);
        let [median, least, most] = [medians[i], least, most].map(|bytes: u64| bytes as f64 / 1e6);
        let (from, rounds) = (i as f64 * minutes / 6.0, part.len());
        println!("from {from:4.1} min: {rounds} rounds, median {median:.2} MB ({least:.2} to {most:.2})");
    }
    let later = medians[1..].iter();
    let (least, most) = (later.clone().min().copied().unwrap_or(0), later.max().copied().unwrap_or(0));
    let change = (most - least) as f64 / least.max(1) as f64;
    println!("after the first sixth, the median varies by {:.1} %", 100.0 * change);
    if change > FLAT { Err("memory is not flat within 5 %".into()) } else { Ok(()) }
}
