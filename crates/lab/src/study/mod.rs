//! A whole study: every condition and seed trained, measured and compared, in one folder, to be stopped and
//! gone on with at any moment.
//!
//! The folder is the state, and all that several processes at one study share. A run goes on from its checkpoint, an analysis from the passes it kept, and the
//! comparison reads tables only, so doing a study again does what is missing and nothing else, and ends with
//! the same bytes.

mod folder;
mod measure;
mod plan;
mod resources;
mod status;
mod together;
mod work;

pub use folder::{Members, begin, check, members};
pub use measure::Speed;
pub use plan::{Plan, RunState};
pub use resources::Resources;
pub use status::{RunStatus, State, Status};
pub use work::{Event, Options, Stage, compare, run, run_one};

use crate::analysis::AnalysisError;
use crate::bench::BenchError;
use crate::config::ConfigError;
use crate::run::RunError;
use crate::train::TrainError;
use leaklab_record::{RecordError, TableError};
use std::path::PathBuf;

/// Why a study could not be planned or done.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The folder holds a study with other settings.
    #[error(
        "{}: there is a study here already, with {theirs} where this one has {ours}; choose another --out, or take its \
         own file: leaklab study {}", path.display(), path.join("study.toml").display()
    )]
    Other {
        /// The folder.
        path: PathBuf,
        /// A setting of the study that is there.
        theirs: String,
        /// The same setting of the study that was asked for.
        ours: String,
    },
    /// A run was begun with other settings than its condition has now.
    #[error(
        "{}: this run of condition '{condition}' was begun with {theirs}, and the study now has {ours}; give the \
         changed condition another name, or choose another --out", path.display()
    )]
    Changed {
        /// The run's folder.
        path: PathBuf,
        /// Its condition.
        condition: String,
        /// A setting of the run.
        theirs: String,
        /// Its value in the study.
        ours: String,
    },
    /// Settings are refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A table cannot be written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The data set cannot be used.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Training failed.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// An analysis failed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// The speed could not be measured.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// There is no run of that number.
    #[error("the study has no run {index}: its runs are numbered from 0 to {last}")]
    NoSuchRun {
        /// The number that was asked for.
        index: usize,
        /// The last run's.
        last: usize,
    },
    /// The watcher asked to stop.
    #[error("stopped; the same command goes on from here")]
    Interrupted,
}
