//! Settings in layers: a built-in study's defaults, a file, then `--set`. Every value remembers where it was
//! said, so that whatever is wrong with it can be answered with file, line and key.

use leaklab_record::file;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::Value;
use toml::de::{DeTable, DeValue};

/// Where a value was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// In a file, at a line.
    File(PathBuf, usize),
    /// On the command line or by a calling program.
    Flag,
    /// In a built-in study that supplies defaults.
    Default(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File(path, line) => write!(f, "{}, line {line}: ", path.display()),
            Origin::Flag => Ok(()),
            Origin::Default(name) => write!(f, "built-in study {name}: "),
        }
    }
}

/// Why settings were refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{}, line {line}: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What the parser said.
        reason: String,
    },
    /// `--set` without `=`.
    #[error("--set {0}: write it as key=value, such as --set epochs=4")]
    Assignment(String),
    /// There is no such key.
    #[error("{origin}unknown key `{key}`{hint}")]
    Unknown {
        /// Where it was said.
        origin: Origin,
        /// The key.
        key: String,
        /// Which key may have been meant.
        hint: String,
    },
    /// The value is not of the right kind or out of range.
    #[error("{origin}{key}{}: {expected}", value.as_ref().map_or(String::new(), |value| format!(" = {value}")))]
    Value {
        /// Where it was said.
        origin: Origin,
        /// The key.
        key: String,
        /// The value as it was written, if the key is set.
        value: Option<String>,
        /// What would be right.
        expected: String,
    },
    /// A key that must be said was not.
    #[error("{key} is missing: {hint}")]
    Missing {
        /// The key.
        key: &'static str,
        /// How to say it.
        hint: String,
    },
    /// There is no such built-in study.
    #[error("no study is called `{name}`; there are {known}, or give the path of a .toml file")]
    NoStudy {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
}

/// Values by key, the keys of tables joined with dots; and the settings of each `[[condition]]`.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub(super) entries: BTreeMap<String, (Value, Origin)>,
    pub(super) conditions: Vec<Settings>,
}

impl Settings {
    /// Reads a TOML file.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let text =
            file::read_to_string(path).map_err(|source| ConfigError::Io { path: path.to_owned(), source })?;
        Self::from_toml(&text, path)
    }

    /// Reads the text of a TOML file; `path` is for the messages.
    pub fn from_toml(text: &str, path: &Path) -> Result<Self, ConfigError> {
        Self::from_text(text, |line| Origin::File(path.to_owned(), line), path)
    }

    /// What a built-in study says of a single run: all but its conditions and seeds.
    pub fn builtin(name: &str) -> Option<Self> {
        let (name, text) = super::BUILTIN.iter().find(|(known, _)| *known == name)?;
        let mut settings = Self::from_default(name, text);
        for key in ["name", "tau", "seeds", "baseline"] {
            settings.entries.remove(key);
        }
        settings.conditions.clear();
        Some(settings)
    }

    /// Reads the text of a built-in study.
    pub(super) fn from_default(name: &'static str, text: &str) -> Self {
        Self::from_text(text, |_| Origin::Default(name), Path::new(name)).expect("built-in studies are TOML")
    }

    fn from_text(text: &str, origin: impl Fn(usize) -> Origin, path: &Path) -> Result<Self, ConfigError> {
        let syntax = |e: toml::de::Error| ConfigError::Syntax {
            path: path.to_owned(),
            line: line_of(text, e.span().map_or(0, |span| span.start)),
            reason: e.message().to_owned(),
        };
        let places = DeTable::parse(text).map_err(syntax)?;
        let values: toml::Table = toml::from_str(text).map_err(syntax)?;
        let lines = Lines::new(text);
        let mut settings = Settings::default();
        settings.add(values, places.get_ref(), &|offset| origin(lines.of(offset)));
        Ok(settings)
    }

    /// Adds what a table of a file says; `origin` tells where a place in the text is.
    fn add(&mut self, values: toml::Table, places: &DeTable, origin: &dyn Fn(usize) -> Origin) {
        for (key, value) in values {
            let Some((key_place, value_place)) = places.get_key_value(key.as_str()) else { continue };
            let start = key_place.span().start;
            match (value, value_place.get_ref()) {
                (Value::Table(inner), DeValue::Table(places)) => {
                    for (name, value) in inner {
                        let at =
                            places.get_key_value(name.as_str()).map_or(start, |(key, _)| key.span().start);
                        self.entries.insert(format!("{key}.{name}"), (value, origin(at)));
                    }
                }
                (Value::Array(items), DeValue::Array(places)) if key == "condition" => {
                    for (item, place) in items.into_iter().zip(places.iter()) {
                        match (item, place.get_ref()) {
                            (Value::Table(inner), DeValue::Table(places)) => {
                                let mut condition = Settings::default();
                                condition.add(inner, places, origin);
                                self.conditions.push(condition);
                            }
                            (other, _) => drop(self.entries.insert(key.clone(), (other, origin(start)))),
                        }
                    }
                }
                (value, _) => drop(self.entries.insert(key, (value, origin(start)))),
            }
        }
    }

    /// Adds `key=value` as it stands on a command line. The value is TOML; a bare word needs no quotes.
    pub fn assign(&mut self, assignment: &str) -> Result<(), ConfigError> {
        let Some((key, value)) = assignment.split_once('=') else {
            return Err(ConfigError::Assignment(assignment.to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        let value = value.parse::<Value>().unwrap_or_else(|_| Value::String(value.to_owned()));
        self.set(key, value);
        Ok(())
    }

    /// Sets a value, as a flag or a calling program does. A table sets each of its keys, a list of tables
    /// called
    /// `condition` replaces the conditions, and a list of `tau` stands in place of all conditions that were
    /// said.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        match value.into() {
            Value::Table(table) => {
                for (name, value) in table {
                    self.set(&format!("{key}.{name}"), value);
                }
            }
            Value::Array(items) if key == "condition" && items.iter().all(Value::is_table) => {
                self.conditions.clear();
                self.entries.remove("condition");
                for item in items {
                    let mut condition = Settings::default();
                    for (name, value) in item.as_table().into_iter().flatten() {
                        condition.set(name, value.clone());
                    }
                    self.conditions.push(condition);
                }
            }
            value => {
                // `seed` and `seeds` say the same thing: the one said last counts.
                match key {
                    "seed" => drop(self.entries.remove("seeds")),
                    "seeds" => drop(self.entries.remove("seed")),
                    "tau" if value.is_array() => self.conditions.clear(),
                    _ => {}
                }
                self.entries.insert(key.to_owned(), (value, Origin::Flag));
            }
        }
    }

    /// Whether a key was said.
    pub fn contains(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// A value that is text, if it was said.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.entries.get(key).and_then(|(value, _)| value.as_str())
    }

    /// Whether a key was set on the command line or from Python, and not in a file.
    pub(super) fn is_flag(&self, key: &str) -> bool {
        matches!(self.entries.get(key), Some((_, Origin::Flag)))
    }

    /// The value of a key, if it was said.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.entries.get(key).map(|(value, _)| value)
    }

    /// Refuses a key's value.
    pub(super) fn refuse(&self, key: &str, expected: impl ToString) -> ConfigError {
        let said = self.entries.get(key).map(|(value, origin)| (short(value.to_string()), origin.clone()));
        // Where the key is not set, the first key of the same table shows the place.
        let line = |origin: &Origin| if let Origin::File(_, line) = origin { *line } else { usize::MAX };
        let near = || {
            let origins = self.entries.values().map(|(_, origin)| origin);
            origins.min_by_key(|origin| line(origin)).cloned().unwrap_or(Origin::Flag)
        };
        let (value, origin) = match said {
            Some((value, origin)) => (Some(value), origin),
            None => (None, near()),
        };
        ConfigError::Value { origin, key: key.to_owned(), value, expected: expected.to_string() }
    }

    /// The built-in study that completes these settings.
    pub(super) fn defaults(&self) -> Result<Settings, ConfigError> {
        let dataset = self.text("dataset").ok_or_else(|| super::run::missing("dataset"))?;
        let name = super::builtin::default_study(dataset);
        Ok(Settings::from_default(name, super::builtin_text(name).unwrap_or_default()))
    }

    /// Adds what `defaults` says and this does not, except the named keys.
    pub(super) fn fill_from(&mut self, defaults: Settings, except: &[&str]) {
        for (key, entry) in defaults.entries {
            if !except.contains(&key.as_str()) {
                self.entries.entry(key).or_insert(entry);
            }
        }
    }

    /// Makes a list of one value that value; refuses a longer one, since a run has one.
    pub(super) fn make_single(&mut self, key: &str, flag: &str) -> Result<(), ConfigError> {
        let single = match self.value(key) {
            Some(Value::Array(items)) if items.len() == 1 => items[0].clone(),
            Some(Value::Array(items)) if items.is_empty() => {
                return Err(self.refuse(key, "at least one value is expected"));
            }
            Some(Value::Array(_)) => {
                let expected = format!("a run has one: add {flag}, or run them all with `leaklab study`");
                return Err(self.refuse(key, expected));
            }
            _ => return Ok(()),
        };
        if let Some((_, origin)) = self.entries.remove(key) {
            let key = if key == "seeds" { "seed" } else { key };
            self.entries.insert(key.to_owned(), (single, origin));
        }
        Ok(())
    }
}

/// A value for a message: a list of thousands would bury the rest of it.
fn short(value: String) -> String {
    const LONGEST: usize = 120;
    match value.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &value[..end]),
        None => value,
    }
}

/// Where the lines of a text begin: one look-up for each key, however many there are.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Lines(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(i, _)| i).collect())
    }

    fn of(&self, offset: usize) -> usize {
        1 + self.0.partition_point(|&end| end < offset)
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    Lines::new(text).of(offset)
}

/// The known word nearest to `word`, if it is near enough to have been meant.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::levenshtein(word, name), name))
        .min()
        .filter(|&(distance, name)| distance <= 1 + name.len().min(word.len()) / 4)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_not() {
        let known = ["learning_rate", "time_steps", "tau", "epochs"];
        assert_eq!(nearest("learning-rate", known.into_iter()), Some("learning_rate"));
        assert_eq!(nearest("epoch", known.into_iter()), Some("epochs"));
        assert_eq!(nearest("batch_normalisation", known.into_iter()), None);
    }

    #[test]
    fn assignments_are_toml_or_bare_words() {
        let mut settings = Settings::default();
        for assignment in
            ["epochs=4", "tau=inf", "dataset = digits", "schedule.after=[1, 2]", "seeds=[1,2]", "seed=7"]
        {
            settings.assign(assignment).unwrap();
        }
        let value = |key: &str| settings.entries[key].0.to_string();
        assert_eq!(
            ["epochs", "tau", "dataset", "schedule.after", "seed"].map(value),
            ["4", "inf", "\"digits\"", "[1, 2]", "7"]
        );
        assert!(!settings.contains("seeds"));
        assert!(settings.assign("epochs").unwrap_err().to_string().contains("key=value"));
    }
}
