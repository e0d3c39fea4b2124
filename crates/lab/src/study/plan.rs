//! The work that a study still has to do, the time that it will take on this machine, and its size on disk.

use super::folder::omitted;
use super::measure::{Speed, Subject, measure};
use super::{StudyError, check};
use crate::analysis::mechanism;
use crate::config::{RunConfig, StudyConfig};
use crate::data::location;
use crate::memory;
use crate::run::{RunError, load_pinned};
use leaklab_record::{HIGHEST_SEVERITY, StudyFolder, metrics};

/// Approximate bytes of a run's tables and logs, and of the page; few compared with a checkpoint of any size.
const TABLE_BYTES: u64 = 3_000_000;
/// Approximate processor seconds of the theory's tables, which are the same for every study.
const THEORY_SECONDS: f64 = 5.0;

/// Progress of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunState {
    /// Name of its folder.
    pub name: String,
    /// Planned epochs.
    pub planned: u64,
    /// Epochs trained.
    pub epochs: u64,
    /// Whether it is a probe, which is trained only to see whether it learns.
    pub probe: bool,
    /// Whether it is trained and measured.
    pub complete: bool,
    /// Measured speed of its condition.
    pub speed: Speed,
}

/// The work of a study.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The study.
    pub config: StudyConfig,
    /// The runs in the order in which they are done.
    pub runs: Vec<RunState>,
    /// Training images.
    pub train_images: u64,
    /// Test images.
    pub test_images: u64,
    /// Images that the analyses of one run show.
    pub analysis_images: u64,
    /// Images that the mechanism analysis shows, over all runs; 0 if the study does not include it.
    pub mechanism_images: u64,
    /// Number of threads.
    pub threads: usize,
    /// Whether the theory's tables exist.
    theory: bool,
    /// Estimated bytes on disk at the end.
    pub bytes: u64,
    /// Runs in the folder that do not belong to this plan, such as those of conditions that `--tau` replaced.
    /// They stay as they are, and are not compared.
    pub omitted: Vec<String>,
}

impl Plan {
    /// Reads the folder and the data set, and measures the speed of each condition on some of its images.
    pub fn make(config: &StudyConfig, folder: &StudyFolder, threads: usize) -> Result<Self, StudyError> {
        check(folder, config)?;
        let mut config = config.clone();
        // The user's own data may be in the study's folder.
        let own = || location::file_name(&config.base.dataset).map(|file| folder.path().join(file));
        let beside = own().filter(|file| config.base.data_dir.is_none() && file.is_file());
        let (dataset, digest) = load_pinned(&RunConfig {
            data_dir: beside.or_else(|| config.base.data_dir.clone()),
            ..config.base.clone()
        })?;
        config.pin(digest);
        let base = &config.base;
        for run in std::iter::once(base).chain(config.conditions.iter().map(|condition| &condition.run)) {
            memory::check_training(&run.network, run.optimiser(), run.time_steps, run.batch, 1)
                .map_err(RunError::from)?;
        }
        let (train_images, test_images) = (dataset.train.len() as u64, dataset.test.len() as u64);
        let mut subjects: Vec<Subject> = config
            .conditions
            .iter()
            .map(|condition| Subject { run: condition.run.clone(), images: 0 })
            .collect();
        let mut places = Vec::new();
        let mut runs = Vec::new();
        for run in config.runs() {
            let key = run.key();
            let place = config.conditions.iter().position(|condition| condition.name == key.condition);
            let epochs = metrics::read(&folder.run(&key).metrics())?.last().map_or(0, |epoch| epoch.epoch);
            places.push(place.unwrap_or(0));
            subjects[place.unwrap_or(0)].images += run.epochs.saturating_sub(epochs) * train_images;
            runs.push(RunState {
                name: run.folder_name(),
                planned: run.epochs,
                probe: run.probe,
                complete: folder.run(&key).complete().is_file(),
                speed: Speed::default(),
                epochs,
            });
        }
        // A condition whose runs are all complete needs no measurement.
        let idle = |place: usize| runs.iter().zip(&places).all(|(run, of)| *of != place || run.complete);
        let (waiting, measured): (Vec<usize>, Vec<Subject>) =
            subjects.into_iter().enumerate().filter(|(place, _)| !idle(*place)).unzip();
        let mut speeds = vec![Speed::default(); config.conditions.len()];
        for (place, speed) in waiting.into_iter().zip(measure(&measured, &dataset, threads)?) {
            speeds[place] = speed;
        }
        for (run, place) in runs.iter_mut().zip(places) {
            run.speed = speeds[place];
        }
        let images = base.analysis_images.map_or(test_images, |n| test_images.min(n as u64));
        let parameters = base.network.parameter_count() as u64;
        // Two checkpoints, each with the weights and the optimiser's moments, and the best weights.
        let copies = 2 * (1 + base.optimiser().moments() as u64) + 1;
        Ok(Plan {
            train_images,
            test_images,
            analysis_images: Self::analysis_images_of(base, test_images),
            mechanism_images: if base.mechanism { mechanism::planned_images(&config, images) } else { 0 },
            threads,
            theory: folder.theory_complete().is_file(),
            bytes: runs.len() as u64 * (4 * parameters * copies + TABLE_BYTES),
            omitted: omitted(folder, &config)?,
            runs,
            config,
        })
    }

    /// Images that the analyses of a run show, with `test_images` test images.
    pub(super) fn analysis_images_of(run: &RunConfig, test_images: u64) -> u64 {
        let images = run.analysis_images.map_or(test_images, |n| test_images.min(n as u64));
        images * (1 + run.presentations * (1 + (HIGHEST_SEVERITY * run.noise.len()) as u64))
    }

    /// Processor seconds of one epoch of a run, including its evaluation.
    pub fn epoch_seconds(&self, run: &RunState) -> f64 {
        let base = &self.config.base;
        let evaluated = self.test_images + (base.evaluate_train_images as u64).min(self.train_images);
        let evaluation = evaluated as f64 * run.speed.infer / base.evaluate_every as f64;
        self.train_images as f64 * run.speed.train + evaluation
    }

    /// Processor seconds of the analyses of a run.
    pub fn analysis_seconds(&self, run: &RunState) -> f64 {
        if run.probe { 0.0 } else { self.analysis_images as f64 * run.speed.noisy }
    }

    /// Processor seconds that a run still needs.
    pub fn run_seconds(&self, run: &RunState) -> f64 {
        if run.complete {
            return 0.0;
        }
        run.planned.saturating_sub(run.epochs) as f64 * self.epoch_seconds(run) + self.analysis_seconds(run)
    }

    /// Processor seconds of the mechanism analysis.
    pub fn mechanism_seconds(&self) -> f64 {
        let measured: Vec<f64> =
            self.runs.iter().map(|run| run.speed.noisy).filter(|noisy| *noisy > 0.0).collect();
        let noisy = measured.iter().sum::<f64>() / measured.len().max(1) as f64;
        self.mechanism_images as f64 * noisy
    }

    /// Seconds that the study still needs on this machine if it does nothing else, estimated from a short
    /// measurement.
    pub fn seconds(&self) -> f64 {
        let theory = if self.theory { 0.0 } else { THEORY_SECONDS };
        theory + self.runs_take() + self.mechanism_seconds() / self.threads as f64
    }

    /// Seconds that the runs take if they are distributed as `work::run` does: full rounds first, in which a
    /// free lane takes the next run; the remaining runs share the threads.
    fn runs_take(&self) -> f64 {
        let lanes = self.lanes();
        let (rounds, rest) = self.runs.split_at(self.runs.len() - self.runs.len() % lanes);
        let mut busy = vec![0.0_f64; lanes];
        for run in rounds {
            let free = busy.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("there is a lane");
            *free += self.run_seconds(run) / self.speedup(self.threads / lanes);
        }
        let shared = self.speedup(self.threads / rest.len().max(1));
        let longest = rest.iter().map(|run| self.run_seconds(run) / shared).fold(0.0, f64::max);
        busy.into_iter().fold(0.0, f64::max) + longest
    }

    /// Speedup of a training on several threads compared with one: groups of images are processed in rounds.
    fn speedup(&self, threads: usize) -> f64 {
        let groups = self.most_threads();
        groups as f64 / groups.div_ceil(threads.clamp(1, groups)) as f64
    }

    /// Number of runs at a time. With small networks, threads wait for each other at the end of every batch,
    /// so whole runs are distributed over the threads. A run of many hours gets as many threads as it can
    /// use, so that the first result comes sooner. There are never more runs at a time than fit into memory.
    /// No result depends on this number.
    pub fn lanes(&self) -> usize {
        const LONG: f64 = 1800.0;
        let longest = self.runs.iter().map(|run| self.run_seconds(run)).fold(0.0, f64::max);
        let long = longest > LONG;
        let lanes = if long { self.threads.div_ceil(self.most_threads()) } else { self.threads };
        self.lanes_within(lanes.min(self.runs.len()).max(1), memory::available())
    }

    /// At most `wanted` runs at a time, and no more than fit into `available` bytes; at least one, for which
    /// this was checked when the plan was made.
    fn lanes_within(&self, wanted: usize, available: Option<u64>) -> usize {
        let fit = |lanes: &usize| available.is_none_or(|available| self.memory(*lanes) <= available);
        (1..=wanted).rev().find(fit).unwrap_or(1)
    }

    /// Bytes that `lanes` runs at a time take, if they are the largest ones. Each has its own copy of the
    /// images.
    fn memory(&self, lanes: usize) -> u64 {
        let pixels = self.config.base.network.input().neurons() as u64;
        let images = pixels.saturating_mul(self.train_images + self.test_images);
        let threads = (self.threads / lanes).max(1);
        let mut runs: Vec<u64> = self.config.runs().iter().map(|run| training_memory(run, threads)).collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        runs.iter().take(lanes).fold(0, |sum: u64, run| sum.saturating_add(run.saturating_add(images)))
    }
}

/// Bytes that the training of a run takes.
fn training_memory(run: &RunConfig, threads: usize) -> u64 {
    memory::training(&run.network, run.optimiser(), run.time_steps, run.batch, threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lanes: the longer of the first two runs, then the third on both threads.
    #[test]
    fn time_is_that_of_the_lanes() {
        let assignments = ["seeds=[1]", "tau=[5, 30, inf]", "epochs=1"];
        let config = StudyConfig::load("digits", &assignments.map(str::to_owned)).unwrap();
        let run = |seconds: f64| RunState {
            name: String::new(),
            planned: 1,
            epochs: 0,
            probe: true,
            complete: false,
            speed: Speed { train: seconds / 1000.0, ..Speed::default() },
        };
        let plan = Plan {
            runs: [100.0, 50.0, 40.0].map(run).into(),
            train_images: 1000,
            test_images: 0,
            analysis_images: 0,
            mechanism_images: 0,
            threads: 2,
            theory: true,
            bytes: 0,
            omitted: Vec::new(),
            config,
        };
        assert_eq!(plan.lanes(), 2);
        assert!((plan.seconds() - 120.0).abs() < 1e-9, "{}", plan.seconds());
    }

    #[test]
    fn no_more_runs_at_a_time_than_fit_into_memory() {
        let assignments = ["seeds=[1, 2, 3, 4]", "tau=[30, inf]", "network=1x8x8-2000FC-2000FC-10o"];
        let config = StudyConfig::load("digits", &assignments.map(str::to_owned)).unwrap();
        let plan = Plan {
            runs: Vec::new(),
            train_images: 1000,
            test_images: 500,
            analysis_images: 0,
            mechanism_images: 0,
            threads: 8,
            theory: false,
            bytes: 0,
            omitted: Vec::new(),
            config,
        };
        // With four million weights, the memory of a training hardly depends on its number of threads.
        let one = training_memory(&plan.config.base, 1);
        assert!(one > 4_000_000 * 4 * 3, "{one}");
        assert!(plan.memory(3) >= 3 * one && plan.memory(3) < 4 * one, "{one} {}", plan.memory(3));
        assert_eq!(plan.lanes_within(8, None), 8);
        assert_eq!(plan.lanes_within(8, Some(plan.memory(8))), 8);
        assert_eq!(plan.lanes_within(8, Some(4 * one - 1)), 3);
        assert_eq!(plan.lanes_within(8, Some(1)), 1);
        // There are never more runs at a time than there are runs.
        assert_eq!(plan.memory(8), plan.memory(100));
    }
}
