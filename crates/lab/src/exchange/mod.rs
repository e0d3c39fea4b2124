//! Networks on their way out of LeakLab and into it: NIR graphs for other simulators and neuromorphic
//! hardware, safetensors with a model card for model hubs, npz for NumPy.
//!
//! Nothing is guessed on the way: what a format cannot express, or what LeakLab has no layer for, is an error
//! that names the node and the reason. Files come from strangers, so every reader returns an error on any
//! bytes.

mod card;
mod export;
mod hdf5;
mod import;
mod model;
pub mod nir;
pub mod npz;
pub mod quantise;
pub mod safetensors;
mod target;

pub use card::Figures;
pub use export::export;
pub use import::{ImportOptions, Imported, import};
pub use model::{Config, Model};
pub use target::{ExportOptions, Target};

use leaklab_record::RecordError;
use std::path::{Path, PathBuf};

/// One array of a file: its name, shape and row-major values.
pub type NamedArray = (String, Vec<usize>, Vec<f32>);

/// Why a network could not be exchanged with another tool.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The file's bytes are not what its format asks for.
    #[error("{}: not a readable {format} file: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The format it should have.
        format: &'static str,
        /// What is wrong, with its place in the file.
        reason: String,
    },
    /// The run cannot be used.
    #[error(transparent)]
    Run(#[from] crate::run::RunError),
    /// A table of the run cannot be read.
    #[error(transparent)]
    Table(#[from] leaklab_record::TableError),
    /// The format cannot say what the network is.
    #[error("NIR cannot express this network: {0}")]
    Inexpressible(String),
    /// A graph is not one of LeakLab's networks.
    #[error("{0}")]
    Unmapped(String),
}

impl ExchangeError {
    fn malformed(path: &Path, format: &'static str, reason: impl Into<String>) -> Self {
        ExchangeError::Malformed { path: path.to_owned(), format, reason: reason.into() }
    }
}

/// Number of values of an array of this shape, if it can be counted at all.
fn elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n))
}
