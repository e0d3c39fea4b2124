//! The state and the work that all processes of a training have in common: settings, images, weights and
//! optimiser; batches, updates and shares of evaluations. A single process does the same without
//! communication.

use super::TrainError;
use super::ranks::{self, Images, Order, Ranks, World};
use crate::config::RunConfig;
use crate::data::{Augmentation, Dataset, Presentation, Split, present, subset};
use crate::evaluate::{self, Measured};
use crate::run;
use leaklab_engine::optimiser::State;
use leaklab_engine::{Input, Isa, Masks, Network, Packed, Scratch, SharedBatch, Trace, philox, train_batch};
use rayon::ThreadPool;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A copy of the training in one process.
pub(super) struct Replica {
    pub config: RunConfig,
    pub dataset: Dataset,
    /// The part of the training images that is evaluated after each epoch.
    pub fitted: Split,
    pub pool: ThreadPool,
    pub ranks: Ranks,
    /// Threads of all processes together.
    pub threads: usize,
    pub network: Network,
    /// The weights in the layout of the kernels; updated before use.
    pub packed: Packed,
    pub state: State,
    pub gradients: Vec<f32>,
    scratch: Scratch,
    /// How training images are shown.
    training: Presentation,
    /// How test images are shown.
    testing: Presentation,
    /// An epoch, and its order of images.
    order: (u64, Vec<u32>),
    pub times: Times,
    /// Whether this process was asked to stop, and after a shared batch, whether any was.
    pub asked: bool,
}

/// Durations of shared batches.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    /// Total time in batches.
    pub all: Duration,
    /// Waiting for processes that were not ready.
    pub waiting: Duration,
    /// Exchanging messages.
    pub passing: Duration,
}

/// The result of one training sample.
pub(super) struct Scored {
    pub correct: bool,
    pub sse: f64,
    /// Spikes of each hidden layer, if they are counted.
    pub spikes: Vec<u64>,
}

impl Scored {
    fn write(&self, message: &mut Vec<u32>) {
        ranks::write_whole(&[u64::from(self.correct), self.sse.to_bits()], message);
        ranks::write_whole(&self.spikes, message);
    }

    fn read(numbers: &[u64]) -> Self {
        let [correct, sse, spikes @ ..] = numbers else { unreachable!("numbers as `write` wrote them") };
        Scored { correct: *correct != 0, sse: f64::from_bits(*sse), spikes: spikes.to_vec() }
    }
}

/// The presentations of a run's training images and of its test images.
pub(super) fn presentations(config: &RunConfig, dataset: &Dataset, isa: Isa) -> (Presentation, Presentation) {
    let testing = evaluate::presentation(config, dataset).with_isa(isa);
    (Presentation { augmentation: Augmentation { ..config.augment }, ..testing.clone() }, testing)
}

impl Replica {
    pub fn new(
        config: RunConfig,
        dataset: Dataset,
        pool: ThreadPool,
        network: Network,
        state: State,
        isa: Isa,
        ranks: &Ranks,
    ) -> Result<Self, TrainError> {
        let fitted = match config.evaluate_train_images {
            0 => Split::default(),
            n => subset::balanced(&dataset.train, dataset.classes, n, run::SUBSET_SEED),
        };
        let (training, testing) = presentations(&config, &dataset, isa);
        Ok(Replica {
            threads: pool.current_num_threads(),
            gradients: vec![0.0; network.weights.len()],
            packed: pool.install(|| Packed::new(&network, isa))?,
            scratch: Scratch::default(),
            order: (0, Vec::new()),
            times: Times::default(),
            asked: false,
            ranks: ranks.clone(),
            config,
            dataset,
            fitted,
            pool,
            network,
            state,
            training,
            testing,
        })
    }

    /// Updates per epoch.
    pub fn batches(&self) -> u64 {
        self.dataset.train.len().div_ceil(self.config.batch) as u64
    }

    /// Sends an order of rank 0 to the others, if there are any.
    pub fn tell(&self, order: Order) -> Result<(), TrainError> {
        if let Ranks::World(world) = &self.ranks {
            ranks::tell(&**world, Some(&order))?;
        }
        Ok(())
    }

    /// Packs the current weights.
    pub fn pack(&mut self) -> Result<(), TrainError> {
        let Replica { packed, network, pool, .. } = self;
        Ok(pool.install(|| packed.update(network))?)
    }

    /// Runs a batch forward and backward. Returns the result of each sample, in order, and stores the
    /// gradient.
    pub fn batch(&mut self, epoch: u64, batch: u64) -> Result<Vec<Scored>, TrainError> {
        if self.order.0 != epoch {
            self.order = (epoch, philox::shuffle(self.config.seed, epoch as u32, self.dataset.train.len()));
        }
        self.pack()?;
        let Replica { config, training, packed, scratch, gradients, pool, ranks, .. } = self;
        let split = &self.dataset.train;
        let from = batch as usize * config.batch;
        let samples = &self.order.1[from..(from + config.batch).min(self.order.1.len())];
        let counted = if batch == 0 { config.network.hidden().len() } else { 0 };
        let prepare = |i: usize, input: &mut Input, masks: &mut Masks| {
            let index = samples[i] as usize;
            training.show(split, index, epoch as u32, &mut present::Scratch::default(), input);
            masks.draw(config.dropout, config.seed, epoch as u32, split.sample(index), &config.network);
            split.label(index)
        };
        let measure = |i: usize, trace: &Trace| {
            let label = split.label(samples[i] as usize);
            let spikes = (0..counted).map(|layer| trace.spikes(layer).count()).collect();
            Scored { correct: trace.class() == label, sse: trace.sse(label), spikes }
        };
        match ranks {
            Ranks::Alone => pool.install(|| {
                let (steps, mode) = (config.time_steps, config.gradient);
                Ok(train_batch(packed, steps, samples.len(), mode, scratch, prepare, measure, gradients)?)
            }),
            Ranks::World(world) => {
                let shared = SharedBatch {
                    packed,
                    steps: config.time_steps,
                    samples: samples.len(),
                    mode: config.gradient,
                    place: world.place(),
                    threads: self.threads,
                };
                let start = Instant::now();
                let times = &mut self.times;
                let own = share(&shared, &**world, pool, scratch, prepare, measure, gradients, times)?;
                let mut message = vec![u32::from(self.asked)];
                own.iter().for_each(|sample| sample.write(&mut message));
                let messages = timed(times, &**world, || world.all_gather(message))?;
                times.all += start.elapsed();
                self.asked = messages.iter().any(|message| message[0] != 0);
                let samples = messages.iter().map(|message| ranks::read_whole(&message[1..]));
                let samples =
                    samples.map(|numbers| numbers.chunks_exact(2 + counted).map(Scored::read).collect());
                Ok(in_order(&shared, samples.collect()))
            }
        }
    }

    /// Updates the weights by the gradient of the last batch.
    pub fn step(&mut self, epoch: u64) {
        let learning_rate = self.config.learning_rate_of(epoch) as f32;
        self.config.optimiser().step(
            &mut self.network.weights,
            &self.gradients,
            &mut self.state,
            learning_rate,
        );
    }

    /// The images of a kind.
    pub fn images(&self, images: Images) -> &Split {
        match images {
            Images::Test => &self.dataset.test,
            Images::Fitted => &self.fitted,
        }
    }

    /// The results of some images in evaluation, in order. The weights must have been packed.
    pub fn measure(
        &self,
        images: Images,
        range: Range<usize>,
        scratch: &Scratch,
    ) -> Result<Vec<Measured>, TrainError> {
        let split = self.images(images);
        let own = |range| evaluate::measure(&self.packed, &self.testing, split, range, &self.pool, scratch);
        match &self.ranks {
            Ranks::Alone => Ok(own(range)?),
            Ranks::World(world) => {
                let share = world.place().samples(range.len());
                let mut message = Vec::new();
                for image in own(range.start + share.start..range.start + share.end)? {
                    ranks::write_whole(&image.numbers(), &mut message);
                }
                let numbers = Measured::numbers_of(&self.config.network);
                let messages = world.all_gather(message)?;
                let whole: Vec<u64> =
                    messages.iter().flat_map(|message| ranks::read_whole(message)).collect();
                let measured = whole.chunks_exact(numbers);
                Ok(measured.map(|numbers| Measured::from_numbers(&self.config.network, numbers)).collect())
            }
        }
    }
}

/// Runs a batch that is shared with other processes. Returns the results of this process's samples.
fn share(
    shared: &SharedBatch,
    world: &dyn World,
    pool: &ThreadPool,
    scratch: &Scratch,
    prepare: impl Fn(usize, &mut Input, &mut Masks) -> usize + Sync,
    measure: impl Fn(usize, &Trace) -> Scored + Sync,
    gradients: &mut [f32],
    times: &mut Times,
) -> Result<Vec<Scored>, TrainError> {
    gradients.fill(0.0);
    let mut scored = Vec::new();
    for round in 0..shared.rounds() {
        let (own, messages) = pool.install(|| shared.run(round, scratch, &prepare, &measure))?;
        scored.extend(own);
        let messages = timed(times, world, || world.all_to_all(messages))?;
        let sums = pool.install(|| shared.sum(round, &messages));
        let sums = timed(times, world, || world.all_gather(sums))?;
        pool.install(|| shared.add(round, &sums, gradients));
    }
    Ok(scored)
}

/// The results of all processes, in the order of the batch: each process has some samples of each round.
fn in_order(shared: &SharedBatch, ranks: Vec<Vec<Scored>>) -> Vec<Scored> {
    let mut ranks: Vec<_> = ranks.into_iter().map(Vec::into_iter).collect();
    let mut scored = Vec::with_capacity(shared.samples);
    for round in 0..shared.rounds() {
        for (rank, samples) in ranks.iter_mut().enumerate() {
            scored.extend(samples.take(shared.samples_of(round, rank).len()));
        }
    }
    scored
}

/// Exchanges messages once all processes are ready, and measures the time.
fn timed<R>(
    times: &mut Times,
    world: &dyn World,
    pass: impl FnOnce() -> Result<R, ranks::RankError>,
) -> Result<R, ranks::RankError> {
    let start = Instant::now();
    world.wait()?;
    let ready = Instant::now();
    let result = pass()?;
    times.waiting += ready - start;
    times.passing += ready.elapsed();
    Ok(result)
}
