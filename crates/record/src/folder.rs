//! The folder of one run: the paths of its files, and the lock that lets only one process at a time write to
//! it, on one machine or several ([`crate::lock`]).

use crate::error::RecordError;
use crate::lock::{self, Holder, Lock, Refused};
use crate::{atomic, file};
use std::fs;
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

    /// The run at a path, which must exist. Incomplete files of dead processes are removed.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let folder = RunFolder::at(path);
        if !folder.exists() {
            let missing = match fs::metadata(&folder.path) {
                Ok(found) if found.is_dir() => "it has no run.toml",
                Ok(_) => "it is a file",
                Err(_) => "there is no such folder",
            };
            return Err(RecordError::NotARun { path: folder.path, missing });
        }
        file::check_tree(&folder.analysis())?;
        folder.sweep();
        Ok(folder)
    }

    /// Whether the folder contains a run.
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

    /// The checkpoint before the last one, used if the last one is damaged.
    pub fn previous_checkpoint(&self) -> PathBuf {
        self.path.join("checkpoint.previous.safetensors")
    }

    /// Temporary name of the previous checkpoint while it is replaced.
    pub(crate) fn rotation(&self) -> PathBuf {
        self.previous_checkpoint().with_extension(atomic::PARTIAL)
    }

    /// Weights of the epoch with the highest test accuracy.
    pub fn best(&self) -> PathBuf {
        self.path.join("best.safetensors")
    }

    /// TensorBoard scalars.
    pub fn events(&self) -> PathBuf {
        self.path.join("events.out.tfevents.0000000000.leaklab")
    }

    /// Log for people: what happened and when.
    pub fn log(&self) -> PathBuf {
        self.path.join("log.txt")
    }

    /// One line per health notice.
    pub fn health(&self) -> PathBuf {
        self.path.join("health.jsonl")
    }

    /// One line for each machine that trained a part of the run.
    pub fn machines(&self) -> PathBuf {
        self.path.join("machines.jsonl")
    }

    /// Folder of the run's tables.
    pub fn analysis(&self) -> PathBuf {
        self.path.join("analysis")
    }

    /// Within [`analysis`](Self::analysis): runs of the network with other leaks, stored by the mechanism
    /// analysis.
    pub fn cells(&self) -> PathBuf {
        self.analysis().join("cells")
    }

    /// Stored passes over the test images, within the folder of the tables that are made from them.
    pub fn passes(tables: &Path) -> PathBuf {
        tables.join("passes")
    }

    /// Exists if the run is trained and measured as its study requires.
    pub fn complete(&self) -> PathBuf {
        self.path.join("complete")
    }

    /// Why the study's last attempt at the run failed. Exists only if it failed.
    pub fn failure(&self) -> PathBuf {
        self.path.join("failed.txt")
    }

    /// Creates the folder if necessary, locks it and removes incomplete files of dead processes. Fails if the
    /// folder cannot be written, or if its tables would be written through a link.
    pub fn lock(&self) -> Result<RunLock, RecordError> {
        let refused = "cannot be written; choose a writable folder";
        file::check_tree(&self.analysis())?;
        fs::create_dir_all(&self.path).map_err(RecordError::io(&self.path, refused))?;
        let path = self.lock_file();
        file::check_place(&path).map_err(RecordError::io(&path, refused))?;
        let lock = match Lock::take(&path) {
            Ok(lock) => lock,
            Err(Refused::Held(holder)) => {
                return Err(RecordError::Locked { path: self.path.clone(), holder });
            }
            Err(Refused::Io(source)) => return Err(RecordError::Io { path, action: refused, source }),
        };
        self.sweep();
        // While this process holds the lock, no other process writes a checkpoint, so the file of an
        // incomplete rotation can be removed.
        atomic::remove_if_dead(&self.rotation());
        Ok(RunLock { lock })
    }

    /// The process that works in the folder, if any. A process that is known to have ended does not count.
    pub fn worker(&self) -> Result<Option<Holder>, RecordError> {
        let path = self.lock_file();
        let holder = lock::holder(&path).map_err(RecordError::io(&path, "cannot be read"))?;
        Ok(holder.filter(|holder| !holder.stale))
    }

    fn lock_file(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// Removes incomplete files of dead processes, here and in `analysis`, which has no links
    /// ([`file::check_tree`]).
    fn sweep(&self) {
        atomic::sweep(&self.path);
        sweep_tree(&self.analysis());
    }
}

fn sweep_tree(folder: &Path) {
    atomic::sweep(folder);
    let within = file::entries(folder).unwrap_or_default();
    within.iter().filter(|(_, kind)| kind.is_dir()).for_each(|(folder, _)| sweep_tree(folder));
}

/// The right to write to a run folder. It is released when this value is dropped or the process ends.
#[derive(Debug)]
pub struct RunLock {
    lock: Lock,
}

impl RunLock {
    /// Fails if another process took over because this one was halted for too long.
    pub fn check(&self) -> Result<(), RecordError> {
        self.lock.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Process;

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
    fn whatever_opens_a_run_sweeps_it() {
        let parent = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(parent.path());
        let passes = folder.analysis().join("best/passes");
        let ending = format!("{}89abcdef.partial", Process::this().machine_digits());
        fs::create_dir_all(&passes).unwrap();
        fs::write(folder.run_toml(), "").unwrap();
        let left =
            [folder.path(), &folder.analysis(), &passes].map(|within| within.join(format!("x.{ending}")));
        let rotation = folder.path().join("checkpoint.previous.partial");
        let leave = || left.iter().chain([&rotation]).for_each(|path| fs::write(path, "half").unwrap());
        leave();
        RunFolder::open(parent.path()).unwrap();
        assert!(left.iter().all(|path| !path.exists()));
        assert!(rotation.exists(), "only the holder of the lock knows that no rotation is under way");
        leave();
        // A download, or another program's file.
        let others = ["data.gz.partial", "notes.partial"].map(|name| folder.path().join(name));
        others.iter().for_each(|path| fs::write(path, "half").unwrap());
        let _lock = folder.lock().unwrap();
        assert!(left.iter().chain([&rotation]).all(|path| !path.exists()));
        assert!(others.iter().all(|path| path.exists()), "a file that is not ours was removed");
    }

    #[cfg(unix)]
    #[test]
    fn tables_do_not_go_through_a_link() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, elsewhere) = (RunFolder::at(parent.path().join("run")), parent.path().join("elsewhere"));
        fs::create_dir_all(&elsewhere).unwrap();
        fs::create_dir(folder.path()).unwrap();
        fs::write(folder.run_toml(), "").unwrap();
        RunFolder::open(folder.path()).unwrap();
        for within in
            ["analysis", "analysis/best", "analysis/tau-5", "analysis/cells", "analysis/best/passes"]
        {
            let link = folder.path().join(within);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(&elsewhere, &link).unwrap();
            for error in [RunFolder::open(folder.path()).unwrap_err(), folder.lock().unwrap_err()] {
                let expected = format!("{within}: cannot be used: it is a symbolic link");
                assert!(error.to_string().contains(&expected), "{error}");
            }
            fs::remove_file(link).unwrap();
        }
        folder.lock().unwrap();
    }

    #[test]
    fn a_missing_run_is_named() {
        let message = RunFolder::open("no/such/run").unwrap_err().to_string();
        assert!(message.starts_with("no/such/run: not a run folder: there is no such folder"), "{message}");
        let empty = tempfile::tempdir().unwrap();
        let message = RunFolder::open(empty.path()).unwrap_err().to_string();
        assert!(message.contains("not a run folder: it has no run.toml"), "{message}");
    }
}
