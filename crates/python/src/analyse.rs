//! What a trained run is worth: evaluation, and every analysis as arrays.

use crate::convert::{columns, object};
use crate::dataset::named_noise;
use crate::fault;
use crate::network::{leak_change, warn};
use leaklab_engine::{Isa, Packed};
use leaklab_lab::analysis::{self, Analysis, AnalysisError, Options};
use leaklab_lab::evaluate as lab;
use leaklab_lab::run::{TrainedRun, Weights};
use leaklab_lab::train::threads as pool;
use leaklab_record::{NoiseKey, RunFolder, Table};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Accuracy of a trained run on its test set, clean or under noise; a dict of images, correct, accuracy,
/// accuracy_low, accuracy_high, sse, spike_rate, synops and layers.
#[pyfunction]
#[pyo3(signature = (run, *, noise=None, scenario=None, severity=0, best=false, train=false, limit=None, data_dir=None,
    threads=None, tau=None, layer_tau=None, readout_tau=None))]
#[allow(clippy::too_many_arguments)]
pub fn evaluate<'py>(
    py: Python<'py>,
    run: PathBuf,
    noise: Option<&str>,
    scenario: Option<&str>,
    severity: usize,
    best: bool,
    train: bool,
    limit: Option<usize>,
    data_dir: Option<PathBuf>,
    threads: Option<usize>,
    tau: Option<f64>,
    layer_tau: Option<BTreeMap<String, f64>>,
    readout_tau: Option<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let leak = leak_change(tau, layer_tau, readout_tau)?;
    let named = named_noise(noise, scenario)?;
    let weights = if best { Weights::Best } else { Weights::Last };
    let (evaluation, epoch, condition, notice) = py.detach(|| -> PyResult<_> {
        let mut run = TrainedRun::open(&run, weights).map_err(fault)?;
        run.change_leak(&leak).map_err(fault)?;
        let place = if train { &mut run.config.train_limit } else { &mut run.config.test_limit };
        *place = limit.or(*place);
        run.config.data_dir = data_dir.or(run.config.data_dir);
        let setting = match named {
            Some((noise, scenario)) => {
                run.config.severities.setting(noise, scenario, severity).map_err(fault)?
            }
            None => None,
        };
        let dataset = run.dataset().map_err(fault)?;
        let mut presentation = lab::presentation(&run.config, &dataset);
        presentation.encoding = presentation.encoding.with_noise(setting);
        let packed = Packed::new(&run.network, Isa::best()).map_err(fault)?;
        let split = if train { &dataset.train } else { &dataset.test };
        let mut interrupted = None;
        let result = lab::evaluate(
            &packed,
            &run.config.network,
            &presentation,
            split,
            &pool(threads).map_err(fault)?,
            &mut |_| {
                interrupted = Python::attach(|py| py.check_signals()).err();
                interrupted.is_none()
            },
        );
        let evaluation = result.map_err(fault)?;
        let condition = match (named, setting) {
            (Some((noise, scenario)), Some(_)) => format!("{noise}/{scenario}/{severity}"),
            _ => "clean".to_owned(),
        };
        let stopped = || interrupted.unwrap_or_else(|| PyKeyboardInterrupt::new_err(()));
        Ok((evaluation.ok_or_else(stopped)?, run.position.epoch, condition, run.notice))
    })?;
    notice.map_or(Ok(()), |notice| warn(py, &notice))?;
    Ok(object(py, &evaluation.object(epoch, &condition))?.cast_into()?)
}

/// Runs an analysis of a trained run and returns one of its tables as a dict of arrays, ready for
/// ``pandas.DataFrame``.
///
/// ``name`` is an analysis (robustness, generalisation, activity, energy) or one of the tables that an
/// analysis leaves (robustness_summary, input_spectrum, critical_frequency, ...). All tables are written into
/// the run's
/// ``analysis`` folder; ``tables`` reads them all. ``noise`` lists noises to test besides those of the run's
/// settings, such as ``["deletion/channel"]``.
#[pyfunction]
#[pyo3(signature = (run, name, *, images=None, noise=Vec::new(), best=false, data_dir=None, threads=None, tau=None,
    layer_tau=None, readout_tau=None))]
#[allow(clippy::too_many_arguments)]
pub fn analyse<'py>(
    py: Python<'py>,
    run: PathBuf,
    name: &str,
    images: Option<usize>,
    noise: Vec<String>,
    best: bool,
    data_dir: Option<PathBuf>,
    threads: Option<usize>,
    tau: Option<f64>,
    layer_tau: Option<BTreeMap<String, f64>>,
    readout_tau: Option<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let leak = leak_change(tau, layer_tau, readout_tau)?;
    let noise = noise.iter().map(|name| name.parse().map_err(fault)).collect::<PyResult<Vec<NoiseKey>>>()?;
    let chosen = match Analysis::of_table(name) {
        Some(analysis) => analysis,
        None => name.parse::<Analysis>().map_err(fault)?,
    };
    let weights = if best { Weights::Best } else { Weights::Last };
    if let Some(notice) = py.detach(|| TrainedRun::open(&run, weights)).map_err(fault)?.notice {
        warn(py, &notice)?;
    }
    let mut interrupted = None;
    let made = py.detach(|| -> PyResult<_> {
        let pool = Arc::new(pool(threads).map_err(fault)?);
        let options = Options { images, noise, weights, leak, data_dir, pool, isa: Isa::best() };
        let report = &mut |_: &analysis::Advance| {
            interrupted = Python::attach(|py| py.check_signals()).err();
            interrupted.is_none()
        };
        Ok(analysis::analyse(&run, &[chosen], &options, report))
    })?;
    let made = match (made, interrupted) {
        (Err(AnalysisError::Interrupted), Some(error)) => return Err(error),
        (made, _) => made.map_err(fault)?,
    };
    match made.iter().find(|table| table.name == name) {
        Some(table) => columns(py, table),
        None => {
            let names: Vec<&str> = made.iter().map(|table| table.name.as_str()).collect();
            Err(fault(format!("analysis '{name}' has the tables {}; name one of them", names.join(", "))))
        }
    }
}

/// Every table in a run's ``analysis`` folder: a dict of dicts of arrays, by the tables' names.
#[pyfunction]
pub fn tables(py: Python<'_>, run: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let folder = RunFolder::open(&run).map_err(fault)?.analysis();
    let mut paths = Vec::new();
    if folder.is_dir() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "json") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let all = PyDict::new(py);
    for path in paths {
        let table = Table::read(&path).map_err(fault)?;
        all.set_item(&table.name, columns(py, &table)?)?;
    }
    Ok(all)
}
