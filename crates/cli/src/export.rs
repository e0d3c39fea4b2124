//! `leaklab export`.

use crate::Outcome;

/// Write a trained network for other tools.
#[derive(clap::Args)]
pub struct Arguments {}

/// Runs the subcommand.
pub fn run(_arguments: Arguments) -> Outcome {
    Err("this command is not built yet".into())
}
