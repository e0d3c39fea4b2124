//! The processes that train one run together: a single one, or a world of ranks.
//!
//! Rank 0 controls the training: it holds the lock, decides, reports and writes. The others follow its orders
//! ([`Order`]) and have the same weights because they do the same arithmetic on the same gradients. Training
//! needs only the few operations of [`World`], so another MPI binding would be one more file, and tests can
//! run a world in threads.

#[cfg(feature = "mpi")]
mod mpi;
#[cfg(test)]
pub(super) mod threads;

use leaklab_engine::Place;
use std::fmt;
use std::sync::Arc;

/// Communication with the other processes. Every function is called by all of them, in the same order, from
/// the thread that trains.
pub trait World: Send + Sync {
    /// Rank of this process, and the number of ranks.
    fn place(&self) -> Place;
    /// Broadcast: returns on every rank what rank 0 passes in.
    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, RankError>;
    /// All-gather: returns on every rank the messages of all ranks.
    fn all_gather(&self, message: Vec<u32>) -> Result<Vec<Vec<u32>>, RankError>;
    /// All-to-all: takes a message to each rank, and returns the message from each rank.
    fn all_to_all(&self, messages: Vec<Vec<u32>>) -> Result<Vec<Vec<u32>>, RankError>;
    /// Barrier: waits until all ranks have arrived.
    fn wait(&self) -> Result<(), RankError>;
    /// Ends all processes at once.
    fn abort(&self, code: i32) -> !;
}

/// Why processes cannot train together.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RankError {
    /// The library reports an error.
    #[error("MPI: {0}")]
    Library(String),
    /// A process differs from rank 0.
    #[error("rank {rank} has {what} {found}, and rank 0 has {expected}; {remedy}")]
    Unlike {
        /// The rank that differs.
        rank: usize,
        /// What differs.
        what: &'static str,
        /// Its value on this rank.
        found: String,
        /// Its value on rank 0.
        expected: String,
        /// How to correct it.
        remedy: &'static str,
    },
    /// A message between the processes cannot be read.
    #[error("a message between the processes cannot be read: {0}; all must run the same program")]
    Message(String),
}

/// The processes that train.
#[derive(Clone, Default)]
pub enum Ranks {
    /// This process alone.
    #[default]
    Alone,
    /// Several processes, of which this is one.
    World(Arc<dyn World>),
}

impl Ranks {
    /// Rank of this process, and the number of ranks.
    pub fn place(&self) -> Place {
        match self {
            Ranks::Alone => Place { rank: 0, ranks: 1 },
            Ranks::World(world) => world.place(),
        }
    }

    /// Ends all processes at once, including this one.
    pub fn abort(&self, code: i32) -> ! {
        match self {
            Ranks::Alone => std::process::exit(code),
            Ranks::World(world) => world.abort(code),
        }
    }
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { rank, ranks } = self.place();
        write!(f, "rank {rank} of {ranks}")
    }
}

impl PartialEq for Ranks {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Ranks::Alone, Ranks::Alone) => true,
            (Ranks::World(one), Ranks::World(two)) => Arc::ptr_eq(one, two),
            (Ranks::Alone, Ranks::World(_)) | (Ranks::World(_), Ranks::Alone) => false,
        }
    }
}

/// How this process was started. If MPI is in use, dropping it finalises MPI, so the thread that trains holds
/// it until the work is done.
pub struct Launch {
    /// The processes that train.
    pub ranks: Ranks,
    /// Number of processes that were started together; they train together only if the program was built with
    /// MPI.
    pub processes: usize,
    #[cfg(feature = "mpi")]
    _library: Option<mpi::Library>,
}

impl Launch {
    /// Determines how this process was started, and initialises MPI if `mpirun` or `srun` started several.
    pub fn find() -> Result<Self, RankError> {
        let processes = launched();
        #[cfg(feature = "mpi")]
        if processes > 1 {
            let library = mpi::Library::start()?;
            let ranks = Ranks::World(Arc::new(library.world()));
            return Ok(Launch { ranks, processes, _library: Some(library) });
        }
        Ok(Launch {
            ranks: Ranks::Alone,
            processes,
            #[cfg(feature = "mpi")]
            _library: None,
        })
    }
}

/// Number of processes that were started together, from the environment variables of Open MPI, MPICH, Intel
/// MPI and Slurm's PMI.
fn launched() -> usize {
    let read = |name: &str| std::env::var(name).ok()?.trim().parse::<usize>().ok();
    // Slurm sets it for every program, but only those started with PMIx are meant to communicate.
    let by_slurm = || std::env::var_os("PMIX_RANK").and_then(|_| read("SLURM_STEP_NUM_TASKS"));
    read("OMPI_COMM_WORLD_SIZE").or_else(|| read("PMI_SIZE")).or_else(by_slurm).unwrap_or(1)
}

/// An order of rank 0 to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Order {
    /// Train a batch, counted from 0, of an epoch, counted from 1.
    Train {
        /// The epoch.
        epoch: u64,
        /// The batch.
        batch: u64,
    },
    /// Show images to the network.
    Evaluate {
        /// Which images.
        images: Images,
        /// Index of the first one.
        from: usize,
        /// Number of images.
        count: usize,
    },
    /// Leave: the training has ended, or is stopped.
    Leave,
}

/// Which images are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Images {
    /// The test images.
    Test,
    /// The part of the training images that is evaluated after each epoch.
    Fitted,
}

/// Broadcasts a message of rank 0, and returns it on every rank; the others pass `None`.
pub(super) fn tell<T>(world: &dyn World, message: Option<&T>) -> Result<T, RankError>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let unreadable = |error: serde_json::Error| RankError::Message(error.to_string());
    let bytes = message.map_or(Ok(Vec::new()), serde_json::to_vec).map_err(unreadable)?;
    serde_json::from_slice(&world.broadcast(bytes)?).map_err(unreadable)
}

/// Refuses processes that would not compute bit-identical results: `text`, which describes `what`, must be
/// the same on all ranks.
pub(super) fn check_alike(
    world: &dyn World,
    what: &'static str,
    text: &str,
    remedy: &'static str,
) -> Result<(), RankError> {
    let message = text.bytes().map(u32::from).collect();
    let texts = world.all_gather(message)?;
    let text =
        |message: &Vec<u32>| -> String { message.iter().map(|&byte| byte as u8).map(char::from).collect() };
    match texts.iter().position(|other| *other != texts[0]) {
        None => Ok(()),
        Some(rank) => {
            let (found, expected) = (text(&texts[rank]), text(&texts[0]));
            Err(RankError::Unlike { rank, what, found, expected, remedy })
        }
    }
}

/// Appends whole numbers to a message, low half first.
pub(super) fn write_whole(numbers: &[u64], message: &mut Vec<u32>) {
    message.extend(numbers.iter().flat_map(|&n| [n as u32, (n >> 32) as u32]));
}

/// The whole numbers of a message.
pub(super) fn read_whole(message: &[u32]) -> Vec<u64> {
    message.as_chunks::<2>().0.iter().map(|&[low, high]| u64::from(low) | u64::from(high) << 32).collect()
}
