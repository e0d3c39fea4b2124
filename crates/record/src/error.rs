//! Errors in reading or writing records. Each message is one sentence that names the file and the remedy.

use crate::lock::Holder;
use std::path::{Path, PathBuf};

/// Why a run's files could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The folder contains no run.
    #[error("{}: not a run folder: {missing}; `leaklab train --out` makes one", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// What is missing.
        missing: &'static str,
    },
    /// Another process works in the folder.
    #[error(
        "{}: another leaklab process is working here ({holder}); wait for it or choose another --out",
        path.display()
    )]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The holder of the lock.
        holder: Box<Holder>,
    },
    /// Another process has taken over the work of this one.
    #[error(
        "{}: this process was halted for so long that another one took over its work; nothing was lost, and \
         this process stops",
        path.display()
    )]
    LockLost {
        /// The lock.
        path: PathBuf,
    },
    /// The system refused to read or write.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was attempted, such as `cannot be written`.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not of the kind that was expected.
    #[error("{}: not a LeakLab {what}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should have been.
        what: &'static str,
        /// What is wrong, and where in the file.
        reason: String,
    },
    /// The file is damaged: its bytes are not those that were written.
    #[error("{}: damaged: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How the damage was detected.
        reason: String,
    },
    /// The file was written by another version of the program.
    #[error(
        "{}: {what} format {found}, this program reads format {known}; {}",
        path.display(),
        remedy(*found, *known)
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// Its format.
        found: u64,
        /// The format this program reads.
        known: u64,
    },
}

fn remedy(found: u64, known: u64) -> &'static str {
    if found > known {
        "update leaklab to read it"
    } else {
        "train the run again, or read it with the version of leaklab that wrote it"
    }
}

impl RecordError {
    /// Turns an error of the system into one that names the file.
    pub fn io(path: &Path, action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| RecordError::Io { path: path.to_owned(), action, source }
    }

    /// The file is not of the kind that was expected.
    pub fn malformed(path: &Path, what: &'static str, reason: impl ToString) -> Self {
        RecordError::Malformed { path: path.to_owned(), what, reason: reason.to_string() }
    }

    /// Checks the format of a file.
    pub fn check_format(path: &Path, what: &'static str, found: u64, known: u32) -> Result<(), Self> {
        let known = u64::from(known);
        if found == known {
            return Ok(());
        }
        Err(RecordError::Format { path: path.to_owned(), what, found, known })
    }
}
