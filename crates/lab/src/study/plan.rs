//! What a study has to do, how long that will take on this machine, and what it will leave on disk.

use super::{StudyError, check};
use crate::analysis::mechanism;
use crate::bench::{self, BenchError};
use crate::config::{RunConfig, StudyConfig};
use crate::run::load_dataset;
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
        let base = &config.base;
        let dataset = load_dataset(base)?;
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
        let parameters = base.network.parameter_count() as u64;
        let copies = match base.optimiser() {
            Optimiser::Sgd { momentum: 0.0, .. } => 3,
            Optimiser::Sgd { .. } => 5,
            Optimiser::Adam { .. } => 7,
        };
        Ok(Plan {
            config: config.clone(),
            train_images,
            test_images,
            analysis_images: Self::analysis_images_of(base, test_images),
            mechanism_images: if base.mechanism { mechanism::planned_images(config, images) } else { 0 },
            threads,
            speed: measure(config, threads)?,
            bytes: runs.len() as u64 * (4 * parameters * copies + TABLE_BYTES),
            runs,
        })
    }

    /// Images that the analyses of a run show, of so many test images.
    pub(super) fn analysis_images_of(run: &RunConfig, test_images: u64) -> u64 {
        let images = run.analysis_images.map_or(test_images, |n| test_images.min(n as u64));
        images * (1 + run.presentations * (1 + SEVERITIES * run.noise.len() as u64))
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
    /// whole runs are spread over the threads; a run of many hours has as many threads as it can use, and the
    /// first result comes sooner. No result depends on it.
    pub fn lanes(&self) -> usize {
        const LONG: f64 = 1800.0;
        let longest = self.runs.iter().map(|run| self.run_seconds(run)).fold(0.0, f64::max);
        let long = longest * self.threads as f64 > LONG;
        let lanes = if long { self.threads.div_ceil(self.most_threads()) } else { self.threads };
        lanes.min(self.runs.len()).max(1)
    }
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
