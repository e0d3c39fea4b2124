//! Measures the speed of a study's runs on this machine by a short training of each condition, on the study's
//! own images and with its own settings.
//!
//! The cost depends on the activity, which depends on the images, the leak and the state of training: with
//! strong leak it can triple within the first few hundred updates. The measurement therefore lasts for 5 % of
//! the training that it predicts, within limits, and only its last part counts. The unit is the processor
//! time of one thread, so other work on the machine does not make an estimate longer.

use crate::analysis::stimulus::setting;
use crate::bench::BenchError;
use crate::config::RunConfig;
use crate::data::{Augmentation, Dataset, Presentation, present};
use crate::evaluate::{EVALUATION_EPOCH, presentation};
use leaklab_engine::{Isa, Packed, Scratch, infer, philox, train_batch};
use leaklab_record::Stimulus;
use std::time::{Duration, Instant};

/// Length of a condition's measurement as a share of the training of its runs; at least two updates are made.
const SHARE: f64 = 0.05;
/// Shortest measurement, in processor seconds.
const SHORTEST: f64 = 0.8;
/// Longest measurement, in processor seconds.
const LONGEST: f64 = 8.0;
/// Processor seconds that one update may take; if a mini-batch takes longer, only a part of it is trained.
const UPDATE: f64 = 0.3;
/// Fewest images of an update.
const FEWEST: usize = 8;
/// Severities of the noises under which images are shown; several, because strong noise takes longer.
const MEASURED: [usize; 4] = [2, 4, 6, 8];

/// The system counts processor time in ticks of some milliseconds; a time shorter than this is measured as
/// wall time.
const TICKS: Duration = Duration::from_millis(30);

/// Processor seconds per image, on one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Speed {
    /// Training, with its share of an update.
    pub train: f64,
    /// Inference, clean.
    pub infer: f64,
    /// Inference under noise.
    pub noisy: f64,
}

/// Processor time of the calling thread; wall time if the system does not report it.
struct Clock {
    begun: Instant,
    ticks: Option<Duration>,
}

impl Clock {
    fn ticks() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }

    fn start() -> Self {
        Clock { begun: Instant::now(), ticks: Self::ticks() }
    }

    fn seconds(&self) -> f64 {
        let wall = self.begun.elapsed();
        match (self.ticks, Self::ticks()) {
            (Some(before), Some(now)) if wall > TICKS => now.saturating_sub(before).as_secs_f64(),
            _ => wall.as_secs_f64(),
        }
    }
}

/// A condition to be measured: a run of it, and the number of images that its runs still have to be trained
/// on.
#[derive(Debug, Clone)]
pub struct Subject {
    /// One of its runs.
    pub run: RunConfig,
    /// Training images of all of its runs and epochs that are still to come.
    pub images: u64,
}

/// Measures each condition, several at a time on as many threads.
pub fn measure(subjects: &[Subject], dataset: &Dataset, threads: usize) -> Result<Vec<Speed>, BenchError> {
    let mut speeds = Vec::new();
    for some in subjects.chunks(threads.max(1)) {
        let results: Vec<Result<Speed, BenchError>> = std::thread::scope(|scope| {
            let workers: Vec<_> =
                some.iter().map(|subject| scope.spawn(|| alone(subject, dataset))).collect();
            workers.into_iter().map(|worker| worker.join().expect("a measurement does not panic")).collect()
        });
        for speed in results {
            speeds.push(speed?);
        }
    }
    Ok(speeds)
}

/// Measures a condition on one thread.
fn alone(subject: &Subject, dataset: &Dataset) -> Result<Speed, BenchError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.map_err(|e| BenchError::Threads { threads: 1, reason: e.to_string() })?;
    // On the pool's own thread, because the clock is that of the calling thread.
    pool.install(|| timed(subject, dataset))
}

fn timed(subject: &Subject, dataset: &Dataset) -> Result<Speed, BenchError> {
    let config = &subject.run;
    let testing = presentation(config, dataset);
    let training = Presentation { augmentation: Augmentation { ..config.augment }, ..testing.clone() };
    let split = &dataset.train;
    let order = philox::shuffle(config.seed, 1, split.len());
    let mut network = config.initial_network()?;
    let mut packed = Packed::new(&network, Isa::best())?;
    let optimiser = config.optimiser();
    let mut state = optimiser.start(network.weights.len());
    let mut gradients = vec![0.0; network.weights.len()];
    let scratch = Scratch::default();
    let mut samples = order.iter().cycle().copied();
    let mut images = FEWEST.min(config.batch);
    // Of each update: processor seconds per image, and those of the optimiser step.
    let mut updates: Vec<(f64, f64)> = Vec::new();
    let (mut spent, mut enough) = (0.0, SHORTEST);
    while !split.is_empty() && (updates.len() < 2 || spent < enough) {
        let chosen: Vec<u32> = samples.by_ref().take(images).collect();
        let clock = Clock::start();
        train_batch(
            &packed,
            config.time_steps,
            images,
            config.gradient,
            &scratch,
            |i, input, masks| {
                let index = chosen[i] as usize;
                training.show(split, index, 1, &mut present::Scratch::default(), input);
                masks.draw(config.dropout, config.seed, 1, split.sample(index), &config.network);
                split.label(index)
            },
            |_, trace| trace.class(),
            &mut gradients,
        )?;
        let of_images = clock.seconds();
        let clock = Clock::start();
        optimiser.step(&mut network.weights, &gradients, &mut state, config.learning_rate_of(1) as f32);
        packed.update(&network)?;
        let of_update = clock.seconds();
        spent += of_images + of_update;
        updates.push((of_images / images as f64, of_update));
        let of_image = of_images / images as f64;
        enough = (SHARE * subject.images as f64 * of_image).clamp(SHORTEST, LONGEST);
        let most = (UPDATE / of_image) as usize;
        images = (most / FEWEST * FEWEST).clamp(FEWEST.min(config.batch), config.batch);
    }
    // Only the last third counts: activity settles before it.
    let settled = &updates[updates.len() * 2 / 3..];
    let mean = |of: fn(&(f64, f64)) -> f64| settled.iter().map(of).sum::<f64>() / settled.len().max(1) as f64;
    let train = mean(|update| update.0) + mean(|update| update.1) / config.batch as f64;
    let show = |presentation: &Presentation, from: usize| -> Result<f64, BenchError> {
        let split = &dataset.test;
        let count = if split.is_empty() {
            0
        } else {
            ((0.125 * SHORTEST / train.max(1e-9)) as usize).clamp(FEWEST, 128)
        };
        let clock = Clock::start();
        infer(
            &packed,
            config.time_steps,
            count,
            &scratch,
            |i, input| {
                let index = (from + i) % split.len();
                presentation.show(split, index, EVALUATION_EPOCH, &mut present::Scratch::default(), input);
            },
            |_, trace| trace.class(),
        )?;
        Ok(clock.seconds() / count.max(1) as f64)
    };
    let infer = show(&testing, 0)?;
    let mut noisy = Vec::new();
    for key in &config.noise {
        for severity in MEASURED {
            let noise = setting(Stimulus::at(*key, severity), &config.severities).ok().flatten();
            let presentation =
                Presentation { encoding: testing.encoding.with_noise(noise), ..testing.clone() };
            noisy.push(show(&presentation, 0)?);
        }
    }
    let noisy = if noisy.is_empty() { infer } else { noisy.iter().sum::<f64>() / noisy.len() as f64 };
    Ok(Speed { train, infer, noisy })
}
