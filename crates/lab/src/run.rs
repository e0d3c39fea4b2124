//! A run on disk: its settings and its trained network.

use crate::config::{Binds, ConfigError, KEYS, Key, RunConfig};
use crate::data::{self, DataError, Dataset, Limits};
use leaklab_engine::{Leak, LeakChange, Network, NetworkError};
use leaklab_record::noun::slug;
use leaklab_record::{
    Checkpoint, Header, Manifest, Position, RecordError, RunFolder, Tensor, checkpoint, table,
};
use std::path::{Path, PathBuf};

/// Seed of the choice of images for `train_limit` and `test_limit`: every run uses the same images.
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
    #[error(
        "{}: nothing has been trained yet; `leaklab train --resume {}` trains it",
        path.display(),
        path.display()
    )]
    Untrained {
        /// The run.
        path: PathBuf,
    },
    /// There are no weights of the best epoch.
    #[error(
        "{}: it has no best.safetensors, the weights of the epoch with the highest test accuracy: no epoch \
         has been evaluated, or the file was removed; without --best, those of the last epoch are used",
        path.display()
    )]
    NoBest {
        /// The run.
        path: PathBuf,
    },
    /// The network needs more memory than is available.
    #[error(transparent)]
    Memory(#[from] crate::memory::TooLarge),
    /// Weights and settings do not match.
    #[error(
        "{}: its weights do not match its run.toml: {reason}; undo the change of run.toml, or train a new \
         run",
        path.display()
    )]
    Mismatch {
        /// The run.
        path: PathBuf,
        /// What differs.
        reason: String,
    },
    /// The run has been trained, but its checkpoints are gone.
    #[error(
        "{}: metrics.jsonl has {recorded} epochs, but there is no checkpoint to continue from; restore \
         checkpoint.safetensors, or train a new run",
        path.display()
    )]
    NoCheckpoint {
        /// The run.
        path: PathBuf,
        /// Epochs in its metrics.
        recorded: usize,
    },
    /// The training images are not those with which the run began.
    #[error(
        "{}: the training images of {dataset} are not those with which the run began; restore those, or \
         train a new run",
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
        "data set {dataset} is not the one that the settings name: its content has SHA-256 {found}, but \
         data_sha256 is {expected}; restore the right data, or train a new run"
    )]
    OtherContent {
        /// The data set.
        dataset: String,
        /// Digest of its content.
        found: String,
        /// Digest in the settings.
        expected: String,
    },
    /// The data set does not fit the network.
    #[error(
        "network {network} has an input of {network_shape} and {network_classes} classes, but data set \
         {dataset} has {data_shape} and {data_classes} classes; a network for it begins with {data_shape}- \
         and ends with -{data_classes}o"
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

/// Which weights of a run are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weights {
    /// Those after the last epoch. Test images did not influence this choice.
    #[default]
    Last,
    /// Those of the epoch with the highest test accuracy, which is therefore slightly optimistic.
    Best,
}

impl Weights {
    /// Those of the best epoch, or those after the last.
    pub fn of(best: bool) -> Self {
        if best { Weights::Best } else { Weights::Last }
    }
}

/// A run with its weights.
#[derive(Debug, Clone)]
pub struct TrainedRun {
    /// Its folder.
    pub folder: RunFolder,
    /// Its settings.
    pub config: RunConfig,
    /// The network.
    pub network: Network,
    /// Which of its weights these are.
    pub weights: Weights,
    /// How far it was trained.
    pub position: Position,
    /// Checksum of the checkpoint that contains the weights.
    pub checksum: String,
    /// The leak in training, if the network is run with another leak.
    pub trained_leak: Option<Leak>,
    /// Why the previous checkpoint was used instead of the last one, if it was. It must be shown to the user.
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
        let Header { position, checksum, .. } = checkpoint.header;
        Ok(TrainedRun { folder, config, network, weights, position, checksum, trained_leak: None, notice })
    }

    /// Changes the leak of the trained network; only the decay of the membranes changes.
    pub fn change_leak(&mut self, change: &LeakChange) -> Result<(), NetworkError> {
        let trained = self.network.leak().clone();
        let leak = trained.changed(change);
        if leak != trained {
            self.network = self.network.clone().with_leak(leak)?;
            self.trained_leak = Some(trained);
        }
        Ok(())
    }

    /// Folder of its tables: the run's `analysis` folder, or a folder within it if the weights are not those
    /// after the last epoch, or if the leak is not that of training. Comparisons read the former only.
    pub fn analysis_folder(&self) -> PathBuf {
        let mut folder = match self.weights {
            Weights::Last => self.folder.analysis(),
            Weights::Best => table::of_best(&self.folder.analysis()),
        };
        if self.trained_leak.is_some() {
            folder.push(format!("tau-{}", slug(&self.network.leak().to_string())));
        }
        folder
    }

    /// Loads the run's data set, with its limits.
    pub fn dataset(&self) -> Result<Dataset, RunError> {
        load_dataset(&self.config)
    }
}

/// The message for the user when the previous checkpoint is used.
pub(crate) fn previous_used(reason: &RecordError) -> String {
    format!("{reason}; using the previous checkpoint instead")
}

/// The settings in a run's `run.toml`.
pub fn read_config(folder: &RunFolder) -> Result<RunConfig, RunError> {
    let path = folder.run_toml();
    Manifest::read(&path)?;
    Ok(with_own_data(RunConfig::load(&path, &[])?, folder))
}

/// The settings of a run. If `data_dir` is not set and the folder of the run or its study contains the data,
/// they are used.
pub(crate) fn with_own_data(mut config: RunConfig, folder: &RunFolder) -> RunConfig {
    let beside = || data::location::beside(&config.dataset, folder);
    config.data_dir = config.data_dir.clone().or_else(beside);
    config
}

/// The first setting in which an existing run differs from a requested one, with both values as text. Keys in
/// `except` are not compared, and neither is the location of the data. The digest of the data is written only
/// once they are read, so it is compared only if both have one.
pub fn difference(
    existing: &RunConfig,
    requested: &RunConfig,
    except: &[&str],
) -> Option<(&'static str, String, String)> {
    let words = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
    KEYS.iter().filter(|key| key.name != "data_dir" && !except.contains(&key.name)).find_map(|key| {
        let (theirs, ours) = (key.text(existing), key.text(requested));
        let unknown = key.name == "data_sha256" && (theirs.is_none() || ours.is_none());
        (theirs != ours && !unknown).then(|| (key.name, words(theirs), words(ours)))
    })
}

/// Loads the data set of a run and checks that the network fits it.
pub fn load_dataset(config: &RunConfig) -> Result<Dataset, RunError> {
    load_pinned(config).map(|(dataset, _)| dataset)
}

/// [`load_dataset`] that also returns the digest that pins the data: that of the settings, or that of the
/// contents of the files. Embedded data need none.
pub(crate) fn load_pinned(config: &RunConfig) -> Result<(Dataset, Option<String>), RunError> {
    let limits = Limits {
        train: config.train_limit,
        test: config.test_limit,
        validation: config.validation,
        seed: SUBSET_SEED,
    };
    let mut dataset = data::load_complete(&config.dataset, config.data_dir.as_deref(), &config.binning())?;
    let has_files = data::table::find(&config.dataset)?.source != data::Source::Embedded;
    let digest = (has_files || config.data_sha256.is_some()).then(|| dataset.digest());
    if let (Some(expected), Some(found)) = (&config.data_sha256, &digest)
        && expected != found
    {
        let (found, expected) = (found.clone(), expected.clone());
        return Err(RunError::OtherContent { dataset: dataset.name, found, expected });
    }
    limits.apply(&mut dataset)?;
    let (input, classes) = (config.network.input(), config.network.classes());
    if input != dataset.shape || classes != dataset.classes {
        return Err(RunError::Fit {
            network: config.network.to_string(),
            network_shape: input.to_string(),
            network_classes: classes,
            dataset: config.dataset.clone(),
            data_shape: dataset.shape.to_string(),
            data_classes: dataset.classes,
        });
    }
    Ok((dataset, digest))
}

/// Reduces the training images to a class-balanced part, the same as with `train_limit`.
pub fn keep_training_images(dataset: &mut Dataset, limit: usize) -> Result<(), RunError> {
    Ok(Limits { train: Some(limit), seed: SUBSET_SEED, ..Limits::NONE }.apply(dataset)?)
}

/// The header of a run's last checkpoint, whose settings must be those of the run; `None` if it has none.
pub(crate) fn header_of(config: &RunConfig, folder: &RunFolder) -> Result<Option<Header>, RunError> {
    let header = Header::of_run(folder)?;
    if let Some(header) = &header {
        check_settings(config, header, folder.path())?;
    }
    Ok(header)
}

/// Refuses settings that do not belong to the weights of a checkpoint.
fn check_settings(config: &RunConfig, header: &Header, path: &Path) -> Result<(), RunError> {
    match changes(config, header, Binds::Weights).first() {
        None => Ok(()),
        Some(change) => Err(RunError::Mismatch {
            path: path.to_owned(),
            reason: format!("they were trained with {change}"),
        }),
    }
}

/// The settings of one kind that have changed since a checkpoint was written, as text.
pub(crate) fn changes(config: &RunConfig, header: &Header, binds: Binds) -> Vec<String> {
    let (trained, now) = (&header.settings, config.bound());
    let change = |key: &Key| match (key.name, trained.get(key.name), now.get(key.name)) {
        (name, Some(then), Some(now)) => format!("{name} = {then}, not {now}"),
        (name, Some(then), None) => format!("{name} = {then}, not with its default"),
        (name, None, Some(now)) => format!("the default {name}, not {name} = {now}"),
        (name, None, None) => name.to_owned(),
    };
    KEYS.iter()
        .filter(|key| key.binds == binds && trained.get(key.name) != now.get(key.name))
        .map(change)
        .collect()
}

/// The network of a checkpoint, if it matches the settings.
pub(crate) fn network_of(
    config: &RunConfig,
    checkpoint: &Checkpoint,
    path: &Path,
) -> Result<Network, RunError> {
    let mismatch = |reason: String| RunError::Mismatch { path: path.to_owned(), reason };
    check_settings(config, &checkpoint.header, path)?;
    crate::memory::check_network(&config.network)?;
    let network = Network::new(config.network.clone(), config.leak.clone(), config.v_th);
    let network = network.map_err(|e| mismatch(e.to_string()))?;
    let mut network = network.with_readout_divisor(config.readout_divisor);
    for parameter in config.network.parameters() {
        let tensor = checkpoint.tensor(&parameter.name);
        let Tensor { shape, values, .. } =
            tensor.ok_or_else(|| mismatch(format!("tensor {} is missing", parameter.name)))?;
        let set = network.set_tensor(&parameter.name, shape, values);
        set.map_err(|e: NetworkError| mismatch(e.to_string()))?;
    }
    Ok(network)
}
