//! What a run or a study does, as one TOML file.
//!
//! There is one kind of file. A study's has a list of `tau` or `[[condition]]` tables, and `seeds`; it stands
//! for a run of each. A run's has a single `tau` and `seed`. Keys that a file does not say come from the
//! built-in study of its data set, so that `dataset = "digits"` alone is a complete file, and what was
//! resolved is kept with the run, every key said.
//!
//! [`KEYS`] is the one table of settings.

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
pub use run::{InitialScale, OptimiserKind, RunConfig};
pub use schema::{reference, schema};
pub use settings::{ConfigError, Origin, Settings};
pub use study::{ConditionConfig, StudyConfig};
