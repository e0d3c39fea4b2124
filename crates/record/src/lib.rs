//! The files of runs and studies, and the types of their contents: run keys, conditions, quantities,
//! verdicts, noises, and the rows of every table.
//!
//! This crate does not know how a number was computed, and the report reads only these formats. From the
//! engine it uses only types (noise, layer, time constant, instruction set), so that each has one definition.
#![forbid(unsafe_code)]

pub mod atomic;
mod bits;
pub mod checkpoint;
mod digest;
mod error;
pub mod events;
pub mod file;
mod folder;
pub mod health;
pub mod lines;
pub mod lock;
pub mod log;
pub mod machine;
pub mod manifest;
mod mechanism;
pub mod metrics;
pub mod noun;
mod process;
mod quantity;
mod row;
mod study;
pub mod table;
pub mod tables;
pub mod text;
mod verdict;

pub use bits::Bits;
pub use checkpoint::{Checkpoint, Header, Position, Tensor};
pub use digest::hexadecimal;
pub use error::RecordError;
pub use folder::{RunFolder, RunLock};
pub use leaklab_engine::noise::{HIGHEST_SEVERITY, Noise, Scenario};
pub use leaklab_engine::{LayerKind, Tau};
pub use machine::Machine;
pub use manifest::{Manifest, number_text};
pub use mechanism::{LayerChoice, Part, Place, PriceMeasure, Question, Readout, TimeWindow, Topic};
pub use noun::{NoiseKey, PAPER_NOISES, Role, RunKey, Stimulus};
pub use process::Process;
pub use quantity::{Quantity, Reading, Scale, Unit, UnknownQuantity};
pub use row::{Field, Row, Rows};
pub use study::StudyFolder;
pub use table::{Cell, Column, Origin, Table, TableError};
pub use verdict::{Case, ClaimId, Verdict};
