//! A study: conditions x seeds. A condition is a name and the settings in which it differs from the others.

use super::kind::{list, tau, text, whole};
use super::run::{RunConfig, missing};
use super::settings::{ConfigError, Settings};
use super::{BUILTIN, keys};
use leaklab_engine::Tau;
use leaklab_record::noun::{slug, tau_condition};
use std::path::Path;
use toml::Value;

/// Settings that all conditions share: other images, another network or another measurement would be another study.
const SHARED: [&str; 12] = [
    "dataset",
    "network",
    "seed",
    "format",
    "baseline",
    "condition",
    "data_dir",
    "data_sha256",
    "severity",
    "analysis_images",
    "presentations",
    "presentation_seed",
];

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionConfig {
    /// Its name.
    pub name: String,
    /// The settings in which it differs, as said.
    pub differs: Vec<(String, Value)>,
    /// Its seeds, if not those of the study.
    pub own_seeds: Option<Vec<u64>>,
    /// Its runs, but for the seed.
    pub run: RunConfig,
}

/// A study: runs of several conditions, each with several seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyConfig {
    /// What it is called on its page.
    pub name: String,
    /// Seeds, in the order said.
    pub seeds: Vec<u64>,
    /// The conditions, in the order said.
    pub conditions: Vec<ConditionConfig>,
    /// Which of them the others are compared with, if that was said.
    pub baseline: Option<String>,
    /// The settings that all runs share (with the leak of the first condition and the first seed).
    pub base: RunConfig,
}

/// The most seeds, values of `tau` and conditions of a study.
const MOST_VALUES: usize = 1000;
/// The most runs of a study.
const MOST_RUNS: usize = 100_000;

impl ConditionConfig {
    /// Whether it is the short form's: a `tau` and nothing else.
    pub(super) fn is_plain(&self) -> bool {
        let tau = self.run.leak.as_uniform().map(tau_condition);
        let alone = self.differs.len() == 1 && self.differs[0].0 == "tau";
        alone && self.own_seeds.is_none() && !self.run.probe && tau.as_ref() == Some(&self.name)
    }
}

impl StudyConfig {
    /// The study that settings describe, completed with the defaults of its data set.
    pub fn resolve(mut settings: Settings, name: &str) -> Result<Self, ConfigError> {
        let defaults = settings.defaults()?;
        // How many images a built-in study takes is its own choice, and no default of the data set.
        let mut except = vec!["name", "baseline", "train_limit", "test_limit"];
        // Whoever says a seed or conditions says all of them.
        if settings.contains("seed") {
            except.push("seeds");
        }
        if settings.conditions.is_empty() && !settings.contains("tau") {
            settings.conditions.clone_from(&defaults.conditions);
        } else {
            except.push("tau");
        }
        settings.fill_from(defaults, &except);
        let seeds = match settings.value("seeds").or(settings.value("seed")) {
            Some(value) => read_seeds(&settings, value)?,
            None => vec![1],
        };
        let baseline = settings
            .value("baseline")
            .map(|value| text(value).map_err(|expected| settings.refuse("baseline", expected)));
        let study = StudyConfig {
            name: read_name(&settings, name)?,
            conditions: read_conditions(&settings, &seeds)?,
            baseline: baseline.transpose()?,
            base: RunConfig::unnamed(&settings, &seeds)?,
            seeds,
        };
        let runs: usize =
            study.conditions.iter().map(|c| c.own_seeds.as_ref().unwrap_or(&study.seeds).len()).sum();
        if runs > MOST_RUNS {
            let key = if settings.contains("seeds") { "seeds" } else { "seed" };
            return Err(settings.refuse(key, format!("{runs} runs, where a study has at most {MOST_RUNS}")));
        }
        if let Some(baseline) = &study.baseline
            && study.conditions.iter().all(|condition| condition.name != *baseline)
        {
            let known: Vec<&str> = study.conditions.iter().map(|c| c.name.as_str()).collect();
            let expected = format!("one of the conditions is expected: {}", known.join(", "));
            return Err(settings.refuse("baseline", expected));
        }
        Ok(study)
    }

    /// The study in a file or the built-in one of that name, with further `key=value` settings on top.
    pub fn load(file_or_name: &str, assignments: &[String]) -> Result<Self, ConfigError> {
        let (mut settings, name) = Self::open(file_or_name)?;
        assignments.iter().try_for_each(|assignment| settings.assign(assignment))?;
        Self::resolve(settings, &name)
    }

    /// The settings and name of a study file or a built-in study.
    pub fn open(file_or_name: &str) -> Result<(Settings, String), ConfigError> {
        let path = Path::new(file_or_name);
        match BUILTIN.iter().find(|(name, _)| *name == file_or_name) {
            Some((name, text)) => Ok((Settings::from_default(name, text), file_or_name.to_owned())),
            None if path.exists() || path.extension().is_some() => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                Ok((Settings::from_file(path)?, stem.into_owned()))
            }
            None => {
                let known = BUILTIN.map(|(name, _)| name).join(", ");
                Err(ConfigError::NoStudy { name: file_or_name.to_owned(), known })
            }
        }
    }

    /// Every run. All conditions of the first seed come first, so that a comparison is there early.
    pub fn runs(&self) -> Vec<RunConfig> {
        let seeds = |condition: &ConditionConfig| condition.own_seeds.clone().unwrap_or(self.seeds.clone());
        let most = self.conditions.iter().map(|condition| seeds(condition).len()).max().unwrap_or(0);
        let mut runs = Vec::new();
        for i in 0..most {
            for condition in &self.conditions {
                if let Some(&seed) = seeds(condition).get(i) {
                    runs.push(RunConfig { seed, ..condition.run.clone() });
                }
            }
        }
        runs
    }

    /// Pins the data of all runs by the digest of what they hold.
    pub(crate) fn pin(&mut self, digest: Option<String>) {
        self.base.data_sha256.clone_from(&digest);
        self.conditions.iter_mut().for_each(|condition| condition.run.data_sha256.clone_from(&digest));
    }

    /// The largest time constant among the conditions that leak everywhere alike.
    pub fn least_leak(&self) -> Option<Tau> {
        self.conditions.iter().filter_map(|condition| condition.run.leak.as_uniform()).max()
    }
}

impl RunConfig {
    /// What all conditions share; where none is shared, the leak of the first condition.
    fn unnamed(settings: &Settings, seeds: &[u64]) -> Result<Self, ConfigError> {
        let mut shared = settings.clone();
        let first = shared.value("tau").and_then(|value| list(value).first().cloned());
        let of_condition = || settings.conditions.iter().find_map(|c| c.value("tau").cloned());
        if let Some(tau) = first.or_else(of_condition) {
            shared.set_quietly("tau", tau);
        }
        shared.set_quietly("seed", Value::Integer(seeds[0] as i64));
        shared.entries.remove("seeds");
        RunConfig::read(&shared)
    }
}

impl Settings {
    /// Sets a value where it stands: messages go on naming the place where it was said.
    fn set_quietly(&mut self, key: &str, value: Value) {
        let origin = self.entries.remove(key).map_or(super::Origin::Flag, |(_, origin)| origin);
        self.entries.insert(key.to_owned(), (value, origin));
    }
}

fn read_name(settings: &Settings, name: &str) -> Result<String, ConfigError> {
    let name = match settings.value("name") {
        Some(value) => text(value).map_err(|expected| settings.refuse("name", expected))?,
        None => name.to_owned(),
    };
    // It names a folder too.
    if slug(&name).is_empty() {
        return Err(settings.refuse("name", "a name with a letter or digit is expected"));
    }
    Ok(name)
}

fn read_seeds(settings: &Settings, value: &Value) -> Result<Vec<u64>, ConfigError> {
    let key = if settings.contains("seeds") { "seeds" } else { "seed" };
    let seeds = list(value).iter().map(whole).collect::<Result<Vec<_>, _>>();
    distinct(settings, key, seeds.map_err(|expected| settings.refuse(key, expected))?)
}

fn distinct<T: PartialEq>(settings: &Settings, key: &str, values: Vec<T>) -> Result<Vec<T>, ConfigError> {
    if values.is_empty() {
        return Err(settings.refuse(key, "at least one value is expected"));
    }
    if values.len() > MOST_VALUES {
        let expected = format!("{} values, where a study has at most {MOST_VALUES}", values.len());
        return Err(settings.refuse(key, expected));
    }
    if values.iter().enumerate().any(|(i, value)| values[..i].contains(value)) {
        return Err(settings.refuse(key, "each value may be said once only"));
    }
    Ok(values)
}

/// The conditions: one for each `tau` of a list, then those of the `[[condition]]` tables.
fn read_conditions(settings: &Settings, seeds: &[u64]) -> Result<Vec<ConditionConfig>, ConfigError> {
    let mut found = Vec::new();
    let taus = settings.value("tau");
    let sweep = taus.filter(|value| value.is_array() || settings.conditions.is_empty());
    if sweep.is_none() && settings.conditions.is_empty() {
        return Err(missing("tau"));
    }
    if let Some(value) = sweep {
        let refused = |expected: String| settings.refuse("tau", expected);
        let taus = list(value).iter().map(tau).collect::<Result<Vec<Tau>, _>>().map_err(refused)?;
        for tau in distinct(settings, "tau", taus)? {
            let mut own = settings.clone();
            own.set_quietly("tau", Value::Float(tau.steps()));
            let differs = vec![("tau".to_owned(), Value::Float(tau.steps()))];
            found.push(condition(own, seeds, None, differs, None)?);
        }
    }
    if settings.conditions.len() > MOST_VALUES {
        let last = &settings.conditions[MOST_VALUES];
        let expected = format!("a study has at most {MOST_VALUES} conditions");
        return Err(last.refuse("condition", expected));
    }
    let shared = Settings { entries: settings.entries.clone(), conditions: Vec::new() };
    for said in &settings.conditions {
        for key in said.entries.keys() {
            if SHARED.contains(&key.as_str()) {
                return Err(
                    said.refuse(key, "all conditions of a study share it; say it outside of [[condition]]")
                );
            }
            if keys::find(key).is_none() && key != "name" {
                // The full message names the key that may have been meant.
                RunConfig::read(said)?;
            }
        }
        let name = match said.value("name") {
            Some(value) => Some(text(value).map_err(|expected| said.refuse("name", expected))?),
            None => None,
        };
        let own_seeds = said.value("seeds").map(|value| read_seeds(said, value)).transpose()?;
        let mut own = shared.clone();
        if settings.value("tau").is_some_and(Value::is_array) {
            own.entries.remove("tau");
        }
        let mut differs = Vec::new();
        for (key, (value, origin)) in &said.entries {
            if key != "name" && key != "seeds" {
                own.entries.insert(key.clone(), (value.clone(), origin.clone()));
                if key != "probe" {
                    differs.push((key.clone(), value.clone()));
                }
            }
        }
        if !own.contains("tau") {
            return Err(said.refuse(
                "tau",
                "a membrane time constant is expected in each condition, or one outside for all",
            ));
        }
        found.push(condition(own, seeds, name, differs, own_seeds)?);
    }
    for (i, condition) in found.iter().enumerate() {
        if let Some(other) = found[..i].iter().find(|other| slug(&other.name) == slug(&condition.name)) {
            let expected = format!(
                "conditions '{}' and '{}' need names that differ in their letters and digits",
                other.name, condition.name
            );
            return Err(settings.refuse("condition", expected));
        }
        if slug(&condition.name).is_empty() {
            return Err(settings.refuse("condition", "a name with a letter or digit is expected"));
        }
    }
    Ok(found)
}

fn condition(
    mut settings: Settings,
    seeds: &[u64],
    name: Option<String>,
    differs: Vec<(String, Value)>,
    own_seeds: Option<Vec<u64>>,
) -> Result<ConditionConfig, ConfigError> {
    settings.set_quietly("seed", Value::Integer(seeds[0] as i64));
    settings.entries.remove("seeds");
    settings.conditions.clear();
    let mut run = RunConfig::read(&settings)?;
    // A name that says no more than the leak does is not written down.
    run.condition = None;
    run.condition = name.filter(|name| *name != run.condition_name());
    Ok(ConditionConfig { name: run.condition_name(), differs, own_seeds, run })
}
