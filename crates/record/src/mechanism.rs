//! Types for the question where robustness comes from: places where leak acts, readouts, parts of a gain.

use crate::verdict::named;
use leaklab_engine::Tau;
use std::fmt;
use std::str::FromStr;

/// How the class is read from the output layer's weighted input `s[t]`, the steps counted from 1 to T.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Readout {
    /// The output neuron itself: the sum of `lambda^(T-t) s[t]`, which discounts early steps.
    Leaky(Tau),
    /// Leak reversed in time: the sum of `lambda^(t-1) s[t]`, which discounts late steps equally.
    Reversed(Tau),
    /// The plain sum over steps `first` to `last`.
    Window {
        /// The first step that counts, from 1.
        first: u64,
        /// The last step that counts.
        last: u64,
    },
}

impl Readout {
    /// The plain sum over all steps: no leak.
    pub const PLAIN: Readout = Readout::Leaky(Tau::INFINITE);

    /// Words for a sentence, such as "a readout with ...".
    pub fn words(self) -> String {
        match self {
            Readout::Leaky(tau) if tau.leaks() => format!("tau {tau}"),
            Readout::Leaky(_) => "no leak".to_owned(),
            Readout::Reversed(tau) => format!("tau {tau} reversed in time"),
            Readout::Window { first, last } if first == last => format!("step {first} only"),
            Readout::Window { first, last } => format!("steps {first} to {last} only"),
        }
    }
}

/// `tau 30`, `reversed 30` or `steps 7-30`.
impl fmt::Display for Readout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Readout::Leaky(tau) => f.pad(&format!("tau {tau}")),
            Readout::Reversed(tau) => f.pad(&format!("reversed {tau}")),
            Readout::Window { first, last } => f.pad(&format!("steps {first}-{last}")),
        }
    }
}

impl FromStr for Readout {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (kind, rest) = text.split_once(' ').ok_or(())?;
        match kind {
            "tau" => rest.parse().map(Readout::Leaky).map_err(|_| ()),
            "reversed" => rest.parse().map(Readout::Reversed).map_err(|_| ()),
            "steps" => {
                let (first, last) = rest.split_once('-').ok_or(())?;
                let (first, last) = (first.parse().map_err(|_| ())?, last.parse().map_err(|_| ())?);
                if 1 <= first && first <= last { Ok(Readout::Window { first, last }) } else { Err(()) }
            }
            _ => Err(()),
        }
    }
}

/// A part of the effect of leak: the total, or what comes from one of the three places where leak acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The total: trained and run with leak, compared with trained and run without leak.
    Total,
    /// The weights that training with leak finds.
    Training,
    /// Leak in the hidden layers while the network runs.
    Hidden,
    /// Leak in the readout.
    Readout,
}

impl Part {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Part; 4] = [Part::Total, Part::Training, Part::Hidden, Part::Readout];

    fn name(self) -> &'static str {
        match self {
            Part::Total => "total",
            Part::Training => "training",
            Part::Hidden => "hidden",
            Part::Readout => "readout",
        }
    }

    /// Words for a sentence, after "from".
    pub fn words(self) -> &'static str {
        match self {
            Part::Total => "all together",
            Part::Training => "training",
            Part::Hidden => "the hidden layers",
            Part::Readout => "the readout",
        }
    }
}

/// Cost of robustness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PriceMeasure {
    /// Spikes per neuron and step of the hidden conv and FC layers.
    SpikeRate,
    /// Synaptic operations per image.
    Synops,
}

impl PriceMeasure {
    /// All of them.
    pub const ALL: [PriceMeasure; 2] = [PriceMeasure::SpikeRate, PriceMeasure::Synops];

    fn name(self) -> &'static str {
        match self {
            PriceMeasure::SpikeRate => "spike_rate",
            PriceMeasure::Synops => "synops",
        }
    }

    /// Words for a sentence.
    pub fn words(self) -> &'static str {
        match self {
            PriceMeasure::SpikeRate => "spikes",
            PriceMeasure::Synops => "synaptic operations",
        }
    }
}

/// Where leak is switched on in the test with coloured noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the hidden layers only, with the baseline's weights.
    Hidden,
    /// In the readout only, with the baseline's weights.
    Readout,
    /// In both, with the baseline's weights.
    Both,
    /// Everywhere, training included.
    All,
    /// Nowhere: the readout of the baseline, run without leak, skips its first steps. An effect here is not
    /// due to filtering.
    Control,
}

impl Place {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Place; 5] = [Place::Hidden, Place::Readout, Place::Both, Place::All, Place::Control];

    fn name(self) -> &'static str {
        match self {
            Place::Hidden => "hidden",
            Place::Readout => "readout",
            Place::Both => "both",
            Place::All => "all",
            Place::Control => "control",
        }
    }
}

/// Which hidden layers leak, relative to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayerChoice {
    /// This layer alone.
    Only,
    /// All but this layer.
    AllBut,
}

impl LayerChoice {
    /// All of them.
    pub const ALL: [LayerChoice; 2] = [LayerChoice::Only, LayerChoice::AllBut];

    fn name(self) -> &'static str {
        match self {
            LayerChoice::Only => "only",
            LayerChoice::AllBut => "all but",
        }
    }
}

/// Which steps are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeWindow {
    /// All steps from the first to a last one.
    UpTo,
    /// Only a tenth of the steps.
    Alone,
}

impl TimeWindow {
    /// All of them.
    pub const ALL: [TimeWindow; 2] = [TimeWindow::UpTo, TimeWindow::Alone];

    fn name(self) -> &'static str {
        match self {
            TimeWindow::UpTo => "up to",
            TimeWindow::Alone => "alone",
        }
    }
}

/// A debated question other than leak, answered if a study has conditions for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// Signed compared with unsigned input spikes.
    Encoder,
    /// More time steps with the same time constant.
    Steps,
    /// More time steps with a time constant that grows with them.
    StepsAndTau,
    /// Initial weights that compensate for the leak, compared with weights that do not.
    Initial,
}

impl Question {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Question; 4] =
        [Question::Encoder, Question::Steps, Question::StepsAndTau, Question::Initial];

    fn name(self) -> &'static str {
        match self {
            Question::Encoder => "encoder",
            Question::Steps => "steps",
            Question::StepsAndTau => "steps and tau",
            Question::Initial => "initial",
        }
    }

    /// As a heading.
    pub fn words(self) -> &'static str {
        match self {
            Question::Encoder => "Signed or unsigned input spikes?",
            Question::Steps => "More time steps at the same tau?",
            Question::StepsAndTau => "More time steps at the same tau/T?",
            Question::Initial => "Initial weights that compensate for the leak?",
        }
    }
}

/// Topic of a sentence about the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// Whether the paper's explanation holds.
    Explanation,
    /// Where the gain under one noise comes from.
    Gain,
    /// Where the price comes from.
    Price,
    /// The effect of a readout without leak that skips its first steps.
    Window,
    /// Which hidden layers matter.
    Layers,
    /// What the colour of noise changes.
    Colour,
    /// How hidden layers follow a modulated input.
    Response,
}

impl Topic {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Topic; 7] = [
        Topic::Explanation,
        Topic::Gain,
        Topic::Price,
        Topic::Window,
        Topic::Layers,
        Topic::Colour,
        Topic::Response,
    ];

    fn name(self) -> &'static str {
        match self {
            Topic::Explanation => "explanation",
            Topic::Gain => "gain",
            Topic::Price => "price",
            Topic::Window => "window",
            Topic::Layers => "layers",
            Topic::Colour => "colour",
            Topic::Response => "response",
        }
    }
}

named!(Part, PriceMeasure, Place, LayerChoice, TimeWindow, Topic, Question);

crate::text_field! {
    Readout: "a readout such as tau 30, reversed 30 or steps 7-30",
    Part: "total, training, hidden or readout",
    PriceMeasure: "spike_rate or synops",
    Place: "hidden, readout, both, all or control",
    LayerChoice: "only or all but",
    TimeWindow: "up to or alone",
    Topic: "the topic of a sentence",
    Question: "encoder, steps, steps and tau or initial",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for text in ["tau inf", "tau 30", "reversed 2.5", "steps 7-30"] {
            assert_eq!(text.parse::<Readout>().unwrap().to_string(), text);
        }
        for text in ["", "tau", "tau 0", "steps 0-3", "steps 5-3", "steps 5", "last 3"] {
            assert_eq!(text.parse::<Readout>(), Err(()), "{text}");
        }
        for part in Part::ALL {
            assert_eq!(part.to_string().parse(), Ok(part));
        }
        for place in Place::ALL {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for topic in Topic::ALL {
            assert_eq!(topic.to_string().parse(), Ok(topic));
        }
    }
}
