//! `leaklab theory`.

use crate::Outcome;

/// The theory of one neuron: rate, spectra, coherence.
#[derive(clap::Args)]
pub struct Arguments {}

/// Runs the subcommand.
pub fn run(_arguments: Arguments) -> Outcome {
    Err("this command is not built yet".into())
}
