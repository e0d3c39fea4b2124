//! `leaklab report`.

use crate::Outcome;

/// Write the page of a study.
#[derive(clap::Args)]
pub struct Arguments {}

/// Runs the subcommand.
pub fn run(_arguments: Arguments) -> Outcome {
    Err("this command is not built yet".into())
}
