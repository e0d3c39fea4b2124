//! The folder of a study: which file is where.

use crate::error::RecordError;
use crate::folder::{RunFolder, RunLock};
use crate::noun::RunKey;
use std::path::{Path, PathBuf};

/// The folder of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyFolder {
    path: PathBuf,
}

impl StudyFolder {
    /// The study at a path, whether or not there is one yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        StudyFolder { path: path.into() }
    }

    /// Whether a study has begun here.
    pub fn exists(&self) -> bool {
        self.study_toml().is_file()
    }

    /// The folder itself, which holds the table of planned runs.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Resolved settings.
    pub fn study_toml(&self) -> PathBuf {
        self.path.join("study.toml")
    }

    /// The command that began the study.
    pub fn command(&self) -> PathBuf {
        self.path.join("command.txt")
    }

    /// Seconds spent, a line for each piece of work. Nothing else in the folder's tables or page knows the
    /// time.
    pub fn times(&self) -> PathBuf {
        self.path.join("times.jsonl")
    }

    /// The folder of all runs.
    pub fn runs(&self) -> PathBuf {
        self.path.join("runs")
    }

    /// The folder of a run.
    pub fn run(&self, key: &RunKey) -> RunFolder {
        RunFolder::at(self.runs().join(key.folder_name()))
    }

    /// Tables of the comparison.
    pub fn compare(&self) -> PathBuf {
        self.path.join("compare")
    }

    /// Tables of the theory.
    pub fn theory(&self) -> PathBuf {
        self.path.join("theory")
    }

    /// The page.
    pub fn page(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// Keeps other processes out of the study.
    pub fn lock(&self) -> Result<RunLock, RecordError> {
        RunFolder::at(&self.path).lock()
    }
}
