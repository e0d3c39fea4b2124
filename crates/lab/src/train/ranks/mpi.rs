//! A world of MPI processes.
//!
//! It uses `ferrompi`, which needs a C compiler and an MPI library, but not libclang. Only the thread that
//! trains calls MPI, which every library allows (`MPI_THREAD_FUNNELED`).

use super::{RankError, World};
use ferrompi::{Communicator, ThreadLevel};
use leaklab_engine::Place;

/// Largest number of bytes of one broadcast: MPI counts with 31 bits.
const MOST: usize = 1 << 30;

/// MPI, from initialisation to finalisation. It stays with the thread that started it; dropping it finalises
/// MPI.
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
    /// A process that panics in the middle of its work must not wait for the others in `MPI_Finalize`.
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
    /// Exchanges messages in pairs: in each turn, a process sends to one other and receives from one other.
    /// Messages are sent without a copy, and `own` stays here. `lengths` are those of the incoming messages.
    fn pass<'a>(
        &self,
        lengths: &[u64],
        message_to: impl Fn(usize) -> &'a [u32],
        own: Vec<u32>,
    ) -> Result<Vec<Vec<u32>>, RankError> {
        let Place { rank, ranks } = self.place();
        let mut received = vec![Vec::new(); ranks];
        for turn in 1..ranks {
            let (to, from) = ((rank + turn) % ranks, (rank + ranks - turn) % ranks);
            let mut message = vec![0; lengths[from] as usize];
            self.0.sendrecv(message_to(to), to as i32, 0, &mut message, from as i32, 0).map_err(error)?;
            received[from] = message;
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

    fn all_gather(&self, message: Vec<u32>) -> Result<Vec<Vec<u32>>, RankError> {
        let mut lengths = vec![0u64; self.place().ranks];
        self.0.allgather(&[message.len() as u64], &mut lengths).map_err(error)?;
        let mut messages = self.pass(&lengths, |_| &message, Vec::new())?;
        messages[self.place().rank] = message;
        Ok(messages)
    }

    fn all_to_all(&self, mut messages: Vec<Vec<u32>>) -> Result<Vec<Vec<u32>>, RankError> {
        let sent: Vec<u64> = messages.iter().map(|message| message.len() as u64).collect();
        let mut lengths = vec![0; sent.len()];
        self.0.alltoall(&sent, &mut lengths).map_err(error)?;
        let own = std::mem::take(&mut messages[self.place().rank]);
        self.pass(&lengths, |rank| &messages[rank], own)
    }

    fn wait(&self) -> Result<(), RankError> {
        self.0.barrier().map_err(error)
    }

    fn abort(&self, code: i32) -> ! {
        self.0.abort(code)
    }
}
