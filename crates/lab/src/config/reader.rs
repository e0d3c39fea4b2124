//! Takes typed values out of settings, each with the sentence that says what would be right.

use super::settings::{ConfigError, Settings, nearest};
use std::str::FromStr;
use toml::Value;

/// Every key there is, with one line for the manual.
pub const KEYS: &[(&str, &str)] = &[
    ("format", "version of the file's format; written by leaklab"),
    ("name", "what the study is called on its page"),
    ("dataset", "name of a data set, see `leaklab data list`"),
    ("data_dir", "folder that holds the data sets"),
    ("train_limit", "train on this many images only, class-balanced"),
    ("test_limit", "evaluate on this many test images only, class-balanced"),
    ("normalise", "per-image or per-channel"),
    ("encoder", "signed or unsigned"),
    ("augment.crop", "random crop with this many black pixels of padding, 0 for none"),
    ("augment.flip", "random horizontal flip, true or false"),
    ("network", "the network in the paper's notation, such as 1x8x8-16C3-2P-10o"),
    ("tau", "membrane time constant in steps, inf for no leak; a study takes a list"),
    ("v_th", "threshold of conv and FC neurons"),
    ("time_steps", "steps per image"),
    ("gradient", "straight-through or exact"),
    ("dropout", "probability that a hidden neuron is left out of a training sample"),
    ("optimiser", "sgd or adam"),
    ("momentum", "momentum of sgd"),
    ("beta1", "decay of adam's first moment"),
    ("beta2", "decay of adam's second moment"),
    ("epsilon", "adam's guard against division by zero"),
    ("learning_rate", "step size in the first epoch"),
    ("schedule.after", "epochs after which the learning rate is lowered"),
    ("schedule.times", "factor by which it is lowered"),
    ("weight_decay", "L2 penalty on the weights"),
    ("epochs", "passes over the training set"),
    ("batch", "images per update"),
    ("seed", "seed of every random number of a run"),
    ("seeds", "seeds of a study, one run each"),
    ("evaluate_every", "evaluate the test set after every so many epochs, and after the last"),
    ("noise", "noises a study tests, such as gaussian/pixel"),
    ("analysis_images", "test images that analyses use, all if not said"),
    ("severity", "levels of severities 1 to 8 of a noise, in place of the default ones"),
];

/// Settings being read; whatever is left over in the end is unknown.
pub(super) struct Reader {
    settings: Settings,
}

impl Reader {
    pub(super) fn new(settings: Settings) -> Result<Self, ConfigError> {
        for (key, (_, origin)) in &settings.entries {
            let known = KEYS.iter().any(|(name, _)| name == key) || key.starts_with("severity.");
            if !known {
                let hint = match nearest(key, KEYS.iter().map(|(name, _)| *name)) {
                    Some(name) => format!("; did you mean `{name}`?"),
                    None => format!("; the keys are {}", KEYS.map_names()),
                };
                return Err(ConfigError::Unknown { origin: origin.clone(), key: key.clone(), hint });
            }
        }
        Ok(Reader { settings })
    }

    /// Refuses a key's value.
    pub(super) fn refuse(&self, key: &str, expected: impl ToString) -> ConfigError {
        match self.settings.entries.get(key) {
            Some((value, origin)) => ConfigError::Value {
                origin: origin.clone(),
                key: key.to_owned(),
                value: value.to_string(),
                expected: expected.to_string(),
            },
            None => ConfigError::Value {
                origin: super::Origin::Flag,
                key: key.to_owned(),
                value: "nothing".to_owned(),
                expected: expected.to_string(),
            },
        }
    }

    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.settings.entries.get(key).map(|(value, _)| value)
    }

    /// The keys that replace a noise's levels.
    pub(super) fn severities(&self) -> impl Iterator<Item = (&str, &Value)> {
        let entries = self.settings.entries.iter();
        entries.filter(|(key, _)| key.starts_with("severity.")).map(|(key, (value, _))| (key.as_str(), value))
    }

    fn required<T>(&self, key: &'static str, value: Option<T>) -> Result<T, ConfigError> {
        let hint = || {
            let what = KEYS.iter().find(|(name, _)| *name == key).map_or("", |(_, what)| what);
            format!("{what}; say it in the file or with --set {key}=...")
        };
        value.ok_or_else(|| ConfigError::Missing { key, hint: hint() })
    }

    pub(super) fn text(&self, key: &'static str) -> Result<Option<String>, ConfigError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.refuse(key, "a text in quotes is expected")),
        }
    }

    /// A text that must be there and be one of a closed list or a valid notation.
    pub(super) fn parsed<T: FromStr<Err: std::fmt::Display>>(
        &self,
        key: &'static str,
    ) -> Result<T, ConfigError> {
        let text = self.required(key, self.text(key)?)?;
        text.parse().map_err(|e: T::Err| self.refuse(key, e))
    }

    pub(super) fn flag(&self, key: &'static str, default: bool) -> Result<bool, ConfigError> {
        match self.value(key) {
            None => Ok(default),
            Some(Value::Boolean(flag)) => Ok(*flag),
            Some(_) => Err(self.refuse(key, "true or false is expected")),
        }
    }

    /// A whole number of at least `least`.
    pub(super) fn whole(&self, key: &'static str, least: u64) -> Result<Option<u64>, ConfigError> {
        self.value(key).map(|value| self.whole_of(key, value, least)).transpose()
    }

    pub(super) fn whole_of(&self, key: &str, value: &Value, least: u64) -> Result<u64, ConfigError> {
        let number = value.as_integer().and_then(|n| u64::try_from(n).ok()).filter(|&n| n >= least);
        number.ok_or_else(|| self.refuse(key, format!("a whole number of {least} or more is expected")))
    }

    pub(super) fn required_whole(&self, key: &'static str, least: u64) -> Result<u64, ConfigError> {
        let value = self.whole(key, least)?;
        self.required(key, value)
    }

    /// A number that `accept` takes; `expected` says which those are.
    pub(super) fn number(
        &self,
        key: &'static str,
        default: Option<f64>,
        accept: impl Fn(f64) -> bool,
        expected: &str,
    ) -> Result<f64, ConfigError> {
        match self.value(key) {
            None => self.required(key, default),
            Some(value) => self.number_of(key, value, accept, expected),
        }
    }

    pub(super) fn number_of(
        &self,
        key: &str,
        value: &Value,
        accept: impl Fn(f64) -> bool,
        expected: &str,
    ) -> Result<f64, ConfigError> {
        number(value)
            .filter(|&x| accept(x))
            .ok_or_else(|| self.refuse(key, format!("{expected} is expected")))
    }

    /// One value or a list of them.
    pub(super) fn list<'a>(&self, value: &'a Value) -> &'a [Value] {
        value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
    }
}

/// A number, whole or not; the texts "inf" and "30" too, since JSON and shells have no other way to say inf.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Float(x) => Some(*x),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

trait Names {
    fn map_names(&self) -> String;
}

impl Names for [(&str, &str)] {
    fn map_names(&self) -> String {
        self.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}
