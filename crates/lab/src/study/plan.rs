//! What a study has to do, how long that will take on this machine, and what it will leave on disk.

use super::{StudyError, check};
use crate::analysis::mechanism;
use crate::bench::{self, BenchError};
use crate::config::{RunConfig, StudyConfig};
use crate::data::location;
use crate::memory;
use crate::run::{RunError, load_pinned};
use leaklab_engine::Isa;
use leaklab_engine::optimiser::Optimiser;
use leaklab_record::{StudyFolder, metrics};

/// Severities of a noise that the robustness analysis applies.
const SEVERITIES: u64 = 8;
/// Images of the mini-batch that is timed.
const TIMED_IMAGES: usize = 8;
/// Bytes of a run's tables and logs, and of the page: roughly, and small beside a checkpoint of any size.
const TABLE_BYTES: u64 = 3_000_000;

/// How far a run has come.
#[derive(Debug, Clone, PartialEq)]
pub struct RunState {
    /// Name of its folder.
    pub name: String,
    /// Epochs that it is to be trained.
    pub planned: u64,
    /// Epochs trained.
    pub epochs: u64,
    /// Whether it is trained only to see whether it learns.
    pub probe: bool,
}

/// Seconds per image, on all threads together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// Training.
    pub train: f64,
    /// Inference.
    pub infer: f64,
}

/// What a study has to do.
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
    /// Images that the question where robustness comes from shows, over all runs; 0 if it is not asked.
    pub mechanism_images: u64,
    /// Threads at work.
    pub threads: usize,
    /// Measured speed.
    pub speed: Speed,
    /// Bytes on disk in the end.
    pub bytes: u64,
}

impl Plan {
    /// Looks at the folder and the data set, and measures the machine's speed on a few images.
    pub fn make(config: &StudyConfig, folder: &StudyFolder, threads: usize) -> Result<Self, StudyError> {
        check(folder, config)?;
        let mut config = config.clone();
        // Its own data may stand in the study's folder.
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
        let mut runs = Vec::new();
        for run in config.runs() {
            let epochs = metrics::read(&folder.run(&run.key()).metrics())?;
            runs.push(RunState {
                name: run.folder_name(),
                planned: run.epochs,
                probe: run.probe,
                epochs: epochs.last().map_or(0, |epoch| epoch.epoch),
            });
        }
        let images = base.analysis_images.map_or(test_images, |n| test_images.min(n as u64));
        let passes = 1 + base.presentations * (1 + SEVERITIES * base.noise.len() as u64);
        let parameters = base.network.parameter_count() as u64;
        let copies = match base.optimiser() {
            Optimiser::Sgd { momentum: 0.0, .. } => 3,
            Optimiser::Sgd { .. } => 5,
            Optimiser::Adam { .. } => 7,
        };
        Ok(Plan {
            train_images,
            test_images,
            analysis_images: images * passes,
            mechanism_images: if base.mechanism { mechanism::planned_images(&config, images) } else { 0 },
            threads,
            speed: measure(&config, threads)?,
            bytes: runs.len() as u64 * (4 * parameters * copies + TABLE_BYTES),
            runs,
            config,
        })
    }

    /// Seconds of one epoch of one run, its evaluation included.
    pub fn epoch_seconds(&self) -> f64 {
        let evaluated = 1.0 / self.config.base.evaluate_every as f64;
        self.train_images as f64 * self.speed.train + evaluated * self.test_images as f64 * self.speed.infer
    }

    /// Seconds of the analyses of one run.
    pub fn analysis_seconds(&self) -> f64 {
        self.analysis_images as f64 * self.speed.infer
    }

    /// Seconds that a run still needs.
    pub fn run_seconds(&self, run: &RunState) -> f64 {
        let epochs = run.planned.saturating_sub(run.epochs);
        let analyses = if run.probe { 0.0 } else { self.analysis_seconds() };
        epochs as f64 * self.epoch_seconds() + analyses
    }

    /// Seconds of the question where robustness comes from.
    pub fn mechanism_seconds(&self) -> f64 {
        self.mechanism_images as f64 * self.speed.infer
    }

    /// Seconds that the study still needs, as far as a short measurement can tell.
    pub fn seconds(&self) -> f64 {
        self.runs.iter().map(|run| self.run_seconds(run)).sum::<f64>() + self.mechanism_seconds()
    }

    /// Runs at a time. Small networks leave threads waiting for each other at the end of every batch, so
    /// whole runs are spread over the threads; a run of many hours has all threads, and the first result
    /// comes sooner. Never more than fit into memory together. No result depends on it.
    pub fn lanes(&self) -> usize {
        const LONG: f64 = 1800.0;
        let longest = self.runs.iter().map(|run| self.run_seconds(run)).fold(0.0, f64::max);
        let wanted =
            if longest * self.threads as f64 > LONG { 1 } else { self.threads.min(self.runs.len()).max(1) };
        self.lanes_within(wanted, memory::available())
    }

    /// At most `wanted` runs at a time, and no more than `available` bytes have room for; one at least, which
    /// was checked when the plan was made.
    fn lanes_within(&self, wanted: usize, available: Option<u64>) -> usize {
        let fit = |lanes: &usize| available.is_none_or(|available| self.memory(*lanes) <= available);
        (1..=wanted).rev().find(fit).unwrap_or(1)
    }

    /// Bytes that so many runs at a time take, if the largest ones meet. Each has its own copy of the images.
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

/// Times the untrained network on a few pictures.
fn measure(config: &StudyConfig, threads: usize) -> Result<Speed, StudyError> {
    let base = &config.base;
    let network = base.initial_network().map_err(BenchError::from)?;
    let settings = bench::Settings {
        time_steps: base.time_steps,
        batch: TIMED_IMAGES.max(threads),
        threads,
        repeats: 2,
        isa: Isa::best(),
        dropout: base.dropout,
        train: true,
    };
    let report = bench::run(&network, &settings, &[])?;
    let encode = report.encode_seconds_per_image / threads as f64;
    Ok(Speed {
        train: report.train.map_or(0.0, |timing| timing.seconds_per_image) + encode,
        infer: report.infer.seconds_per_image + encode,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            speed: Speed { train: 1e-3, infer: 1e-3 },
            bytes: 0,
            config,
        };
        // Four million weights: what one training takes is far more than its share of threads adds or saves.
        let one = training_memory(&plan.config.base, 1);
        assert!(one > 4_000_000 * 4 * 3, "{one}");
        assert!(plan.memory(3) >= 3 * one && plan.memory(3) < 4 * one, "{one} {}", plan.memory(3));
        assert_eq!(plan.lanes_within(8, None), 8);
        assert_eq!(plan.lanes_within(8, Some(plan.memory(8))), 8);
        assert_eq!(plan.lanes_within(8, Some(4 * one - 1)), 3);
        assert_eq!(plan.lanes_within(8, Some(1)), 1);
        // Only as many as there are runs can meet.
        assert_eq!(plan.memory(8), plan.memory(100));
    }
}
