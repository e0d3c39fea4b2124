//! A network without the run that trained it: a folder with `model.safetensors`, `config.json` and a model
//! card, in the layout of model hubs.

use super::card::{self, Figures};
use super::{ExchangeError, safetensors};
use crate::memory;
use crate::run::{RunError, TrainedRun, Weights};
use leaklab_engine::{Architecture, Leak, LeakError, Network, ReadoutDivisor, Tau};
use leaklab_record::{RecordError, RunFolder, atomic, file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Version of `config.json`, incremented when a reader of the old version would misread the new one.
pub const FORMAT: u32 = 1;
const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.safetensors";
const CARD: &str = "README.md";
const NAME: &str = "leaklab";

/// `config.json`: what is needed to make a network from the weights, and the input that the network expects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Version of the format.
    pub format: u32,
    /// Always `leaklab`.
    pub model_type: String,
    /// The network's notation.
    pub network: String,
    /// Membrane time constant in steps, as text: `30` or `inf`.
    pub tau: String,
    /// Hidden layers with a time constant of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub layer_tau: BTreeMap<String, String>,
    /// Time constant of the output layer, if it has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readout_tau: Option<String>,
    /// What the output is divided by, if not the number of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readout_divisor: Option<String>,
    /// Threshold.
    pub v_th: f32,
    /// Steps per image in training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_steps: Option<usize>,
    /// Data set that it was trained on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// How pixels became numbers in [-1, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalise: Option<String>,
    /// How these numbers became spikes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoder: Option<String>,
    /// Length of a time step of recordings in microseconds; if not set, each recording was divided into equal
    /// steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_us: Option<u64>,
    /// Side, in pixels, of the squares of an event camera that were merged into one pixel. Models of
    /// recordings have it, and have no `normalise` and `encoder`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downsample: Option<usize>,
}

impl Config {
    fn leak(&self) -> Result<Leak, LeakError> {
        let layers = self.layer_tau.iter().map(|(name, tau)| Ok((name.clone(), tau.parse::<Tau>()?)));
        Ok(Leak {
            tau: self.tau.parse()?,
            layer_tau: layers.collect::<Result<_, LeakError>>()?,
            readout_tau: self.readout_tau.as_ref().map(|tau| tau.parse()).transpose()?,
        })
    }
}

/// A network and what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The network.
    pub network: Network,
    /// The content of `config.json`.
    pub config: Config,
    /// The measurements in the model card.
    pub figures: Figures,
    /// A message for the user, such as that a damaged checkpoint was skipped.
    pub notice: Option<String>,
}

impl Model {
    /// A model of a network about which nothing more is known.
    pub fn bare(network: Network) -> Self {
        let config = Config {
            format: FORMAT,
            model_type: NAME.into(),
            network: network.architecture.to_string(),
            tau: network.leak().tau.to_string(),
            layer_tau: network
                .leak()
                .layer_tau
                .iter()
                .map(|(name, tau)| (name.clone(), tau.to_string()))
                .collect(),
            readout_tau: network.leak().readout_tau.map(|tau| tau.to_string()),
            readout_divisor: Some(network.readout_divisor())
                .filter(|&divisor| divisor != ReadoutDivisor::default())
                .map(|divisor| divisor.to_string()),
            v_th: network.v_th(),
            time_steps: None,
            dataset: None,
            normalise: None,
            encoder: None,
            step_us: None,
            downsample: None,
        };
        Model { network, config, figures: Figures::default(), notice: None }
    }

    /// The network of a run folder, or of a folder written by [`Model::write`]. If both are in one folder,
    /// that of the run.
    pub fn open(path: &Path, weights: Weights) -> Result<Self, ExchangeError> {
        if path.join(CONFIG).is_file() && !RunFolder::at(path).exists() {
            return match weights {
                Weights::Last => Self::read(path),
                Weights::Best => Err(ExchangeError::OneSetOfWeights(path.to_owned())),
            };
        }
        let run = TrainedRun::open(path, weights)?;
        let figures = Figures::of(&run)?;
        let mut model = Model::bare(run.network);
        model.config.time_steps = Some(run.config.time_steps);
        model.config.dataset = Some(run.config.dataset.clone());
        if run.config.has_events() {
            model.config.step_us = run.config.step_us;
            model.config.downsample = Some(run.config.downsample);
        } else {
            model.config.normalise = Some(run.config.normalise.to_string());
            model.config.encoder = Some(run.config.encoder.to_string());
        }
        Ok(Model { figures, notice: run.notice, ..model })
    }

    fn read(folder: &Path) -> Result<Self, ExchangeError> {
        let path = folder.join(CONFIG);
        let malformed = |reason: String| ExchangeError::malformed(&path, "config.json", reason);
        let text = file::read_to_string(&path).map_err(RecordError::io(&path, "cannot be read"))?;
        let value: serde_json::Value = serde_json::from_str(&text).map_err(|e| malformed(e.to_string()))?;
        match value.get("model_type").and_then(serde_json::Value::as_str) {
            Some(NAME) => {}
            other => return Err(malformed(format!("model_type is {other:?}; \"{NAME}\" is expected"))),
        }
        let found = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if found != u64::from(FORMAT) {
            return Err(malformed(format!("it has format {found}; this program reads format {FORMAT}")));
        }
        let config: Config = serde_json::from_value(value).map_err(|e| malformed(e.to_string()))?;
        let architecture = Architecture::parse(&config.network).map_err(|e| malformed(e.to_string()))?;
        let leak = config.leak().map_err(|e| malformed(e.to_string()))?;
        memory::check_network(&architecture).map_err(RunError::from)?;
        let divisor = config.readout_divisor.as_ref().map(|name| name.parse::<ReadoutDivisor>()).transpose();
        let divisor = divisor.map_err(|e| malformed(e.to_string()))?.unwrap_or_default();
        let network = Network::new(architecture, leak, config.v_th).map_err(|e| malformed(e.to_string()))?;
        let mut network = network.with_readout_divisor(divisor);
        let path = folder.join(WEIGHTS);
        let arrays = safetensors::read(&path)?;
        network
            .set_tensors(arrays.iter().map(|(name, shape, values)| (name.as_str(), &shape[..], &values[..])))
            .map_err(|e| ExchangeError::malformed(&path, "safetensors", e.to_string()))?;
        Ok(Model { network, config, figures: Figures::default(), notice: None })
    }

    /// Writes the folder: weights, `config.json` and the card.
    pub fn write(&self, folder: &Path) -> Result<(), ExchangeError> {
        if RunFolder::at(folder).exists() {
            return Err(ExchangeError::IntoRun(folder.to_owned()));
        }
        std::fs::create_dir_all(folder).map_err(RecordError::io(folder, "cannot be written"))?;
        // Only one entry, since the library writes a hash map, whose order differs between processes.
        let metadata = safetensors::Metadata::from([("format".into(), "pt".into())]);
        safetensors::write(&folder.join(WEIGHTS), &self.tensors(), &metadata)?;
        let mut text = serde_json::to_string_pretty(&self.config).expect("a configuration has a JSON form");
        text.push('\n');
        for (name, text) in [(CONFIG, text), (CARD, card::text(&self.config, &self.network, &self.figures))] {
            let path = folder.join(name);
            atomic::write(&path, text.as_bytes()).map_err(RecordError::io(&path, "cannot be written"))?;
        }
        Ok(())
    }

    /// Every weight tensor: its name, shape and values.
    pub fn tensors(&self) -> Vec<(&str, &[usize], &[f32])> {
        let weights = &self.network.weights;
        let parameters = self.network.architecture.parameters().iter();
        parameters.map(|p| (p.name.as_str(), &p.shape[..], &weights[p.offset..p.offset + p.len])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(tau: f64) -> Model {
        let architecture = Architecture::parse("1x4x4-4C3-2P-3o").unwrap();
        let leak = Leak::uniform(Tau::new(tau).unwrap());
        Model::bare(Network::initialised(architecture, leak, 0.7, 3).unwrap())
    }

    #[test]
    fn survives_disk() {
        for tau in [30.0, 0.1 + 0.2, f64::INFINITY] {
            let folder = tempfile::tempdir().unwrap();
            model(tau).write(folder.path()).unwrap();
            assert_eq!(Model::open(folder.path(), Weights::Last).unwrap(), model(tau));
            let config = || std::fs::read_to_string(folder.path().join(CONFIG)).unwrap();
            assert!(!config().contains("readout_divisor"));
            let other = Model::bare(model(tau).network.with_readout_divisor(ReadoutDivisor::Memory));
            other.write(folder.path()).unwrap();
            assert_eq!(Model::open(folder.path(), Weights::Last).unwrap(), other);
            assert!(config().contains("\"readout_divisor\": \"memory\""));
        }
    }

    #[test]
    fn faults_name_the_file_and_what_is_right() {
        let folder = tempfile::tempdir().unwrap();
        model(30.0).write(folder.path()).unwrap();
        let path = folder.path().join(CONFIG);
        let good = std::fs::read_to_string(&path).unwrap();
        for (from, to, word) in [
            ("\"leaklab\"", "\"bert\"", "model_type"),
            ("\"format\": 1", "\"format\": 7", "format 7"),
            ("-4C3-", "-4C5-", "3x3"),
            ("-3o", "-4o", "fc1"),
            ("\"30\"", "\"-30\"", "tau"),
            ("}", "", "EOF"),
        ] {
            std::fs::write(&path, good.replace(from, to)).unwrap();
            let message = Model::open(folder.path(), Weights::Last).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
        std::fs::remove_file(&path).unwrap();
        let message = Model::open(folder.path(), Weights::Last).unwrap_err().to_string();
        assert!(message.contains("run.toml"), "{message}");
    }
}
