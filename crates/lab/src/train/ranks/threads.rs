//! A world whose ranks are threads of one process, for tests. What holds for it also holds for MPI, provided
//! that MPI delivers messages unchanged.

use super::{RankError, Ranks, World};
use leaklab_engine::Place;
use std::sync::{Arc, Barrier, Mutex};

struct Thread {
    place: Place,
    table: Arc<Table>,
}

struct Table {
    barrier: Barrier,
    /// The messages of each rank.
    messages: Mutex<Vec<Vec<Vec<u32>>>>,
}

/// A world of `ranks` ranks.
pub(in crate::train) fn world(ranks: usize) -> Vec<Ranks> {
    let messages = Mutex::new(vec![Vec::new(); ranks]);
    let table = Arc::new(Table { barrier: Barrier::new(ranks), messages });
    let rank = |rank| Thread { place: Place { rank, ranks }, table: table.clone() };
    (0..ranks).map(|i| Ranks::World(Arc::new(rank(i)))).collect()
}

impl Thread {
    /// Publishes this rank's messages, and reads those of all ranks.
    fn pass<R>(&self, messages: Vec<Vec<u32>>, read: impl FnOnce(&[Vec<Vec<u32>>]) -> R) -> R {
        self.table.messages.lock().unwrap()[self.place.rank] = messages;
        self.table.barrier.wait();
        let result = read(&self.table.messages.lock().unwrap());
        self.table.barrier.wait();
        result
    }
}

impl World for Thread {
    fn place(&self) -> Place {
        self.place
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, RankError> {
        let message = bytes.into_iter().map(u32::from).collect();
        Ok(self.pass(vec![message], |all| all[0][0].iter().map(|&byte| byte as u8).collect()))
    }

    fn all_gather(&self, message: Vec<u32>) -> Result<Vec<Vec<u32>>, RankError> {
        Ok(self.pass(vec![message], |all| all.iter().map(|own| own[0].clone()).collect()))
    }

    fn all_to_all(&self, messages: Vec<Vec<u32>>) -> Result<Vec<Vec<u32>>, RankError> {
        Ok(self.pass(messages, |all| all.iter().map(|own| own[self.place.rank].clone()).collect()))
    }

    fn wait(&self) -> Result<(), RankError> {
        self.table.barrier.wait();
        Ok(())
    }

    fn abort(&self, code: i32) -> ! {
        panic!("rank {} ended the world with code {code}", self.place.rank)
    }
}
