//! The folder of a study: the paths of its files.

use crate::error::RecordError;
use crate::file;
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

    /// The folder of a study for which none is given.
    pub fn default_for(name: &str) -> Self {
        StudyFolder::at(Path::new("leaklab-study").join(name.replace(['/', '\\'], "-")))
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

    /// Exists if the tables of the theory are complete.
    pub fn theory_complete(&self) -> PathBuf {
        self.theory().join("complete")
    }

    /// The page.
    pub fn page(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// Scripts and logs of a batch system.
    pub fn slurm(&self) -> PathBuf {
        self.path.join("slurm")
    }

    /// Fails if a folder in which the study writes is a link: that of a run, or of shared results.
    pub fn check_links(&self) -> Result<(), RecordError> {
        for folder in [self.runs(), self.compare(), self.theory(), self.slurm()] {
            file::check_folder(&folder)?;
        }
        file::entries(&self.runs())?.iter().try_for_each(|(run, _)| file::check_folder(run))
    }

    /// Locks the study, so that no other process works in it. Fails if it would write through a link.
    pub fn lock(&self) -> Result<RunLock, RecordError> {
        self.check_links()?;
        RunFolder::at(&self.path).lock()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_study_does_not_write_through_a_link() {
        let parent = tempfile::tempdir().unwrap();
        let (study, elsewhere) =
            (StudyFolder::at(parent.path().join("study")), parent.path().join("elsewhere"));
        fs::create_dir_all(&elsewhere).unwrap();
        for within in ["compare", "theory", "slurm", "runs", "runs/tau-30_seed-1"] {
            let link = study.path().join(within);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
            let message = study.lock().unwrap_err().to_string();
            let expected = format!("{within}: cannot be used: it is a symbolic link");
            assert!(message.contains(&expected), "{message}");
            fs::remove_file(link).unwrap();
        }
        study.lock().unwrap();
    }
}
