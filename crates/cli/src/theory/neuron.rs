//! The neuron given by the flags: their checks and its solution.

use crate::usage;
use clap::{Args, ValueEnum};
use leaklab_theory::neuron::Shape;
use leaklab_theory::units::{Membrane, Scale};
use leaklab_theory::{Drive, Model, Neuron};
use std::error::Error;

/// The models, named as in their flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModelName {
    /// Leaky integrate-and-fire, exact
    Lif,
    /// Perfect integrate-and-fire (no leak), exact
    If,
    /// Exponential integrate-and-fire, by threshold integration
    Eif,
    /// Quadratic integrate-and-fire, by threshold integration
    Qif,
}

#[derive(Args)]
pub struct NeuronArguments {
    /// The neuron
    #[arg(long, value_enum, default_value = "lif")]
    model: ModelName,
    /// Mean input (dimensionless: threshold 1, reset 0)
    #[arg(
        long,
        allow_negative_numbers = true, value_parser = crate::flags::number,
        required_unless_present = "physical",
        conflicts_with = "physical"
    )]
    mu: Option<f64>,
    /// Noise intensity, if all noise is stimulus
    #[arg(
        long,
        allow_negative_numbers = true, value_parser = crate::flags::number,
        required_unless_present_any = ["physical", "d_st"],
        conflicts_with_all = ["physical", "d_st", "d_bg"]
    )]
    d: Option<f64>,
    /// Noise intensity of the stimulus, instead of --d
    #[arg(
        long,
        allow_negative_numbers = true, value_parser = crate::flags::number,
        conflicts_with = "physical"
    )]
    d_st: Option<f64>,
    /// Noise intensity of the background, in addition to --d-st
    #[arg(long, allow_negative_numbers = true, value_parser = crate::flags::number, requires = "d_st")]
    d_bg: Option<f64>,
    /// Refractory time, in membrane time constants, or seconds with --physical
    #[arg(long, allow_negative_numbers = true, value_parser = crate::flags::number, default_value_t = 0.0)]
    tau_r: f64,
    /// Physical units instead of --mu and --d: R=OHM,C=FARAD,I=AMPERE,D_I=AMPERE^2*SECOND,V=VOLT (threshold
    /// minus rest), and D_bg=AMPERE^2*SECOND for background noise; the model `if` needs no R
    #[arg(long, value_name = "KEY=VALUE,..")]
    physical: Option<String>,
    /// Width of the spike's onset (eif)
    #[arg(long, default_value_t = 0.1, allow_negative_numbers = true, value_parser = crate::flags::number)]
    delta: f64,
    /// Potential at which a spike is counted (eif, default 1 + 10 delta; qif, default 50)
    #[arg(long, allow_negative_numbers = true, value_parser = crate::flags::number)]
    threshold: Option<f64>,
    /// Potential to which the membrane is reset (eif, default 0; qif, default -50)
    #[arg(long, allow_negative_numbers = true, value_parser = crate::flags::number)]
    reset: Option<f64>,
    /// Simulate the neuron too, and print its estimates next to the theory (coherence with 95 % intervals,
    /// rate and spectrum with standard errors)
    #[arg(long)]
    simulate: bool,
    /// Welch segments to simulate
    #[arg(
        long,
        default_value_t = 400,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(2..=1_000_000)
    )]
    segments: u32,
    /// Seed of the simulation
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
}

/// A neuron, its units, and whether to simulate it.
pub struct Question {
    pub neuron: Neuron,
    pub scale: Scale,
    pub physical: bool,
    pub segments: Option<usize>,
    pub seed: u64,
    /// The neuron in words.
    pub words: String,
}

impl NeuronArguments {
    /// Whether the neuron is given in physical units.
    pub fn is_physical(&self) -> bool {
        self.physical.is_some()
    }

    /// The neuron, or an error in one sentence.
    pub fn build(&self) -> Result<Question, Box<dyn Error>> {
        let model = match self.model {
            ModelName::Lif => Model::Lif,
            ModelName::If => Model::If,
            ModelName::Eif => Model::Eif,
            ModelName::Qif => Model::Qif,
        };
        if model != Model::Eif && model != Model::Qif && (self.threshold.is_some() || self.reset.is_some()) {
            return Err(usage(
                "--threshold and --reset are for eif and qif; lif and if have threshold 1 and reset 0",
            ));
        }
        let (drive, scale) = match &self.physical {
            Some(text) => {
                let membrane = membrane(text, model)?;
                match model {
                    Model::If => membrane.perfect(),
                    Model::Lif | Model::Eif => membrane.leaky(),
                    Model::Qif => {
                        return Err(usage(
                            "qif has no leak resistance to convert from: give --mu and --d instead",
                        ));
                    }
                }
                .map_err(usage)?
            }
            None => {
                let mu = self.mu.unwrap_or_default();
                let drive = match (self.d, self.d_st) {
                    (Some(d), _) => Drive::new(mu, d),
                    (None, d_st) => {
                        Drive::with_background(mu, d_st.unwrap_or_default(), self.d_bg.unwrap_or_default())
                    }
                };
                (drive.map_err(usage)?, Scale::DIMENSIONLESS)
            }
        };
        let drive = drive.with_refractory(self.tau_r / scale.time).map_err(usage)?;
        let shape = Shape { delta: self.delta, threshold: self.threshold, reset: self.reset };
        let neuron = Neuron::new(model, drive, shape).map_err(usage)?;
        if self.simulate && neuron.rate() < 1e-6 {
            return Err(usage(format!(
                "a neuron that fires at {:.1e} per unit of time cannot be simulated in reasonable time; omit \
                 --simulate",
                neuron.rate()
            )));
        }
        Ok(Question {
            words: words(model, &neuron, self.physical.as_deref()),
            neuron,
            scale,
            physical: self.physical.is_some(),
            segments: self.simulate.then_some(self.segments as usize),
            seed: self.seed,
        })
    }
}

fn words(model: Model, neuron: &Neuron, physical: Option<&str>) -> String {
    let drive = neuron.drive();
    let mut out = format!("{} neuron, mu = {}, D = {}", model.name().to_uppercase(), drive.mu(), drive.d());
    if drive.d_bg() > 0.0 {
        out.push_str(&format!(" of which {} is the stimulus", drive.d_st()));
    }
    if drive.tau_r() > 0.0 {
        out.push_str(&format!(", tau_r = {}", drive.tau_r()));
    }
    if matches!(model, Model::Eif | Model::Qif) {
        out.push_str(&format!(", threshold {}, reset {}", neuron.threshold(), neuron.reset()));
    }
    match physical {
        Some(text) => out + " (from " + text + ")",
        None => out,
    }
}

/// Reads `R=..,C=..,I=..,D_I=..,V=..[,D_bg=..]`.
fn membrane(text: &str, model: Model) -> Result<Membrane, Box<dyn Error>> {
    let mut values = [("R", None), ("C", None), ("I", None), ("D_I", None), ("V", None), ("D_bg", None)];
    for part in text.split(',') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let Some(slot) = values.iter_mut().find(|(name, _)| *name == key.trim()) else {
            return Err(usage(format!(
                "--physical {text}: there is no value \"{}\"; the values are R, C, I, D_I, V and D_bg",
                key.trim()
            )));
        };
        let number: f64 = value.trim().parse().map_err(|_| {
            usage(format!("--physical {text}: {} = \"{}\" is not a number", slot.0, value.trim()))
        })?;
        if slot.1.replace(number).is_some() {
            return Err(usage(format!("--physical {text}: {} is given twice", slot.0)));
        }
    }
    let get = |i: usize| {
        values[i].1.ok_or_else(|| {
            usage(format!("--physical {text}: {} is missing, give it as {}=NUMBER", values[i].0, values[i].0))
        })
    };
    let resistance = if model == Model::If { values[0].1.unwrap_or(f64::INFINITY) } else { get(0)? };
    Ok(Membrane {
        resistance,
        capacitance: get(1)?,
        current: get(2)?,
        current_noise: get(3)?,
        gap: get(4)?,
        background_noise: values[5].1.unwrap_or(0.0),
    })
}
