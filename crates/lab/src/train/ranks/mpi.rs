//! A world of MPI processes.
//!
//! By `ferrompi`, which needs a C compiler and an MPI library, and no libclang. Only the thread that trains
//! calls MPI, which every library allows (`MPI_THREAD_FUNNELED`).

use super::{RankError, World};
use ferrompi::{Communicator, ThreadLevel};
use leaklab_engine::Place;

/// Bytes of one broadcast; MPI counts with 31 bits.
const MOST: usize = 1 << 30;

/// MPI, from its beginning to its end. It stays with the thread that started it; when it is dropped, this
/// process takes leave of the others.
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

impl Mpi {
    /// Passes letters on in pairs: in each turn a process sends to one other and receives from one other.
    /// Nothing is copied to be sent, and `own` stays here. `lengths` are those of the letters that come.
    fn pass<'a>(
        &self,
        lengths: &[u64],
        letter_to: impl Fn(usize) -> &'a [u32],
        own: Vec<u32>,
    ) -> Result<Vec<Vec<u32>>, RankError> {
        let Place { rank, ranks } = self.place();
        let mut received = vec![Vec::new(); ranks];
        for turn in 1..ranks {
            let (to, from) = ((rank + turn) % ranks, (rank + ranks - turn) % ranks);
            let mut letter = vec![0; lengths[from] as usize];
            self.0.sendrecv(letter_to(to), to as i32, 0, &mut letter, from as i32, 0).map_err(error)?;
            received[from] = letter;
        }
        received[rank] = own;
        Ok(received)
    }
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
        let mut letters = self.pass(&lengths, |_| &letter, Vec::new())?;
        letters[self.place().rank] = letter;
        Ok(letters)
    }

    fn all_to_all(&self, mut letters: Vec<Vec<u32>>) -> Result<Vec<Vec<u32>>, RankError> {
        let sent: Vec<u64> = letters.iter().map(|letter| letter.len() as u64).collect();
        let mut lengths = vec![0; sent.len()];
        self.0.alltoall(&sent, &mut lengths).map_err(error)?;
        let own = std::mem::take(&mut letters[self.place().rank]);
        self.pass(&lengths, |rank| &letters[rank], own)
    }

    fn wait(&self) -> Result<(), RankError> {
        self.0.barrier().map_err(error)
    }

    fn abort(&self, code: i32) -> ! {
        self.0.abort(code)
    }
}
