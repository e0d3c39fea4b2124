//! What is done, running, failed and missing in a study that any number of processes work at, and how long
//! the rest will take at the speed of what was done. Read from the folder alone; nothing is changed.

use super::{Plan, StudyError, check};
use crate::config::{RunConfig, StudyConfig};
use crate::run::load_dataset;
use leaklab_record::lock::Holder;
use leaklab_record::metrics::{self, Epoch};
use leaklab_record::{RunFolder, StudyFolder};

/// Last epochs that a run's speed is taken from.
const RECENT: usize = 3;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Trained and measured.
    Done,
    /// A process works at it.
    Running(Holder),
    /// The last attempt failed, for this reason.
    Failed(String),
    /// It was begun, and nobody works at it.
    Stopped,
    /// It was not begun.
    Missing,
}

impl State {
    /// One word for it.
    pub fn word(&self) -> &'static str {
        match self {
            State::Done => "done",
            State::Running(_) => "running",
            State::Failed(_) => "failed",
            State::Stopped => "stopped",
            State::Missing => "missing",
        }
    }
}

/// A run of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStatus {
    /// Name of its folder.
    pub name: String,
    /// Where it stands.
    pub state: State,
    /// Epochs trained.
    pub epochs: u64,
    /// Epochs that it is to be trained.
    pub planned: u64,
    /// Seconds that it still needs, at its own speed or else that of the others; `None` if no run has been
    /// trained for an epoch.
    pub seconds_to_go: Option<f64>,
}

/// A study.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The runs in the order of the plan.
    pub runs: Vec<RunStatus>,
    /// Seconds until all runs are done if as many go on at a time as do now, at least one.
    pub seconds_to_go: Option<f64>,
}

/// How long a run's pieces took.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Seconds of an epoch, with its evaluation where it has one.
    epoch: f64,
    /// Seconds of showing an image, where epochs were evaluated.
    image: Option<f64>,
}

impl Status {
    /// Looks at a study's folder.
    pub fn read(config: &StudyConfig, folder: &StudyFolder) -> Result<Self, StudyError> {
        check(folder, config)?;
        let runs = config.runs();
        let folders: Vec<RunFolder> = runs.iter().map(|run| folder.run(&run.key())).collect();
        let mut epochs = Vec::new();
        for folder in &folders {
            epochs.push(metrics::read(&folder.metrics())?);
        }
        let images = images(&config.base);
        let paces: Vec<Option<Pace>> = epochs.iter().map(|epochs| pace(epochs, images)).collect();
        let mean =
            |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let usual_epoch = mean(paces.iter().flatten().map(|pace| pace.epoch).collect());
        let usual_image = mean(paces.iter().flatten().filter_map(|pace| pace.image).collect());
        let mut status = Vec::new();
        for (((run, folder), epochs), pace) in runs.iter().zip(&folders).zip(&epochs).zip(&paces) {
            let state = state(folder)?;
            let trained = epochs.last().map_or(0, |epoch| epoch.epoch);
            let seconds_to_go = pace.map(|pace| pace.epoch).or(usual_epoch).map(|epoch| {
                let image = pace.and_then(|pace| pace.image).or(usual_image);
                let shown = images.map_or(0, |images| Plan::analysis_images_of(run, images.test));
                let analyses = image.filter(|_| !run.probe).map_or(0.0, |image| image * shown as f64);
                run.epochs.saturating_sub(trained) as f64 * epoch + analyses
            });
            status.push(RunStatus {
                name: run.folder_name(),
                seconds_to_go: if state == State::Done { Some(0.0) } else { seconds_to_go },
                epochs: trained,
                planned: run.epochs,
                state,
            });
        }
        let running = status.iter().filter(|run| matches!(run.state, State::Running(_))).count().max(1);
        let all: Option<Vec<f64>> = status.iter().map(|run| run.seconds_to_go).collect();
        let seconds_to_go = all.map(|all| {
            let longest = all.iter().copied().fold(0.0, f64::max);
            longest.max(all.iter().sum::<f64>() / running as f64)
        });
        Ok(Status { runs: status, seconds_to_go })
    }

    /// How many runs are in a state of that word.
    pub fn count(&self, word: &str) -> usize {
        self.runs.iter().filter(|run| run.state.word() == word).count()
    }
}

fn state(folder: &RunFolder) -> Result<State, StudyError> {
    if folder.complete().is_file() {
        return Ok(State::Done);
    }
    if !folder.path().is_dir() {
        return Ok(State::Missing);
    }
    if let Some(holder) = folder.worker()? {
        return Ok(State::Running(holder));
    }
    if let Ok(reason) = std::fs::read_to_string(folder.failure()) {
        return Ok(State::Failed(reason.trim().to_owned()));
    }
    Ok(if folder.exists() { State::Stopped } else { State::Missing })
}

/// Images of a run.
#[derive(Debug, Clone, Copy)]
struct Images {
    train: u64,
    /// Of the test set.
    test: u64,
    /// Shown in an evaluation.
    evaluated: u64,
}

/// The images of a study's runs; `None` where the data set cannot be read here.
fn images(config: &RunConfig) -> Option<Images> {
    let dataset = load_dataset(config).ok()?;
    let (train, test) = (dataset.train.len() as u64, dataset.test.len() as u64);
    Some(Images { train, test, evaluated: test + (config.evaluate_train_images as u64).min(train) })
}

/// The speed of a run's last epochs.
fn pace(epochs: &[Epoch], images: Option<Images>) -> Option<Pace> {
    let recent = &epochs[epochs.len().saturating_sub(RECENT)..];
    if recent.is_empty() {
        return None;
    }
    let epoch = recent.iter().map(|epoch| epoch.seconds).sum::<f64>() / recent.len() as f64;
    // What an epoch took beyond its training is its evaluation. An epoch that was interrupted counts neither.
    let evaluated =
        recent.iter().rev().find(|epoch| epoch.test_accuracy.is_some() && epoch.images_per_second > 0.0);
    let image = evaluated.zip(images).map(|(epoch, images)| {
        (epoch.seconds - images.train as f64 / epoch.images_per_second) / images.evaluated.max(1) as f64
    });
    Some(Pace { epoch, image: image.filter(|seconds| *seconds > 0.0) })
}
