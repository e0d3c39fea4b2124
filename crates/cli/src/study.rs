//! `leaklab study`.

use crate::Outcome;

/// Run a whole study and write its page.
#[derive(clap::Args)]
pub struct Arguments {}

/// Runs the subcommand.
pub fn run(_arguments: Arguments) -> Outcome {
    Err("this command is not built yet".into())
}
