//! `leaklab bench`.

use crate::Outcome;

/// Time inference and training on this machine.
#[derive(clap::Args)]
pub struct Arguments {}

/// Runs the subcommand.
pub fn run(_arguments: Arguments) -> Outcome {
    Err("this command is not built yet".into())
}
