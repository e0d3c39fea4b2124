//! All settings on which a run depends.

use super::keys::{self, Binds, KEYS};
use super::settings::{ConfigError, Settings, nearest};
use crate::data::present::refuse_noise;
use crate::data::{Augmentation, Binning, Normalisation, table};
use leaklab_engine::encode::Encoder;
use leaklab_engine::noise::Severities;
use leaklab_engine::optimiser::Optimiser;
use leaklab_engine::{Architecture, Gradient, Leak, LeakError, Network, NetworkError, ReadoutDivisor, Tau};
use leaklab_record::noun::leak_condition;
use leaklab_record::{NoiseKey, RunKey};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Rule of the weight update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OptimiserKind {
    /// Stochastic gradient descent.
    #[default]
    Sgd,
    /// Adam.
    Adam,
}

impl fmt::Display for OptimiserKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            OptimiserKind::Sgd => "sgd",
            OptimiserKind::Adam => "adam",
        })
    }
}

impl FromStr for OptimiserKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found =
            [OptimiserKind::Sgd, OptimiserKind::Adam].into_iter().find(|kind| kind.to_string() == name);
        found.ok_or_else(|| "sgd or adam is expected".to_owned())
    }
}

/// How large the initial weights of a layer are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InitialScale {
    /// Their standard deviation is `sqrt(2 / fan_in)`, whatever the leak.
    #[default]
    FanIn,
    /// Each hidden layer is scaled so that, with the run's leak, it initially fires as often as without leak.
    Rate,
}

impl InitialScale {
    /// All variants.
    pub const ALL: [InitialScale; 2] = [InitialScale::FanIn, InitialScale::Rate];
}

impl fmt::Display for InitialScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            InitialScale::FanIn => "fan-in",
            InitialScale::Rate => "rate",
        })
    }
}

impl FromStr for InitialScale {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scale| scale.to_string() == name);
        found.ok_or_else(|| "fan-in or rate is expected".to_owned())
    }
}

/// All settings on which a run depends. The number of threads is not one of them: no result depends on it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunConfig {
    /// Name of its condition in a study, if the condition has a name of its own.
    pub condition: Option<String>,
    /// Whether the run is trained only to see whether it learns.
    pub probe: bool,
    /// Name of the data set.
    pub dataset: String,
    /// Folder of the data sets, if not the default one.
    pub data_dir: Option<PathBuf>,
    /// SHA-256 of the contents of the data set, if it is pinned.
    pub data_sha256: Option<String>,
    /// Train on this many images only.
    pub train_limit: Option<usize>,
    /// Evaluate on this many test images only.
    pub test_limit: Option<usize>,
    /// Fraction of the training images that replaces the test images.
    pub validation: f32,
    /// How pixels become numbers in [-1, 1].
    pub normalise: Normalisation,
    /// How these numbers become spikes.
    pub encoder: Encoder,
    /// Random crops, flips and shifts of training samples.
    pub augment: Augmentation,
    /// The network.
    pub network: Architecture,
    /// Where it leaks.
    pub leak: Leak,
    /// What the output is divided by.
    pub readout_divisor: ReadoutDivisor,
    /// Threshold of conv and FC neurons.
    pub v_th: f32,
    /// Steps per image.
    pub time_steps: usize,
    /// How large the initial weights are.
    pub initial: InitialScale,
    /// Length of a step of recordings in microseconds; if not set, recordings are divided into equal steps.
    pub step_us: Option<u64>,
    /// Side, in pixels, of the squares of a recording that are merged into one pixel.
    pub downsample: usize,
    /// How the leak enters the gradient.
    pub gradient: Gradient,
    /// Probability that a hidden neuron is dropped in a training sample.
    pub dropout: f32,
    /// Rule of the weight update.
    pub rule: OptimiserKind,
    /// Momentum of SGD.
    pub momentum: f32,
    /// Decay of Adam's first moment.
    pub beta1: f32,
    /// Decay of Adam's second moment.
    pub beta2: f32,
    /// Adam's guard against division by zero.
    pub epsilon: f32,
    /// L2 penalty on the weights.
    pub weight_decay: f32,
    /// Learning rate of the first epoch.
    pub learning_rate: f64,
    /// Epochs after which the learning rate is lowered.
    pub schedule_after: Vec<u64>,
    /// Factor by which the learning rate is multiplied then.
    pub schedule_times: f64,
    /// Passes over the training set.
    pub epochs: u64,
    /// Images per update.
    pub batch: usize,
    /// Seed of every random number.
    pub seed: u64,
    /// SHA-256 of the initial weights, if they were given.
    pub initial_sha256: Option<String>,
    /// Number of epochs after which the test set is evaluated again (it is also evaluated after the last).
    pub evaluate_every: u64,
    /// Number of training images that are evaluated with the test set.
    pub evaluate_train_images: usize,
    /// Noises that the robustness analysis applies.
    pub noise: Vec<NoiseKey>,
    /// Levels of each noise at each severity.
    pub severities: Severities,
    /// Test images that analyses use; all if not set.
    pub analysis_images: Option<usize>,
    /// How often the robustness analysis presents each image.
    pub presentations: u64,
    /// Selects the input spikes of these presentations.
    pub presentation_seed: u64,
    /// Whether a study measures where robustness comes from.
    pub mechanism: bool,
}

/// Keys that every run must set; the built-in study of a data set sets all but the first two.
const REQUIRED: [&str; 10] = [
    "dataset",
    "tau",
    "network",
    "time_steps",
    "normalise",
    "encoder",
    "gradient",
    "learning_rate",
    "epochs",
    "batch",
];

/// Settings that apply to images only.
const OF_IMAGES: [&str; 2] = ["normalise", "encoder"];
/// Settings that apply to recordings only.
const OF_EVENTS: [&str; 3] = ["step_us", "downsample", "augment.shift"];

/// Whether a data set contains recordings of an event camera.
fn has_events(dataset: &str) -> bool {
    table::find(dataset).is_ok_and(|info| info.has_events())
}

impl RunConfig {
    /// Whether the data set contains recordings of an event camera.
    pub fn has_events(&self) -> bool {
        has_events(&self.dataset)
    }

    /// How recordings are divided into time steps.
    pub fn binning(&self) -> Binning {
        Binning { time_steps: self.time_steps, step_us: self.step_us, downsample: self.downsample }
    }

    /// Values of keys that are not set; those of the required keys are never used.
    fn unset() -> Self {
        RunConfig {
            condition: None,
            probe: false,
            dataset: String::new(),
            data_dir: None,
            data_sha256: None,
            train_limit: None,
            test_limit: None,
            validation: 0.0,
            normalise: Normalisation::PerImage,
            encoder: Encoder::Signed,
            augment: Augmentation::NONE,
            network: Architecture::parse("1x1x1-1FC-1o").expect("the smallest network"),
            leak: Leak::uniform(Tau::INFINITE),
            readout_divisor: ReadoutDivisor::Steps,
            v_th: 1.0,
            initial: InitialScale::FanIn,
            time_steps: 1,
            step_us: None,
            downsample: 1,
            gradient: Gradient::StraightThrough,
            dropout: 0.0,
            rule: OptimiserKind::Sgd,
            momentum: 0.0,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            learning_rate: 1.0,
            schedule_after: Vec::new(),
            schedule_times: 1.0,
            epochs: 1,
            batch: 1,
            seed: 1,
            initial_sha256: None,
            evaluate_every: 1,
            evaluate_train_images: 0,
            noise: Vec::new(),
            severities: Severities::default(),
            analysis_images: None,
            presentations: 1,
            presentation_seed: 0,
            mechanism: true,
        }
    }

    /// The run that settings describe, completed with the defaults of its data set.
    pub fn resolve(mut settings: Settings) -> Result<Self, ConfigError> {
        let defaults = settings.defaults()?;
        settings.fill_from(defaults, &["tau", "seeds", "name", "baseline", "train_limit", "test_limit"]);
        for (key, flag) in [("tau", "--tau 30"), ("seeds", "--seed 1")] {
            settings.make_single(key, flag)?;
        }
        // With `--tau`, the `[[condition]]` tables of a study's file are ignored.
        if let Some(condition) = settings.conditions.first().filter(|_| !settings.is_flag("tau")) {
            return Err(condition.refuse(
                "[[condition]]",
                "a run has one condition: add --tau 30 for a run without these tables, or run them all with \
                 `leaklab study`",
            ));
        }
        let mut run = Self::read(&settings)?;
        run.condition = run.condition.or_else(|| short_name(&run.leak));
        Ok(run)
    }

    /// The run that complete settings describe.
    pub(super) fn read(settings: &Settings) -> Result<Self, ConfigError> {
        check_tables(settings)?;
        check_names(settings)?;
        let events = settings.text("dataset").is_some_and(has_events);
        let needless: &[&str] = if events { &OF_IMAGES } else { &OF_EVENTS };
        if let Some(key) = needless.iter().find(|key| settings.contains(key)) {
            let kind = if events { "images, and these data are recordings" } else { "recordings of events" };
            return Err(settings.refuse(key, format!("this key is for {kind}; omit it")));
        }
        if let Some(&key) = REQUIRED.iter().find(|key| !settings.contains(key) && !needless.contains(key)) {
            return Err(missing(key));
        }
        let mut run = Self::unset();
        for (name, (value, _)) in &settings.entries {
            let (key, member) = keys::find(name).expect("names were checked");
            let set = key.kind.check(value).and_then(|()| (key.set)(&mut run, member, value));
            set.map_err(|expected| settings.refuse(name, expected))?;
        }
        // Constants of the other rule have no effect and are not written.
        let unset = Self::unset();
        match run.rule {
            OptimiserKind::Sgd => {
                (run.beta1, run.beta2, run.epsilon) = (unset.beta1, unset.beta2, unset.epsilon);
            }
            OptimiserKind::Adam => run.momentum = unset.momentum,
        }
        let unfit = run.noise.iter().find(|key| events && !key.noise.acts_on_events());
        if let Some(key) = unfit {
            return Err(settings.refuse("noise", refuse_noise(key.noise)));
        }
        let place = if run.leak.layer_tau.is_empty() { "network" } else { "layer_tau" };
        run.leak.check(&run.network).map_err(|e| {
            let key = match &e {
                LeakError::Layer { name, .. } => format!("layer_tau.{name}"),
                LeakError::Tau(_) | LeakError::Assignment(_) => place.to_owned(),
            };
            settings.refuse(&key, e)
        })?;
        Ok(run)
    }

    /// The run in a file, with further `key=value` settings on top.
    pub fn load(path: &Path, assignments: &[String]) -> Result<Self, ConfigError> {
        let mut settings = Settings::from_file(path)?;
        assignments.iter().try_for_each(|assignment| settings.assign(assignment))?;
        Self::resolve(settings)
    }

    /// Which run of a study this is. A condition without a name of its own is named after its leak.
    pub fn key(&self) -> RunKey {
        RunKey { condition: self.condition_name(), seed: self.seed }
    }

    /// Name of the run's condition.
    pub fn condition_name(&self) -> String {
        self.condition.clone().unwrap_or_else(|| leak_condition(&self.leak))
    }

    /// Name of the run's folder in a study: `tau-30_seed-1`.
    pub fn folder_name(&self) -> String {
        self.key().folder_name()
    }

    /// The run's folder if none is given: `runs/digits_tau-30_seed-1`.
    pub fn default_folder(&self) -> PathBuf {
        let dataset = self.dataset.replace(['/', '\\', ':'], "-");
        PathBuf::from(format!("runs/{dataset}_{}", self.folder_name()))
    }

    /// The network before training.
    pub fn initial_network(&self) -> Result<Network, NetworkError> {
        let network = Network::initialised(self.network.clone(), self.leak.clone(), self.v_th, self.seed)?;
        Ok(network.with_readout_divisor(self.readout_divisor))
    }

    /// Rule of the weight update with its constants.
    pub fn optimiser(&self) -> Optimiser {
        let RunConfig { momentum, beta1, beta2, epsilon, weight_decay, .. } = *self;
        match self.rule {
            OptimiserKind::Sgd => Optimiser::Sgd { momentum, weight_decay },
            OptimiserKind::Adam => Optimiser::Adam { beta1, beta2, epsilon, weight_decay },
        }
    }

    /// Learning rate of an epoch, counted from 1.
    pub fn learning_rate_of(&self, epoch: u64) -> f64 {
        let passed = self.schedule_after.iter().filter(|&&after| epoch > after).count();
        self.learning_rate * self.schedule_times.powi(passed as i32)
    }

    /// The last epoch before the learning rate is lowered for the last time; 0 if it never is.
    pub fn last_drop(&self) -> u64 {
        self.schedule_after.iter().copied().filter(|&after| after < self.epochs).max().unwrap_or(0)
    }

    /// Whether the test set is evaluated after an epoch, counted from 1.
    pub fn evaluates(&self, epoch: u64) -> bool {
        epoch.is_multiple_of(self.evaluate_every) || epoch == self.epochs
    }

    /// Name of the images that accuracy is measured with; see [`tested_on`].
    pub fn tested_on(&self) -> &'static str {
        tested_on(self.validation)
    }

    /// The settings that trained weights belong to, as text by key; see [`Binds`].
    pub fn bound(&self) -> BTreeMap<String, String> {
        let bound = KEYS.iter().filter(|key| key.binds != Binds::Nothing);
        bound.filter_map(|key| Some((key.name.to_owned(), key.text(self)?))).collect()
    }
}

/// Name of the images that accuracy is measured with: where a part of the training images is held out, they
/// take the place of the test images.
pub fn tested_on(validation: f32) -> &'static str {
    if validation > 0.0 { "validation" } else { "test" }
}

/// Name of a condition whose time constants have so many digits that a folder could not be named after them:
/// `tau 1e300`. `None` if the default name will do.
pub(super) fn short_name(leak: &Leak) -> Option<String> {
    const MOST_DIGITS: usize = 20;
    let long = leak_condition(leak);
    let short = |word: &str| match (word.trim_end_matches(','), word.strip_suffix(',')) {
        (digits, _) if digits.len() <= MOST_DIGITS => word.to_owned(),
        (digits, comma) => digits
            .parse::<f64>()
            .map_or(word.to_owned(), |steps| format!("{steps:e}{}", if comma.is_some() { "," } else { "" })),
    };
    let name = long.split(' ').map(short).collect::<Vec<_>>().join(" ");
    (name != long).then_some(name)
}

/// The error for a required key that is not set.
pub(super) fn missing(key: &'static str) -> ConfigError {
    let help = keys::find(key).map_or("", |(row, _)| row.help);
    let hint = match key {
        "dataset" => {
            "set it in the file, or with --set dataset=digits; `leaklab data list` shows all".to_owned()
        }
        "tau" => "add --tau 30, or --tau inf for no leak, or set it in the file".to_owned(),
        _ => format!("{help}; set it in the file or with --set {key}=..."),
    };
    ConfigError::Missing { key, hint }
}

/// Refuses a single value where a table is expected.
fn check_tables(settings: &Settings) -> Result<(), ConfigError> {
    let Some(name) = settings.entries.keys().find(|name| keys::is_table(name)) else { return Ok(()) };
    let member = match name.as_str() {
        "layer_tau" => "layer_tau.conv1",
        "severity" => "severity.\"gaussian/pixel\"",
        name => KEYS.iter().map(|key| key.name).find(|key| key.starts_with(name)).unwrap_or(name),
    };
    Err(settings.refuse(name, format!("this is a table, and its members are set, such as {member}")))
}

/// Refuses unknown keys, and suggests the key that may have been meant.
fn check_names(settings: &Settings) -> Result<(), ConfigError> {
    let names = || KEYS.iter().map(|key| key.name);
    match settings.entries.iter().find(|(name, _)| keys::find(name).is_none()) {
        None => Ok(()),
        Some((name, (_, origin))) => {
            let hint = match nearest(name, names()) {
                Some(meant) => format!("; did you mean `{meant}`?"),
                None => format!("; the keys are {}", names().collect::<Vec<_>>().join(", ")),
            };
            Err(ConfigError::Unknown { origin: origin.clone(), key: name.clone(), hint })
        }
    }
}
