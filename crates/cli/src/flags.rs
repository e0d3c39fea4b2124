//! Flags that several subcommands share. A wrong value is refused with one sentence.

use crate::output::path_text;
use leaklab_engine::noise::{HIGHEST_SEVERITY, Noise, NoiseError, Scenario};
use leaklab_engine::{LeakChange, Tau};
use leaklab_lab::train::MOST_THREADS;
use std::path::PathBuf;

/// A number of threads.
pub fn threads(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|n| (1..=MOST_THREADS).contains(n));
    number.ok_or_else(|| format!("a whole number from 1 to {MOST_THREADS} is expected"))
}

/// A number of images.
pub fn images(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|&n| n > 0);
    number.ok_or_else(|| "a whole number of 1 or more is expected".to_owned())
}

/// A seed, in the range of TOML's whole numbers.
pub fn seed(text: &str) -> Result<i64, String> {
    let number = text.parse().ok().filter(|&n| n >= 0);
    number.ok_or_else(|| format!("a whole number from 0 to {} is expected", i64::MAX))
}

/// The share of the training images that is held out, as text; its upper limit is that of the setting.
pub fn share(text: &str) -> Result<String, String> {
    let number = text.parse().ok().filter(|&share: &f64| share > 0.0);
    number.map(|_| text.to_owned()).ok_or_else(|| "a number above 0 is expected, such as 0.1".to_owned())
}

/// A severity of noise; whether there is such a one is checked with the noise.
pub fn severity(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("a whole number from 0 to {HIGHEST_SEVERITY} is expected"))
}

/// Any number.
pub fn number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "a number is expected".to_owned())
}

/// A positive number that float32 can represent.
pub fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|&x: &f64| x > 0.0 && (x as f32).is_normal());
    number.ok_or_else(|| "a number above 0 is expected".to_owned())
}

/// Help of `--isa`.
pub const ISA: &str = "Instruction set of the kernels: avx512, avx2 or portable [default: the fastest]; the \
                       last bits of trained weights and of norms depend on it";

/// A membrane time constant.
pub fn tau(text: &str) -> Result<Tau, String> {
    let expected = || "a number of steps (1/64 or more) or inf is expected".to_owned();
    let tau: Tau = text.parse().map_err(|_| expected())?;
    // A number above the range of floating point is not what `inf` means.
    if !tau.leaks() && text.contains(|c: char| c.is_ascii_digit()) {
        return Err(format!("this number is too large; {}", expected()));
    }
    Ok(tau)
}

/// The time constant of a layer, as text.
pub fn layer_tau(text: &str) -> Result<String, String> {
    let (layer, steps) =
        text.split_once('=').ok_or("a layer and its time constant are expected, such as conv1=5")?;
    tau(steps).map(|_| format!("{}={steps}", layer.trim()))
}

/// Refuses two time constants for one layer.
pub fn one_for_each_layer(assignments: &[String]) -> Result<(), String> {
    let layers: Vec<&str> = assignments.iter().filter_map(|text| Some(text.split_once('=')?.0)).collect();
    match (1..layers.len()).find(|&i| layers[..i].contains(&layers[i])) {
        Some(i) => Err(format!("--layer-tau: {} is given twice; give one time constant", layers[i])),
        None => Ok(()),
    }
}

/// A leak other than that of training, for subcommands that run trained weights.
#[derive(Debug, Clone, clap::Args)]
pub struct LeakFlags {
    /// Run the weights with this time constant everywhere, instead of that of training; `inf` for no leak.
    #[arg(long, value_name = "STEPS", value_parser = tau, allow_negative_numbers = true)]
    tau: Option<Tau>,
    /// Run hidden layers with their own time constants, such as conv1=5,fc1=inf.
    #[arg(long, value_name = "LAYER=STEPS", value_delimiter = ',', value_parser = layer_tau)]
    layer_tau: Vec<String>,
    /// Run the output layer with this time constant.
    #[arg(long, value_name = "STEPS", value_parser = tau, allow_negative_numbers = true)]
    readout_tau: Option<Tau>,
}

impl LeakFlags {
    /// The change given by the flags.
    pub fn change(&self) -> Result<LeakChange, String> {
        one_for_each_layer(&self.layer_tau)?;
        let mut change = LeakChange { tau: self.tau, readout_tau: self.readout_tau, ..LeakChange::default() };
        self.layer_tau.iter().try_for_each(|layer| change.set_layer(layer)).map_err(|e| e.to_string())?;
        Ok(change)
    }
}

/// A noise at a severity.
#[derive(Debug, Clone, clap::Args)]
pub struct NoiseFlags {
    #[arg(
        help = format!(
            "Noise in the input: {}; or with its scenario, such as gaussian/pixel",
            Noise::names()
        ),
        long,
        requires = "severity"
    )]
    noise: Option<String>,
    /// Where the noise acts: on the `pixel` before encoding, or in the `channel` after encoding.
    #[arg(long, requires = "noise")]
    scenario: Option<String>,
    /// Severity of the noise, from 0 (clean) to 8.
    #[arg(long, requires = "noise", value_parser = severity, allow_negative_numbers = true)]
    severity: Option<usize>,
}

impl NoiseFlags {
    /// The noise, its scenario (the first that it has, if none is given) and its severity.
    pub fn named(&self) -> Result<Option<(Noise, Scenario, usize)>, NoiseError> {
        let Some(text) = &self.noise else { return Ok(None) };
        let (noise, scenario) = Noise::named(text, self.scenario.as_deref())?;
        Ok(Some((noise, scenario, self.severity.unwrap_or(0))))
    }
}

/// Minutes between two checkpoints.
pub fn minutes(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|&minutes: &f64| minutes >= 0.0);
    number.ok_or_else(|| "a number of minutes, 0 or more, is expected".to_owned())
}

/// The folder of the data sets from any settings, as it is stored.
pub fn stored(folder: Option<PathBuf>) -> Result<Option<PathBuf>, Box<dyn std::error::Error>> {
    let folder = folder.map(|folder| absolute(&folder));
    folder.iter().try_for_each(|folder| path_text(folder).map(drop))?;
    Ok(folder)
}

/// A folder that is stored in settings, as an absolute path: later commands may be run from elsewhere.
pub fn absolute(folder: &std::path::Path) -> std::path::PathBuf {
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}
