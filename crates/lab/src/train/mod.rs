//! Training that can be trusted: the protocol of the paper's section 4.1, interrupted at any moment and
//! continued to the same bits.
//!
//! Everything that decides what happens next is in the checkpoint: weights, optimiser, and counters that
//! every random number is a function of. What is written about an epoch (metrics, events, health) goes to
//! disk before the checkpoint that completes it; a resumed run cuts these files back to its checkpoint and
//! writes the same lines again.

mod epoch;
mod event;
mod initial;
mod ranks;
mod replica;
mod session;
#[cfg(test)]
mod tests;
mod worker;

pub use event::{Batch, Control, Event, Outcome, Summary};
pub use ranks::{Launch, RankError, Ranks, World};
pub use worker::work;

use crate::calibrate::CalibrationError;
use crate::config::RunConfig;
use crate::data::Dataset;
use crate::memory;
use crate::run::{self, RunError};
use leaklab_engine::{InputError, Isa, NetworkError};
use leaklab_record::{RecordError, RunFolder, RunLock, manifest};
use session::Session;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What does not change a run's results (but see `isa`).
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Threads to use; as many as the machine has if not set.
    pub threads: Option<usize>,
    /// Minutes between checkpoints within an epoch.
    pub checkpoint_minutes: f64,
    /// Stop when the run diverges or dies out.
    pub stop_on_divergence: bool,
    /// Where the data sets are, if not where the run's settings say.
    pub data_dir: Option<PathBuf>,
    /// Instruction set of the kernels. Gradients are summed in its order: the one option that may change a
    /// run's last bits.
    pub isa: Isa,
    /// Weights that a new run begins with, in place of random ones. A run that is continued has its own.
    pub initial: Option<Initial>,
    /// The processes that share the work; rank 0 trains, the others [`work`] for it.
    pub ranks: Ranks,
}

/// Weights that a run begins with.
#[derive(Debug, Clone, PartialEq)]
pub struct Initial {
    /// All weights, in the order of the network's parameters.
    pub weights: Vec<f32>,
}

impl Initial {
    /// SHA-256 of the weights, which the run's settings keep.
    pub fn digest(&self) -> String {
        let bytes: Vec<u8> = self.weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
        Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threads: None,
            checkpoint_minutes: 10.0,
            stop_on_divergence: false,
            data_dir: None,
            isa: Isa::best(),
            initial: None,
            ranks: Ranks::Alone,
        }
    }
}

/// Why training failed.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The folder holds a run already.
    #[error(
        "{}: there is a run here already; continue it with `leaklab train --resume {}` or choose another --out",
        path.display(), path.display()
    )]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The run, its settings or its data cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Something could not be written; what was written before is intact.
    #[error("{source}; the last checkpoint ({position}) is intact: put this right, then `leaklab train --resume {}`", run.display())]
    Write {
        /// The run.
        run: PathBuf,
        /// Where the last checkpoint stands, in words.
        position: String,
        /// What went wrong.
        source: RecordError,
    },
    /// The network cannot be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// An input does not fit the network.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The initial weights cannot be scaled as `initial` says.
    #[error("initial = \"rate\": {0}")]
    Calibration(#[from] CalibrationError),
    /// The training needs more memory than there is.
    #[error(transparent)]
    Memory(#[from] memory::TooLarge),
    /// The initial weights are another network's.
    #[error("{given} initial weights were given, and network {network} has {needed}")]
    Initial {
        /// The network's notation.
        network: String,
        /// Weights that were given.
        given: usize,
        /// Weights that it has.
        needed: usize,
    },
    /// The processes cannot work together.
    #[error(transparent)]
    Ranks(#[from] RankError),
    /// The threads cannot be started.
    #[error("{threads} threads cannot be started: {reason}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        reason: String,
    },
}

impl From<RecordError> for TrainError {
    fn from(error: RecordError) -> Self {
        TrainError::Run(RunError::Record(error))
    }
}

/// Trains a new run into the folder `out`.
pub fn train(
    config: &RunConfig,
    out: &Path,
    options: &Options,
    report: &mut dyn FnMut(Event) -> Control,
) -> Result<Summary, TrainError> {
    let folder = RunFolder::at(out);
    if folder.exists() {
        return Err(TrainError::Exists { path: out.to_owned() });
    }
    let ready = Ready::anew(config, &folder, options)?;
    let lock = folder.lock()?;
    // Another process may have begun a run while the data was read.
    if folder.exists() {
        return Err(TrainError::Exists { path: out.to_owned() });
    }
    manifest::write(&folder.run_toml(), &ready.config.to_toml())?;
    ready.go(folder, Arc::new(lock), options, report)
}

/// Continues a run from its last good checkpoint. A finished run is left as it is.
pub fn resume(
    run: &Path,
    options: &Options,
    report: &mut dyn FnMut(Event) -> Control,
) -> Result<Summary, TrainError> {
    let folder = RunFolder::open(run)?;
    let ready = Ready::as_begun(&folder, options)?;
    let lock = folder.lock()?;
    ready.go(folder, Arc::new(lock), options, report)
}

/// Trains a run whose folder this process has locked: from its last good checkpoint if it was begun, as
/// `config` says if not.
pub fn go_on(
    config: &RunConfig,
    folder: &RunFolder,
    lock: &Arc<RunLock>,
    options: &Options,
    report: &mut dyn FnMut(Event) -> Control,
) -> Result<Summary, TrainError> {
    let (folder, ready) = if folder.exists() {
        let folder = RunFolder::open(folder.path())?;
        let ready = Ready::as_begun(&folder, options)?;
        (folder, ready)
    } else {
        let ready = Ready::anew(config, folder, options)?;
        manifest::write(&folder.run_toml(), &ready.config.to_toml())?;
        (folder.clone(), ready)
    };
    ready.go(folder, lock.clone(), options, report)
}

/// All that a training needs besides its folder.
struct Ready {
    config: RunConfig,
    dataset: Dataset,
    pool: rayon::ThreadPool,
}

impl Ready {
    /// For a new run.
    fn anew(config: &RunConfig, folder: &RunFolder, options: &Options) -> Result<Self, TrainError> {
        let pool = threads(options.threads)?;
        check_memory(config, &pool)?;
        let mut config = config.clone();
        let (dataset, digest) = run::load_pinned(&run::with_own_data(config.clone(), folder))?;
        config.data_sha256 = digest;
        if let Some(initial) = &options.initial {
            let (given, needed) = (initial.weights.len(), config.network.parameter_count());
            if given != needed {
                return Err(TrainError::Initial { network: config.network.to_string(), given, needed });
            }
            config.initial_sha256 = Some(initial.digest());
        }
        Ok(Ready { config, dataset, pool })
    }

    /// For a run that was begun.
    fn as_begun(folder: &RunFolder, options: &Options) -> Result<Self, TrainError> {
        let mut config = run::read_config(folder)?;
        config.data_dir = options.data_dir.clone().or(config.data_dir);
        let pool = threads(options.threads)?;
        check_memory(&config, &pool)?;
        let dataset = run::load_dataset(&config)?;
        Ok(Ready { config, dataset, pool })
    }

    fn go(
        self,
        folder: RunFolder,
        lock: Arc<RunLock>,
        options: &Options,
        report: &mut dyn FnMut(Event) -> Control,
    ) -> Result<Summary, TrainError> {
        Session::open(self.config, folder, lock, self.dataset, self.pool, options)?.run(report)
    }
}

fn check_memory(config: &RunConfig, pool: &rayon::ThreadPool) -> Result<(), memory::TooLarge> {
    let threads = pool.current_num_threads();
    memory::check_training(&config.network, config.optimiser(), config.time_steps, config.batch, threads)
}

/// More threads than this are a slip of the finger.
pub const MOST_THREADS: usize = 1024;

/// A pool of threads; as many as the machine has if not set.
pub fn threads(count: Option<usize>) -> Result<rayon::ThreadPool, TrainError> {
    if let Some(threads) = count.filter(|count| !(1..=MOST_THREADS).contains(count)) {
        let reason = format!("a whole number from 1 to {MOST_THREADS} is expected");
        return Err(TrainError::Threads { threads, reason });
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count.unwrap_or(0)).build();
    pool.map_err(|e| TrainError::Threads { threads: count.unwrap_or(0), reason: e.to_string() })
}
