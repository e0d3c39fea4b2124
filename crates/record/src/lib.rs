//! What a run leaves on disk: manifest, metrics, checkpoint and table formats.
//!
//! Nothing here knows how a number was computed; the report reads these formats and nothing else.
#![forbid(unsafe_code)]

pub mod atomic;
pub mod table;

pub use table::{Cell, Column, Table, TableError};
