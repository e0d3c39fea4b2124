//! The settings of a run or a study, in one TOML file.
//!
//! Runs and studies use the same kind of file. The file of a study has `seeds` and a list of `tau` or
//! `[[condition]]` tables; it describes one run of each condition with each seed. The file of a run has a
//! single `tau` and `seed`. Keys that are not set take their value from the built-in study of the data set,
//! so that `dataset = "digits"` alone is a complete file. The resolved settings, with every key set, are
//! stored with the run.
//!
//! [`KEYS`] is the only table of settings.

mod builtin;
mod keys;
mod kind;
mod run;
mod schema;
mod settings;
mod study;
mod write;

pub use builtin::{BUILTIN, builtin_text};
pub use keys::{Binds, Group, KEYS, Key};
pub use kind::Kind;
pub use run::{InitialScale, OptimiserKind, RunConfig, tested_on};
pub use schema::{reference, schema};
pub use settings::{ConfigError, Origin, Settings};
pub use study::{ConditionConfig, StudyConfig};
