//! What a run leaves on disk: manifest, metrics, checkpoint and table formats.
//!
//! Nothing here knows how a number was computed; the report reads these formats and nothing else.
#![forbid(unsafe_code)]

pub mod atomic;
pub mod checkpoint;
mod error;
pub mod events;
mod folder;
pub mod health;
pub mod lines;
pub mod log;
pub mod manifest;
pub mod metrics;
pub mod table;

pub use checkpoint::{Checkpoint, Header, Position, Tensor};
pub use error::RecordError;
pub use folder::{RunFolder, RunLock};
pub use manifest::{Manifest, number_text};
pub use table::{Cell, Column, Table, TableError};
