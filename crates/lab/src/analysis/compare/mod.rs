//! Comparison of several runs (conditions x seeds): means over seeds, paired contrasts between conditions,
//! and the claims.
//!
//! It reads only the tables of the runs' own analyses, so it is quick and can be repeated. Runs of one seed
//! share initial weights, image order and input spikes, so conditions are compared in pairs of the same seed.

mod conditions;
mod further;
mod load;
mod tables;
mod values;

pub use conditions::Group;
pub(crate) use conditions::default_baseline;
pub use load::{compare_folders, load};
pub(crate) use load::{is_complete, read};
pub use values::Comparison;

use super::{Analysis, claims};
use crate::config::{KEYS, RunConfig};
use crate::data;
use leaklab_record::health::Notice;
use leaklab_record::metrics::Epoch;
use leaklab_record::tables::{
    ActivityRow, ActivitySummaryRow, CorrectnessRow, CriticalSummaryRow, GeneralisationSummaryRow,
    RobustnessRow, RobustnessSummaryRow,
};
use leaklab_record::{RunKey, Table};

/// What a comparison needs from a run.
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
    /// Number of images with which activity was measured, if it is known.
    pub activity_images: Option<u64>,
    /// Table `activity`.
    pub activity: Vec<ActivityRow>,
    /// Table `activity_summary`.
    pub activity_summary: Vec<ActivitySummaryRow>,
    /// Table `critical_frequency_summary`.
    pub critical_summary: Vec<CriticalSummaryRow>,
}

impl RunRecord {
    /// A run of which only the settings are known.
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
            activity_images: None,
            activity: Vec::new(),
            activity_summary: Vec::new(),
            critical_summary: Vec::new(),
        }
    }

    /// Number of test images that an analysis used, if it is known.
    pub(crate) fn images(&self, analysis: Analysis) -> Option<u64> {
        match analysis {
            Analysis::Robustness => self.correctness.first().map(|row| row.correct.len() as u64),
            Analysis::Activity | Analysis::Energy => self.activity_images,
            Analysis::Spectrum => self.critical_summary.first().map(|row| row.images + row.left_out),
            Analysis::Generalisation | Analysis::Example => None,
        }
    }

    /// Condition and seed of the run.
    pub fn key(&self) -> RunKey {
        self.config.key()
    }
}

/// Why runs cannot be compared.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum CompareError {
    /// No run was given.
    #[error("there is no run to compare; give at least one run folder")]
    NoRuns,
    /// Runs have different data sets or networks, or were measured in different ways.
    #[error(
        "{a} and {b} differ in {key} ({value_a}, {value_b}); only runs of one data set and network that were \
         measured alike can be compared"
    )]
    Mixed {
        /// The first run.
        a: String,
        /// The second run.
        b: String,
        /// The setting.
        key: &'static str,
        /// Its value in the first run.
        value_a: String,
        /// Its value in the second run.
        value_b: String,
    },
    /// Runs of one condition differ in more than their seed.
    #[error(
        "{a} and {b} are both '{condition}' but differ in {difference}; give them different condition names, \
         or omit one of them"
    )]
    Unlike {
        /// The first run.
        a: String,
        /// The second run.
        b: String,
        /// Their condition.
        condition: String,
        /// The setting, with its values in the first and in the second run.
        difference: String,
    },
    /// Runs were analysed with different numbers of test images.
    #[error(
        "{a} was analysed with {images_a} test samples and {b} with {images_b} ({analysis}); analyse both \
         with the same number, or measure the runs of a study again with `leaklab study --out STUDY`"
    )]
    Images {
        /// The analysis.
        analysis: Analysis,
        /// The first run.
        a: String,
        /// The second run.
        b: String,
        /// Test images of the first run.
        images_a: u64,
        /// Test images of the second run.
        images_b: u64,
    },
    /// Two runs have the same condition and seed.
    #[error(
        "{a} and {b} are both '{condition}' with seed {seed}; omit one of them, or give them different \
         condition names"
    )]
    Twice {
        /// The first run.
        a: String,
        /// The second run.
        b: String,
        /// Their condition.
        condition: String,
        /// Their seed.
        seed: u64,
    },
    /// No run has the condition that should be the baseline.
    #[error("no run has the condition '{name}', which is to be the baseline; the conditions are {known}")]
    NoBaseline {
        /// The name.
        name: String,
        /// The conditions of the runs.
        known: String,
    },
}

/// Compares runs and judges the claims. The caller writes the tables to the study's `compare` folder.
pub fn compare(runs: &[RunRecord], baseline: Option<&str>) -> Result<Vec<Table>, CompareError> {
    check(runs)?;
    let comparison = Comparison::new(runs, baseline)?;
    let (claims, answer) = claims::judge(&comparison);
    let mut tables = tables::all(&comparison);
    tables.extend([claims.table(), answer.table(), further::rows(&comparison).table()]);
    let notes = [seeds_note(&comparison), validation_note(&comparison), epochs_note(runs)];
    for note in notes.into_iter().flatten() {
        tables.iter_mut().for_each(|table| table.notes.push(note.clone()));
    }
    Ok(tables)
}

/// Settings in which all runs of a comparison must agree: they were tested with the same images, in the same
/// way. Errors at the end of training are means over the epochs that were evaluated, and training SSE is that
/// of the training images that were evaluated with them.
const ALIKE: [&str; 10] = [
    "dataset",
    "data_sha256",
    "validation",
    "test_limit",
    "network",
    "severity",
    "presentations",
    "presentation_seed",
    "evaluate_every",
    "evaluate_train_images",
];

fn check(runs: &[RunRecord]) -> Result<(), CompareError> {
    let first = runs.first().ok_or(CompareError::NoRuns)?;
    let words = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
    for (i, run) in runs.iter().enumerate() {
        for key in KEYS.iter().filter(|key| ALIKE.contains(&key.name)) {
            let (a, b) = (key.text(&first.config), key.text(&run.config));
            // Earlier versions did not store the digest of the publishers' data sets.
            let unknown = key.name == "data_sha256"
                && (a.is_none() || b.is_none())
                && data::table::find(&run.config.dataset).is_ok_and(|info| info.source.is_published());
            if a != b && !unknown {
                let (value_a, value_b) = (words(a), words(b));
                let (a, b) = (first.name.clone(), run.name.clone());
                return Err(CompareError::Mixed { a, b, key: key.name, value_a, value_b });
            }
        }
        let condition = run.config.condition_name();
        let sibling = runs[..i].iter().find(|other| other.config.condition_name() == condition);
        if let Some(other) = sibling
            && let Some((key, value_b)) =
                conditions::differences(&run.config, &other.config).into_iter().next()
        {
            let value_a = words(KEYS.iter().find(|k| k.name == key).and_then(|key| key.text(&other.config)));
            let (a, b) = (other.name.clone(), run.name.clone());
            let difference = format!("{key} ({value_a}, {value_b})");
            return Err(CompareError::Unlike { a, b, condition, difference });
        }
        // A probe is not tested under noise.
        for analysis in Analysis::ALL {
            let measured = runs[..i].iter().find(|other| other.images(analysis).is_some());
            if let Some(other) = measured
                && let (Some(images_a), Some(images_b)) = (other.images(analysis), run.images(analysis))
                && images_a != images_b
            {
                let (a, b) = (other.name.clone(), run.name.clone());
                return Err(CompareError::Images { analysis, a, b, images_a, images_b });
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

fn validation_note(comparison: &Comparison) -> Option<String> {
    let share = comparison.run().config.validation;
    (share > 0.0).then(|| {
        format!(
            "The networks were not tested with the test set, but with held-out training images (validation = \
             {share}): wherever it says \"test\", these are meant."
        )
    })
}

fn epochs_note(runs: &[RunRecord]) -> Option<String> {
    let epochs = |run: &RunRecord| (run.epochs.len() as u64, run.config.epochs);
    let partly = runs.iter().filter(|run| epochs(run).0 < epochs(run).1);
    let partly: Vec<String> = partly
        .map(|run| {
            let (done, planned) = epochs(run);
            format!("{} ({done} of {planned})", run.name)
        })
        .collect();
    (!partly.is_empty()).then(|| {
        let runs = partly.join(", ");
        format!("These runs have not been trained for all of their epochs: {runs}.")
    })
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
            "An interval over seeds needs at least {} runs of a condition. These conditions have one, so \
             their cells are empty: {}.",
            super::contrast::MINIMUM_PAIRS,
            single.join(", ")
        )
    })
}
