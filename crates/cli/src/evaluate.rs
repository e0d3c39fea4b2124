//! `leaklab evaluate`.

use crate::Outcome;

/// Accuracy of a trained run, clean or under noise.
#[derive(clap::Args)]
pub struct Arguments {}

/// Runs the subcommand.
pub fn run(_arguments: Arguments) -> Outcome {
    Err("this command is not built yet".into())
}
