//! Which runs of a study are done, running, failed and missing, with any number of processes working on it,
//! and how long the rest will take at the speed so far. The states are read from the folder, and no file in
//! it is changed; to read the file system's clock, a temporary file is created beside a lock and removed. The
//! data set is read for its number of images only.

use super::images::TestImages;
use super::{Plan, StudyError, check};
use crate::config::{RunConfig, StudyConfig};
use crate::run::load_dataset;
use leaklab_record::lock::Holder;
use leaklab_record::metrics::{self, Epoch};
use leaklab_record::{RecordError, RunFolder, StudyFolder, file};
use std::io::ErrorKind;

/// Number of last epochs from which a run's speed is computed.
const RECENT: usize = 3;

/// State of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Trained and measured.
    Done,
    /// A process is working on it.
    Running(Holder),
    /// The last attempt failed, for this reason.
    Failed(String),
    /// It was started, and no process is working on it.
    Stopped,
    /// It was not started.
    Missing,
}

impl State {
    /// The state without its details.
    pub fn kind(&self) -> StateKind {
        match self {
            State::Done => StateKind::Done,
            State::Running(_) => StateKind::Running,
            State::Failed(_) => StateKind::Failed,
            State::Stopped => StateKind::Stopped,
            State::Missing => StateKind::Missing,
        }
    }
}

/// State of a run, without details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKind {
    /// See [`State::Done`].
    Done,
    /// See [`State::Running`].
    Running,
    /// See [`State::Failed`].
    Failed,
    /// See [`State::Stopped`].
    Stopped,
    /// See [`State::Missing`].
    Missing,
}

impl StateKind {
    /// All states, in the order in which they are counted.
    pub const ALL: [StateKind; 5] =
        [StateKind::Done, StateKind::Running, StateKind::Failed, StateKind::Stopped, StateKind::Missing];

    /// The state as one word.
    pub fn word(self) -> &'static str {
        match self {
            StateKind::Done => "done",
            StateKind::Running => "running",
            StateKind::Failed => "failed",
            StateKind::Stopped => "stopped",
            StateKind::Missing => "missing",
        }
    }
}

/// A run of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct RunStatus {
    /// Name of its folder.
    pub name: String,
    /// Its state.
    pub state: State,
    /// Epochs trained.
    pub epochs: u64,
    /// Planned epochs.
    pub planned: u64,
    /// Seconds that it still needs, at its own speed, or else at the mean speed of the others; `None` if no
    /// run has been trained for an epoch.
    pub seconds_to_go: Option<f64>,
}

/// A study.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The runs in the order of the plan.
    pub runs: Vec<RunStatus>,
    /// Seconds until all runs are done if as many run at a time as now, at least one.
    pub seconds_to_go: Option<f64>,
}

/// Durations of the parts of a run.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Seconds of an epoch, including its evaluation if it has one.
    epoch: f64,
    /// Seconds to show an image, if epochs were evaluated.
    image: Option<f64>,
}

impl Status {
    /// Reads a study's folder.
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
        let mean_epoch = mean(paces.iter().flatten().map(|pace| pace.epoch).collect());
        let mean_image = mean(paces.iter().flatten().filter_map(|pace| pace.image).collect());
        let mut status = Vec::new();
        for (((run, folder), epochs), pace) in runs.iter().zip(&folders).zip(&epochs).zip(&paces) {
            let of_study = TestImages { count: images.map(|images| images.test) };
            let state = state(folder, of_study.is_done(run, folder))?;
            let trained = epochs.last().map_or(0, |epoch| epoch.epoch);
            let seconds_to_go = pace.map(|pace| pace.epoch).or(mean_epoch).map(|epoch| {
                let image = pace.and_then(|pace| pace.image).or(mean_image);
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

    /// Number of runs in a state.
    pub fn count(&self, kind: StateKind) -> usize {
        self.runs.iter().filter(|run| run.state.kind() == kind).count()
    }
}

fn state(folder: &RunFolder, done: bool) -> Result<State, StudyError> {
    if done {
        return Ok(State::Done);
    }
    if !folder.path().is_dir() {
        return Ok(State::Missing);
    }
    if let Some(holder) = folder.worker()? {
        return Ok(State::Running(holder));
    }
    let failure = folder.failure();
    match file::read_to_string(&failure) {
        Ok(reason) => Ok(State::Failed(reason.trim().to_owned())),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            Ok(if folder.exists() { State::Stopped } else { State::Missing })
        }
        Err(e) => Err(RecordError::io(&failure, "cannot be read")(e).into()),
    }
}

/// Numbers of images of a run.
#[derive(Debug, Clone, Copy)]
struct Images {
    train: u64,
    /// Of the test set.
    test: u64,
    /// Shown in an evaluation.
    evaluated: u64,
}

/// The images of a study's runs; `None` if the data set cannot be read on this machine.
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
    // The time of an epoch beyond its training is that of its evaluation. Epochs without a training speed are
    // skipped. The time of an epoch that was resumed counts from the resumption only and is therefore too
    // short, so the longest evaluation is used.
    let evaluated =
        recent.iter().filter(|epoch| epoch.test_accuracy.is_some() && epoch.images_per_second > 0.0);
    let seconds = |images: Images| {
        let times = evaluated.map(|epoch| epoch.seconds - images.train as f64 / epoch.images_per_second);
        times.reduce(f64::max).map(|longest| longest / images.evaluated.max(1) as f64)
    };
    let image = images.and_then(seconds);
    Some(Pace { epoch, image: image.filter(|seconds| *seconds > 0.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_reason_of_a_failure_is_read_or_an_error() {
        let parent = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(parent.path());
        assert_eq!(state(&folder, false).unwrap(), State::Missing);
        fs::write(folder.run_toml(), "").unwrap();
        assert_eq!(state(&folder, false).unwrap(), State::Stopped);
        fs::write(folder.failure(), "the disk is full\n").unwrap();
        assert_eq!(state(&folder, false).unwrap(), State::Failed("the disk is full".to_owned()));
        fs::write(folder.failure(), b"\xff").unwrap();
        let message = state(&folder, false).unwrap_err().to_string();
        assert!(message.contains("failed.txt: cannot be read: it is not text in UTF-8"), "{message}");
        fs::File::create(folder.failure()).unwrap().set_len(1 << 40).unwrap();
        let message = state(&folder, false).unwrap_err().to_string();
        assert!(message.contains("failed.txt: cannot be read: it has more than"), "{message}");
        fs::remove_file(folder.failure()).unwrap();
        #[cfg(unix)]
        {
            assert!(std::process::Command::new("mkfifo").arg(folder.failure()).status().unwrap().success());
            let message = state(&folder, false).unwrap_err().to_string();
            assert!(message.contains("failed.txt: cannot be read: it is not a regular file"), "{message}");
        }
    }
}
