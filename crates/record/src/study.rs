//! The folder of a study: the paths of its files.

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

    /// Whether the folder contains a study.
    pub fn exists(&self) -> bool {
        self.study_toml().is_file()
    }

    /// The folder itself, which contains the table of planned runs.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Resolved settings.
    pub fn study_toml(&self) -> PathBuf {
        self.path.join("study.toml")
    }

    /// The command that started the study.
    pub fn command(&self) -> PathBuf {
        self.path.join("command.txt")
    }

    /// Seconds spent, one line for each task. Neither the tables nor the page depend on these times.
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

    /// Locks the study, so that no other process works in it.
    pub fn lock(&self) -> Result<RunLock, RecordError> {
        RunFolder::at(&self.path).lock()
    }
}
