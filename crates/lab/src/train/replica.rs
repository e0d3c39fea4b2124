//! What every process of a training has, and does, the same: settings, images, weights, optimiser; a batch,
//! an update, a share of an evaluation. One process alone has all of it, and no other to talk to.

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
    /// The network as the kernels want it; updated before it is used.
    pub packed: Packed,
    pub state: State,
    pub gradients: Vec<f32>,
    scratch: Scratch,
    /// How training images are shown.
    training: Presentation,
    /// How test images are shown.
    testing: Presentation,
    /// The epoch whose order of images is known, and the order.
    order: (u64, Vec<u32>),
    pub times: Times,
    /// Whether this process was asked to stop, and after a shared batch, whether any was.
    pub asked: bool,
}

/// Where the time of shared batches went.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    /// In batches, all in all.
    pub all: Duration,
    /// Waiting for processes that were not done yet.
    pub waiting: Duration,
    /// Passing letters on.
    pub passing: Duration,
}

/// What one training sample gave.
pub(super) struct Scored {
    pub correct: bool,
    pub sse: f64,
    /// Spikes of each hidden layer, where asked for.
    pub spikes: Vec<u64>,
}

impl Scored {
    fn write(&self, letter: &mut Vec<u32>) {
        ranks::write_whole(&[u64::from(self.correct), self.sse.to_bits()], letter);
        ranks::write_whole(&self.spikes, letter);
    }

    fn read(numbers: &[u64]) -> Self {
        let [correct, sse, spikes @ ..] = numbers else { unreachable!("as it was written") };
        Scored { correct: *correct != 0, sse: f64::from_bits(*sse), spikes: spikes.to_vec() }
    }
}

/// How a run shows its training images, and its test images.
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
            packed: Packed::new(&network, isa)?,
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

    /// Rank 0 tells the others what is next. Alone there is nobody to tell.
    pub fn tell(&self, order: Order) -> Result<(), TrainError> {
        if let Ranks::World(world) = &self.ranks {
            ranks::tell(&**world, Some(&order))?;
        }
        Ok(())
    }

    /// Runs a batch forward and backward. What each sample gave is returned, in order; the gradient is kept.
    pub fn batch(&mut self, epoch: u64, batch: u64) -> Result<Vec<Scored>, TrainError> {
        if self.order.0 != epoch {
            self.order = (epoch, philox::shuffle(self.config.seed, epoch as u32, self.dataset.train.len()));
        }
        let Replica { config, training, packed, network, scratch, gradients, pool, ranks, .. } = self;
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
        pool.install(|| packed.update(network))?;
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
                let mut letter = vec![u32::from(self.asked)];
                own.iter().for_each(|sample| sample.write(&mut letter));
                let letters = timed(times, &**world, || world.all_gather(letter))?;
                times.all += start.elapsed();
                self.asked = letters.iter().any(|letter| letter[0] != 0);
                let samples = letters.iter().map(|letter| ranks::read_whole(&letter[1..]));
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

    /// Images of a kind.
    pub fn images(&self, images: Images) -> &Split {
        match images {
            Images::Test => &self.dataset.test,
            Images::Fitted => &self.fitted,
        }
    }

    /// What some images give in evaluation, in order. The weights must have been packed.
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
                let mut letter = Vec::new();
                for image in own(range.start + share.start..range.start + share.end)? {
                    ranks::write_whole(&image.numbers(), &mut letter);
                }
                let numbers = Measured::numbers_of(&self.config.network);
                let letters = world.all_gather(letter)?;
                let whole: Vec<u64> = letters.iter().flat_map(|letter| ranks::read_whole(letter)).collect();
                let measured = whole.chunks_exact(numbers);
                Ok(measured.map(|numbers| Measured::from_numbers(&self.config.network, numbers)).collect())
            }
        }
    }
}

/// A batch that is shared with other processes. Returns what this process's samples gave.
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
        let (own, letters) = pool.install(|| shared.run(round, scratch, &prepare, &measure))?;
        scored.extend(own);
        let letters = timed(times, world, || world.all_to_all(letters))?;
        let sums = pool.install(|| shared.sum(round, &letters));
        let sums = timed(times, world, || world.all_gather(sums))?;
        pool.install(|| shared.add(round, &sums, gradients));
    }
    Ok(scored)
}

/// What all processes' samples gave, in the order of the batch: each process has some of each round.
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

/// Passes letters on once all are ready to.
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
