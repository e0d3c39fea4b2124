//! `leaklab selftest`.

use crate::Outcome;

/// Check the engine on this CPU against reference values.
#[derive(clap::Args)]
pub struct Arguments {}

/// Runs the subcommand.
pub fn run(_arguments: Arguments) -> Outcome {
    Err("this command is not built yet".into())
}
