//! The records of a study, read once: settings, conditions, runs and tables. A study that is still running
//! has fewer of them.

use super::chart;
use super::coherence::{self, Theory};
use super::condition::{Condition, arranged};
use super::tables::{self, Compare, RunTables};
use leaklab_record::health::{self, Notice};
use leaklab_record::machine::{self, Trainer};
use leaklab_record::metrics::{self, Epoch};
use leaklab_record::noun::{leak_condition, tau_condition};
use leaklab_record::tables::PlanRow;
use leaklab_record::{
    Header, Manifest, NoiseKey, RecordError, Role, RunFolder, RunKey, StudyFolder, TableError, Tau, file,
};
use std::path::{Path, PathBuf};

/// Why the records of a study could not be read, or its page could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The folder contains neither a study nor a run.
    #[error(
        "{}: neither a study nor a run: it has no study.toml or run.toml; `leaklab study --out` makes one",
        path.display()
    )]
    NotAStudy {
        /// The folder.
        path: PathBuf,
    },
    /// There is no folder.
    #[error("{}: there is no such folder; give the folder of a study or of a run", path.display())]
    NoFolder {
        /// The path.
        path: PathBuf,
    },
    /// The page cannot be written.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was attempted.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// A folder contains another run than the study's plan has there.
    #[error(
        "{}: the plan of the study has {planned} here, but run.toml is that of {found}; put the folder of \
         the right run here, or remove it",
        path.display()
    )]
    OtherRun {
        /// The run's folder.
        path: PathBuf,
        /// Condition and seed of the plan.
        planned: String,
        /// Condition and seed of the run.
        found: String,
    },
    /// A run's settings are not those that its weights were trained with.
    #[error(
        "{}: its weights do not match its run.toml: they were trained with {key} = {trained}, not {now}; \
         undo the change of run.toml, or train a new run",
        path.display()
    )]
    Edited {
        /// The run's folder.
        path: PathBuf,
        /// The setting.
        key: &'static str,
        /// Its value in training.
        trained: String,
        /// Its value in `run.toml`.
        now: String,
    },
    /// A run's file cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// A study.
#[derive(Debug, Clone)]
pub struct Study {
    /// Resolved settings.
    pub settings: Manifest,
    /// The command that started it, if it was stored.
    pub command: Option<String>,
    /// The conditions, in the order in which they are shown.
    pub conditions: Vec<Condition>,
    /// Runs that have begun, by condition and seed.
    pub runs: Vec<Run>,
    /// Number of planned runs.
    pub planned: usize,
    /// Tables of the comparison.
    pub compare: Compare,
    /// Tables of the theory.
    pub theory: Theory,
    /// Seconds spent, by task. The pages of two equal studies differ in these times only (and in the machines
    /// that trained them).
    pub seconds: Vec<(String, f64)>,
    /// Whether this is the folder of a single run and not of a study.
    pub single: bool,
    /// Whether the networks are shown recordings of an event camera instead of encoded images.
    pub recorded: bool,
}

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Name of its folder.
    pub name: String,
    /// Name of its condition.
    pub condition: String,
    /// Membrane time constant, if its condition is named after that.
    pub tau: Option<Tau>,
    /// Seed.
    pub seed: u64,
    /// Planned number of epochs.
    pub planned_epochs: u64,
    /// Whether its study has marked it as complete: nothing more is done, even if training ended early
    /// because it diverged.
    pub complete: bool,
    /// Measurements after each epoch.
    pub epochs: Vec<Epoch>,
    /// Notices of the health checks.
    pub notices: Vec<Notice>,
    /// Machines that trained it.
    pub machines: Vec<Trainer>,
    /// Tables of its analyses.
    pub tables: RunTables,
}

impl Run {
    /// Whether its training has ended: all epochs are trained, or it is complete with fewer.
    pub fn is_trained(&self) -> bool {
        self.complete || self.epochs.last().is_some_and(|epoch| epoch.epoch >= self.planned_epochs)
    }

    /// Reads a run. Its condition is that of the study's plan, to which its settings must belong. The
    /// condition of a run without a plan follows from its settings, by the lab's rule.
    fn read(folder: &RunFolder, plan: &[PlanRow]) -> Result<Self, ReportError> {
        let manifest = Manifest::read(&folder.run_toml())?;
        let whole = |key: &str| {
            let value = manifest.settings.get(key).and_then(toml::Value::as_integer);
            value.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
        };
        let name = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let leak = manifest.leak();
        let by_leak = || leak.as_ref().map(leak_condition);
        let uniform = leak.as_ref().and_then(|leak| leak.as_uniform());
        let own = manifest.text_of("condition").or_else(by_leak).unwrap_or_default();
        let mut key = RunKey { condition: own, seed: whole("seed") };
        if let Some(row) = plan.iter().find(|row| row.run == name) {
            if key.folder_name() != name || (row.tau.is_some() && row.tau != uniform) {
                let tau = leak.as_ref().map_or_else(String::new, |leak| format!(" and tau {leak}"));
                return Err(ReportError::OtherRun {
                    path: folder.path().to_owned(),
                    planned: format!("'{}' with seed {}", row.condition, row.seed),
                    found: format!("'{}' with seed {}{tau}", key.condition, key.seed),
                });
            }
            key.condition.clone_from(&row.condition);
        }
        let RunKey { condition, seed } = key;
        // Before the metrics: while a run is trained, those of an epoch are written first.
        let checkpoint = Header::of_run(folder)?;
        if let Some(header) = &checkpoint {
            check_settings(&manifest, header, folder)?;
        }
        let trained = checkpoint.as_ref().map_or(0, |header| header.position.epoch);
        Ok(Run {
            name,
            tau: uniform.filter(|&tau| condition == tau_condition(tau)),
            condition,
            seed,
            planned_epochs: whole("epochs"),
            complete: folder.complete().is_file(),
            epochs: metrics::read_through(&folder.metrics(), trained)?,
            notices: health::read(&folder.health())?,
            machines: machine::read(&folder.machines())?,
            tables: RunTables::read(folder, checkpoint.as_ref())?,
        })
    }
}

impl Study {
    /// Reads a study's folder; the folder of a single run is read as a study of one run.
    pub fn read(folder: &Path) -> Result<Self, ReportError> {
        let study = StudyFolder::at(folder);
        if !study.exists() {
            return Self::of_one_run(folder);
        }
        let settings = Manifest::read(&study.study_toml())?;
        let plan = tables::read::<PlanRow>(study.path())?;
        let planned_runs = plan.as_ref().map_or(&[][..], |plan| &plan.rows);
        let compare = Compare::read(&study.compare())?;
        let mut runs = Vec::new();
        for path in list(&study.runs())? {
            let folder = RunFolder::at(path);
            if folder.exists() {
                runs.push(Run::read(&folder, planned_runs)?);
            }
        }
        // A folder may contain runs of an earlier, larger plan.
        let planned = plan.as_ref().map_or(runs.len(), |plan| plan.rows.len());
        if let Some(plan) = &plan {
            runs.retain(|run| plan.rows.iter().any(|row| row.run == run.name));
        }
        let compared = compare.conditions.iter().flat_map(|rows| rows.rows.iter().map(Condition::from));
        let intended = plan.iter().flat_map(|rows| rows.rows.iter().map(Condition::from));
        let begun = runs.iter().map(|run| Condition::new(&run.condition, run.tau, Role::Compared));
        let conditions = arranged(compared.chain(intended).chain(begun));
        let place = |run: &Run| conditions.iter().position(|condition| condition.name == run.condition);
        runs.sort_by(|a, b| (place(a), a.seed, &a.name).cmp(&(place(b), b.seed, &b.name)));
        let mut seconds = training_seconds(&runs);
        seconds.extend(read_seconds(&study.times()));
        Ok(Study {
            recorded: has_recordings(&settings),
            settings,
            command: file::read_to_string(&study.command()).ok().map(|text| text.trim().to_owned()),
            conditions,
            runs,
            planned,
            compare,
            theory: coherence::read(&study.theory())?,
            seconds,
            single: false,
        })
    }

    fn of_one_run(folder: &Path) -> Result<Self, ReportError> {
        let run = RunFolder::at(folder);
        if !run.exists() {
            let path = folder.to_owned();
            let missing = if folder.exists() {
                ReportError::NotAStudy { path }
            } else {
                ReportError::NoFolder { path }
            };
            return Err(missing);
        }
        let settings = Manifest::read(&run.run_toml())?;
        let runs = vec![Run::read(&run, &[])?];
        let conditions = arranged([Condition::new(&runs[0].condition, runs[0].tau, Role::Baseline)]);
        let seconds = training_seconds(&runs);
        let (compare, theory) = (Compare::default(), Theory::new());
        let (command, planned, single) = (None, 1, true);
        let recorded = has_recordings(&settings);
        Ok(Study { settings, command, conditions, runs, planned, compare, theory, seconds, single, recorded })
    }

    /// Runs whose training has ended.
    pub fn trained(&self) -> usize {
        self.runs.iter().filter(|run| run.is_trained()).count()
    }

    /// Progress of the study, as a sentence without its full stop: `1 of 15 runs is trained`.
    pub fn progress(&self) -> String {
        let (trained, planned) = (self.trained(), self.planned);
        let runs = if planned == 1 { "run" } else { "runs" };
        let are = if trained == 1 || planned == 1 { "is" } else { "are" };
        format!("{trained} of {planned} {runs} {are} trained")
    }

    /// What is wrong with the tables of the comparison, as a sentence: they include runs that the study does
    /// not have, or omit runs that are complete.
    pub fn comparison_problem(&self) -> Option<String> {
        let compared: Vec<&str> =
            self.compare.runs.iter().flat_map(|t| &t.rows).map(|row| &*row.run).collect();
        let here: Vec<&str> = self.runs.iter().map(|run| &*run.name).collect();
        let gone: Vec<&str> = compared.iter().copied().filter(|run| !here.contains(run)).collect();
        let complete = self.runs.iter().filter(|run| run.complete).map(|run| &*run.name);
        let omitted: Vec<&str> = complete.filter(|run| !compared.contains(run)).collect();
        let mut problems = Vec::new();
        if !gone.is_empty() {
            problems.push(format!("includes runs that this study does not have: {}", gone.join(", ")));
        }
        if !omitted.is_empty() && !compared.is_empty() {
            problems.push(format!("omits runs that are complete: {}", omitted.join(", ")));
        }
        let again = "Compare the runs again with leaklab study or leaklab analyse compare.";
        (!problems.is_empty()).then(|| format!("The comparison {}. {again}", problems.join(", and ")))
    }

    /// The word for what a network is shown.
    pub fn sample(&self) -> &'static str {
        if self.recorded { "recording" } else { "image" }
    }

    /// Whether the study tests no noise at all.
    pub fn is_without_noise(&self) -> bool {
        let noises = self.settings.settings.get("noise").and_then(toml::Value::as_array);
        noises.is_some_and(Vec::is_empty)
    }

    /// The noises under which accuracy was measured.
    pub fn noises(&self) -> Vec<NoiseKey> {
        let rows = self.compare.robustness.iter().flat_map(|table| &table.rows);
        chart::distinct(rows.map(|row| NoiseKey { noise: row.noise, scenario: row.scenario }))
    }

    /// A setting as text, or a dash.
    pub fn setting(&self, key: &str) -> String {
        self.settings.text_of(key).unwrap_or_else(|| "–".to_owned())
    }

    /// Name of the study.
    pub fn name(&self) -> String {
        self.settings.text_of("name").or_else(|| self.settings.text_of("dataset")).unwrap_or_default()
    }

    /// The condition with which the others are compared.
    pub fn baseline(&self) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.role == Role::Baseline)
    }

    /// The baseline, unless it is known to have failed: nothing is compared with a network that did not
    /// learn.
    pub fn learned_baseline(&self) -> Option<&Condition> {
        self.baseline().filter(|baseline| !baseline.failed())
    }

    /// The conditions that figures show: all except for the probes.
    pub fn shown(&self) -> Vec<&Condition> {
        self.conditions.iter().filter(|condition| condition.role != Role::Probe).collect()
    }

    /// The conditions that are judged: shown, and not known to have failed.
    pub fn learned(&self) -> Vec<&Condition> {
        self.shown().into_iter().filter(|condition| !condition.failed()).collect()
    }

    /// For each shown condition, the value of the first run for which `get` returns one.
    pub fn first_runs<T>(&self, get: impl Fn(&Run) -> Option<&T>) -> Vec<(&Condition, &T)> {
        let of = |condition: &Condition| {
            let mut runs = self.runs.iter().filter(|run| run.condition == condition.name);
            runs.find_map(&get)
        };
        self.shown().into_iter().filter_map(|condition| Some((condition, of(condition)?))).collect()
    }
}

/// Refuses settings that identify a run and are not those that its weights were trained with.
fn check_settings(now: &Manifest, header: &Header, folder: &RunFolder) -> Result<(), ReportError> {
    let text: String = header.settings.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    let path = folder.checkpoint();
    let settings =
        toml::from_str(&text).map_err(|e| RecordError::malformed(&path, "checkpoint", e.message()))?;
    let trained = Manifest { settings, text };
    let leak = |manifest: &Manifest| manifest.leak().map(|leak| leak.to_string());
    let setting = |key| (key, trained.text_of(key), now.text_of(key));
    let settings =
        ["dataset", "network", "time_steps", "seed", "v_th", "readout_divisor", "encoder", "normalise"]
            .map(setting);
    let all = [("tau", leak(&trained), leak(now))].into_iter().chain(settings);
    let words = |value: Option<String>| value.unwrap_or_else(|| "its default".to_owned());
    match all.into_iter().find(|(_, trained, now)| trained != now) {
        None => Ok(()),
        Some((key, trained, now)) => Err(ReportError::Edited {
            path: folder.path().to_owned(),
            key,
            trained: words(trained),
            now: words(now),
        }),
    }
}

/// Whether settings are those of recordings. Only these have `downsample`, which is always written to the
/// file.
fn has_recordings(settings: &Manifest) -> bool {
    settings.settings.contains_key("downsample")
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let mut paths: Vec<PathBuf> = file::entries(folder)?.into_iter().map(|(path, _)| path).collect();
    paths.sort();
    Ok(paths)
}

fn training_seconds(runs: &[Run]) -> Vec<(String, f64)> {
    let seconds = runs.iter().flat_map(|run| &run.epochs).map(|epoch| epoch.seconds).sum();
    vec![("training".to_owned(), seconds)]
}

/// Lines `{"what": .., "seconds": ..}`. Times are not essential, so a line that cannot be read is skipped.
fn read_seconds(path: &Path) -> Vec<(String, f64)> {
    let mut sums: Vec<(String, f64)> = Vec::new();
    for line in file::read_to_string(path).unwrap_or_default().lines() {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let (Some(what), Some(seconds)) = (value["what"].as_str(), value["seconds"].as_f64()) else {
            continue;
        };
        match sums.iter_mut().find(|(name, _)| name == what) {
            Some((_, sum)) => *sum += seconds,
            None => sums.push((what.to_owned(), seconds)),
        }
    }
    sums
}
