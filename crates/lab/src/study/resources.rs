//! What the parts of a study need on a batch system: cores, memory and time.

use super::Plan;
use super::images::TestImages;
use crate::memory;
use leaklab_record::StudyFolder;

/// A run that takes less than this on one core, in seconds, gets one core: several would wait for each other.
const SHORT: f64 = 1800.0;
/// Factor from estimates to time limits: other machines may be slower, and file systems busy.
const MARGIN: f64 = 1.5;
/// Shortest time limit in seconds. The start and reading the data take only a small part of it.
const SHORTEST: u64 = 600;
/// Longest default time limit in seconds: most clusters allow it, and a task that needs more continues when
/// it is submitted again.
const LONGEST: u64 = 86_400;
/// Memory of a process in addition to its large arrays: the program, its threads' stacks, tables.
const PROCESS: u64 = 200 << 20;
/// The large arrays are at least this share of the memory in use: a training of the paper's CIFAR-10 model on
/// sixteen threads takes 1.23 GiB, of which the large arrays are 0.5 GiB.
const ARRAYS: f64 = 0.4;

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

    /// The runs that are not complete, by their index in the plan.
    pub fn unfinished(&self, folder: &StudyFolder) -> Vec<usize> {
        let images = TestImages { count: Some(self.test_images) };
        let runs = self.config.runs().into_iter().enumerate();
        let unfinished = runs.filter(|(_, run)| !images.is_done(run, &folder.run(&run.key())));
        unfinished.map(|(index, _)| index).collect()
    }

    /// What the parts of the study need, with `cpus` cores per run; if not set, with as many as a run can
    /// use.
    pub fn resources(&self, cpus: Option<usize>) -> Resources {
        let base = &self.config.base;
        let on_one_core = self.runs.iter().map(|run| self.run_seconds(run)).fold(0.0, f64::max);
        let cpus = cpus.unwrap_or(if on_one_core < SHORT { 1 } else { self.most_threads() });
        let run_seconds = on_one_core / cpus.min(self.most_threads()) as f64;
        let pixels = base.network.input().neurons() as u64;
        let images = (self.train_images + self.test_images) * pixels;
        let arrays = memory::training(&base.network, base.optimiser(), base.time_steps, base.batch, cpus);
        // While a data set is read, it is in memory twice; images take one byte per pixel.
        let memory = (arrays as f64 / ARRAYS) as u64 + 2 * images + PROCESS;
        let compare = self.mechanism_seconds() / cpus as f64;
        let limit = |seconds: f64| ((MARGIN * seconds) as u64 + SHORTEST).clamp(SHORTEST, LONGEST);
        Resources { cpus, memory, run_seconds, run_limit: limit(run_seconds), compare_limit: limit(compare) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StudyConfig;

    fn plan(settings: &[&str]) -> Plan {
        let small = [
            "network=1x8x8-4C3-2P-16FC-10o",
            "time_steps=4",
            "train_limit=40",
            "test_limit=10",
            "batch=64",
            "seeds=[1, 2, 3]",
            "tau=[30, 100, inf]",
        ];
        let settings: Vec<String> = small.iter().chain(settings).map(|&text| text.to_owned()).collect();
        let config = StudyConfig::load("digits", &settings).unwrap();
        Plan::make(&config, &StudyFolder::at("no such folder"), 1).unwrap()
    }

    /// The plan on a machine with `threads` threads, whose runs take `seconds` processor seconds per image.
    fn on(mut plan: Plan, threads: usize, seconds: f64) -> Plan {
        plan.threads = threads;
        for run in &mut plan.runs {
            (run.speed.train, run.speed.infer, run.speed.noisy) = (seconds, seconds / 3.0, seconds / 3.0);
        }
        plan
    }

    #[test]
    fn more_threads_than_groups_do_several_runs_at_a_time() {
        let plan = plan(&[]);
        assert_eq!((plan.most_threads(), plan.runs.len()), (16, 9));
        assert!(
            plan.runs
                .iter()
                .all(|run| run.speed.train > 0.0 && run.speed.infer > 0.0 && run.speed.noisy > 0.0)
        );
        for (threads, lanes) in [(1, 1), (2, 1), (16, 1), (17, 2), (64, 4), (1024, 9)] {
            assert_eq!(on(plan.clone(), threads, 1e3).lanes(), lanes, "{threads} threads, long runs");
            assert_eq!(
                on(plan.clone(), threads, 1e-6).lanes(),
                threads.min(9),
                "{threads} threads, short runs"
            );
        }
        // Sixteen groups: eight threads process them in two rounds, and so do twelve.
        let seconds = |threads| on(plan.clone(), threads, 1e3).seconds();
        assert!((seconds(1) / seconds(16) - 16.0).abs() < 0.1 && seconds(8) < seconds(4));
    }

    #[test]
    fn a_run_gets_what_it_can_use() {
        let plan = plan(&[]);
        let short = on(plan.clone(), 2, 1e-6).resources(None);
        assert_eq!((short.cpus, short.run_limit), (1, SHORTEST));
        let long = on(plan.clone(), 2, 1e3).resources(None);
        assert_eq!(long.cpus, 16);
        assert_eq!(on(plan.clone(), 2, 1e5).resources(None).run_limit, LONGEST);
        // 40 images at 1000 s and an evaluation of 50 at a third of that, ten times, and the analyses.
        let analyses = plan.analysis_images as f64 * 1e3 / 3.0;
        let expected = (10.0 * (40.0 * 1e3 + 50.0 * 1e3 / 3.0) + analyses) / 16.0;
        assert!((long.run_seconds / expected - 1.0).abs() < 1e-9, "{} {expected}", long.run_seconds);
        // Thirty-two cores are no faster than the sixteen that a training can use.
        assert_eq!(on(plan.clone(), 2, 1e3).resources(Some(32)).run_seconds, long.run_seconds);
        assert!(long.memory > PROCESS && long.memory < 1 << 30);
    }
}
