//! Why: where robustness comes from (`docs/specification.md`, section 7).
//!
//! Leak acts in three places, and each can be changed separately: in training, in the hidden layers while the
//! network runs, and in the readout. Networks trained with and without leak are run with and without it, on
//! the same images and input spikes, and the differences are split between the three.
//!
//! [`subject`] runs a network in one way and stores the result; [`subjects`] determines which networks and
//! runs a study needs; each of the other files makes one or two tables from them.

pub mod advise;
pub mod cell;
pub mod colours;
pub mod judge;
pub mod layers;
mod plan;
pub mod readout;
pub mod response;
pub mod sentences;
pub mod shapley;
pub mod split;
pub mod subject;
pub mod subjects;
mod susceptibility;
pub mod windows;

use super::{Advance, AnalysisError, Options, Progress};
use crate::run::Weights;
use leaklab_record::tables::{
    AdviceRow, CellRow, ColourRow, LayerLeakRow, PriceRow, ResponseRow, SplitRow, TimeRow, WHY_CLAIMS,
    WhyRow, WindowRow,
};
use leaklab_record::{NoiseKey, RecordError, Row, RunFolder, Stimulus, Table, table};
use std::path::{Path, PathBuf};
use subjects::{Panel, Subjects};

pub use plan::planned_images;

/// Names of the tables on where robustness comes from.
pub const TABLES: [&str; 11] = [
    WhyRow::TABLE,
    WHY_CLAIMS,
    SplitRow::TABLE,
    PriceRow::TABLE,
    CellRow::TABLE,
    LayerLeakRow::TABLE,
    WindowRow::TABLE,
    TimeRow::TABLE,
    ColourRow::TABLE,
    ResponseRow::TABLE,
    AdviceRow::TABLE,
];

/// Why it cannot be determined where robustness comes from, or which network is best.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MechanismError {
    /// No network without leak to compare with has learned.
    #[error(
        "no finished runs of a condition without leak (tau = inf) have learned, so there is nothing to \
         compare leak with"
    )]
    NoBaseline,
    /// No network with leak to compare has learned.
    #[error(
        "no finished runs of a condition that leaks and otherwise equals the condition without leak (tau = \
         inf) have learned with the same seeds, so there is no gain to split"
    )]
    NoLeak,
    /// No network is within the budget.
    #[error(
        "no network that was measured needs at most {budget:.0} synaptic operations per image; the cheapest \
         needs {cheapest:.0}"
    )]
    Budget {
        /// The budget.
        budget: f64,
        /// What the cheapest network needs.
        cheapest: f64,
    },
    /// One half of the images is empty.
    #[error("there are too few test samples to choose on one half and measure on the other")]
    TooFewImages,
}

/// Makes all tables of a study's runs and writes them to `out`, or with the weights of the best epochs to a
/// folder `best` within it, which the page and comparisons do not read. `report` receives the number of
/// images shown and returns whether to continue.
pub fn study(
    runs: &[PathBuf],
    baseline: Option<&str>,
    out: &Path,
    options: &Options,
    report: &mut dyn FnMut(&Advance) -> bool,
) -> Result<Vec<Table>, AnalysisError> {
    write(Subjects::of_study(runs, baseline, options)?, out, options, report)
}

/// Makes the tables that a single run allows and writes them to its `analysis` folder, see [`study`].
pub fn run(
    run: &Path,
    options: &Options,
    report: &mut dyn FnMut(&Advance) -> bool,
) -> Result<Vec<Table>, AnalysisError> {
    write(Subjects::of_run(run, options)?, &RunFolder::at(run).analysis(), options, report)
}

/// Advice on a study's networks under one noise. If the severity is not set, it is that of the study's
/// tables.
pub fn advise(
    runs: &[PathBuf],
    baseline: Option<&str>,
    options: &Options,
    (noise, severity): (NoiseKey, Option<usize>),
    budget: Option<f64>,
    report: &mut dyn FnMut(&Advance) -> bool,
) -> Result<AdviceRow, AnalysisError> {
    let subjects = Subjects::of_study(runs, baseline, options)?;
    let known =
        subjects.stimuli.iter().copied().find(|s| matches!(s, Stimulus::Noisy(own, _) if *own == noise));
    let stimulus = match severity {
        Some(severity) => Stimulus::at(noise, severity),
        None => known.unwrap_or(Stimulus::at(noise, super::stimulus::SPECTRUM_SEVERITY)),
    };
    let mut progress = Progress::new(report, advise::images(&subjects));
    advise::measure(&subjects, stimulus, budget, &mut progress)
}

fn write(
    mut subjects: Subjects,
    out: &Path,
    options: &Options,
    report: &mut dyn FnMut(&Advance) -> bool,
) -> Result<Vec<Table>, AnalysisError> {
    let out = match options.weights {
        Weights::Last => out.to_owned(),
        Weights::Best => {
            subjects.notes.push("Weights of the epochs with the highest test accuracy.".to_owned());
            table::of_best(out)
        }
    };
    let tables = tables(&subjects, report)?;
    std::fs::create_dir_all(&out).map_err(RecordError::io(&out, "cannot be written"))?;
    tables.iter().try_for_each(|table| table.write(&out))?;
    Ok(tables)
}

/// Makes all tables of some networks.
pub fn tables(
    subjects: &Subjects,
    report: &mut dyn FnMut(&Advance) -> bool,
) -> Result<Vec<Table>, AnalysisError> {
    let mut total = subjects.panel_images();
    if !subjects.recorded() {
        total += colours::images(subjects) + response::images(subjects);
    }
    let mut progress = Progress::new(report, total);
    let panel = Panel::measure(subjects, &mut progress)?;
    // Coloured noise and modulated input are made by the encoder, and recordings are not encoded.
    let (coloured, target) = match subjects.recorded() {
        true => (Vec::new(), f64::NAN),
        false => colours::measure(subjects, &mut progress)?,
    };
    let response = match subjects.recorded() {
        true => response::left_out(),
        false => response::rows(subjects, &mut progress)?,
    };
    let splits = split::splits(subjects, &panel);
    let prices = split::prices(subjects, &panel);
    let layers = layers::rows(subjects, &panel);
    let windows = windows::readouts(subjects, &panel);
    let colours = match subjects.recorded() {
        true => colours::left_out(),
        false => colours::rows(subjects, &coloured, target),
    };
    let claims = judge::judge(subjects, &splits, &coloured);
    let gains = split::gains(subjects, &splits);
    let sentences = sentences::rows(&sentences::Evidence {
        trained: layers::trained(subjects),
        gains: gains.rows.clone(),
        prices: prices.rows.clone(),
        layers: layers.rows.clone(),
        windows: windows.rows.clone(),
        colours: colours.rows.clone(),
        responses: response.rows.clone(),
        claims: claims.rows.clone(),
    });
    let mut tables = vec![
        sentences.table(),
        claims.table_named(WHY_CLAIMS),
        gains.table(),
        prices.table(),
        split::cells(subjects, &panel).table(),
        layers.table(),
        windows.table(),
        windows::time(subjects, &panel).table(),
        colours.table(),
        response.table(),
        advise::rows(subjects, &panel).table(),
    ];
    debug_assert!(tables.iter().map(|table| table.name.as_str()).eq(TABLES));
    for table in &mut tables {
        table.notes.extend(subjects.notes.iter().cloned());
    }
    Ok(tables)
}
