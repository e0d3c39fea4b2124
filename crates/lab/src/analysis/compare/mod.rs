//! Several runs (tau x seed) side by side: means over seeds, paired differences between tau, the claims.
//!
//! Reads only what the runs' own analyses wrote, so it takes no time and can be repeated. Runs of one seed share
//! initial weights, image order and input spikes: tau are compared pair by pair, seed by seed.

mod contrasts;
mod load;
mod series;
mod tables;

pub use load::{compare_folders, load};

use super::claims::{self, Evidence};
use leaklab_record::health::Notice;
use leaklab_record::metrics::Epoch;
use leaklab_record::{Table, number_text};
use std::collections::BTreeMap;

/// What a comparison needs to know of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Name of the run's folder.
    pub name: String,
    /// Membrane time constant in steps; infinite without leak.
    pub tau: f64,
    /// Seed of the run.
    pub seed: u64,
    /// Data set.
    pub dataset: String,
    /// Network notation.
    pub network: String,
    /// Number of classes.
    pub classes: usize,
    /// Lines of `metrics.jsonl`.
    pub epochs: Vec<Epoch>,
    /// Lines of `health.jsonl`.
    pub notices: Vec<Notice>,
    /// Tables of `analysis/` by name.
    pub tables: BTreeMap<String, Table>,
}

/// Why runs cannot be compared.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum CompareError {
    /// Nothing was given.
    #[error("there is no run to compare; give at least one run folder")]
    NoRuns,
    /// Runs differ in something other than tau and seed.
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
    /// Two runs have the same tau and seed.
    #[error("{a} and {b} both have tau {tau} and seed {seed}; give one of them")]
    Twice {
        /// The one run.
        a: String,
        /// The other.
        b: String,
        /// Their tau.
        tau: String,
        /// Their seed.
        seed: u64,
    },
}

/// Compares runs and judges the claims; the tables are to be written into the study's `compare` folder.
pub fn compare(runs: &[RunRecord]) -> Result<Vec<Table>, CompareError> {
    check(runs)?;
    let mut runs: Vec<&RunRecord> = runs.iter().collect();
    runs.sort_by(|a, b| a.tau.total_cmp(&b.tau).then(a.seed.cmp(&b.seed)));
    let mut taus: Vec<String> = runs.iter().map(|run| number_text(run.tau)).collect();
    taus.dedup();
    let series = series::gather(&runs, &taus);
    let differences = contrasts::contrasts(&runs, &taus, &series, false);
    let ratios = contrasts::contrasts(&runs, &taus, &series, true);
    let run_table = tables::run_table(&runs);
    let claims = claims::judge(&Evidence {
        dataset: &runs[0].dataset,
        network: &runs[0].network,
        taus: &taus,
        differences: &differences,
        ratios: &ratios,
        runs: &run_table,
    });
    let mut tables = vec![
        tables::table1(runs[0], &taus, &series),
        tables::robustness_by_tau(&runs, &taus),
        tables::generalisation_by_tau(&runs, &taus),
        tables::equal_train_sse(&runs, &taus),
        tables::norm_by_tau(&taus, &series),
        tables::critical_by_tau(&runs, &taus, &series),
        tables::tradeoff(&taus, &series),
        differences,
        ratios,
        run_table,
        claims,
    ];
    if let Some(note) = seeds_note(&runs, &taus) {
        tables.iter_mut().for_each(|table| table.notes.push(note.clone()));
    }
    Ok(tables)
}

fn check(runs: &[RunRecord]) -> Result<(), CompareError> {
    let first = runs.first().ok_or(CompareError::NoRuns)?;
    for (i, run) in runs.iter().enumerate() {
        for (key, a, b) in
            [("dataset", &first.dataset, &run.dataset), ("network", &first.network, &run.network)]
        {
            if a != b {
                let (value_a, value_b) = (a.clone(), b.clone());
                let (a, b) = (first.name.clone(), run.name.clone());
                return Err(CompareError::Mixed { a, b, key, value_a, value_b });
            }
        }
        if let Some(other) = runs[..i].iter().find(|other| other.tau == run.tau && other.seed == run.seed) {
            let (a, b) = (other.name.clone(), run.name.clone());
            return Err(CompareError::Twice { a, b, tau: number_text(run.tau), seed: run.seed });
        }
    }
    Ok(())
}

fn seeds_note(runs: &[&RunRecord], taus: &[String]) -> Option<String> {
    let single: Vec<&str> = taus
        .iter()
        .filter(|tau| runs.iter().filter(|run| number_text(run.tau) == **tau).count() < claims::MINIMUM_SEEDS)
        .map(String::as_str)
        .collect();
    (!single.is_empty()).then(|| {
        format!(
            "An interval over seeds needs at least {} runs of a tau; tau {} has one, so those cells are empty.",
            claims::MINIMUM_SEEDS,
            single.join(", ")
        )
    })
}
