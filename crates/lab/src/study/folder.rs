//! A study's folder: which file is where, and whether it belongs to the study that was asked for.

use super::StudyError;
use crate::config::{RunConfig, StudyConfig};
use leaklab_record::{Manifest, RecordError, RunFolder, RunLock, manifest};
use std::fs;
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

    /// The folder itself.
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

    /// Seconds spent, a line for each piece of work. Nothing else in the folder's tables or page knows the time.
    pub fn times(&self) -> PathBuf {
        self.path.join("times.jsonl")
    }

    /// The folder of a run.
    pub fn run(&self, config: &RunConfig) -> RunFolder {
        RunFolder::at(self.path.join("runs").join(config.folder_name()))
    }

    /// Tables of the comparison.
    pub fn compare(&self) -> PathBuf {
        self.path.join("compare")
    }

    /// Tables of the theory.
    pub fn theory(&self) -> PathBuf {
        self.path.join("theory")
    }

    /// Keeps other processes out of the study.
    pub fn lock(&self) -> Result<RunLock, RecordError> {
        RunFolder::at(&self.path).lock()
    }

    /// Refuses a folder whose study differs in anything but the lists of tau and seeds, which may grow, and the place of the
    /// data sets, which may move.
    pub fn check(&self, config: &StudyConfig) -> Result<(), StudyError> {
        let path = self.study_toml();
        if !path.is_file() {
            return Ok(());
        }
        let there = Manifest::read(&path)?.settings;
        let asked: toml::Table = toml::from_str(&config.to_toml()).map_err(|e| RecordError::Malformed {
            path: path.clone(),
            what: "settings file",
            reason: e.to_string(),
        })?;
        for key in there.keys().chain(asked.keys()) {
            let (theirs, ours) = (there.get(key), asked.get(key));
            // TOML's infinity equals itself, so tables of numbers compare as they should.
            if theirs != ours && !["tau", "seeds", "data_dir"].contains(&key.as_str()) {
                let say = |value: Option<&toml::Value>| match value {
                    Some(value) => format!("{key} = {value}"),
                    None => format!("no {key}"),
                };
                return Err(StudyError::Other {
                    path: self.path.clone(),
                    theirs: say(theirs),
                    ours: say(ours),
                });
            }
        }
        Ok(())
    }

    /// Makes the folder and writes the settings. The command is kept only the first time: a resumed study is the same study.
    pub fn begin(&self, config: &StudyConfig, command: &str) -> Result<(), StudyError> {
        let text = config.to_toml();
        let unchanged = fs::read_to_string(self.study_toml()).is_ok_and(|there| there.ends_with(&text));
        if !unchanged || !self.command().is_file() {
            let file = self.command();
            leaklab_record::atomic::write(&file, format!("{command}\n").as_bytes())
                .map_err(RecordError::io(&file, "cannot be written"))?;
            manifest::write(&self.study_toml(), &text)?;
        }
        Ok(())
    }
}
