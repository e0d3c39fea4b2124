//! Export and import of networks: NIR graphs for other simulators and neuromorphic hardware, safetensors with
//! a model card for model hubs, and npz for NumPy.
//!
//! Nothing is guessed: if a format cannot express a network, or LeakLab has no layer for a node, the error
//! names the node and the reason. Files are untrusted, so readers return an error for any invalid bytes.

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
    /// The bytes of the file do not follow its format.
    #[error("{}: not a readable {format} file: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The expected format.
        format: &'static str,
        /// What is wrong, and where in the file.
        reason: String,
    },
    /// The run cannot be used.
    #[error(transparent)]
    Run(#[from] crate::run::RunError),
    /// A table of the run cannot be read.
    #[error(transparent)]
    Table(#[from] leaklab_record::TableError),
    /// The format cannot express the network.
    #[error("NIR cannot express this network: {0}")]
    Inexpressible(String),
    /// A graph has no equivalent network in LeakLab.
    #[error("{0}")]
    Unmapped(String),
    /// A model would be written into a run's folder.
    #[error(
        "{}: this is the folder of a run, which the model would be confused with; choose another",
        .0.display()
    )]
    IntoRun(PathBuf),
    /// The best weights of a model are requested.
    #[error("{}: a model has one set of weights, not those of a best epoch; omit --best", .0.display())]
    OneSetOfWeights(PathBuf),
}

impl ExchangeError {
    fn malformed(path: &Path, format: &'static str, reason: impl Into<String>) -> Self {
        ExchangeError::Malformed { path: path.to_owned(), format, reason: reason.into() }
    }
}

/// Number of values of an array of this shape; `None` if it does not fit into `usize`.
fn elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n))
}
