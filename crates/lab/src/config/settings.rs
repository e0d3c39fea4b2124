//! Settings in layers: the defaults of a built-in study, then a file, then `--set`. Every value remembers
//! where it was set, so that an error message can give file, line and key.

use crate::data::table;
use leaklab_record::file;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::Value;
use toml::de::{DeTable, DeValue};

/// Where a value was set.
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
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{}, line {line}: {reason}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The message of the parser.
        reason: String,
    },
    /// A list or table of `--set` is not TOML.
    #[error("--set {assignment}: the value is not valid TOML: {reason}")]
    NotToml {
        /// The text of the flag.
        assignment: String,
        /// The message of the parser.
        reason: String,
    },
    /// `--set` without `=`.
    #[error("--set {0}: write it as key=value, such as --set epochs=4")]
    Assignment(String),
    /// There is no such key.
    #[error("{origin}unknown key `{key}`{hint}")]
    Unknown {
        /// Where it was set.
        origin: Origin,
        /// The key.
        key: String,
        /// The key that may have been meant.
        hint: String,
    },
    /// The value is of the wrong kind or out of range.
    #[error(
        "{origin}{key}{}: {expected}",
        value.as_ref().map_or(String::new(), |value| format!(" = {value}"))
    )]
    Value {
        /// Where it was set.
        origin: Origin,
        /// The key.
        key: String,
        /// The value as it was written, if the key is set.
        value: Option<String>,
        /// What is expected.
        expected: String,
    },
    /// A required key is not set.
    #[error("{key} is missing: {hint}")]
    Missing {
        /// The key.
        key: &'static str,
        /// How to set it.
        hint: String,
    },
    /// There is no such built-in study.
    #[error("no study is called `{name}`; there are {known}, or give the path of a .toml file")]
    NoStudy {
        /// The requested name.
        name: String,
        /// The names of the built-in studies.
        known: String,
    },
}

impl ConfigError {
    /// There is neither a built-in study nor a file of this name.
    pub(super) fn no_study(name: &str) -> Self {
        let known = super::BUILTIN.map(|(name, _)| name).join(", ");
        ConfigError::NoStudy { name: name.to_owned(), known }
    }
}

/// Values by key, and the settings of each `[[condition]]`. The key of a table's member is the name of the
/// table, a dot and the name of the member.
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

    /// Reads the text of a TOML file; `path` is used in messages.
    pub fn from_toml(text: &str, path: &Path) -> Result<Self, ConfigError> {
        Self::from_text(text, |line| Origin::File(path.to_owned(), line), path)
    }

    /// The settings for a single run of a TOML file or, if there is no such file, of a built-in study.
    pub fn open(file_or_name: &Path) -> Result<Self, ConfigError> {
        let name = file_or_name.to_string_lossy();
        if file_or_name.exists() || file_or_name.extension().is_some() {
            return Self::from_file(file_or_name);
        }
        Self::builtin(&name).ok_or_else(|| ConfigError::no_study(&name))
    }

    /// What a built-in study sets for a single run: everything except its name, conditions and seeds.
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

    /// Adds the values of a table of a file; `origin` converts an offset in the text into an origin.
    fn add(&mut self, values: toml::Table, places: &DeTable, origin: &dyn Fn(usize) -> Origin) {
        for (key, value) in values {
            let Some((key_place, value_place)) = places.get_key_value(key.as_str()) else { continue };
            let start = key_place.span().start;
            match (value, value_place.get_ref()) {
                (Value::Table(inner), DeValue::Table(places)) if !inner.is_empty() => {
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
                (value, _) if is_void(&key, &value) => {}
                (value, _) => drop(self.entries.insert(key, (value, origin(start)))),
            }
        }
    }

    /// Adds `key=value` from a command line. It is a line of TOML, but a single word needs no quotes.
    pub fn assign(&mut self, assignment: &str) -> Result<(), ConfigError> {
        let Some((key, value)) = assignment.split_once('=') else {
            return Err(ConfigError::Assignment(assignment.to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        // A line of a settings file. Headings, comments and several lines are none.
        let is_line = !key.starts_with(['[', '#']) && !assignment.contains('\n');
        if let Ok(line) = assignment.parse::<toml::Table>()
            && is_line
        {
            line.into_iter().for_each(|(key, value)| self.set(&key, value));
            return Ok(());
        }
        match value.parse::<Value>() {
            Ok(value) => self.set(key, value),
            Err(e) if value.starts_with(['[', '{']) => {
                let (assignment, reason) = (short(assignment.to_owned()), e.message().to_owned());
                return Err(ConfigError::NotToml { assignment, reason });
            }
            Err(_) => self.set(key, value),
        }
        Ok(())
    }

    /// Sets a value, as a flag or a calling program does. A table sets each of its keys. A list of tables
    /// for the key `condition` replaces the conditions, and so does a list for the key `tau`.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        match value.into() {
            value if is_void(key, &value) => {}
            Value::Table(table) if !table.is_empty() => {
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
                // `seed` and `seeds` mean the same: the one that is set last counts.
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

    /// Whether a key is set.
    pub fn contains(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// The value of a key, if it is set and is text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.entries.get(key).and_then(|(value, _)| value.as_str())
    }

    /// Whether a key was set on the command line or from Python, and not in a file.
    pub(super) fn is_flag(&self, key: &str) -> bool {
        matches!(self.entries.get(key), Some((_, Origin::Flag)))
    }

    /// The value of a key, if it is set.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.entries.get(key).map(|(value, _)| value)
    }

    /// The error that refuses the value of a key.
    pub(super) fn refuse(&self, key: &str, expected: impl ToString) -> ConfigError {
        let entry = self.entries.get(key).map(|(value, origin)| (short(shown(value)), origin.clone()));
        // If the key is not set, the message gives the place of the first key in these settings.
        let line = |origin: &Origin| if let Origin::File(_, line) = origin { *line } else { usize::MAX };
        let first = || {
            let origins = self.entries.values().map(|(_, origin)| origin);
            origins.min_by_key(|origin| line(origin)).cloned().unwrap_or(Origin::Flag)
        };
        let (value, origin) = match entry {
            Some((value, origin)) => (Some(value), origin),
            None => (None, first()),
        };
        ConfigError::Value { origin, key: key.to_owned(), value, expected: expected.to_string() }
    }

    /// The built-in study that completes these settings.
    pub(super) fn defaults(&self) -> Result<Settings, ConfigError> {
        let dataset = self.text("dataset").ok_or_else(|| super::run::missing("dataset"))?;
        let name = table::find(dataset).map_err(|unknown| self.refuse("dataset", unknown))?.defaults;
        Ok(Settings::from_default(name, super::builtin_text(name).unwrap_or_default()))
    }

    /// Adds the keys of `defaults` that are not set here, except the named ones.
    pub(super) fn fill_from(&mut self, defaults: Settings, except: &[&str]) {
        for (key, entry) in defaults.entries {
            if !except.contains(&key.as_str()) {
                self.entries.entry(key).or_insert(entry);
            }
        }
    }

    /// Replaces a list of one value by that value; refuses a longer list, since a run has one value.
    pub(super) fn make_single(&mut self, key: &str, flag: &str) -> Result<(), ConfigError> {
        let single = match self.value(key) {
            Some(Value::Array(items)) if items.len() == 1 => items[0].clone(),
            Some(Value::Array(items)) if items.is_empty() => {
                return Err(self.refuse(key, "at least one value is expected"));
            }
            Some(Value::Array(_)) => {
                let expected =
                    format!("a run has one value: add {flag}, or run them all with `leaklab study`");
                return Err(self.refuse(key, expected));
            }
            Some(single) => single.clone(),
            None => return Ok(()),
        };
        if let Some((_, origin)) = self.entries.remove(key) {
            let key = if key == "seeds" { "seed" } else { key };
            self.entries.insert(key.to_owned(), (single, origin));
        }
        Ok(())
    }
}

/// Whether a value is the empty table of a setting that is a table: it sets nothing.
fn is_void(key: &str, value: &Value) -> bool {
    value.as_table().is_some_and(toml::Table::is_empty) && super::keys::is_table(key)
}

/// A value as it was written. A whole number that TOML cannot hold is stored as text, but has no quotes, and
/// a very large or small number has an exponent and not hundreds of zeros.
fn shown(value: &Value) -> String {
    match value {
        Value::Float(x) if x.is_finite() && *x != 0.0 && !(1e-6..1e15).contains(&x.abs()) => format!("{x:?}"),
        Value::String(digits) if digits.parse::<i64>().is_err() && digits.parse::<i128>().is_ok() => {
            digits.clone()
        }
        // TOML would write it in several lines.
        Value::String(text) if text.contains(char::is_control) => format!("{text:?}"),
        value => value.to_string(),
    }
}

/// A value for a message, shortened: a list of thousands of values would hide the rest of the message.
fn short(value: String) -> String {
    const LONGEST: usize = 120;
    match value.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &value[..end]),
        None => value,
    }
}

/// Offsets of the line ends of a text, stored so that the line of a key is found by binary search.
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

/// The known word that is most similar to `word`, if it is similar enough to have been meant.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .min()
        .filter(|&(distance, name)| distance <= 1 + name.len().min(word.len()) / 4)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_words_are_found_and_others_are_not() {
        let known = ["learning_rate", "time_steps", "tau", "epochs"];
        assert_eq!(nearest("learning-rate", known.into_iter()), Some("learning_rate"));
        assert_eq!(nearest("epoch", known.into_iter()), Some("epochs"));
        assert_eq!(nearest("tua", known.into_iter()), Some("tau"));
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
