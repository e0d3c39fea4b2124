//! `leaklab analyse`.

use crate::Outcome;

/// Measure a trained run.
#[derive(clap::Args)]
pub struct Arguments {}

/// Runs the subcommand.
pub fn run(_arguments: Arguments) -> Outcome {
    Err("this command is not built yet".into())
}
