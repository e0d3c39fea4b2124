//! What a run or a study does, as one TOML file.
//!
//! There is one kind of file. A study's has lists of `tau` and `seeds` and stands for one run each; a run's has a single `tau` and
//! `seed`. Keys that a file does not say come from the built-in study of its data set, so that `dataset = "digits"` alone is
//! a complete file, and what was resolved is kept with the run, every key said.

mod builtin;
mod reader;
mod settings;
mod write;

pub use builtin::{BUILTIN, builtin_text};
pub use reader::KEYS;
pub use settings::{ConfigError, Origin, Settings};

use crate::data::{self, Augmentation, Normalisation};
use leaklab_engine::encode::Encoder;
use leaklab_engine::noise::{Levels, Noise, NoiseError, NoiseSetting, Scenario, Severities};
use leaklab_engine::{Architecture, Gradient, Neuron, optimiser::Optimiser};
use leaklab_record::number_text;
use reader::Reader;
use std::path::{Path, PathBuf};

/// Everything a run depends on. The number of threads is not among it: no result depends on that.
#[derive(Debug, Clone, PartialEq)]
pub struct RunConfig {
    /// Name of the data set.
    pub dataset: String,
    /// Folder of the data sets, if not the usual one.
    pub data_dir: Option<PathBuf>,
    /// Train on this many images only.
    pub train_limit: Option<usize>,
    /// Evaluate on this many test images only.
    pub test_limit: Option<usize>,
    /// How pixels become numbers in [-1, 1].
    pub normalise: Normalisation,
    /// How these become spikes.
    pub encoder: Encoder,
    /// Random crop and flip of training images.
    pub augment: Augmentation,
    /// The network.
    pub network: Architecture,
    /// Membrane time constant in steps; infinite for no leak.
    pub tau: f64,
    /// Threshold of conv and FC neurons.
    pub v_th: f32,
    /// Steps per image.
    pub time_steps: usize,
    /// How the leak enters the gradient.
    pub gradient: Gradient,
    /// Probability that a hidden neuron is left out of a training sample.
    pub dropout: f32,
    /// Rule of the weight update, weight decay included.
    pub optimiser: Optimiser,
    /// Learning rate of the first epoch.
    pub learning_rate: f64,
    /// Epochs after which the learning rate is lowered.
    pub schedule_after: Vec<u64>,
    /// Factor by which it is lowered.
    pub schedule_times: f64,
    /// Passes over the training set.
    pub epochs: u64,
    /// Images per update.
    pub batch: usize,
    /// Seed of every random number.
    pub seed: u64,
    /// Evaluate the test set after every so many epochs (and after the last).
    pub evaluate_every: u64,
    /// Noises that the robustness analysis applies.
    pub noise: Vec<(Noise, Scenario)>,
    /// What a severity means.
    pub severities: Severities,
    /// Test images that analyses use; all if not said.
    pub analysis_images: Option<usize>,
}

/// A study: runs that differ in `tau` and `seed` only.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyConfig {
    /// What it is called on its page.
    pub name: String,
    /// Membrane time constants, in the order said.
    pub taus: Vec<f64>,
    /// Seeds, in the order said.
    pub seeds: Vec<u64>,
    /// The settings that all runs share (with the first `tau` and seed).
    pub base: RunConfig,
}

impl RunConfig {
    /// The run that settings describe, completed with the defaults of its data set.
    pub fn resolve(mut settings: Settings) -> Result<Self, ConfigError> {
        settings.fill_from(defaults(&settings)?, &["tau", "seeds", "name"]);
        let reader = Reader::new(settings)?;
        let tau = match reader.value("tau") {
            None => {
                let hint = "say --tau 30, or --tau inf for no leak, or put it in the file".to_owned();
                return Err(ConfigError::Missing { key: "tau", hint });
            }
            Some(_) => single(&reader, "tau", &taus(&reader)?)?,
        };
        let seed = match reader.value("seeds") {
            Some(_) => single(&reader, "seeds", &seeds(&reader)?)?,
            None => reader.whole("seed", 0)?.unwrap_or(1),
        };
        run(&reader, tau, seed)
    }

    /// The run in a file, with further `key=value` settings on top.
    pub fn load(path: &Path, assignments: &[String]) -> Result<Self, ConfigError> {
        let mut settings = Settings::from_file(path)?;
        assignments.iter().try_for_each(|assignment| settings.assign(assignment))?;
        Self::resolve(settings)
    }

    /// Name of the run's folder in a study: `tau-30_seed-1`.
    pub fn folder_name(&self) -> String {
        format!("tau-{}_seed-{}", number_text(self.tau), self.seed)
    }

    /// The neuron of the hidden layers.
    pub fn neuron(&self) -> Neuron {
        Neuron { tau: self.tau, v_th: self.v_th }
    }

    /// Learning rate of an epoch, counted from 1.
    pub fn learning_rate_of(&self, epoch: u64) -> f64 {
        let passed = self.schedule_after.iter().filter(|&&after| epoch > after).count();
        self.learning_rate * self.schedule_times.powi(passed as i32)
    }

    /// Whether the test set is evaluated after an epoch, counted from 1.
    pub fn evaluates(&self, epoch: u64) -> bool {
        epoch.is_multiple_of(self.evaluate_every) || epoch == self.epochs
    }
}

impl StudyConfig {
    /// The study that settings describe, completed with the defaults of its data set.
    pub fn resolve(mut settings: Settings, name: &str) -> Result<Self, ConfigError> {
        let except: &[&str] = if settings.contains("seed") { &["name", "seeds"] } else { &["name"] };
        settings.fill_from(defaults(&settings)?, except);
        let reader = Reader::new(settings)?;
        let taus = taus(&reader)?;
        let seeds = match reader.value("seeds") {
            Some(_) => seeds(&reader)?,
            None => vec![reader.whole("seed", 0)?.unwrap_or(1)],
        };
        let base = run(&reader, taus[0], seeds[0])?;
        let name = reader.text("name")?.unwrap_or_else(|| name.to_owned());
        // It names a folder too.
        if !name.contains(|c: char| c.is_alphanumeric()) {
            return Err(reader.refuse("name", "a name with a letter or digit is expected"));
        }
        Ok(StudyConfig { name, taus, seeds, base })
    }

    /// The study in a file or the built-in one of that name, with further `key=value` settings on top.
    pub fn load(file_or_name: &str, assignments: &[String]) -> Result<Self, ConfigError> {
        let path = Path::new(file_or_name);
        let (mut settings, name) = match BUILTIN.iter().find(|(name, _)| *name == file_or_name) {
            Some((name, text)) => (Settings::from_default(name, text), file_or_name.to_owned()),
            None if path.exists() || path.extension().is_some() => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                (Settings::from_file(path)?, stem.into_owned())
            }
            None => {
                let known = BUILTIN.map(|(name, _)| name).join(", ");
                return Err(ConfigError::NoStudy { name: file_or_name.to_owned(), known });
            }
        };
        assignments.iter().try_for_each(|assignment| settings.assign(assignment))?;
        Self::resolve(settings, &name)
    }

    /// One run for each seed and tau. All taus of the first seed come first, so that a comparison
    /// is there early.
    pub fn runs(&self) -> Vec<RunConfig> {
        let each = |seed: u64| self.taus.iter().map(move |&tau| RunConfig { tau, seed, ..self.base.clone() });
        self.seeds.iter().flat_map(|&seed| each(seed)).collect()
    }
}

/// The built-in study that completes these settings.
fn defaults(settings: &Settings) -> Result<Settings, ConfigError> {
    let Some(dataset) = settings.text("dataset") else {
        let hint = "say --dataset digits, or put it in the file; `leaklab data list` shows all".to_owned();
        return Err(ConfigError::Missing { key: "dataset", hint });
    };
    let name = builtin::default_study(dataset);
    Ok(Settings::from_default(name, builtin_text(name).unwrap_or_default()))
}

fn taus(reader: &Reader) -> Result<Vec<f64>, ConfigError> {
    let value = reader.value("tau").ok_or_else(|| reader.refuse("tau", "a number of steps is expected"))?;
    let expected = "a number of steps above 0, or inf,";
    let tau = |value| reader.number_of("tau", value, |x| x > 0.0, expected);
    distinct(reader, "tau", reader.list(value).iter().map(tau).collect::<Result<Vec<_>, _>>()?)
}

fn seeds(reader: &Reader) -> Result<Vec<u64>, ConfigError> {
    let value = reader.value("seeds").ok_or_else(|| reader.refuse("seeds", "a list is expected"))?;
    let seed = |value| reader.whole_of("seeds", value, 0);
    distinct(reader, "seeds", reader.list(value).iter().map(seed).collect::<Result<Vec<_>, _>>()?)
}

fn distinct<T: PartialEq>(reader: &Reader, key: &str, values: Vec<T>) -> Result<Vec<T>, ConfigError> {
    if values.is_empty() {
        return Err(reader.refuse(key, "at least one value is expected"));
    }
    if values.iter().enumerate().any(|(i, value)| values[..i].contains(value)) {
        return Err(reader.refuse(key, "each value may be said once only"));
    }
    Ok(values)
}

/// More steps than this fit neither the memory nor anybody's patience.
const MOST_STEPS: u64 = 65_535;

fn at_most(reader: &Reader, key: &str, number: u64, most: u64) -> Result<u64, ConfigError> {
    if number <= most { Ok(number) } else { Err(reader.refuse(key, format!("at most {most} is expected"))) }
}

fn single<T: Copy>(reader: &Reader, key: &'static str, values: &[T]) -> Result<T, ConfigError> {
    match values {
        [value] => Ok(*value),
        _ => {
            let flag = if key == "tau" { "--tau 30" } else { "--set seed=1" };
            Err(reader
                .refuse(key, format!("a run has one: add {flag}, or run them all with `leaklab study`")))
        }
    }
}

fn run(reader: &Reader, tau: f64, seed: u64) -> Result<RunConfig, ConfigError> {
    let limit = |key| reader.whole(key, 1).map(|n| n.map(|n| n as usize));
    let crop = reader.whole("augment.crop", 0)?.unwrap_or(0);
    let fraction = |x: f64| (0.0..1.0).contains(&x);
    let positive = |x: f64| x > 0.0 && x.is_finite();
    let not_negative = |x: f64| x >= 0.0 && x.is_finite();
    let notation = reader.text("network")?.unwrap_or_default();
    let network = Architecture::parse(&notation).map_err(|e| {
        // The notation is said once.
        let text = e.to_string();
        reader.refuse("network", text.strip_prefix(&format!("network '{notation}': ")).unwrap_or(&text))
    })?;
    let dataset: String = reader.parsed("dataset")?;
    data::table::find(&dataset).map_err(|e| reader.refuse("dataset", e))?;
    let v_th = reader.number("v_th", Some(1.0), positive, "a number above 0")?;
    let decay = reader.number("weight_decay", Some(0.0), not_negative, "a number of 0 or more")? as f32;
    let momentum = reader.number("momentum", Some(0.0), fraction, "a number from 0 to below 1")?;
    let beta1 = reader.number("beta1", Some(0.9), fraction, "a number from 0 to below 1")?;
    let beta2 = reader.number("beta2", Some(0.999), fraction, "a number from 0 to below 1")?;
    let epsilon = reader.number("epsilon", Some(1e-8), positive, "a number above 0")?;
    let optimiser = match reader.text("optimiser")?.as_deref() {
        None | Some("sgd") => Optimiser::Sgd { momentum: momentum as f32, weight_decay: decay },
        Some("adam") => Optimiser::Adam {
            beta1: beta1 as f32,
            beta2: beta2 as f32,
            epsilon: epsilon as f32,
            weight_decay: decay,
        },
        Some(_) => return Err(reader.refuse("optimiser", "sgd or adam is expected")),
    };
    let mut schedule_after = Vec::new();
    if let Some(value) = reader.value("schedule.after") {
        for value in reader.list(value) {
            schedule_after.push(reader.whole_of("schedule.after", value, 1)?);
        }
    }
    let (noise, severities) = noises(reader)?;
    Ok(RunConfig {
        dataset,
        data_dir: reader.text("data_dir")?.map(PathBuf::from),
        train_limit: limit("train_limit")?,
        test_limit: limit("test_limit")?,
        normalise: reader.parsed("normalise")?,
        encoder: reader.parsed("encoder")?,
        augment: Augmentation { crop_padding: crop as usize, flip: reader.flag("augment.flip", false)? },
        network,
        tau,
        v_th: v_th as f32,
        time_steps: reader
            .required_whole("time_steps", 1)
            .and_then(|n| at_most(reader, "time_steps", n, MOST_STEPS))? as usize,
        gradient: reader.parsed("gradient")?,
        dropout: reader.number("dropout", Some(0.0), fraction, "a probability from 0 to below 1")? as f32,
        optimiser,
        learning_rate: reader.number("learning_rate", None, positive, "a number above 0")?,
        schedule_after,
        schedule_times: reader.number("schedule.times", Some(1.0), positive, "a number above 0")?,
        epochs: reader.required_whole("epochs", 1)?,
        batch: reader.required_whole("batch", 1)? as usize,
        seed,
        evaluate_every: reader.whole("evaluate_every", 1)?.unwrap_or(1),
        noise,
        severities,
        analysis_images: limit("analysis_images")?,
    })
}

/// The noises to test, and what their severities mean.
type Noises = (Vec<(Noise, Scenario)>, Severities);

fn noises(reader: &Reader) -> Result<Noises, ConfigError> {
    let mut noise = Vec::new();
    if let Some(value) = reader.value("noise") {
        for value in reader.list(value) {
            let text = value.as_str().unwrap_or_default();
            noise.push(noise_name(text).map_err(|expected| reader.refuse("noise", expected))?);
        }
    }
    let mut severities = Severities::default();
    for (key, value) in reader.severities() {
        let name = key.trim_start_matches("severity.");
        let (kind, scenario) = noise_name(name).map_err(|expected| reader.refuse(key, expected))?;
        let expected = "a list of eight levels, of severities 1 to 8,";
        let mut levels = Vec::new();
        for value in reader.list(value) {
            levels.push(reader.number_of(key, value, f64::is_finite, expected)? as f32);
        }
        let levels: Levels =
            levels.try_into().map_err(|_| reader.refuse(key, format!("{expected} is expected")))?;
        severities.set(kind, scenario, levels).map_err(|e| reader.refuse(key, e))?;
    }
    Ok((noise, severities))
}

/// A noise and its scenario by name, such as `gaussian/pixel`; the error says what is expected.
pub fn noise_name(text: &str) -> Result<(Noise, Scenario), String> {
    let Some((noise, scenario)) = text.split_once('/') else {
        return Err("a noise and its scenario are expected, such as gaussian/pixel".to_owned());
    };
    let noise: Noise = noise.parse().map_err(|e: NoiseError| e.to_string())?;
    let scenario: Scenario = scenario.parse().map_err(|e: NoiseError| e.to_string())?;
    NoiseSetting::new(noise, scenario, 0.0).map_err(|e| e.to_string())?;
    Ok((noise, scenario))
}
