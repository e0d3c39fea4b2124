//! Advice on which network of a study to use, and how.

use crate::convert::value;
use crate::{arguments, fault, polling_signals};
use leaklab_lab::analysis::{Advance, Options, mechanism};
use leaklab_lab::study::{Members, check_unedited, members};
use leaklab_lab::train::threads as pool;
use leaklab_record::tables::AdviceRow;
use leaklab_record::{NoiseKey, Row, StudyFolder};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The most robust network of a study under a noise, and the leak and readout to run it with.
///
/// ``noise`` is a noise and its scenario, such as ``"gaussian/pixel"``. ``severity`` is 1 to 8; if it is not
/// given, the severity of the study's mechanism tables is used, at which the network without leak has lost
/// half of its excess over chance. ``synops_budget`` is the largest number of synaptic operations per image.
/// ``baseline`` names the condition that others are compared with, in place of the study's own.
///
/// Every trained network is run with every leak of the study. The choice is made on half of the test images,
/// and the accuracy is measured on the other half. Images that were already presented are not presented
/// again.
///
/// Returns a dict with the keys of ``leaklab advise --json``: stimulus, budget, trained and hidden (time
/// constants of the training and of the hidden layers, ``inf`` for no leak), readout, chosen_accuracy,
/// accuracy, low and high (its 95 % interval), gain, gain_low and gain_high (compared with training and
/// running without leak), synops, synops_ratio, spike_rate, candidates, seeds and images.
#[pyfunction]
#[pyo3(signature = (study, noise, *, severity=None, synops_budget=None, baseline=None, data_dir=None,
    threads=None))]
#[allow(clippy::too_many_arguments)]
pub fn advise<'py>(
    py: Python<'py>,
    study: PathBuf,
    noise: &str,
    #[pyo3(from_py_with = arguments::noise_severity)] severity: Option<usize>,
    synops_budget: Option<f64>,
    baseline: Option<String>,
    data_dir: Option<PathBuf>,
    #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let noise: NoiseKey = noise.parse().map_err(|e| fault(format!("noise is '{noise}': {e}")))?;
    if let Some(budget) = synops_budget.filter(|budget| !(budget.is_finite() && *budget > 0.0)) {
        return Err(fault(format!(
            "synops_budget is {budget}; a number of synaptic operations per image above 0 is expected"
        )));
    }
    if !StudyFolder::at(&study).exists() {
        return Err(fault(format!(
            "{}: not the folder of a study; leaklab.study makes one",
            study.display()
        )));
    }
    let pool = Arc::new(pool(threads).map_err(fault)?);
    let advice = polling_signals(py, |stopped| -> PyResult<AdviceRow> {
        check_unedited(&StudyFolder::at(&study)).map_err(fault)?;
        let Members { runs, baseline: own } = members(std::slice::from_ref(&study)).map_err(fault)?;
        let baseline = baseline.or(own);
        let options = Options { data_dir, ..Options::as_trained(pool) };
        let shown = (noise, severity);
        let report = &mut |_: &Advance| !stopped.load(Ordering::Relaxed);
        mechanism::advise(&runs, baseline.as_deref(), &options, shown, synops_budget, report).map_err(fault)
    })??;
    let dict = PyDict::new(py);
    for (column, cell) in AdviceRow::COLUMNS.iter().zip(advice.cells()) {
        dict.set_item(column.0, value(py, &cell, column.1)?)?;
    }
    Ok(dict)
}
