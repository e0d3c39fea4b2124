//! A world whose ranks are threads of one process, for tests: what holds for it holds for MPI, if MPI
//! delivers what it is given.

use super::{RankError, Ranks, World};
use leaklab_engine::Place;
use std::sync::{Arc, Barrier, Mutex};

struct Thread {
    place: Place,
    table: Arc<Table>,
}

struct Table {
    barrier: Barrier,
    /// What each rank laid down.
    letters: Mutex<Vec<Vec<Vec<u32>>>>,
}

/// A world of so many ranks.
pub(in crate::train) fn world(ranks: usize) -> Vec<Ranks> {
    let letters = Mutex::new(vec![Vec::new(); ranks]);
    let table = Arc::new(Table { barrier: Barrier::new(ranks), letters });
    let rank = |rank| Thread { place: Place { rank, ranks }, table: table.clone() };
    (0..ranks).map(|i| Ranks::World(Arc::new(rank(i)))).collect()
}

impl Thread {
    /// Lays letters down, and reads what all have laid down.
    fn pass<R>(&self, letters: Vec<Vec<u32>>, read: impl FnOnce(&[Vec<Vec<u32>>]) -> R) -> R {
        self.table.letters.lock().unwrap()[self.place.rank] = letters;
        self.table.barrier.wait();
        let result = read(&self.table.letters.lock().unwrap());
        self.table.barrier.wait();
        result
    }
}

impl World for Thread {
    fn place(&self) -> Place {
        self.place
    }

    fn broadcast(&self, bytes: Vec<u8>) -> Result<Vec<u8>, RankError> {
        let letter = bytes.into_iter().map(u32::from).collect();
        Ok(self.pass(vec![letter], |all| all[0][0].iter().map(|&byte| byte as u8).collect()))
    }

    fn all_gather(&self, letter: Vec<u32>) -> Result<Vec<Vec<u32>>, RankError> {
        Ok(self.pass(vec![letter], |all| all.iter().map(|own| own[0].clone()).collect()))
    }

    fn all_to_all(&self, letters: Vec<Vec<u32>>) -> Result<Vec<Vec<u32>>, RankError> {
        Ok(self.pass(letters, |all| all.iter().map(|own| own[self.place.rank].clone()).collect()))
    }

    fn wait(&self) -> Result<(), RankError> {
        self.table.barrier.wait();
        Ok(())
    }

    fn abort(&self, code: i32) -> ! {
        panic!("rank {} ended the world with code {code}", self.place.rank)
    }
}
