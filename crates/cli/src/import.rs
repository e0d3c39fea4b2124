//! `leaklab import`.

use crate::Outcome;

/// Read a network of another tool.
#[derive(clap::Args)]
pub struct Arguments {}

/// Runs the subcommand.
pub fn run(_arguments: Arguments) -> Outcome {
    Err("this command is not built yet".into())
}
