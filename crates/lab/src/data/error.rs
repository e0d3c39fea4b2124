//! What can be wrong with a data set, said so that the reader can mend it.

use std::path::{Path, PathBuf};

/// Why a data set could not be had.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// No data set has this name.
    #[error("data set '{name}' is not one of {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The files are not there.
    #[error("data set '{name}' is not in {}: {remedy}", folder.display())]
    Missing {
        /// The data set.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
        /// What to do.
        remedy: String,
    },
    /// A file or folder cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is damaged or not what it should be.
    #[error("{}, offset {offset}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where in it (after decompression, if it is compressed).
        offset: u64,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// What was asked for cannot be had from this data set.
    #[error("{0}")]
    Request(String),
}

impl DataError {
    /// Names the file of an I/O error.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> DataError + '_ {
        move |source| DataError::Io { path: path.to_owned(), source }
    }
}

/// What is wrong in bytes whose file is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Where.
    pub offset: u64,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl Flaw {
    /// A flaw at an offset.
    pub fn new(offset: usize, reason: impl Into<String>) -> Self {
        Flaw { offset: offset as u64, reason: reason.into() }
    }

    /// The flaw of a file.
    pub fn of(self, path: &Path) -> DataError {
        DataError::Malformed { path: path.to_owned(), offset: self.offset, reason: self.reason }
    }
}
