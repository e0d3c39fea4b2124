//! Flags that several subcommands share. A wrong value is refused with one sentence.

use leaklab_engine::{LeakChange, LeakError, Tau};
use leaklab_lab::train::MOST_THREADS;

/// A number of threads.
pub fn threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=MOST_THREADS).contains(n));
    number.ok_or_else(|| format!("a whole number from 1 to {MOST_THREADS} is expected"))
}

/// Help of `--isa`.
pub const ISA: &str = "Instruction set of the kernels: avx512, avx2 or portable [default: the fastest]; the \
                       last bits of trained weights and of norms depend on it";

/// A membrane time constant.
pub fn tau(text: &str) -> Result<Tau, String> {
    text.parse().map_err(|_| "a number of steps (1/64 or more) or inf is expected".to_owned())
}

/// A leak other than that of training, for subcommands that run trained weights.
#[derive(Debug, Clone, clap::Args)]
pub struct LeakFlags {
    /// Run the weights with this time constant everywhere, instead of that of training; `inf` for no leak.
    #[arg(long, value_name = "STEPS", value_parser = tau, allow_negative_numbers = true)]
    tau: Option<Tau>,
    /// Run hidden layers with their own time constants, such as conv1=5,fc1=inf.
    #[arg(long, value_name = "LAYER=STEPS", value_delimiter = ',')]
    layer_tau: Vec<String>,
    /// Run the output layer with this time constant.
    #[arg(long, value_name = "STEPS", value_parser = tau, allow_negative_numbers = true)]
    readout_tau: Option<Tau>,
}

impl LeakFlags {
    /// The change given by the flags.
    pub fn change(&self) -> Result<LeakChange, LeakError> {
        let mut change = LeakChange { tau: self.tau, readout_tau: self.readout_tau, ..LeakChange::default() };
        self.layer_tau.iter().try_for_each(|layer| change.set_layer(layer))?;
        Ok(change)
    }
}

/// Minutes between two checkpoints.
pub fn minutes(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|&minutes: &f64| minutes >= 0.0);
    number.ok_or_else(|| "a number of minutes, 0 or more, is expected".to_owned())
}

/// A folder that is stored in settings, as an absolute path: later commands may be run from elsewhere.
pub fn absolute(folder: &std::path::Path) -> std::path::PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}
