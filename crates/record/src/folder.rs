//! The folder of one run: which file is where, and the lock that keeps two processes out of it.
//!
//! The lock is the system's own lock on an open file, so a process that was killed leaves nothing to clean up.

use crate::error::RecordError;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// The folder of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// The run at a path, whether or not there is one yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        RunFolder { path: path.into() }
    }

    /// The run at a path, which must exist.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let folder = RunFolder::at(path);
        if folder.exists() { Ok(folder) } else { Err(RecordError::NotARun { path: folder.path }) }
    }

    /// Whether a run has begun here.
    pub fn exists(&self) -> bool {
        self.run_toml().is_file()
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Resolved settings.
    pub fn run_toml(&self) -> PathBuf {
        self.path.join("run.toml")
    }

    /// One line per epoch.
    pub fn metrics(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// Weights, optimiser and position after the last epoch, or within one.
    pub fn checkpoint(&self) -> PathBuf {
        self.path.join("checkpoint.safetensors")
    }

    /// The checkpoint before that, used when the last one is damaged.
    pub fn previous_checkpoint(&self) -> PathBuf {
        self.path.join("checkpoint.previous.safetensors")
    }

    /// Weights of the epoch with the highest test accuracy.
    pub fn best(&self) -> PathBuf {
        self.path.join("best.safetensors")
    }

    /// TensorBoard scalars.
    pub fn events(&self) -> PathBuf {
        self.path.join("events.out.tfevents.0000000000.leaklab")
    }

    /// What happened and when, for people.
    pub fn log(&self) -> PathBuf {
        self.path.join("log.txt")
    }

    /// One line per health notice.
    pub fn health(&self) -> PathBuf {
        self.path.join("health.jsonl")
    }

    /// Folder of the run's tables.
    pub fn analysis(&self) -> PathBuf {
        self.path.join("analysis")
    }

    /// Makes the folder if need be and locks it. Fails where the folder cannot be written.
    pub fn lock(&self) -> Result<RunLock, RecordError> {
        let refused = "cannot be written; choose a folder that can";
        fs::create_dir_all(&self.path).map_err(RecordError::io(&self.path, refused))?;
        let path = self.path.join("lock");
        let file = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .map_err(RecordError::io(&self.path, refused))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RecordError::Locked { path: self.path.clone() }),
            // A file system without locks: one process at a time is then up to the user.
            Err(TryLockError::Error(e)) if e.kind() == std::io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(source)) => {
                return Err(RecordError::Io { path, action: "cannot be locked", source });
            }
        }
        Ok(RunLock { _file: file })
    }

    /// Removes what a killed process left half-written. The caller holds the lock.
    pub fn remove_partial_files(&self, _lock: &RunLock) -> Result<(), RecordError> {
        let entries = fs::read_dir(&self.path).map_err(RecordError::io(&self.path, "cannot be read"))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|ending| ending == "partial") {
                fs::remove_file(&path).map_err(RecordError::io(&path, "cannot be removed"))?;
            }
        }
        Ok(())
    }
}

/// The right to write into a run folder, given back when dropped or when the process ends.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_others_out_until_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(parent.path().join("deep/run"));
        let lock = folder.lock().unwrap();
        let message = folder.lock().unwrap_err().to_string();
        assert!(message.contains("another leaklab process"), "{message}");
        drop(lock);
        folder.lock().unwrap();
    }

    #[test]
    fn a_missing_run_is_named() {
        let message = RunFolder::open("no/such/run").unwrap_err().to_string();
        assert!(message.starts_with("no/such/run: not a run folder"), "{message}");
    }
}
