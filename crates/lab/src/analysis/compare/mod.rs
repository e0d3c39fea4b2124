//! Several runs (conditions x seeds) side by side: means over seeds, paired contrasts between conditions, the
//! claims.
//!
//! Reads only what the runs' own analyses wrote, so it takes no time and can be repeated. Runs of one seed
//! share initial weights, image order and input spikes: conditions are compared pair by pair, seed by seed.

mod conditions;
mod further;
mod load;
mod tables;
mod values;

pub use conditions::Group;
pub use load::{compare_folders, load};
pub use values::Comparison;

use super::claims;
use crate::config::RunConfig;
use leaklab_record::health::Notice;
use leaklab_record::metrics::Epoch;
use leaklab_record::tables::{
    ActivityRow, ActivitySummaryRow, CorrectnessRow, CriticalSummaryRow, GeneralisationSummaryRow,
    RobustnessRow, RobustnessSummaryRow,
};
use leaklab_record::{RunKey, Table};

/// What a comparison needs to know of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Name of the run's folder.
    pub name: String,
    /// Its settings.
    pub config: RunConfig,
    /// Lines of `metrics.jsonl`.
    pub epochs: Vec<Epoch>,
    /// Lines of `health.jsonl`.
    pub notices: Vec<Notice>,
    /// Table `robustness`.
    pub robustness: Vec<RobustnessRow>,
    /// Table `correctness`.
    pub correctness: Vec<CorrectnessRow>,
    /// Table `robustness_summary`.
    pub robustness_summary: Vec<RobustnessSummaryRow>,
    /// Table `generalisation_summary`.
    pub generalisation_summary: Vec<GeneralisationSummaryRow>,
    /// Table `activity`.
    pub activity: Vec<ActivityRow>,
    /// Table `activity_summary`.
    pub activity_summary: Vec<ActivitySummaryRow>,
    /// Table `critical_frequency_summary`.
    pub critical_summary: Vec<CriticalSummaryRow>,
}

impl RunRecord {
    /// A run of which nothing but its settings is known.
    pub fn new(config: RunConfig) -> Self {
        RunRecord {
            name: config.folder_name(),
            config,
            epochs: Vec::new(),
            notices: Vec::new(),
            robustness: Vec::new(),
            correctness: Vec::new(),
            robustness_summary: Vec::new(),
            generalisation_summary: Vec::new(),
            activity: Vec::new(),
            activity_summary: Vec::new(),
            critical_summary: Vec::new(),
        }
    }

    /// Which run it is.
    pub fn key(&self) -> RunKey {
        self.config.key()
    }
}

/// Why runs cannot be compared.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum CompareError {
    /// Nothing was given.
    #[error("there is no run to compare; give at least one run folder")]
    NoRuns,
    /// Runs are of different data sets or networks.
    #[error(
        "{a} and {b} differ in {key} ({value_a}, {value_b}); only runs of one data set and network compare"
    )]
    Mixed {
        /// The one run.
        a: String,
        /// The other.
        b: String,
        /// The setting.
        key: &'static str,
        /// Its value in the one.
        value_a: String,
        /// Its value in the other.
        value_b: String,
    },
    /// Two runs have the same condition and seed.
    #[error(
        "{a} and {b} are both '{condition}' with seed {seed}; give one of them, or name their conditions"
    )]
    Twice {
        /// The one run.
        a: String,
        /// The other.
        b: String,
        /// Their condition.
        condition: String,
        /// Their seed.
        seed: u64,
    },
    /// No run is of the condition that should be the baseline.
    #[error("no run is of the condition '{name}', which others should be compared with; there are {known}")]
    NoBaseline {
        /// The name.
        name: String,
        /// The conditions there are.
        known: String,
    },
}

/// Compares runs and judges the claims; the tables are to be written into the study's `compare` folder.
pub fn compare(runs: &[RunRecord], baseline: Option<&str>) -> Result<Vec<Table>, CompareError> {
    check(runs)?;
    let comparison = Comparison::new(runs, baseline)?;
    let (claims, answer) = claims::judge(&comparison);
    let mut tables = tables::all(&comparison);
    tables.extend([claims.table(), answer.table(), further::rows(&comparison).table()]);
    if let Some(note) = seeds_note(&comparison) {
        tables.iter_mut().for_each(|table| table.notes.push(note.clone()));
    }
    Ok(tables)
}

fn check(runs: &[RunRecord]) -> Result<(), CompareError> {
    let first = runs.first().ok_or(CompareError::NoRuns)?;
    for (i, run) in runs.iter().enumerate() {
        let network = |run: &RunRecord| run.config.network.to_string();
        for (key, a, b) in [
            ("dataset", first.config.dataset.clone(), run.config.dataset.clone()),
            ("network", network(first), network(run)),
        ] {
            if a != b {
                let (value_a, value_b) = (a, b);
                let (a, b) = (first.name.clone(), run.name.clone());
                return Err(CompareError::Mixed { a, b, key, value_a, value_b });
            }
        }
        let RunKey { condition, seed } = run.key();
        if let Some(other) = runs[..i].iter().find(|other| other.key() == run.key()) {
            let (a, b) = (other.name.clone(), run.name.clone());
            return Err(CompareError::Twice { a, b, condition, seed });
        }
    }
    Ok(())
}

fn seeds_note(comparison: &Comparison) -> Option<String> {
    let single: Vec<&str> = comparison
        .groups()
        .iter()
        .filter(|group| group.runs.len() < super::contrast::MINIMUM_PAIRS)
        .map(|group| group.row.condition.as_str())
        .collect();
    (!single.is_empty()).then(|| {
        format!(
            "An interval over seeds needs at least {} runs of a condition; {} has one, so those cells are empty.",
            super::contrast::MINIMUM_PAIRS,
            single.join(", ")
        )
    })
}
