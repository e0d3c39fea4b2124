//! What a study has left on disk so far, read once: settings, runs, tables. A study that still runs is a study with
//! less in it.

use leaklab_record::health::{self, Notice};
use leaklab_record::metrics::{self, Epoch};
use leaklab_record::{Manifest, RecordError, RunFolder, Table, TableError, number_text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why the records of a study could not be read, or its page not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The folder holds neither a study nor a run.
    #[error("{}: neither a study nor a run: it has no study.toml and no run.toml; `leaklab study --out` makes one", path.display())]
    NotAStudy {
        /// The folder.
        path: PathBuf,
    },
    /// A folder cannot be listed, or the page not be written.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was attempted.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// A run's file cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Tables of one folder by name.
pub type Tables = BTreeMap<String, Table>;

/// A study.
#[derive(Debug, Clone)]
pub struct Study {
    /// Resolved settings.
    pub settings: Manifest,
    /// The command that made it, if it was kept.
    pub command: Option<String>,
    /// Runs that have begun, by tau and seed.
    pub runs: Vec<Run>,
    /// Runs in all.
    pub planned: usize,
    /// Tables of the comparison.
    pub compare: Tables,
    /// Tables of the theory.
    pub theory: Tables,
    /// Seconds spent, by what they were spent on; the one thing on the page that two equal studies differ in.
    pub seconds: Vec<(String, f64)>,
}

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Name of its folder.
    pub name: String,
    /// Membrane time constant as tables write it.
    pub tau: String,
    /// Seed as text.
    pub seed: String,
    /// Epochs it is to be trained.
    pub planned_epochs: u64,
    /// What was measured after each epoch.
    pub epochs: Vec<Epoch>,
    /// What went wrong.
    pub notices: Vec<Notice>,
    /// Tables of its analyses.
    pub tables: Tables,
}

impl Run {
    /// Whether all its epochs are trained.
    pub fn is_trained(&self) -> bool {
        self.epochs.last().is_some_and(|epoch| epoch.epoch >= self.planned_epochs)
    }
}

impl Study {
    /// Reads a study's folder; the folder of a single run is read as a study of one run.
    pub fn read(folder: &Path) -> Result<Self, ReportError> {
        let study_toml = folder.join("study.toml");
        if !study_toml.is_file() {
            let run = RunFolder::at(folder);
            if !run.exists() {
                return Err(ReportError::NotAStudy { path: folder.to_owned() });
            }
            let settings = Manifest::read(&run.run_toml())?;
            let runs = vec![read_run(&run)?];
            let (compare, theory) = (Tables::new(), Tables::new());
            let seconds = training_seconds(&runs);
            return Ok(Study { settings, command: None, runs, planned: 1, compare, theory, seconds });
        }
        let settings = Manifest::read(&study_toml)?;
        let mut runs = Vec::new();
        for path in list(&folder.join("runs"))? {
            let run = RunFolder::at(path);
            if run.exists() {
                runs.push(read_run(&run)?);
            }
        }
        // A folder may hold runs of an earlier, wider list.
        runs.retain(|run| listed(&settings, "tau", &run.tau) && listed(&settings, "seeds", &run.seed));
        runs.sort_by(|a, b| {
            let seed = |run: &Run| run.seed.parse::<u64>().unwrap_or(u64::MAX);
            order(&a.tau).total_cmp(&order(&b.tau)).then(seed(a).cmp(&seed(b))).then(a.name.cmp(&b.name))
        });
        let length = |key: &str| match settings.settings.get(key) {
            Some(toml::Value::Array(values)) => values.len(),
            _ => 1,
        };
        let planned = (length("tau") * length("seeds")).max(runs.len());
        let mut seconds = training_seconds(&runs);
        seconds.extend(read_seconds(&folder.join("times.jsonl")));
        Ok(Study {
            command: std::fs::read_to_string(folder.join("command.txt"))
                .ok()
                .map(|text| text.trim().to_owned()),
            runs,
            planned,
            compare: read_tables(&folder.join("compare"))?,
            theory: read_tables(&folder.join("theory"))?,
            seconds,
            settings,
        })
    }

    /// Whether everything that was planned is there.
    pub fn is_complete(&self) -> bool {
        self.compare.contains_key("claims") && self.trained() == self.planned
    }

    /// Runs that are trained to the end.
    pub fn trained(&self) -> usize {
        self.runs.iter().filter(|run| run.is_trained()).count()
    }

    /// A setting as text, or a dash.
    pub fn setting(&self, key: &str) -> String {
        self.settings.text_of(key).unwrap_or_else(|| "–".to_owned())
    }

    /// What the study is called.
    pub fn name(&self) -> String {
        self.settings.text_of("name").or_else(|| self.settings.text_of("dataset")).unwrap_or_default()
    }

    /// The membrane time constants of the runs, from most to least leak.
    pub fn taus(&self) -> Vec<String> {
        let mut taus: Vec<String> = self.runs.iter().map(|run| run.tau.clone()).collect();
        taus.dedup();
        taus
    }

    /// The first run of each membrane time constant.
    pub fn first_of_each_tau(&self) -> Vec<&Run> {
        let mut found: Vec<&Run> = Vec::new();
        for run in &self.runs {
            if found.last().is_none_or(|last| last.tau != run.tau) {
                found.push(run);
            }
        }
        found
    }
}

/// Whether a list of the settings has this value; a setting that is no list excludes nothing.
fn listed(settings: &Manifest, key: &str, value: &str) -> bool {
    let text = |item: &toml::Value| match item {
        toml::Value::Float(x) => number_text(*x),
        other => other.to_string(),
    };
    match settings.settings.get(key) {
        Some(toml::Value::Array(items)) => items.iter().any(|item| text(item) == value),
        _ => true,
    }
}

/// A membrane time constant's place among others: most leak first.
pub fn order(tau: &str) -> f64 {
    tau.parse().unwrap_or(f64::INFINITY)
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(ReportError::Io { path: folder.to_owned(), action: "cannot be read", source });
        }
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn read_tables(folder: &Path) -> Result<Tables, ReportError> {
    let mut tables = Tables::new();
    for path in list(folder)? {
        if path.extension().is_some_and(|ending| ending == "json") {
            let table = Table::read(&path)?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            tables.insert(name, table);
        }
    }
    Ok(tables)
}

fn read_run(folder: &RunFolder) -> Result<Run, ReportError> {
    let manifest = Manifest::read(&folder.run_toml())?;
    let text = |key: &str| manifest.text_of(key).unwrap_or_default();
    Ok(Run {
        name: folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        tau: text("tau"),
        seed: text("seed"),
        planned_epochs: manifest.settings.get("epochs").and_then(toml::Value::as_integer).unwrap_or(0) as u64,
        epochs: metrics::read(&folder.metrics())?,
        notices: health::read(&folder.health())?,
        tables: read_tables(&folder.analysis())?,
    })
}

fn training_seconds(runs: &[Run]) -> Vec<(String, f64)> {
    let seconds = runs.iter().flat_map(|run| &run.epochs).map(|epoch| epoch.seconds).sum();
    vec![("training".to_owned(), seconds)]
}

/// Lines `{"what": .., "seconds": ..}`; times are a courtesy, so a line that cannot be read is passed over.
fn read_seconds(path: &Path) -> Vec<(String, f64)> {
    let mut sums: Vec<(String, f64)> = Vec::new();
    for line in std::fs::read_to_string(path).unwrap_or_default().lines() {
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
