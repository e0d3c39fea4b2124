//! A whole study: every condition and seed is trained, measured and compared, in one folder. It can be
//! stopped and resumed at any moment.
//!
//! The folder is the whole state, and the only thing that several processes working on one study share. A run
//! continues from its checkpoint, an analysis from its stored passes, and the comparison reads only tables.
//! Running a study again therefore does only what is missing, and the result is bit-identical.

mod folder;
mod images;
mod measure;
mod plan;
mod resources;
mod status;
mod together;
mod work;

pub use folder::{Members, begin, check, check_unedited, members};
pub use measure::Speed;
pub use plan::{Plan, RunState};
pub use resources::Resources;
pub use status::{RunStatus, State, StateKind, Status};
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
        "{}: there is a study here already, with {theirs} where this one has {ours}; choose another --out, \
         or continue this one with `leaklab study --out {}`", path.display(), path.display()
    )]
    Other {
        /// The folder.
        path: PathBuf,
        /// A setting of the existing study.
        theirs: String,
        /// The same setting of the requested study.
        ours: String,
    },
    /// The folder is that of a run.
    #[error("{}: there is a run here already; choose another --out for the study", .0.display())]
    IsRun(PathBuf),
    /// A run was started with other settings than its condition has now.
    #[error(
        "{}: this run of condition '{condition}' was started with {theirs}, and the study now has {ours}; \
         give the changed condition another name, or choose another --out", path.display()
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
        /// The requested number.
        index: usize,
        /// Number of the last run.
        last: usize,
    },
    /// The watcher asked to stop.
    #[error("stopped; the same command continues from here")]
    Interrupted,
}
