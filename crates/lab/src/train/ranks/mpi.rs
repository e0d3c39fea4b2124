//! A world of MPI processes.
//!
//! By `ferrompi`, which needs a C compiler and an MPI library, and no libclang. Only the thread that trains
//! calls MPI, which every library allows (`MPI_THREAD_FUNNELED`).

use super::{RankError, World};
use ferrompi::{Communicator, ThreadLevel};
use leaklab_engine::Place;

/// Bytes of one broadcast; MPI counts with 31 bits.
const MOST: usize = 1 << 30;

/// MPI, from its beginning to its end. It stays with the thread that started it; when it is dropped, this process
/// takes leave of the others.
pub(super) struct Library(ferrompi::Mpi);

impl Library {
    pub fn start() -> Result<Self, RankError> {
        ferrompi::Mpi::init_thread(ThreadLevel::Funneled).map(Library).map_err(error)
    }

    /// All processes that were started together.
    pub fn world(&self) -> Mpi {
        Mpi(self.0.world())
    }
}

impl Drop for Library {
    /// A process that leaves in the middle of its work must not wait for the others in MPI's farewell.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.world().abort(1);
        }
    }
}

/// All processes that were started together.
pub(super) struct Mpi(Communicator);

fn error(error: ferrompi::Error) -> RankError {
    RankError::Library(error.to_string())
}

/// Lengths of blocks and where they begin, as MPI counts.
fn layout(lengths: impl Iterator<Item = usize>) -> Result<(Vec<i32>, Vec<i32>, usize), RankError> {
    let (mut counts, mut starts, mut total) = (Vec::new(), Vec::new(), 0usize);
    let count = |n: usize| {
        i32::try_from(n).map_err(|_| RankError::Library(format!("a message of {n} numbers is too long")))
    };
    for length in lengths {
        counts.push(count(length)?);
        starts.push(count(total)?);
        total += length;
    }
    count(total)?;
    Ok((counts, starts, total))
}

fn split(numbers: &[u32], counts: &[i32]) -> Vec<Vec<u32>> {
    let mut rest = numbers;
    let mut next = |&count: &i32| {
        let (first, after) = rest.split_at(count as usize);
        rest = after;
        first.to_vec()
    };
    counts.iter().map(&mut next).collect()
}

impl World for Mpi {
    fn place(&self) -> Place {
        Place { rank: self.0.rank() as usize, ranks: self.0.size() as usize }
    }

    fn broadcast(&self, mut bytes: Vec<u8>) -> Result<Vec<u8>, RankError> {
        let mut length = [bytes.len() as u64];
        self.0.broadcast(&mut length, 0).map_err(error)?;
        bytes.resize(length[0] as usize, 0);
        for part in bytes.chunks_mut(MOST) {
            self.0.broadcast(part, 0).map_err(error)?;
        }
        Ok(bytes)
    }

    fn all_gather(&self, letter: Vec<u32>) -> Result<Vec<Vec<u32>>, RankError> {
        let mut lengths = vec![0u64; self.place().ranks];
        self.0.allgather(&[letter.len() as u64], &mut lengths).map_err(error)?;
        let (counts, starts, total) = layout(lengths.iter().map(|&n| n as usize))?;
        let mut all = vec![0; total];
        self.0.allgatherv(&letter, &mut all, &counts, &starts).map_err(error)?;
        Ok(split(&all, &counts))
    }

    fn all_to_all(&self, letters: Vec<Vec<u32>>) -> Result<Vec<Vec<u32>>, RankError> {
        let lengths: Vec<u64> = letters.iter().map(|letter| letter.len() as u64).collect();
        let mut theirs = vec![0; lengths.len()];
        self.0.alltoall(&lengths, &mut theirs).map_err(error)?;
        let (counts, starts, _) = layout(letters.iter().map(Vec::len))?;
        let (their_counts, their_starts, total) = layout(theirs.iter().map(|&n| n as usize))?;
        let mut all = vec![0; total];
        let sent = letters.concat();
        drop(letters);
        self.0.alltoallv(&sent, &counts, &starts, &mut all, &their_counts, &their_starts).map_err(error)?;
        Ok(split(&all, &their_counts))
    }

    fn wait(&self) -> Result<(), RankError> {
        self.0.barrier().map_err(error)
    }

    fn abort(&self, code: i32) -> ! {
        self.0.abort(code)
    }
}
