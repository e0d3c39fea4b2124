//! Types of a study that files, tables and pages share: runs, stimuli and roles.

use leaklab_engine::noise::{Colour, HIGHEST_SEVERITY, Noise, NoiseError, Scenario};
use leaklab_engine::{LayerKind, Leak, Tau};
use std::fmt;
use std::str::FromStr;

/// Which run of a study: its condition and its seed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey {
    /// Name of the condition.
    pub condition: String,
    /// Seed of the run.
    pub seed: u64,
}

impl RunKey {
    /// Name of the run's folder: `tau-30_seed-1`.
    pub fn folder_name(&self) -> String {
        format!("{}_seed-{}", slug(&self.condition), self.seed)
    }
}

/// A name as part of a path: letters, digits and dots within words stay, everything else becomes a hyphen.
pub fn slug(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_alphanumeric() || c == '.' { c } else { '-' }).collect();
    let words = plain.split('-').map(|word| word.trim_matches('.')).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// Name of a condition that differs from others in `tau` alone.
pub fn tau_condition(tau: Tau) -> String {
    format!("tau {tau}")
}

/// Name of a condition that was not given one: `tau 30`, or `tau inf, readout 30` if layers differ.
pub fn leak_condition(leak: &Leak) -> String {
    leak.as_uniform().map_or_else(|| format!("tau {leak}"), tau_condition)
}

/// Role of a condition in its study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The others are compared with it.
    Baseline,
    /// Compared with the baseline.
    Compared,
    /// Trained only to see whether it learns; used in claim 7.
    Probe,
}

impl Role {
    const ALL: [Role; 3] = [Role::Baseline, Role::Compared, Role::Probe];

    fn name(self) -> &'static str {
        match self {
            Role::Baseline => "baseline",
            Role::Compared => "compared",
            Role::Probe => "probe",
        }
    }
}

/// A noise and the scenario in which it acts, written `gaussian/pixel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NoiseKey {
    /// The kind.
    pub noise: Noise,
    /// Where it acts.
    pub scenario: Scenario,
}

/// The paper's noises, in its order.
pub const PAPER_NOISES: [NoiseKey; 4] = [
    NoiseKey { noise: Noise::Gaussian, scenario: Scenario::Pixel },
    NoiseKey { noise: Noise::Gaussian, scenario: Scenario::Channel },
    NoiseKey { noise: Noise::Impulse, scenario: Scenario::Pixel },
    NoiseKey { noise: Noise::Impulse, scenario: Scenario::Channel },
];

impl NoiseKey {
    /// A noise in a scenario, if the noise can act in it.
    pub fn new(noise: Noise, scenario: Scenario) -> Result<Self, NoiseError> {
        leaklab_engine::noise::NoiseSetting::new(noise, scenario, 0.0)?;
        Ok(NoiseKey { noise, scenario })
    }

    /// Words for a sentence: `Gaussian noise on pixels`. If a noise can act in one scenario only, the
    /// scenario is omitted: `loss of spikes`.
    pub fn words(self) -> String {
        let noise = self.noise.words();
        let place = match self.scenario {
            Scenario::Pixel => "on pixels",
            Scenario::Channel => "on spikes",
        };
        if self.noise.scenarios().count() == 1 { noise.to_owned() } else { format!("{noise} {place}") }
    }
}

/// What test images are presented with: no noise, or a noise at a severity. Written `clean` or
/// `gaussian/pixel/5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stimulus {
    /// No noise.
    Clean,
    /// A noise at a severity from 1 to 8.
    Noisy(NoiseKey, usize),
}

impl Stimulus {
    /// A noise at a severity; severity 0 of any noise is [`Stimulus::Clean`].
    pub fn at(noise: NoiseKey, severity: usize) -> Self {
        if severity == 0 { Stimulus::Clean } else { Stimulus::Noisy(noise, severity) }
    }

    /// In words: `clean`, or `Gaussian noise on pixels, severity 5`.
    pub fn words(self) -> String {
        match self {
            Stimulus::Clean => "clean".to_owned(),
            Stimulus::Noisy(noise, severity) => format!("{}, severity {severity}", noise.words()),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Role {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Role::ALL.into_iter().find(|role| role.name() == name).ok_or(())
    }
}

impl fmt::Display for NoiseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.noise, self.scenario))
    }
}

impl FromStr for NoiseKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((noise, scenario)) = text.split_once('/') else {
            return Err("a noise and its scenario are expected, such as gaussian/pixel".to_owned());
        };
        let key = || -> Result<NoiseKey, NoiseError> { NoiseKey::new(noise.parse()?, scenario.parse()?) };
        key().map_err(|e| e.to_string())
    }
}

impl fmt::Display for Stimulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stimulus::Clean => f.pad("clean"),
            Stimulus::Noisy(noise, severity) => f.pad(&format!("{noise}/{severity}")),
        }
    }
}

impl FromStr for Stimulus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "clean" {
            return Ok(Stimulus::Clean);
        }
        let refused = || format!("'{text}' is neither clean nor a noise such as gaussian/pixel/5");
        let (noise, severity) = text.rsplit_once('/').ok_or_else(refused)?;
        let severity = severity.parse().ok().filter(|n| (1..=HIGHEST_SEVERITY).contains(n));
        Ok(Stimulus::Noisy(noise.parse()?, severity.ok_or_else(refused)?))
    }
}

/// The settings in which a condition differs from the baseline, as key and own value:
/// `tau = 30, schedule.after = [1, 2]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differs(pub Vec<(String, String)>);

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.0.iter().enumerate() {
            write!(f, "{}{key} = {value}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for Differs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut settings: Vec<(String, String)> = Vec::new();
        for part in at_commas(text).into_iter().filter(|_| !text.is_empty()) {
            match (part.split_once(" = "), settings.last_mut()) {
                (Some((key, value)), _) => settings.push((key.to_owned(), value.to_owned())),
                // A comma of the value before it.
                (None, Some((_, value))) => *value += &format!(", {part}"),
                (None, None) => return Err(format!("'{text}' is not a list of settings such as tau = 30")),
            }
        }
        Ok(Differs(settings))
    }
}

/// The parts of a text between commas that are not inside of a list, a table or a string of TOML.
fn at_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    let mut string = None;
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match (string, c) {
            (Some('"'), '\\') => {
                characters.next();
            }
            (Some(end), c) if c == end => string = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => string = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 && text[at..].starts_with(", ") => {
                parts.push(&text[start..at]);
                start = at + 2;
            }
            (None, _) => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

crate::text_field! {
    Differs: "settings such as tau = 30, epochs = 2",
    Tau: "a number of steps or inf",
    Role: "baseline, compared or probe",
    Noise: "the name of a noise",
    Colour: "white, frozen, blue or a correlation time in steps",
    Scenario: "pixel or channel",
    NoiseKey: "a noise such as gaussian/pixel",
    Stimulus: "clean, or a noise such as gaussian/pixel/5",
    LayerKind: "conv, pool, full or output",
}

/// Names as a list within a sentence: "a", "a and b", "a, b and c".
pub fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_separated_where_no_value_has_its_comma() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        for settings in [
            vec![],
            vec![pair("tau", "30")],
            vec![pair("layer_tau", "{ conv1 = 5, fc1 = inf }"), pair("readout_tau", "inf")],
            vec![pair("schedule.after", "[1, 2]"), pair("epochs", "2")],
            vec![pair("dataset", r#""npz:a, b = ]\", c = {""#), pair("epochs", "2")],
            vec![pair("dataset", r#"'npz:", b = }'"#), pair("normalise", "none"), pair("epochs", "2")],
            vec![pair("network", "1x8x8, 10o"), pair("epochs", "2")],
        ] {
            let text = Differs(settings.clone()).to_string();
            assert_eq!(text.parse(), Ok(Differs(settings)), "{text}");
        }
        assert!("tau".parse::<Differs>().is_err());
        // Of whatever was written, nothing is lost.
        for text in ["a = [, b = 2", "a = }, b = 2", "a = \"\\", "a = 1,b = 2", "a = 1, ", "a = é, ü"] {
            assert_eq!(text.parse::<Differs>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn keys_are_folders() {
        let folder = |condition: &str| RunKey { condition: condition.into(), seed: 3 }.folder_name();
        assert_eq!(folder("tau 30"), "tau-30_seed-3");
        assert_eq!(folder(&tau_condition(Tau::new(2.5).unwrap())), "tau-2.5_seed-3");
        assert_eq!(folder("leaky  readout / τ"), "leaky-readout-τ_seed-3");
        assert_eq!(slug("../.."), "");
    }

    #[test]
    fn conditions_are_named_after_their_leak() {
        let thirty = Tau::new(30.0).unwrap();
        assert_eq!(leak_condition(&Leak::uniform(thirty)), "tau 30");
        assert_eq!(leak_condition(&Leak::split(Tau::INFINITE, thirty)), "tau inf, readout 30");
        // A readout tau that equals the other tau does not change the name.
        let leak = Leak { readout_tau: Some(thirty), ..Leak::uniform(thirty) };
        assert_eq!(leak_condition(&leak), tau_condition(thirty));
    }

    #[test]
    fn stimuli_read_back() {
        for text in ["clean", "gaussian/pixel/5", "stuck-pixel/pixel/8"] {
            assert_eq!(text.parse::<Stimulus>().unwrap().to_string(), text);
        }
        for text in ["gaussian/pixel/0", "gaussian/pixel/9", "gaussian", "gauss/pixel/1", "deletion/pixel/1"]
        {
            assert!(text.parse::<Stimulus>().is_err(), "{text}");
        }
        let noise: NoiseKey = "impulse/channel".parse().unwrap();
        assert_eq!(Stimulus::at(noise, 0), Stimulus::Clean);
        assert_eq!(Stimulus::at(noise, 2).words(), "impulse noise on spikes, severity 2");
        for (key, words) in [("deletion/channel", "loss of spikes"), ("stuck-pixel/pixel", "stuck pixels")] {
            assert_eq!(key.parse::<NoiseKey>().unwrap().words(), words);
        }
    }
}
