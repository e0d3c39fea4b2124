//! Settings in layers: a built-in study's defaults, a file, then `--set`. Every value remembers where it was said, so
//! that whatever is wrong with it can be answered with file, line and key.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::Value;
use toml::de::DeTable;

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
    #[error("{origin}{key} = {value}: {expected}")]
    Value {
        /// Where it was said.
        origin: Origin,
        /// The key.
        key: String,
        /// The value as it was written.
        value: String,
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

/// Values by key, the keys of tables joined with dots.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub(super) entries: BTreeMap<String, (Value, Origin)>,
}

impl Settings {
    /// Reads a TOML file.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Io { path: path.to_owned(), source })?;
        Self::from_text(&text, |line| Origin::File(path.to_owned(), line), path)
    }

    /// What a built-in study says of a single run: all but its lists of `tau` and `seeds`.
    pub fn builtin(name: &str) -> Option<Self> {
        let (name, text) = super::BUILTIN.iter().find(|(known, _)| *known == name)?;
        let mut settings = Self::from_default(name, text);
        for key in ["name", "tau", "seeds"] {
            settings.entries.remove(key);
        }
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
        let mut settings = Settings::default();
        for (key, value) in values {
            let place = |key: &str| places.get_ref().iter().find(|(k, _)| k.get_ref() == key);
            let Some((key_place, value_place)) = place(&key) else { continue };
            match value {
                Value::Table(inner) => {
                    let places = value_place.get_ref().as_table();
                    for (name, value) in inner {
                        let place = places.and_then(|t| t.iter().find(|(k, _)| k.get_ref() == &name));
                        let at = place.map_or(key_place.span().start, |(k, _)| k.span().start);
                        settings.entries.insert(format!("{key}.{name}"), (value, origin(line_of(text, at))));
                    }
                }
                value => {
                    let line = line_of(text, key_place.span().start);
                    settings.entries.insert(key, (value, origin(line)));
                }
            }
        }
        Ok(settings)
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

    /// Sets a value, as a flag or a calling program does. A table sets each of its keys.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        match value.into() {
            Value::Table(table) => {
                for (name, value) in table {
                    self.set(&format!("{key}.{name}"), value);
                }
            }
            value => {
                // `seed` and `seeds` say the same thing: the one said last counts.
                match key {
                    "seed" => self.entries.remove("seeds"),
                    "seeds" => self.entries.remove("seed"),
                    _ => None,
                };
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

    /// Adds what `defaults` says and this does not, except the named keys.
    pub(super) fn fill_from(&mut self, defaults: Settings, except: &[&str]) {
        for (key, entry) in defaults.entries {
            if !except.contains(&key.as_str()) {
                self.entries.entry(key).or_insert(entry);
            }
        }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes().iter().take(offset).filter(|&&b| b == b'\n').count()
}

/// The known word nearest to `word`, if it is near enough to have been meant.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (edits(word, name), name))
        .min()
        .filter(|&(distance, name)| distance <= 1 + name.len().min(word.len()) / 4)
        .map(|(_, name)| name)
}

/// Insertions, deletions and substitutions between two words (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
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
