//! Noise in the input layer: the kinds of noise, where each acts, and the meaning of a severity.
//!
//! The kinds are a closed list, and their levels are in one table, [`SEVERITIES`], so that a severity means
//! the same in a study, a contact sheet and a report. [`crate::encode`] implements how each kind changes the
//! spikes, and `docs/noise.md` describes how the default levels were chosen.

mod colour;
mod severity;

pub use colour::{Colour, CorrelationTime};
pub use severity::{HIGHEST_SEVERITY, Levels, SEVERITIES, Severities};

use std::fmt;
use std::str::FromStr;

/// Declares [`Noise`] and the list of all kinds from one list.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident,)*) => {
        /// A kind of noise.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Noise {
            $($(#[$doc])* $kind,)*
        }

        impl Noise {
            /// All kinds.
            pub const ALL: [Noise; [$(Noise::$kind),*].len()] = [$(Noise::$kind),*];
        }
    };
}

kinds! {
    /// Adds N(0, level^2), independent for each neuron and, if its [`Colour`] is white, for each step.
    Gaussian,
    /// Adds +1 or -1 with probability level / 2 each, independent for each neuron and step.
    /// Level 1 is an impulse of size 1 at every step. Above 1, the level is the size of the
    /// impulses: +level or -level at every step.
    Impulse,
    /// A spike is lost with probability level.
    Deletion,
    /// A spike is moved in time by a rounded normal number of steps with standard deviation level. A spike
    /// that is moved out of the window is lost, and two spikes that are moved to the same step become one.
    Jitter,
    /// A fraction level of the pixels is broken, the same ones for every image of a seed: half of them are
    /// silent, a quarter are always +1 and a quarter always -1, in all channels.
    StuckPixel,
    /// A fraction level of the pixels, different ones in each image, shows
    /// white (+1) or black (-1) at every step.
    SaltAndPepper,
    /// A neuron that is silent at a step fires with probability level: the background activity of an event
    /// sensor. In encoded images, half of these spikes are positive.
    Background,
    /// A fraction level of the pixels, the same ones for every image of a seed, fires at every step: half of
    /// them in the first polarity (encoded images: +1 in all channels), half in the last (-1).
    HotPixel,
    /// A spike is flipped to the other polarity (encoded images: the other sign) with probability level.
    PolarityFlip,
}

/// Where noise acts (the paper's scenarios 1 and 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scenario {
    /// Scenario 1: on the pixel, before it is encoded.
    Pixel,
    /// Scenario 2: on the spikes, after encoding.
    Channel,
}

/// Noise of a given strength.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseSetting {
    noise: Noise,
    scenario: Scenario,
    level: f32,
    colour: Colour,
}

/// The reason why a noise is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NoiseError {
    /// No noise has this name.
    #[error("noise '{0}' is not one of {names}", names = Noise::names())]
    UnknownNoise(String),
    /// No scenario has this name.
    #[error("scenario '{0}' is not one of pixel, channel")]
    UnknownScenario(String),
    /// The noise does not act there.
    #[error("noise '{noise}' has no scenario '{scenario}', only '{only}'")]
    NoSuchScenario {
        /// The noise.
        noise: Noise,
        /// The requested scenario.
        scenario: Scenario,
        /// Its only scenario.
        only: Scenario,
    },
    /// The scenario is given twice, and differs.
    #[error("noise '{0}' and scenario '{1}' contradict each other")]
    TwoScenarios(String, String),
    /// No colour has this name.
    #[error("colour '{0}' is not one of white, frozen, blue or a correlation time in steps above 0")]
    UnknownColour(String),
    /// The severity is out of range.
    #[error("severity {0} is not in 0 to 8")]
    UnknownSeverity(usize),
    /// The level is out of range.
    #[error("level {level} of noise '{noise}' is not {}", noise.level_range())]
    Level {
        /// The noise.
        noise: Noise,
        /// Its level.
        level: f32,
    },
}

impl Noise {
    /// Name in files, flags and on axes.
    pub fn name(self) -> &'static str {
        match self {
            Noise::Gaussian => "gaussian",
            Noise::Impulse => "impulse",
            Noise::Deletion => "deletion",
            Noise::Jitter => "jitter",
            Noise::StuckPixel => "stuck-pixel",
            Noise::SaltAndPepper => "salt-and-pepper",
            Noise::Background => "background",
            Noise::HotPixel => "hot-pixel",
            Noise::PolarityFlip => "polarity-flip",
        }
    }

    /// Wording within a sentence: `Gaussian noise`.
    pub fn words(self) -> &'static str {
        match self {
            Noise::Gaussian => "Gaussian noise",
            Noise::Impulse => "impulse noise",
            Noise::Deletion => "loss of spikes",
            Noise::Jitter => "jitter of spike times",
            Noise::StuckPixel => "stuck pixels",
            Noise::SaltAndPepper => "salt-and-pepper noise",
            Noise::Background => "background activity",
            Noise::HotPixel => "hot pixels",
            Noise::PolarityFlip => "flips of polarity",
        }
    }

    /// Meaning of its level, as the label of an axis.
    pub fn level_name(self) -> &'static str {
        match self {
            Noise::Gaussian => "standard deviation",
            Noise::Impulse => "probability of an impulse (above 1: its size)",
            Noise::Deletion => "probability of losing a spike",
            Noise::Jitter => "standard deviation (steps)",
            Noise::StuckPixel => "fraction of pixels stuck",
            Noise::SaltAndPepper => "fraction of pixels replaced",
            Noise::Background => "probability of a false spike (per neuron and step)",
            Noise::HotPixel => "fraction of pixels that always fire",
            Noise::PolarityFlip => "probability of the other polarity",
        }
    }

    /// The names of all kinds, for messages and help.
    pub fn names() -> String {
        Noise::ALL.map(Noise::name).join(", ")
    }

    /// A noise and its scenario by name: `gaussian` and `pixel`, or `gaussian/pixel`. If no scenario is
    /// given, it is the noise's first.
    pub fn named(noise: &str, scenario: Option<&str>) -> Result<(Noise, Scenario), NoiseError> {
        let (name, within) =
            noise.split_once('/').map_or((noise, None), |(name, within)| (name, Some(within)));
        let kind: Noise = name.parse()?;
        let scenario = match (within, scenario) {
            (Some(within), Some(scenario)) if within != scenario => {
                return Err(NoiseError::TwoScenarios(noise.to_owned(), scenario.to_owned()));
            }
            (Some(name), _) | (None, Some(name)) => name.parse()?,
            (None, None) => kind.scenarios().next().unwrap_or(Scenario::Pixel),
        };
        Ok((kind, scenario))
    }

    /// Its scenarios.
    pub fn scenarios(self) -> impl Iterator<Item = Scenario> {
        SEVERITIES.iter().filter(move |row| row.0 == self).map(|row| row.1)
    }

    /// The highest level: any finite number, or 1 for a fraction.
    fn most_level(self) -> f32 {
        match self {
            Noise::Gaussian | Noise::Impulse | Noise::Jitter => f32::MAX,
            Noise::Deletion
            | Noise::StuckPixel
            | Noise::SaltAndPepper
            | Noise::Background
            | Noise::HotPixel
            | Noise::PolarityFlip => 1.0,
        }
    }

    fn level_range(self) -> &'static str {
        if self.most_level() == 1.0 { "a fraction from 0 to 1" } else { "a finite number of 0 or more" }
    }

    /// What the noise changes.
    pub fn action(self) -> Action {
        match self {
            Noise::Gaussian => Action::Add(Added::Gaussian),
            Noise::Impulse => Action::Add(Added::Impulse),
            Noise::StuckPixel => Action::Replace(Replaced::Stuck),
            Noise::SaltAndPepper => Action::Replace(Replaced::SaltAndPepper),
            Noise::Deletion => Action::Change(Changed::Deletion),
            Noise::Jitter => Action::Change(Changed::Jitter),
            Noise::Background => Action::Change(Changed::Background),
            Noise::HotPixel => Action::Change(Changed::HotPixel),
            Noise::PolarityFlip => Action::Change(Changed::PolarityFlip),
        }
    }

    /// Whether it acts on spikes alone, so that it also applies to recordings of an event camera. The other
    /// noises act on pixels, or turn spikes into real values.
    pub fn acts_on_events(self) -> bool {
        match self.action() {
            Action::Change(_) => true,
            Action::Add(_) | Action::Replace(_) => false,
        }
    }
}

/// What a noise changes. Each kind of action is implemented in one place in [`crate::encode`],
/// which handles only the noises of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Adds a number to a pixel before encoding, or to a spike after encoding.
    Add(Added),
    /// Replaces the value of a pixel at every step.
    Replace(Replaced),
    /// Removes, moves, adds or flips spikes.
    Change(Changed),
}

/// Noises that add a number; see [`Noise`].
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    Gaussian,
    Impulse,
}

/// Noises that replace pixels; see [`Noise`].
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    Stuck,
    SaltAndPepper,
}

/// Noises that change spikes; see [`Noise`].
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    Deletion,
    Jitter,
    Background,
    HotPixel,
    PolarityFlip,
}

impl Scenario {
    /// Name in files, flags and on axes.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::Pixel => "pixel",
            Scenario::Channel => "channel",
        }
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Noise {
    type Err = NoiseError;

    fn from_str(name: &str) -> Result<Self, NoiseError> {
        let found = Noise::ALL.into_iter().find(|noise| noise.name() == name);
        found.ok_or_else(|| NoiseError::UnknownNoise(name.to_owned()))
    }
}

impl FromStr for Scenario {
    type Err = NoiseError;

    fn from_str(name: &str) -> Result<Self, NoiseError> {
        let found = [Scenario::Pixel, Scenario::Channel].into_iter().find(|s| s.name() == name);
        found.ok_or_else(|| NoiseError::UnknownScenario(name.to_owned()))
    }
}

impl NoiseSetting {
    /// Noise at a level, or an error if the noise does not have the scenario or the level
    /// is out of range. Level 0 is no noise.
    pub fn new(noise: Noise, scenario: Scenario, level: f32) -> Result<Self, NoiseError> {
        if let Some(only) = noise.scenarios().next().filter(|_| noise.scenarios().all(|s| s != scenario)) {
            return Err(NoiseError::NoSuchScenario { noise, scenario, only });
        }
        if !(0.0..=noise.most_level()).contains(&level) {
            return Err(NoiseError::Level { noise, level });
        }
        Ok(NoiseSetting { noise, scenario, level, colour: Colour::White })
    }

    /// Gaussian noise on pixels of some colour and standard deviation; white is `gaussian/pixel` itself.
    pub fn coloured(colour: Colour, level: f32) -> Result<Self, NoiseError> {
        Ok(NoiseSetting { colour, ..Self::new(Noise::Gaussian, Scenario::Pixel, level)? })
    }

    /// The kind.
    pub fn noise(self) -> Noise {
        self.noise
    }

    /// Where it acts.
    pub fn scenario(self) -> Scenario {
        self.scenario
    }

    /// The correlation of its values at different steps: white, unless it was
    /// created by [`NoiseSetting::coloured`].
    pub fn colour(self) -> Colour {
        self.colour
    }

    /// Probability and size of an impulse at this level.
    pub(crate) fn impulse(self) -> (f32, f32) {
        (self.level.min(1.0), self.level.max(1.0))
    }

    /// Its strength, whose meaning depends on the kind.
    pub fn level(self) -> f32 {
        self.level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noise_is_named_with_or_without_its_scenario() {
        let pixel = Ok((Noise::Impulse, Scenario::Pixel));
        assert_eq!(Noise::named("impulse", None), pixel);
        assert_eq!(Noise::named("impulse", Some("pixel")), pixel);
        assert_eq!(Noise::named("impulse/pixel", None), pixel);
        assert_eq!(Noise::named("impulse/pixel", Some("pixel")), pixel);
        assert_eq!(Noise::named("jitter", None), Ok((Noise::Jitter, Scenario::Channel)));
        assert!(matches!(Noise::named("impulse/pixel", Some("channel")), Err(NoiseError::TwoScenarios(..))));
        assert!(matches!(Noise::named("impulse/", None), Err(NoiseError::UnknownScenario(_))));
    }

    #[test]
    fn the_table_is_complete_and_rises() {
        // A new kind must be added to this match. The assertion below then
        // fails if the list of all kinds lacks it.
        let next = |noise: Noise| match noise {
            Noise::Gaussian => Some(Noise::Impulse),
            Noise::Impulse => Some(Noise::Deletion),
            Noise::Deletion => Some(Noise::Jitter),
            Noise::Jitter => Some(Noise::StuckPixel),
            Noise::StuckPixel => Some(Noise::SaltAndPepper),
            Noise::SaltAndPepper => Some(Noise::Background),
            Noise::Background => Some(Noise::HotPixel),
            Noise::HotPixel => Some(Noise::PolarityFlip),
            Noise::PolarityFlip => None,
        };
        let kinds: Vec<Noise> = std::iter::successors(Some(Noise::Gaussian), |&noise| next(noise)).collect();
        assert_eq!(kinds, Noise::ALL);
        for noise in Noise::ALL {
            assert_eq!(noise.name().parse(), Ok(noise));
            assert!(noise.scenarios().count() >= 1);
        }
        for (noise, scenario, levels) in SEVERITIES {
            assert!(levels[0] > 0.0 && levels.windows(2).all(|w| w[0] < w[1]), "{noise} {scenario}");
            for severity in 1..=HIGHEST_SEVERITY {
                let setting = Severities::default().setting(noise, scenario, severity).unwrap().unwrap();
                assert_eq!(setting.level(), levels[severity - 1]);
            }
            assert_eq!(Severities::default().setting(noise, scenario, 0), Ok(None));
        }
    }

    #[test]
    fn errors_state_what_would_be_right() {
        let message = |e: NoiseError| e.to_string();
        assert!(message("thunder".parse::<Noise>().unwrap_err()).contains("gaussian, impulse"));
        assert!(message("air".parse::<Scenario>().unwrap_err()).contains("pixel, channel"));
        let wrong = NoiseSetting::new(Noise::Deletion, Scenario::Pixel, 0.1).unwrap_err();
        assert_eq!(message(wrong), "noise 'deletion' has no scenario 'pixel', only 'channel'");
        let wrong = NoiseSetting::new(Noise::Deletion, Scenario::Channel, 1.5).unwrap_err();
        assert!(message(wrong).contains("0 to 1"));
        assert!(NoiseSetting::new(Noise::Gaussian, Scenario::Pixel, f32::NAN).is_err());
        let severities = Severities::default();
        assert!(severities.setting(Noise::Gaussian, Scenario::Pixel, 9).is_err());
    }
}
