//! A run as found on disk: its settings and its trained network.

use crate::config::{Binds, ConfigError, KEYS, RunConfig};
use crate::data::{self, DataError, Dataset, Limits};
use leaklab_engine::{Leak, LeakChange, Network, NetworkError};
use leaklab_record::{Checkpoint, Manifest, Position, RecordError, RunFolder, Tensor, checkpoint};
use std::path::{Path, PathBuf};

/// Seed of the choice of images under `train_limit` and `test_limit`: the same images for every run.
pub(crate) const SUBSET_SEED: u64 = 0;

/// Why a run could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file of the run cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The settings are refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data set cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The run has no weights yet.
    #[error("{}: nothing has been trained yet; `leaklab train --resume {}` does it", path.display(), path.display())]
    Untrained {
        /// The run.
        path: PathBuf,
    },
    /// There are no weights of the best epoch.
    #[error("{}: it has no best.safetensors, the weights of the epoch with the highest test accuracy: no epoch has been evaluated, or the file was removed; without --best the last epoch's are taken", path.display())]
    NoBest {
        /// The run.
        path: PathBuf,
    },
    /// The network needs more memory than there is.
    #[error(transparent)]
    Memory(#[from] crate::memory::TooLarge),
    /// Weights and settings do not belong together.
    #[error("{}: its weights do not fit its run.toml: {reason}; undo the change of run.toml, or train a new run", path.display())]
    Mismatch {
        /// The run.
        path: PathBuf,
        /// What differs.
        reason: String,
    },
    /// The training images are not those that the run was begun with.
    #[error(
        "{}: the training images of {dataset} are not those that the run was begun with; put those back, or train a new run",
        path.display()
    )]
    OtherData {
        /// The run.
        path: PathBuf,
        /// The data set.
        dataset: String,
    },
    /// The data are not those that the settings name.
    #[error(
        "data set {dataset} is not the one that the settings name: its content has SHA-256 {found}, and data_sha256 is \
         {expected}; put the right data back, or train a new run"
    )]
    OtherContent {
        /// The data set.
        dataset: String,
        /// Digest of its content.
        found: String,
        /// What the settings say.
        expected: String,
    },
    /// The data set does not fit the network.
    #[error(
        "network {network} takes {network_shape} and tells {network_classes} classes, but data set {dataset} has \
         {data_shape} and {data_classes}; a network for it begins with {data_shape}- and ends with -{data_classes}o"
    )]
    Fit {
        /// The network's notation.
        network: String,
        /// Its input.
        network_shape: String,
        /// Its outputs.
        network_classes: usize,
        /// The data set.
        dataset: String,
        /// Size of its images.
        data_shape: String,
        /// Number of its classes.
        data_classes: usize,
    },
}

/// Which weights of a run to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weights {
    /// Those after the last epoch. No test image had a say in choosing them.
    #[default]
    Last,
    /// Those of the epoch with the highest test accuracy, which is therefore a little flattering.
    Best,
}

/// A run with its weights.
#[derive(Debug, Clone)]
pub struct TrainedRun {
    /// Where it is.
    pub folder: RunFolder,
    /// Its settings.
    pub config: RunConfig,
    /// The network.
    pub network: Network,
    /// How far it was trained.
    pub position: Position,
    /// The leak of its training, if the network is run with another.
    pub trained_leak: Option<Leak>,
    /// Why the previous checkpoint was taken in place of the last one, if it was. The user must be told.
    pub notice: Option<String>,
}

impl TrainedRun {
    /// Opens a run.
    pub fn open(path: &Path, weights: Weights) -> Result<Self, RunError> {
        let folder = RunFolder::open(path)?;
        let config = read_config(&folder)?;
        let (checkpoint, notice) = match weights {
            Weights::Best if !folder.best().is_file() => {
                return Err(RunError::NoBest { path: path.to_owned() });
            }
            Weights::Best => (Checkpoint::read(&folder.best())?, None),
            Weights::Last => match checkpoint::find(&folder)? {
                Some(found) => (found.checkpoint, found.instead_of.map(|reason| previous_used(&reason))),
                None => return Err(RunError::Untrained { path: path.to_owned() }),
            },
        };
        let network = network_of(&config, &checkpoint, path)?;
        let position = checkpoint.header.position;
        Ok(TrainedRun { folder, config, network, position, trained_leak: None, notice })
    }

    /// Runs the trained weights with another leak; nothing but the membranes' decay changes.
    pub fn change_leak(&mut self, change: &LeakChange) -> Result<(), NetworkError> {
        let trained = self.network.leak().clone();
        let leak = trained.changed(change);
        if leak != trained {
            self.network = self.network.clone().with_leak(leak)?;
            self.trained_leak = Some(trained);
        }
        Ok(())
    }

    /// Loads the run's data set, with its limits.
    pub fn dataset(&self) -> Result<Dataset, RunError> {
        load_dataset(&self.config)
    }
}

/// What a user is told when the previous checkpoint steps in.
pub(crate) fn previous_used(reason: &RecordError) -> String {
    format!("{reason}; using the previous checkpoint instead")
}

/// The settings in a run's `run.toml`.
pub fn read_config(folder: &RunFolder) -> Result<RunConfig, RunError> {
    let path = folder.run_toml();
    Manifest::read(&path)?;
    Ok(with_own_data(RunConfig::load(&path, &[])?, folder))
}

/// The settings of a run that looks for its data beside itself, where they are and nothing else is said.
pub(crate) fn with_own_data(mut config: RunConfig, folder: &RunFolder) -> RunConfig {
    let beside = || data::location::beside(&config.dataset, folder);
    config.data_dir = config.data_dir.clone().or_else(beside);
    config
}

/// The first setting in which a run that is there differs from one that is asked for, with both values in words.
/// Where the data are does not count, nor do the keys in `except`; nor the digests that are written only once data
/// and weights are read, where one of the two has none.
pub fn difference(
    there: &RunConfig,
    asked: &RunConfig,
    except: &[&str],
) -> Option<(&'static str, String, String)> {
    let words = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
    KEYS.iter().filter(|key| key.name != "data_dir" && !except.contains(&key.name)).find_map(|key| {
        let (theirs, ours) = (key.text(there), key.text(asked));
        let unknown =
            ["data_sha256", "initial_sha256"].contains(&key.name) && (theirs.is_none() || ours.is_none());
        (theirs != ours && !unknown).then(|| (key.name, words(theirs), words(ours)))
    })
}

/// Loads the data set of a run and checks that the network fits it.
pub fn load_dataset(config: &RunConfig) -> Result<Dataset, RunError> {
    load_pinned(config).map(|(dataset, _)| dataset)
}

/// The same, with the digest that pins the data: that of the settings, or of what the user's own data hold.
pub(crate) fn load_pinned(config: &RunConfig) -> Result<(Dataset, Option<String>), RunError> {
    let limits = Limits {
        train: config.train_limit,
        test: config.test_limit,
        validation: config.validation,
        seed: SUBSET_SEED,
    };
    let mut dataset = data::load_complete(&config.dataset, config.data_dir.as_deref(), &config.binning())?;
    let own = data::table::find(&config.dataset)?.source == data::Source::Own;
    let digest = (own || config.data_sha256.is_some()).then(|| dataset.digest());
    if let (Some(expected), Some(found)) = (&config.data_sha256, &digest)
        && expected != found
    {
        let (found, expected) = (found.clone(), expected.clone());
        return Err(RunError::OtherContent { dataset: dataset.name, found, expected });
    }
    limits.apply(&mut dataset)?;
    let (input, classes) = (config.network.input(), config.network.classes());
    if input != dataset.shape || classes != dataset.classes {
        let text = |s: leaklab_engine::Shape| format!("{}x{}x{}", s.channels, s.height, s.width);
        return Err(RunError::Fit {
            network: config.network.to_string(),
            network_shape: text(input),
            network_classes: classes,
            dataset: config.dataset.clone(),
            data_shape: text(dataset.shape),
            data_classes: dataset.classes,
        });
    }
    Ok((dataset, digest))
}

/// Keeps some training images, as many of each class as can be: the same ones as `train_limit` would.
pub fn keep_training_images(dataset: &mut Dataset, limit: usize) -> Result<(), RunError> {
    Ok(Limits { train: Some(limit), seed: SUBSET_SEED, ..Limits::NONE }.apply(dataset)?)
}

/// The settings of one kind that a checkpoint was made with and that are others now, in words.
pub(crate) fn changes(config: &RunConfig, checkpoint: &Checkpoint, binds: Binds) -> Vec<String> {
    let (trained, now) = (&checkpoint.header.settings, config.bound());
    let said = |value: Option<&String>| value.cloned().unwrap_or_else(|| "nothing".to_owned());
    KEYS.iter()
        .filter(|key| key.binds == binds && trained.get(key.name) != now.get(key.name))
        .map(|key| format!("{} = {}, not {}", key.name, said(trained.get(key.name)), said(now.get(key.name))))
        .collect()
}

/// The network of a checkpoint, if it is the one that the settings describe.
pub(crate) fn network_of(
    config: &RunConfig,
    checkpoint: &Checkpoint,
    path: &Path,
) -> Result<Network, RunError> {
    let mismatch = |reason: String| RunError::Mismatch { path: path.to_owned(), reason };
    if let Some(change) = changes(config, checkpoint, Binds::Weights).first() {
        return Err(mismatch(format!("they were trained with {change}")));
    }
    crate::memory::check_network(&config.network)?;
    let network = Network::new(config.network.clone(), config.leak.clone(), config.v_th);
    let mut network = network.map_err(|e| mismatch(e.to_string()))?;
    for parameter in config.network.parameters() {
        let tensor = checkpoint.tensor(&parameter.name);
        let Tensor { shape, values, .. } =
            tensor.ok_or_else(|| mismatch(format!("tensor {} is missing", parameter.name)))?;
        let set = network.set_tensor(&parameter.name, shape, values);
        set.map_err(|e: NetworkError| mismatch(e.to_string()))?;
    }
    Ok(network)
}
