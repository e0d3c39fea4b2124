//! `leaklab data`.

use crate::Outcome;

/// List, fetch, verify and look at data sets.
#[derive(clap::Args)]
pub struct Arguments {}

/// Runs the subcommand.
pub fn run(_arguments: Arguments) -> Outcome {
    Err("this command is not built yet".into())
}
