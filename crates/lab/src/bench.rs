//! Measures how fast this machine runs a network, relative to the load ceiling: the highest rate of additions
//! that it can reach.
//!
//! All figures of a report come from one run, so that their ratios are meaningful on a busy machine; times
//! are medians with their range. An operation is one synaptic operation in one pass: inference does each
//! once, training three times (forward pass, gradient of the spikes, gradient of the weights; the input of
//! the first layer needs no gradient).

use crate::calibrate::{CalibrationError, rates, scale_to_rates};
use crate::evaluate::Inputs;
use crate::memory;
use leaklab_engine::encode::{Encoding, encode};
use leaklab_engine::optimiser::Optimiser;
use leaklab_engine::philox::{Purpose, Stream};
use leaklab_engine::simd::add_random_rows;
use leaklab_engine::{
    Architecture, Gradient, Input, InputError, Isa, Masks, Network, NetworkError, Packed, Scratch, Shape,
    infer, train_batch,
};
use leaklab_record::machine::processor;
use serde::Serialize;
use std::time::Instant;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Time steps.
    pub time_steps: usize,
    /// Images of a mini-batch.
    pub batch: usize,
    /// Number of threads.
    pub threads: usize,
    /// Number of measurements of each kind.
    pub repeats: usize,
    /// Instruction set.
    pub isa: Isa,
    /// Fraction of neurons dropped in training.
    pub dropout: f32,
    /// Whether to time training too.
    pub train: bool,
}

/// Seconds and operations of one kind of work.
#[derive(Debug, Clone, Serialize)]
pub struct Timing {
    /// Median wall time per image.
    pub seconds_per_image: f64,
    /// Shortest and longest wall time per image.
    pub seconds_per_image_range: [f64; 2],
    /// Synaptic operations per second, over all threads.
    pub operations_per_second: f64,
    /// Operations per second, relative to the load ceiling of the machine.
    pub fraction_of_ceiling: f64,
}

/// Spike rate of one layer.
#[derive(Debug, Clone, Serialize)]
pub struct LayerRate {
    /// The layer.
    pub layer: String,
    /// Spikes per neuron and step.
    pub spike_rate: f64,
}

/// The measurements and their settings.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The network's notation.
    pub network: String,
    /// Time constant in steps; `inf` for no leak.
    pub tau: String,
    /// Time steps.
    pub time_steps: usize,
    /// Images of a mini-batch.
    pub batch: usize,
    /// Number of threads.
    pub threads: usize,
    /// Instruction set.
    pub isa: String,
    /// The processor, if the system reports it.
    pub processor: Option<String>,
    /// Training: forward pass, backward pass and optimiser.
    pub train: Option<Timing>,
    /// Inference: forward pass only.
    pub infer: Timing,
    /// Time to encode one image, on one thread.
    pub encode_seconds_per_image: f64,
    /// Spike rate of each hidden layer.
    pub spike_rate: Vec<LayerRate>,
    /// Synaptic operations per image, mean over the batch.
    pub synops_per_image: f64,
    /// The load ceiling: additions per second of all threads together, each with one load from the L1 cache.
    pub ceiling_operations_per_second: f64,
    /// Peak memory of the process, if the system reports it.
    pub peak_rss_bytes: Option<u64>,
}

/// Why a benchmark could not be run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The network is not valid.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The input is not valid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The weights cannot be scaled to the target spike rate.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// The thread pool could not be created.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// The requested number of threads.
        threads: usize,
        /// The error of the operating system.
        reason: String,
    },
}

/// Smooth random images with values in [-1, 1], whose root mean square is about that of normalised
/// photographs.
pub fn pictures(architecture: &Architecture, count: usize) -> Vec<Vec<f32>> {
    let shape = architecture.input();
    let waves = 24;
    (0..count)
        .map(|picture| {
            let stream = Stream::new(1, Purpose::Benchmark, 0, picture as u32);
            let mut image = vec![0.0f32; shape.neurons()];
            for wave in 0..waves {
                let at = |i: usize| stream.uniform_at(wave * 8 + i);
                let size = 1 + wave / 3;
                let (fy, fx) = (at(0) * size as f32, at(1) * size as f32);
                for channel in 0..shape.channels {
                    let amplitude = (0.6 + 0.4 * at(3 + channel % 4)) / size as f32;
                    let phase = std::f32::consts::TAU * (at(2) + 0.1 * at(3 + channel % 4));
                    for y in 0..shape.height {
                        for x in 0..shape.width {
                            let angle =
                                fy * y as f32 / shape.height as f32 + fx * x as f32 / shape.width as f32;
                            image[(channel * shape.height + y) * shape.width + x] +=
                                amplitude * (std::f32::consts::TAU * angle + phase).sin();
                        }
                    }
                }
            }
            let mean_square = image.iter().map(|x| x * x).sum::<f32>() / image.len() as f32;
            let scale = 0.5 / mean_square.sqrt().max(f32::MIN_POSITIVE);
            image.iter().map(|x| (x * scale).clamp(-1.0, 1.0)).collect()
        })
        .collect()
}

/// A function that encodes image `i` into an input.
fn encoded(images: &[Vec<f32>], shape: Shape, steps: usize) -> impl Fn(usize, &mut Input) + Sync + '_ {
    move |i, input| encode(&images[i], shape, &Encoding::clean(steps), 0, 0, i as u32, input)
}

/// Scales the weights layer by layer until every hidden conv and fully connected layer fires at `rate`.
pub fn calibrate(network: &mut Network, rate: f64, settings: &Settings) -> Result<(), BenchError> {
    let (images, steps) = (pictures(&network.architecture, 4), settings.time_steps);
    let show = encoded(&images, network.architecture.input(), steps);
    let inputs = Inputs { count: images.len(), steps, show };
    let wanted = vec![rate; network.architecture.hidden().len()];
    Ok(scale_to_rates(network, &wanted, &inputs, settings.isa)?)
}

fn median_timing(mut seconds: Vec<f64>, operations: f64, ceiling: f64) -> Timing {
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    let operations_per_second = operations / median;
    Timing {
        seconds_per_image: median,
        seconds_per_image_range: [seconds[0], seconds[seconds.len() - 1]],
        operations_per_second,
        fraction_of_ceiling: operations_per_second / ceiling,
    }
}

/// Additions per second of all threads together.
fn ceiling(isa: Isa, threads: usize) -> f64 {
    let one = || {
        // Each trial takes a few milliseconds. The best of several counts, since other processes can only
        // slow it down.
        let trial = |_| {
            let start = Instant::now();
            let (operations, sum) = add_random_rows(isa, 400);
            std::hint::black_box(sum);
            operations as f64 / start.elapsed().as_secs_f64()
        };
        (0..12).map(trial).fold(0.0, f64::max)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        workers.into_iter().map(|worker| worker.join().expect("the worker cannot panic")).sum()
    })
}

/// Measures inference and training of `network` on `images`, which are used in turn. If there are none,
/// synthetic images are used.
pub fn run(network: &Network, settings: &Settings, images: &[Vec<f32>]) -> Result<Report, BenchError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(settings.threads)
        .build()
        .map_err(|e| BenchError::Threads { threads: settings.threads, reason: e.to_string() })?;
    let made;
    let images = if images.is_empty() {
        made = pictures(&network.architecture, settings.batch.min(64));
        &made
    } else {
        images
    };
    pool.install(|| measure(network, settings, images))
}

fn measure(network: &Network, settings: &Settings, images: &[Vec<f32>]) -> Result<Report, BenchError> {
    let Settings { time_steps, batch, isa, .. } = *settings;
    let shape = network.architecture.input();
    let encoding = Encoding::clean(time_steps);
    let show = |i: usize, input: &mut Input| {
        encode(&images[i % images.len()], shape, &encoding, 0, 0, i as u32, input);
    };
    let packed = Packed::new(network, isa)?;
    let scratch = Scratch::default();
    let synops: Vec<Vec<u64>> = infer(&packed, time_steps, batch, &scratch, show, |_, trace| trace.synops())?;
    let total =
        |skip: usize| synops.iter().flat_map(|image| &image[skip..]).sum::<u64>() as f64 / batch as f64;
    let (all, hidden) = (total(0), total(1));
    let ceiling_before = ceiling(isa, settings.threads);
    let mut inferring = Vec::new();
    for _ in 0..settings.repeats {
        let start = Instant::now();
        let classes = infer(&packed, time_steps, batch, &scratch, show, |_, trace| trace.class())?;
        std::hint::black_box(classes);
        inferring.push(start.elapsed().as_secs_f64() / batch as f64);
    }
    let mut training = Vec::new();
    if settings.train {
        let mut network = network.clone();
        let optimiser = Optimiser::SGD;
        let mut state = optimiser.start(network.weights.len());
        let mut gradients = vec![0.0; network.weights.len()];
        let mut packed = Packed::new(&network, isa)?;
        for repeat in 0..=settings.repeats {
            let start = Instant::now();
            packed.update(&network)?;
            let architecture = packed.architecture();
            let prepare = |i: usize, input: &mut Input, masks: &mut Masks| {
                show(i, input);
                masks.draw(settings.dropout, 0, 0, i as u32, architecture);
                i % architecture.classes()
            };
            let mode = Gradient::StraightThrough;
            train_batch(
                &packed,
                time_steps,
                batch,
                mode,
                &scratch,
                prepare,
                |_, t| t.class(),
                &mut gradients,
            )?;
            // With a learning rate of zero, all the work is done and the activity does not change.
            optimiser.step(&mut network.weights, &gradients, &mut state, 0.0);
            if repeat > 0 {
                training.push(start.elapsed().as_secs_f64() / batch as f64);
            }
        }
    }
    let ceiling = ceiling(isa, settings.threads).max(ceiling_before);
    let mut encoding_times: Vec<f64> = (0..9)
        .map(|i| {
            let mut input = Input::silent(shape, time_steps);
            let start = Instant::now();
            show(i, &mut input);
            start.elapsed().as_secs_f64()
        })
        .collect();
    encoding_times.sort_by(f64::total_cmp);
    let show = encoded(images, packed.architecture().input(), time_steps);
    let rates = rates(&packed, &Inputs { count: images.len().min(8), steps: time_steps, show })?;
    Ok(Report {
        network: network.architecture.to_string(),
        tau: network.leak().to_string(),
        time_steps,
        batch,
        threads: settings.threads,
        isa: isa.to_string(),
        processor: processor(),
        train: settings.train.then(|| median_timing(training, all * 2.0 + hidden, ceiling)),
        infer: median_timing(inferring, all, ceiling),
        encode_seconds_per_image: encoding_times[encoding_times.len() / 2],
        spike_rate: network
            .architecture
            .hidden()
            .iter()
            .zip(rates)
            .map(|(layer, spike_rate)| LayerRate { layer: layer.name.clone(), spike_rate })
            .collect(),
        synops_per_image: all,
        ceiling_operations_per_second: ceiling,
        peak_rss_bytes: peak_rss(),
    })
}

/// Peak memory of this process.
pub fn peak_rss() -> Option<u64> {
    memory::kilobytes_of(&std::fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}
