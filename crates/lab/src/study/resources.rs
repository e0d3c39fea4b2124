//! What the parts of a study need where a batch system gives them out: cores, memory and time.

use super::Plan;
use crate::memory;
use leaklab_record::StudyFolder;

/// A run that takes less than this on one core gets one: more would wait for each other.
const SHORT: f64 = 1800.0;
/// Time limits are this much longer than estimates: other machines are slower, and file systems busy.
const MARGIN: f64 = 1.5;
/// Shortest time limit in seconds, which reading the data and starting take no notable part of.
const SHORTEST: u64 = 600;
/// Longest time limit in seconds that is asked for unasked: most clusters allow it, and a task that needs more
/// goes on in its next turn.
const LONGEST: u64 = 86_400;
/// Memory of a process besides its large arrays: the program, its threads' stacks, tables.
const PROCESS: u64 = 200 << 20;

/// What the parts of a study need.
#[derive(Debug, Clone, PartialEq)]
pub struct Resources {
    /// Cores of a run.
    pub cpus: usize,
    /// Bytes of memory of a run.
    pub memory: u64,
    /// Estimated seconds of the longest run on that many cores.
    pub run_seconds: f64,
    /// Time limit of a run in seconds.
    pub run_limit: u64,
    /// Time limit of the comparison in seconds.
    pub compare_limit: u64,
}

impl Plan {
    /// Threads that one training can use: a mini-batch is divided into groups of four images, whatever the
    /// number of threads.
    pub fn most_threads(&self) -> usize {
        self.config.base.batch.div_ceil(memory::GROUP as usize).max(1)
    }

    /// The runs that are not complete, by their places in the plan.
    pub fn unfinished(&self, folder: &StudyFolder) -> Vec<usize> {
        let runs = self.config.runs().into_iter().enumerate();
        runs.filter(|(_, run)| !folder.run(&run.key()).complete().is_file()).map(|(index, _)| index).collect()
    }

    /// What the parts of the study need, with so many cores a run; as many as it can use if not said.
    pub fn resources(&self, cpus: Option<usize>) -> Resources {
        let base = &self.config.base;
        let longest = self.runs.iter().map(|run| self.run_seconds(run)).fold(0.0, f64::max);
        let on_one_core = longest * self.threads as f64;
        let cpus = cpus.unwrap_or(if on_one_core < SHORT { 1 } else { self.most_threads() });
        let run_seconds = on_one_core / cpus.min(self.most_threads()) as f64;
        let pixels = base.network.input().neurons() as u64;
        let images = (self.train_images + self.test_images) * pixels;
        let arrays = memory::training(&base.network, base.optimiser(), base.time_steps, base.batch, cpus);
        // Reading a data set holds it twice for a moment; images are one byte a pixel.
        let memory = (MARGIN * arrays as f64) as u64 + 2 * images + PROCESS;
        let compare = self.mechanism_seconds() * self.threads as f64 / cpus as f64;
        let limit = |seconds: f64| ((MARGIN * seconds) as u64 + SHORTEST).clamp(SHORTEST, LONGEST);
        Resources { cpus, memory, run_seconds, run_limit: limit(run_seconds), compare_limit: limit(compare) }
    }
}
