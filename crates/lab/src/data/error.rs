//! Errors of data sets, with messages that help the user to correct them.

use std::path::{Path, PathBuf};

/// Why a data set could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// No data set has this name.
    #[error("data set '{name}' is not one of {known}{hint}")]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: String,
        /// What to do if the name is a path.
        hint: &'static str,
    },
    /// The files were not found.
    #[error("data set '{name}' is not in {}: {remedy}", folder.display())]
    Missing {
        /// The data set.
        name: String,
        /// The folder in which it was searched.
        folder: PathBuf,
        /// What to do.
        remedy: String,
    },
    /// The `.npz` file does not exist.
    #[error("there is no file {}: name the .npz file of data set '{name}' with --data-dir", path.display())]
    NoFile {
        /// The data set.
        name: String,
        /// Where it was searched.
        path: PathBuf,
    },
    /// A file or folder cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file is damaged or of another format.
    #[error("{}, offset {offset}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The offset in the file (after decompression, if it is compressed).
        offset: u64,
        /// What is wrong and what is expected.
        reason: String,
    },
    /// The request cannot be met with this data set.
    #[error("{0}")]
    Request(String),
}

impl DataError {
    /// Adds the path of the file to an I/O error.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> DataError + '_ {
        move |source| DataError::Io { path: path.to_owned(), source }
    }
}

/// An error in bytes, before the path of their file is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The offset of the error.
    pub offset: u64,
    /// What is wrong and what is expected.
    pub reason: String,
}

impl Flaw {
    /// An error at an offset.
    pub fn new(offset: usize, reason: impl Into<String>) -> Self {
        Flaw { offset: offset as u64, reason: reason.into() }
    }

    /// Adds the path of the file.
    pub fn of(self, path: &Path) -> DataError {
        DataError::Malformed { path: path.to_owned(), offset: self.offset, reason: self.reason }
    }
}
