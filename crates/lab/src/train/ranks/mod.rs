//! The processes that train one run together: one alone, or a world of ranks.
//!
//! Rank 0 is the training: it holds the lock, decides, watches and writes. The others do what it says
//! ([`Order`]) and keep the same weights by doing the same arithmetic on the same gradients. All that the
//! training needs of a world are the few operations of [`World`], so that another MPI binding would be one
//! more file, and tests can run a world in threads.

#[cfg(feature = "mpi")]
mod mpi;
#[cfg(test)]
pub(super) mod threads;

use leaklab_engine::Place;
use std::fmt;
use std::sync::Arc;

/// What a training needs of the other processes. Every function is called by all of them, in the same order,
/// from the thread that trains.
pub trait World: Send + Sync {
    /// Which process this is.
    fn place(&self) -> Place;
    /// What rank 0 passes in.
    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, RankError>;
    /// What each rank passes in.
    fn all_gather(&self, letter: Vec<u32>) -> Result<Vec<Vec<u32>>, RankError>;
    /// A letter from each rank, each of which passes in a letter to each.
    fn all_to_all(&self, letters: Vec<Vec<u32>>) -> Result<Vec<Vec<u32>>, RankError>;
    /// Waits until all are here.
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
    /// The processes are not alike.
    #[error("rank {rank} has {what} {found}, and rank 0 has {expected}; {remedy}")]
    Unlike {
        /// The rank that differs.
        rank: usize,
        /// In what.
        what: &'static str,
        /// What it has.
        found: String,
        /// What rank 0 has.
        expected: String,
        /// What would be right.
        remedy: &'static str,
    },
    /// A message is not one of ours.
    #[error("a message between the processes cannot be read: {0}; all must run the same program")]
    Message(String),
}

/// Who trains.
#[derive(Clone, Default)]
pub enum Ranks {
    /// This process alone.
    #[default]
    Alone,
    /// Several processes, of which this is one.
    World(Arc<dyn World>),
}

impl Ranks {
    /// Which process this is, and of how many.
    pub fn place(&self) -> Place {
        match self {
            Ranks::Alone => Place { rank: 0, ranks: 1 },
            Ranks::World(world) => world.place(),
        }
    }

    /// Ends all processes at once, this one too.
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

/// How this process was started. Where MPI is in use, dropping it takes leave of the other processes, so it
/// is held until the work is done, by the thread that trains.
pub struct Launch {
    /// Who trains.
    pub ranks: Ranks,
    /// How many processes were started together; they train together only if the program was built with MPI.
    pub processes: usize,
    #[cfg(feature = "mpi")]
    _library: Option<mpi::Library>,
}

impl Launch {
    /// Finds out, and makes the ranks that `mpirun` or `srun` started known to each other.
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

/// How many processes were started together, by what Open MPI, MPICH, Intel MPI and Slurm's PMI tell each of
/// them.
fn launched() -> usize {
    let read = |name: &str| std::env::var(name).ok()?.trim().parse::<usize>().ok();
    // Slurm says it to every program; only one that it started with PMIx is meant to talk to the others.
    let by_slurm = || std::env::var_os("PMIX_RANK").and_then(|_| read("SLURM_STEP_NUM_TASKS"));
    read("OMPI_COMM_WORLD_SIZE").or_else(|| read("PMI_SIZE")).or_else(by_slurm).unwrap_or(1)
}

/// What rank 0 tells the others to do next.
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
        /// Which ones.
        images: Images,
        /// The first.
        from: usize,
        /// How many.
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

/// A message of rank 0 to all.
pub(super) fn tell<T>(world: &dyn World, message: Option<&T>) -> Result<T, RankError>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let unreadable = |error: serde_json::Error| RankError::Message(error.to_string());
    let bytes = message.map_or(Ok(Vec::new()), serde_json::to_vec).map_err(unreadable)?;
    serde_json::from_slice(&world.broadcast(bytes)?).map_err(unreadable)
}

/// Refuses processes that would not compute the same bits. `what` is text, the same for all.
pub(super) fn check_alike(
    world: &dyn World,
    what: &'static str,
    text: &str,
    remedy: &'static str,
) -> Result<(), RankError> {
    let letter = text.bytes().map(u32::from).collect();
    let texts = world.all_gather(letter)?;
    let text =
        |letter: &Vec<u32>| -> String { letter.iter().map(|&byte| byte as u8).map(char::from).collect() };
    match texts.iter().position(|other| *other != texts[0]) {
        None => Ok(()),
        Some(rank) => {
            let (found, expected) = (text(&texts[rank]), text(&texts[0]));
            Err(RankError::Unlike { rank, what, found, expected, remedy })
        }
    }
}

/// Whole numbers as a letter, low half first.
pub(super) fn write_whole(numbers: &[u64], letter: &mut Vec<u32>) {
    letter.extend(numbers.iter().flat_map(|&n| [n as u32, (n >> 32) as u32]));
}

/// The whole numbers of a letter.
pub(super) fn read_whole(letter: &[u32]) -> Vec<u64> {
    letter.as_chunks::<2>().0.iter().map(|&[low, high]| u64::from(low) | u64::from(high) << 32).collect()
}
