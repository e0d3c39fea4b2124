//! `run.toml`: every setting a run was trained with, resolved.
//!
//! The lab defines which settings exist. Here the file is a table with a format number, so that the report
//! can print it without depending on the lab.

use crate::atomic;
use crate::error::RecordError;
use crate::file;
use leaklab_engine::{Leak, Tau};
use std::path::Path;

/// Version of the format, raised when a reader of the old one would misread the new one.
pub const FORMAT: u32 = 1;

/// The settings of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// All keys but `format`, in alphabetical order.
    pub settings: toml::Table,
    /// The text of the file.
    pub text: String,
}

impl Manifest {
    /// Reads `run.toml` (or the `study.toml` of a study) and checks its format.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let text = file::read_to_string(path).map_err(RecordError::io(path, "cannot be read"))?;
        let mut settings: toml::Table =
            toml::from_str(&text).map_err(|e| RecordError::malformed(path, "settings file", e))?;
        if settings.is_empty() {
            return Err(RecordError::malformed(path, "settings file", "it is empty"));
        }
        let found = settings.remove("format").and_then(|value| value.as_integer()).unwrap_or(0);
        RecordError::check_format(path, "settings", found.max(0) as u64, FORMAT)?;
        Ok(Manifest { settings, text })
    }

    /// A setting as text: words as they are, numbers as [`number_text`] writes them.
    pub fn text_of(&self, key: &str) -> Option<String> {
        self.settings.get(key).map(text)
    }

    /// Where the network of a run leaks; `None` for a study with a list of time constants.
    pub fn leak(&self) -> Option<Leak> {
        let tau = |value: &toml::Value| text(value).parse::<Tau>().ok();
        let layers = self.settings.get("layer_tau").and_then(toml::Value::as_table).into_iter().flatten();
        Some(Leak {
            tau: tau(self.settings.get("tau")?)?,
            layer_tau: layers
                .map(|(name, value)| Some((name.clone(), tau(value)?)))
                .collect::<Option<_>>()?,
            readout_tau: self.settings.get("readout_tau").and_then(tau),
        })
    }
}

fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Float(x) => number_text(*x),
        other => other.to_string(),
    }
}

/// Writes settings (TOML text without a `format` key) with the format in front, atomically.
pub fn write(path: &Path, settings: &str) -> Result<(), RecordError> {
    let text = format!("format = {FORMAT}\n{settings}");
    atomic::write(path, text.as_bytes()).map_err(RecordError::io(path, "cannot be written"))
}

/// A number as files, flags and tables write it: `30`, `0.2`, `inf`.
pub fn number_text(x: f64) -> String {
    x.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        write(&path, "tau = inf\nv_th = 1.0\ndataset = \"digits\"\nepochs = 25\n").unwrap();
        let manifest = Manifest::read(&path).unwrap();
        let texts = ["tau", "v_th", "dataset", "epochs"].map(|key| manifest.text_of(key).unwrap());
        assert_eq!(texts, ["inf", "1", "digits", "25"]);
        assert_eq!(manifest.text_of("format"), None);
    }

    #[test]
    fn the_leak_of_a_run_has_its_exceptions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        for (settings, leak) in [
            ("tau = 30", Some("30")),
            ("tau = inf\nlayer_tau.conv1 = 5.0\nreadout_tau = 30.0", Some("inf, conv1 5, readout 30")),
            ("tau = [30, inf]", None),
            ("epochs = 3", None),
        ] {
            write(&path, settings).unwrap();
            let found = Manifest::read(&path).unwrap().leak().map(|leak| leak.to_string());
            assert_eq!(found.as_deref(), leak, "{settings}");
        }
    }

    #[test]
    fn the_format_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        std::fs::write(&path, "tau = 30.0\n").unwrap();
        let message = Manifest::read(&path).unwrap_err().to_string();
        assert!(message.contains("format 0") && message.contains("train the run again"), "{message}");
        std::fs::write(&path, "").unwrap();
        let message = Manifest::read(&path).unwrap_err().to_string();
        assert!(message.contains("it is empty"), "{message}");
    }
}
