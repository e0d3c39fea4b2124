//! A study consists of runs of every condition with every seed. A condition is a name and the settings in
//! which it differs from the rest of the study.

use super::kind::{list, tau, text, whole};
use super::run::{RunConfig, missing, short_name};
use super::settings::{ConfigError, Settings};
use super::{BUILTIN, keys};
use leaklab_engine::Tau;
use leaklab_record::StudyFolder;
use leaklab_record::noun::{slug, tau_condition};
use std::path::Path;
use toml::Value;

/// Settings that all conditions share: other images, another network or another measurement would make it
/// another study.
pub(super) const SHARED: [&str; 16] = [
    "dataset",
    "network",
    "seed",
    "format",
    "baseline",
    "condition",
    "data_dir",
    "data_sha256",
    "validation",
    "test_limit",
    "severity",
    "evaluate_every",
    "evaluate_train_images",
    "analysis_images",
    "presentations",
    "presentation_seed",
];

/// One condition.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionConfig {
    /// Its name.
    pub name: String,
    /// The settings in which it differs, as they were set.
    pub differs: Vec<(String, Value)>,
    /// Its seeds, if not those of the study.
    pub own_seeds: Option<Vec<u64>>,
    /// The settings of its runs, except for the seed.
    pub run: RunConfig,
}

/// A study: runs of several conditions, each with several seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyConfig {
    /// Its name, shown on its page.
    pub name: String,
    /// Seeds, in the given order.
    pub seeds: Vec<u64>,
    /// The conditions, in the given order.
    pub conditions: Vec<ConditionConfig>,
    /// Name of the condition that the others are compared with, if it is set.
    pub baseline: Option<String>,
    /// The settings that all runs share (with the leak of the first condition and the first seed).
    pub base: RunConfig,
}

/// Limit for the number of seeds, of values of `tau` and of conditions of a study.
const MOST_VALUES: usize = 1000;
/// Limit for the number of runs of a study.
const MOST_RUNS: usize = 100_000;

impl ConditionConfig {
    /// Whether the short form describes it: it sets `tau` and nothing else.
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
        // The number of images that a built-in study uses is not a default of the data set.
        let mut except = vec!["name", "baseline", "train_limit", "test_limit"];
        // Settings with a seed or conditions replace all seeds or conditions of the defaults.
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
        let runs: usize = study.conditions.iter().map(|condition| study.seeds_of(condition).len()).sum();
        if runs > MOST_RUNS {
            let key = if settings.contains("seeds") { "seeds" } else { "seed" };
            let expected = format!("{runs} runs are too many; a study has at most {MOST_RUNS}");
            return Err(settings.refuse(key, expected));
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

    /// The study in a file, or the built-in study of that name, with further `key=value` settings on top.
    pub fn load(file_or_name: &str, assignments: &[String]) -> Result<Self, ConfigError> {
        let (mut settings, name) = Self::open(file_or_name)?;
        assignments.iter().try_for_each(|assignment| settings.assign(assignment))?;
        Self::resolve(settings, &name)
    }

    /// The study of a folder.
    pub fn of_folder(folder: &StudyFolder) -> Result<Self, ConfigError> {
        Self::resolve(Settings::from_file(&folder.study_toml())?, "study")
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
            None => Err(ConfigError::no_study(file_or_name)),
        }
    }

    /// The seeds of a condition: its own, or those of the study.
    fn seeds_of<'a>(&'a self, condition: &'a ConditionConfig) -> &'a [u64] {
        condition.own_seeds.as_ref().unwrap_or(&self.seeds)
    }

    /// All runs. Those of the first seed come first, so that conditions can be compared early.
    pub fn runs(&self) -> Vec<RunConfig> {
        let of_each: Vec<&[u64]> = self.conditions.iter().map(|condition| self.seeds_of(condition)).collect();
        let most = of_each.iter().map(|seeds| seeds.len()).max().unwrap_or(0);
        let mut runs = Vec::new();
        for i in 0..most {
            for (condition, seeds) in self.conditions.iter().zip(&of_each) {
                if let Some(&seed) = seeds.get(i) {
                    runs.push(RunConfig { seed, ..condition.run.clone() });
                }
            }
        }
        runs
    }

    /// Pins the data of all runs by the digest of their contents.
    pub(crate) fn pin(&mut self, digest: Option<String>) {
        self.base.data_sha256.clone_from(&digest);
        self.conditions.iter_mut().for_each(|condition| condition.run.data_sha256.clone_from(&digest));
    }
}

impl RunConfig {
    /// The settings that all conditions share; if `tau` is not shared, it is that of the first condition.
    fn unnamed(settings: &Settings, seeds: &[u64]) -> Result<Self, ConfigError> {
        let mut shared = settings.clone();
        // A value that every condition replaces is not shared.
        let value = sweep(settings).or(shared.value("tau").filter(|_| !all_set_tau(settings)));
        let first = value.and_then(|value| list(value).first().cloned());
        let of_condition = || settings.conditions.iter().find_map(|c| c.value("tau").cloned());
        if let Some(tau) = first.or_else(of_condition) {
            shared.set_keeping_origin("tau", tau);
        }
        shared.set_keeping_origin("seed", Value::Integer(seeds[0] as i64));
        shared.entries.remove("seeds");
        RunConfig::read(&shared)
    }
}

impl Settings {
    /// Sets a value and keeps its origin: messages still give the place where the key was set.
    fn set_keeping_origin(&mut self, key: &str, value: Value) {
        let origin = self.entries.remove(key).map_or(super::Origin::Flag, |(_, origin)| origin);
        self.entries.insert(key.to_owned(), (value, origin));
    }
}

fn read_name(settings: &Settings, name: &str) -> Result<String, ConfigError> {
    let name = match settings.value("name") {
        Some(value) => text(value).map_err(|expected| settings.refuse("name", expected))?,
        None => name.to_owned(),
    };
    check_name(&name).map_err(|expected| settings.refuse("name", expected))?;
    Ok(name)
}

/// Checks the name of a study or a condition, which is also used for a folder and in messages.
fn check_name(name: &str) -> Result<(), String> {
    if slug(name).is_empty() || name.chars().any(char::is_control) {
        return Err("a name with a letter or digit is expected, in one line".to_owned());
    }
    Ok(())
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
        let expected = format!("{} values are too many; a study has at most {MOST_VALUES}", values.len());
        return Err(settings.refuse(key, expected));
    }
    if values.iter().enumerate().any(|(i, value)| values[..i].contains(value)) {
        return Err(settings.refuse(key, "each value may be given only once"));
    }
    Ok(values)
}

/// Whether there are condition tables, and each sets its own `tau`.
fn all_set_tau(settings: &Settings) -> bool {
    !settings.conditions.is_empty() && settings.conditions.iter().all(|table| table.contains("tau"))
}

/// The values of `tau` that are conditions of their own. A single value in a file with condition tables is
/// one that they share. On the command line it is a list of one, if the tables make no use of it.
fn sweep(settings: &Settings) -> Option<&Value> {
    let unused = settings.is_flag("tau") && all_set_tau(settings);
    settings.value("tau").filter(|value| value.is_array() || settings.conditions.is_empty() || unused)
}

/// The conditions: first one for each `tau` of a list, then those of the `[[condition]]` tables.
fn read_conditions(settings: &Settings, seeds: &[u64]) -> Result<Vec<ConditionConfig>, ConfigError> {
    let mut found = Vec::new();
    let taus = settings.value("tau");
    let sweep = sweep(settings);
    if sweep.is_none() && settings.conditions.is_empty() {
        return Err(missing("tau"));
    }
    if let Some(expected) = taus.filter(|value| !value.is_array()).and_then(|value| tau(value).err()) {
        return Err(settings.refuse("tau", expected));
    }
    if settings.contains("condition") {
        let expected = "in a study, conditions are [[condition]] tables, each with a name and the settings in \
                        which it differs";
        return Err(settings.refuse("condition", expected));
    }
    if let Some(value) = sweep {
        let refused = |expected: String| settings.refuse("tau", expected);
        let taus = list(value).iter().map(tau).collect::<Result<Vec<Tau>, _>>().map_err(refused)?;
        for tau in distinct(settings, "tau", taus)? {
            let mut own = settings.clone();
            own.set_keeping_origin("tau", Value::Float(tau.steps()));
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
    for table in &settings.conditions {
        if !table.conditions.is_empty() {
            return Err(table.refuse("condition", "a condition has no conditions of its own"));
        }
        for key in table.entries.keys() {
            // A key of a table, such as severity."gaussian/pixel", is shared if the table is.
            if SHARED.contains(&key.split('.').next().unwrap_or(key)) {
                return Err(
                    table.refuse(key, "all conditions of a study share it; set it outside of [[condition]]")
                );
            }
            if keys::find(key).is_none() && key != "name" {
                // The error of `read` suggests the key that may have been meant.
                RunConfig::read(table)?;
            }
        }
        let name = match table.value("name") {
            Some(value) => Some(text(value).map_err(|expected| table.refuse("name", expected))?),
            None => None,
        };
        let own_seeds = table.value("seeds").map(|value| read_seeds(table, value)).transpose()?;
        let mut own = shared.clone();
        if sweep.is_some() {
            own.entries.remove("tau");
        }
        let mut differs = Vec::new();
        for (key, (value, origin)) in &table.entries {
            if key != "name" && key != "seeds" {
                own.entries.insert(key.clone(), (value.clone(), origin.clone()));
                // `tau = 30` is the same as in the short form, which is `tau = [30.0]`. If it cannot be read,
                // the error comes below.
                let number = tau(value).ok().filter(|_| key == "tau").map(|tau| Value::Float(tau.steps()));
                if key != "probe" {
                    differs.push((key.clone(), number.unwrap_or_else(|| value.clone())));
                }
            }
        }
        if !own.contains("tau") {
            return Err(table.refuse(
                "tau",
                "a membrane time constant is expected in each condition, or one for all outside of them",
            ));
        }
        found.push(condition(own, seeds, name, differs, own_seeds)?);
    }
    check_conditions(settings, &found)?;
    Ok(found)
}

/// Refuses conditions whose names or settings cannot be told apart.
fn check_conditions(settings: &Settings, found: &[ConditionConfig]) -> Result<(), ConfigError> {
    // Some file systems do not distinguish upper and lower case.
    let folders: Vec<String> = found.iter().map(|condition| slug(&condition.name).to_lowercase()).collect();
    let unnamed = |condition: &ConditionConfig| RunConfig { condition: None, ..condition.run.clone() };
    let runs: Vec<RunConfig> = found.iter().map(unnamed).collect();
    // The conditions of the tables are the last ones.
    let of_tables = found.len() - settings.conditions.len();
    for (i, condition) in found.iter().enumerate() {
        let table = i.checked_sub(of_tables).map(|i| &settings.conditions[i]);
        let refused = |expected: String| match table {
            Some(table) if table.contains("name") => table.refuse("name", expected),
            Some(table) if table.contains("tau") => table.refuse("tau", expected),
            Some(_) | None => settings.refuse("condition", expected),
        };
        check_name(&condition.name).map_err(refused)?;
        if let Some(other) = folders[..i].iter().position(|folder| *folder == folders[i]) {
            return Err(refused(format!(
                "condition '{}' needs a `name` that differs from '{}' in letters or digits, not only in case",
                condition.name, found[other].name
            )));
        }
        if let Some(other) = runs[..i].iter().position(|run| *run == runs[i]) {
            return Err(refused(format!(
                "condition '{}' has the same settings as '{}'",
                condition.name, found[other].name
            )));
        }
    }
    Ok(())
}

fn condition(
    mut settings: Settings,
    seeds: &[u64],
    name: Option<String>,
    differs: Vec<(String, Value)>,
    own_seeds: Option<Vec<u64>>,
) -> Result<ConditionConfig, ConfigError> {
    settings.set_keeping_origin("seed", Value::Integer(seeds[0] as i64));
    settings.entries.remove("seeds");
    settings.conditions.clear();
    let mut run = RunConfig::read(&settings)?;
    // A name that only repeats the leak is not stored.
    run.condition = None;
    let name = name.or_else(|| short_name(&run.leak));
    run.condition = name.filter(|name| *name != run.condition_name());
    Ok(ConditionConfig { name: run.condition_name(), differs, own_seeds, run })
}
