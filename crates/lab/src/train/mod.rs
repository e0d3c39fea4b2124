//! Training by the protocol of the paper's section 4.1. It can be interrupted at any moment and resumed, with
//! bit-identical results.
//!
//! The checkpoint contains everything that determines the rest of a run: weights, optimiser state, and the
//! counters of which every random number is a function. The records of an epoch (metrics, events, health) are
//! written before the checkpoint that completes it; a resumed run truncates these files to its checkpoint and
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
use crate::config::{InitialScale, RunConfig};
use crate::data::Dataset;
use crate::memory;
use crate::run::{self, RunError};
use leaklab_engine::{InputError, Isa, NetworkError};
use leaklab_record::{RecordError, RunFolder, RunLock, StudyFolder, hexadecimal, manifest};
use session::Session;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options that do not change a run's results (but see `isa`).
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Number of threads; if not set, as many as the machine has.
    pub threads: Option<usize>,
    /// Minutes between checkpoints within an epoch.
    pub checkpoint_minutes: f64,
    /// Stop when the run diverges or a layer becomes silent.
    pub stop_on_divergence: bool,
    /// Folder of the data sets; if not set, that of the run's settings.
    pub data_dir: Option<PathBuf>,
    /// Instruction set of the kernels. It determines the order in which gradients are summed, and is the only
    /// option that may change a run's last bits.
    pub isa: Isa,
    /// Weights that a new run starts with, instead of random ones. A resumed run has its own.
    pub initial: Option<Initial>,
    /// The processes that share the work; rank 0 trains, the others [`work`] for it.
    pub ranks: Ranks,
}

/// Weights that a run starts with.
#[derive(Debug, Clone, PartialEq)]
pub struct Initial {
    /// All weights, in the order of the network's parameters.
    pub weights: Vec<f32>,
}

impl Initial {
    /// SHA-256 of the weights, which is stored in the run's settings.
    pub fn digest(&self) -> String {
        let bytes: Vec<u8> = self.weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
        hexadecimal(Sha256::new_with_prefix(&bytes))
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
        "{}: there is a run here already; continue it with `leaklab train --resume {}` or choose another \
         --out",
        path.display(), path.display()
    )]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is that of a study, or that of its runs.
    #[error("{}: this is a folder of a study; choose another --out", path.display())]
    Study {
        /// The folder.
        path: PathBuf,
    },
    /// The run, its settings or its data cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Something could not be written; what was written before is intact.
    #[error(
        "{source}; the last checkpoint ({position}) is intact: correct this, then `leaklab train --resume \
         {}`",
        run.display()
    )]
    Write {
        /// The run.
        run: PathBuf,
        /// Position of the last checkpoint, in words.
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
    /// The initial weights cannot be scaled as `initial` requires.
    #[error("initial = \"rate\": {0}")]
    Calibration(#[from] CalibrationError),
    /// The training needs more memory than is available.
    #[error(transparent)]
    Memory(#[from] memory::TooLarge),
    /// Initial weights were given, so `initial = "rate"` has none to scale.
    #[error(
        "initial = \"rate\" scales the random weights of a new network, and initial weights were given; omit \
         one of them"
    )]
    Scaled,
    /// The initial weights belong to another network.
    #[error("{given} initial weights were given, and network {network} has {needed}")]
    Initial {
        /// The network's notation.
        network: String,
        /// Number of weights that were given.
        given: usize,
        /// Number of weights of the network.
        needed: usize,
    },
    /// The processes cannot work together.
    #[error(transparent)]
    Ranks(#[from] RankError),
    /// The threads cannot be started.
    #[error("{threads} threads cannot be started: {reason}")]
    Threads {
        /// The requested number.
        threads: usize,
        /// The message of the system.
        reason: String,
    },
}

impl From<RecordError> for TrainError {
    fn from(error: RecordError) -> Self {
        TrainError::Run(RunError::Record(error))
    }
}

/// Trains a new run in the folder `out`.
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
    if is_of_study(out) {
        return Err(TrainError::Study { path: out.to_owned() });
    }
    let ready = Ready::new_run(config, &folder, options)?;
    let lock = folder.lock()?;
    // Another process may have started a run while the data was read.
    if folder.exists() {
        return Err(TrainError::Exists { path: out.to_owned() });
    }
    manifest::write(&folder.run_toml(), &ready.config.to_toml())?;
    ready.go(folder, Arc::new(lock), options, report)
}

/// Whether a folder is that of a study, or the one that contains its runs.
fn is_of_study(folder: &Path) -> bool {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let of = folder.parent().map(StudyFolder::at);
    StudyFolder::at(&folder).exists() || of.is_some_and(|study| study.exists() && study.runs() == folder)
}

/// Resumes a run from its last good checkpoint. A finished run is not changed.
pub fn resume(
    run: &Path,
    options: &Options,
    report: &mut dyn FnMut(Event) -> Control,
) -> Result<Summary, TrainError> {
    let folder = RunFolder::open(run)?;
    let ready = Ready::started_run(&folder, options)?;
    let lock = folder.lock()?;
    ready.go(folder, Arc::new(lock), options, report)
}

/// Trains a run whose folder this process has locked: from its last good checkpoint if it was started before,
/// otherwise as a new run with `config`.
pub fn go_on(
    config: &RunConfig,
    folder: &RunFolder,
    lock: &Arc<RunLock>,
    options: &Options,
    report: &mut dyn FnMut(Event) -> Control,
) -> Result<Summary, TrainError> {
    let (folder, ready) = if folder.exists() {
        let folder = RunFolder::open(folder.path())?;
        let ready = Ready::started_run(&folder, options)?;
        (folder, ready)
    } else {
        let ready = Ready::new_run(config, folder, options)?;
        lock.check()?;
        manifest::write(&folder.run_toml(), &ready.config.to_toml())?;
        (folder.clone(), ready)
    };
    ready.go(folder, lock.clone(), options, report)
}

/// Everything that a training needs except its folder.
struct Ready {
    config: RunConfig,
    dataset: Dataset,
    pool: rayon::ThreadPool,
}

impl Ready {
    /// For a new run.
    fn new_run(config: &RunConfig, folder: &RunFolder, options: &Options) -> Result<Self, TrainError> {
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
            if config.initial == InitialScale::Rate {
                return Err(TrainError::Scaled);
            }
            config.initial_sha256 = Some(initial.digest());
        }
        Ok(Ready { config, dataset, pool })
    }

    /// For a run that was started before.
    fn started_run(folder: &RunFolder, options: &Options) -> Result<Self, TrainError> {
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

/// Largest number of threads that is accepted; more are assumed to be a typing error.
pub const MOST_THREADS: usize = 1024;

/// A pool of `count` threads; if not set, as many as the machine has.
pub fn threads(count: Option<usize>) -> Result<rayon::ThreadPool, TrainError> {
    if let Some(threads) = count.filter(|count| !(1..=MOST_THREADS).contains(count)) {
        let reason = format!("a whole number from 1 to {MOST_THREADS} is expected");
        return Err(TrainError::Threads { threads, reason });
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    check_address_space(count.unwrap_or(cores), cores)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count.unwrap_or(0)).build();
    pool.map_err(|e| TrainError::Threads { threads: count.unwrap_or(0), reason: e.to_string() })
}

/// Address space of a thread in bytes: the stack of 2 MiB, and a margin for its guard pages and the stack of
/// its signal handler.
const THREAD_SPACE: u64 = 9 << 18;
/// Address space that the C library reserves for the allocations of a thread, for up to eight threads per
/// core.
const ARENA_SPACE: u64 = 64 << 20;
const ARENAS_PER_CORE: usize = 8;

/// Refuses more threads than the address space has room for (`ulimit -v`): the process would be aborted when
/// one of them starts. If the system does not report a limit, nothing is refused.
fn check_address_space(threads: usize, cores: usize) -> Result<(), TrainError> {
    let Some(free) = memory::free_address_space() else { return Ok(()) };
    let arenas = threads.min(cores * ARENAS_PER_CORE);
    let needed = threads as u64 * THREAD_SPACE + arenas as u64 * ARENA_SPACE;
    if needed <= free {
        return Ok(());
    }
    let (needed, free) = (needed >> 20, free >> 20);
    let reason = format!(
        "they need about {needed} MiB of address space, and its limit (ulimit -v) leaves {free} MiB; choose \
         fewer"
    );
    Err(TrainError::Threads { threads, reason })
}
