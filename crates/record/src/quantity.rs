//! Quantities by which runs are compared, each with its unit, its scale of comparison and its words.

use crate::noun::{NoiseKey, Stimulus};
use std::fmt;
use std::str::FromStr;

/// How the critical frequency of a signal is read; the sign of leak's effect depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reading {
    /// Mean removed, all steps: as the paper defines it.
    Defined,
    /// Without the first 20 % of steps.
    Settled,
    /// Each spike train of the last hidden layer shuffled in time: what remains without any temporal
    /// structure.
    Shuffled,
}

impl Reading {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Reading; 3] = [Reading::Defined, Reading::Settled, Reading::Shuffled];

    fn name(self) -> &'static str {
        match self {
            Reading::Defined => "defined",
            Reading::Settled => "settled",
            Reading::Shuffled => "shuffled",
        }
    }

    /// Words for a sentence, after "the critical frequency".
    pub fn words(self) -> &'static str {
        match self {
            Reading::Defined => "as defined",
            Reading::Settled => "without the first 20 % of steps",
            Reading::Shuffled => "of spike trains shuffled in time",
        }
    }
}

/// A number that a run of a study has, or a pair of runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// Test accuracy without noise.
    Accuracy,
    /// Test accuracy under noise at one severity.
    AccuracyUnder(NoiseKey, usize),
    /// Mean test accuracy over severities 1 to 8 of a noise.
    Robustness(NoiseKey),
    /// Mean excess over chance at severities 1 to 8 of a noise, relative to the excess without noise.
    RelativeRobustness(NoiseKey),
    /// SSE on test images, mean over the epochs after the last drop of the learning rate.
    TestSse,
    /// SSE on training images in evaluation, over the same epochs.
    TrainSse,
    /// SSE on training images during training, over the same epochs.
    RunningTrainSse,
    /// [`Quantity::TestSse`] minus [`Quantity::TrainSse`].
    SseGap,
    /// Test SSE at equal training SSE, between two runs.
    TestSseAtEqualTrainSse,
    /// Spikes per neuron and step of the hidden conv and FC layers.
    SpikeRate,
    /// Synaptic operations per image.
    Synops,
    /// Time mean of the norm of a hidden layer's weighted input.
    WeightedInputNorm(String),
    /// Critical frequency of the target output.
    CriticalFrequency(Reading, Stimulus),
    /// The rise of the critical frequency (as defined) from clean to noisy.
    CriticalRise(Stimulus),
    /// Share of the target output's power that lies at frequency 0.
    ZeroFrequencyShare(Stimulus),
}

/// How two values of a quantity are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// By their difference.
    Difference,
    /// By their ratio, because the quantity has no natural unit.
    Ratio,
}

/// Unit of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A fraction; differences are percentage points.
    Fraction,
    /// Squared error summed over outputs, per sample.
    Sse,
    /// Operations per image.
    Operations,
    /// Units of the threshold.
    Threshold,
    /// Cycles per step.
    Frequency,
    /// One value divided by another.
    Ratio,
}

impl Unit {
    /// How a difference or a ratio is written in a sentence: the factor, the number of decimals, and the
    /// words that follow the number.
    pub fn in_text(self) -> (f64, usize, &'static str) {
        match self {
            Unit::Fraction => (100.0, 1, " points"),
            Unit::Sse => (1.0, 4, ""),
            Unit::Operations => (1.0, 0, ""),
            Unit::Threshold => (1.0, 2, ""),
            Unit::Frequency => (1.0, 3, " cycles/step"),
            Unit::Ratio => (1.0, 2, " times"),
        }
    }
}

impl Quantity {
    /// How it is compared.
    pub fn scale(&self) -> Scale {
        match self {
            Quantity::Accuracy
            | Quantity::AccuracyUnder(..)
            | Quantity::Robustness(_)
            | Quantity::RelativeRobustness(_)
            | Quantity::SseGap
            | Quantity::CriticalFrequency(..)
            | Quantity::CriticalRise(_)
            | Quantity::ZeroFrequencyShare(_) => Scale::Difference,
            Quantity::TestSse
            | Quantity::TrainSse
            | Quantity::RunningTrainSse
            | Quantity::TestSseAtEqualTrainSse
            | Quantity::SpikeRate
            | Quantity::Synops
            | Quantity::WeightedInputNorm(_) => Scale::Ratio,
        }
    }

    /// Unit of its values.
    pub fn unit(&self) -> Unit {
        match self {
            Quantity::Accuracy
            | Quantity::AccuracyUnder(..)
            | Quantity::Robustness(_)
            | Quantity::RelativeRobustness(_)
            | Quantity::SpikeRate
            | Quantity::ZeroFrequencyShare(_) => Unit::Fraction,
            Quantity::TestSse | Quantity::TrainSse | Quantity::RunningTrainSse | Quantity::SseGap => {
                Unit::Sse
            }
            Quantity::Synops => Unit::Operations,
            Quantity::WeightedInputNorm(_) => Unit::Threshold,
            Quantity::CriticalFrequency(..) | Quantity::CriticalRise(_) => Unit::Frequency,
            Quantity::TestSseAtEqualTrainSse => Unit::Ratio,
        }
    }

    /// Unit of a contrast between two of its values.
    pub fn contrast_unit(&self) -> Unit {
        match self.scale() {
            Scale::Difference => self.unit(),
            Scale::Ratio => Unit::Ratio,
        }
    }

    /// Words for a sentence.
    pub fn words(&self) -> String {
        match self {
            Quantity::Accuracy => "test accuracy without noise".to_owned(),
            Quantity::AccuracyUnder(noise, severity) => {
                format!("test accuracy under {}", Stimulus::at(*noise, *severity).words())
            }
            Quantity::Robustness(noise) => {
                format!("test accuracy under {}, mean over severities 1 to 8", noise.words())
            }
            Quantity::RelativeRobustness(noise) => {
                format!("accuracy above chance under {}, relative to clean", noise.words())
            }
            Quantity::TestSse => "test SSE".to_owned(),
            Quantity::TrainSse => "training SSE in evaluation".to_owned(),
            Quantity::RunningTrainSse => "running training SSE".to_owned(),
            Quantity::SseGap => "test SSE minus training SSE".to_owned(),
            Quantity::TestSseAtEqualTrainSse => "test SSE at equal training SSE".to_owned(),
            Quantity::SpikeRate => "spikes per neuron and step".to_owned(),
            Quantity::Synops => "synaptic operations per image".to_owned(),
            Quantity::WeightedInputNorm(layer) => format!("weighted-input norm of {layer}"),
            Quantity::CriticalFrequency(reading, stimulus) => {
                format!("critical frequency {} ({})", reading.words(), stimulus.words())
            }
            Quantity::CriticalRise(stimulus) => {
                format!("rise of the critical frequency from clean to {}", stimulus.words())
            }
            Quantity::ZeroFrequencyShare(stimulus) => {
                format!("share of the output's power at frequency 0 ({})", stimulus.words())
            }
        }
    }
}

impl Unit {
    const ALL: [Unit; 6] =
        [Unit::Fraction, Unit::Sse, Unit::Operations, Unit::Threshold, Unit::Frequency, Unit::Ratio];

    fn name(self) -> &'static str {
        match self {
            Unit::Fraction => "fraction",
            Unit::Sse => "SSE",
            Unit::Operations => "operations/image",
            Unit::Threshold => "v_th",
            Unit::Frequency => "cycles/step",
            Unit::Ratio => "ratio",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Unit {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Unit::ALL.into_iter().find(|unit| unit.name() == name).ok_or(())
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Reading {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Reading::ALL.into_iter().find(|reading| reading.name() == name).ok_or(())
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Accuracy => f.pad("accuracy"),
            Quantity::AccuracyUnder(noise, severity) => write!(f, "accuracy {noise}/{severity}"),
            Quantity::Robustness(noise) => write!(f, "robustness {noise}"),
            Quantity::RelativeRobustness(noise) => write!(f, "relative_robustness {noise}"),
            Quantity::TestSse => f.pad("test_sse"),
            Quantity::TrainSse => f.pad("train_sse"),
            Quantity::RunningTrainSse => f.pad("running_train_sse"),
            Quantity::SseGap => f.pad("sse_gap"),
            Quantity::TestSseAtEqualTrainSse => f.pad("test_sse_at_equal_train_sse"),
            Quantity::SpikeRate => f.pad("spike_rate"),
            Quantity::Synops => f.pad("synops"),
            Quantity::WeightedInputNorm(layer) => write!(f, "weighted_input_norm {layer}"),
            Quantity::CriticalFrequency(reading, stimulus) => {
                write!(f, "critical_frequency {reading} {stimulus}")
            }
            Quantity::CriticalRise(stimulus) => write!(f, "critical_rise {stimulus}"),
            Quantity::ZeroFrequencyShare(stimulus) => write!(f, "zero_frequency_share {stimulus}"),
        }
    }
}

/// The text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a quantity that runs are compared by")]
pub struct UnknownQuantity(String);

impl FromStr for Quantity {
    type Err = UnknownQuantity;

    fn from_str(text: &str) -> Result<Self, UnknownQuantity> {
        let mut words = text.split(' ');
        let found = match (words.next().unwrap_or_default(), words.next(), words.next(), words.next()) {
            ("accuracy", None, None, None) => Some(Quantity::Accuracy),
            ("accuracy", Some(stimulus), None, None) => match stimulus.parse() {
                Ok(Stimulus::Noisy(noise, severity)) => Some(Quantity::AccuracyUnder(noise, severity)),
                Ok(Stimulus::Clean) | Err(_) => None,
            },
            ("robustness", Some(noise), None, None) => noise.parse().ok().map(Quantity::Robustness),
            ("relative_robustness", Some(noise), None, None) => {
                noise.parse().ok().map(Quantity::RelativeRobustness)
            }
            ("test_sse", None, None, None) => Some(Quantity::TestSse),
            ("train_sse", None, None, None) => Some(Quantity::TrainSse),
            ("running_train_sse", None, None, None) => Some(Quantity::RunningTrainSse),
            ("sse_gap", None, None, None) => Some(Quantity::SseGap),
            ("test_sse_at_equal_train_sse", None, None, None) => Some(Quantity::TestSseAtEqualTrainSse),
            ("spike_rate", None, None, None) => Some(Quantity::SpikeRate),
            ("synops", None, None, None) => Some(Quantity::Synops),
            ("weighted_input_norm", Some(layer), None, None) => {
                Some(Quantity::WeightedInputNorm(layer.to_owned()))
            }
            ("critical_frequency", Some(reading), Some(stimulus), None) => {
                let pair = reading.parse().ok().zip(stimulus.parse().ok());
                pair.map(|(reading, stimulus)| Quantity::CriticalFrequency(reading, stimulus))
            }
            ("critical_rise", Some(stimulus), None, None) => {
                stimulus.parse().ok().map(Quantity::CriticalRise)
            }
            ("zero_frequency_share", Some(stimulus), None, None) => {
                stimulus.parse().ok().map(Quantity::ZeroFrequencyShare)
            }
            _ => None,
        };
        found.ok_or_else(|| UnknownQuantity(text.to_owned()))
    }
}

crate::text_field! {
    Quantity: "a quantity that runs are compared by",
    Unit: "a unit",
    Reading: "defined, settled or shuffled",
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noun::PAPER_NOISES;

    #[test]
    fn quantities_read_back() {
        let [noise, ..] = PAPER_NOISES;
        let stimulus = Stimulus::at(noise, 5);
        let all = [
            Quantity::Accuracy,
            Quantity::AccuracyUnder(noise, 3),
            Quantity::Robustness(noise),
            Quantity::RelativeRobustness(noise),
            Quantity::TestSse,
            Quantity::TrainSse,
            Quantity::RunningTrainSse,
            Quantity::SseGap,
            Quantity::TestSseAtEqualTrainSse,
            Quantity::SpikeRate,
            Quantity::Synops,
            Quantity::WeightedInputNorm("conv2".into()),
            Quantity::CriticalFrequency(Reading::Settled, stimulus),
            Quantity::CriticalRise(stimulus),
            Quantity::ZeroFrequencyShare(Stimulus::Clean),
        ];
        for quantity in all {
            assert_eq!(quantity.to_string().parse(), Ok(quantity.clone()), "{quantity}");
            assert!(!quantity.words().is_empty());
        }
        for text in ["", "accuracy clean", "robustness gauss/pixel", "synops 3", "speed"] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }
}
