//! Every analysis as arrays, the comparison of runs, and the page.

use crate::convert::columns;
use crate::fault;
use crate::network::leak_change;
use crate::warn;
use leaklab_engine::Isa;
use leaklab_lab::analysis::compare::compare_folders;
use leaklab_lab::analysis::{self, Analysis, AnalysisError, Options, mechanism};
use leaklab_lab::run::{TrainedRun, Weights};
use leaklab_lab::train::threads as pool;
use leaklab_record::{NoiseKey, RunFolder, StudyFolder, Table};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs an analysis of a trained run and returns one of its tables as a dict of arrays, ready for
/// ``pandas.DataFrame``.
///
/// ``name`` is an analysis (robustness, generalisation, activity, energy), one of the tables that an analysis leaves
/// (robustness_summary, input_spectrum, critical_frequency, ...), or ``"all"`` or ``"mechanism"``, which return a dict
/// of all their tables. All tables are written into the run's ``analysis`` folder; ``tables`` reads them. ``noise``
/// lists noises to test besides those of the run's settings, such as ``["deletion/channel"]``.
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
    let why = name == "mechanism";
    if why && !leak.is_empty() {
        return Err(fault("mechanism tries every leak itself; leave out tau, layer_tau and readout_tau"));
    }
    if images == Some(0) {
        return Err(fault("images is 0; at least 1 is expected"));
    }
    let noise = noise.iter().map(|name| name.parse().map_err(fault)).collect::<PyResult<Vec<NoiseKey>>>()?;
    let chosen: Vec<Analysis> = match (name, Analysis::of_table(name)) {
        ("all", _) => Analysis::ALL.into(),
        ("mechanism", _) => Vec::new(),
        (_, Some(analysis)) => vec![analysis],
        (_, None) => vec![name.parse::<Analysis>().map_err(fault)?],
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
        Ok(match why {
            true => mechanism::run(&run, &options, report),
            false => analysis::analyse(&run, &chosen, &options, report),
        })
    })?;
    let made = match (made, interrupted) {
        (Err(AnalysisError::Interrupted), Some(error)) => return Err(error),
        (made, _) => made.map_err(fault)?,
    };
    if why || name == "all" {
        return dict_of(py, &made);
    }
    match made.iter().find(|table| table.name == name) {
        Some(table) => columns(py, table),
        None => {
            let names: Vec<&str> = made.iter().map(|table| table.name.as_str()).collect();
            Err(fault(format!("analysis '{name}' has the tables {}; name one of them", names.join(", "))))
        }
    }
}

/// Tables by their names.
fn dict_of<'py>(py: Python<'py>, tables: &[Table]) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for table in tables {
        all.set_item(&table.name, columns(py, table)?)?;
    }
    Ok(all)
}

/// Every table of a folder.
fn read_all<'py>(py: Python<'py>, folder: &Path) -> PyResult<Bound<'py, PyDict>> {
    let mut paths = Vec::new();
    if folder.is_dir() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "json") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let tables = paths.iter().map(|path| Table::read(path).map_err(fault)).collect::<PyResult<Vec<_>>>()?;
    dict_of(py, &tables)
}

/// Every table of a run (in its ``analysis`` folder) or of a study (in ``compare``): a dict of dicts of arrays, by the
/// tables' names.
#[pyfunction]
pub fn tables(py: Python<'_>, run: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let study = StudyFolder::at(&run);
    let is_study = !RunFolder::at(&run).exists() && study.exists();
    let folder = if is_study { study.compare() } else { RunFolder::open(&run).map_err(fault)?.analysis() };
    read_all(py, &folder)
}

/// Puts several analysed runs side by side and judges the paper's claims; returns all tables.
///
/// ``runs`` are folders of runs, or the folder of a study. The tables are written into ``out``; a study's into its
/// ``compare`` folder if that is not given. ``baseline`` names the condition that others are compared with.
#[pyfunction]
#[pyo3(signature = (runs, out=None, *, baseline=None))]
pub fn compare<'py>(
    py: Python<'py>,
    runs: &Bound<'py, PyAny>,
    out: Option<PathBuf>,
    baseline: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let given: Vec<PathBuf> = match runs.extract::<PathBuf>() {
        Ok(one) => vec![one],
        Err(_) => runs.extract().map_err(|_| fault("runs must be a folder or a list of folders"))?,
    };
    let mut folders = Vec::new();
    for path in &given {
        let study = StudyFolder::at(path);
        if RunFolder::at(path).exists() || !study.runs().is_dir() {
            folders.push(path.clone());
            continue;
        }
        let mut found: Vec<PathBuf> =
            std::fs::read_dir(study.runs())?.flatten().map(|entry| entry.path()).collect();
        found.retain(|run| RunFolder::at(run).exists());
        found.sort();
        folders.append(&mut found);
    }
    let of_study = || match &given[..] {
        [one] if StudyFolder::at(one).exists() => Some(StudyFolder::at(one).compare()),
        _ => None,
    };
    let out = out.or_else(of_study).ok_or_else(|| fault("say where the tables go with out="))?;
    let tables = py.detach(|| compare_folders(&folders, baseline, &out)).map_err(fault)?;
    dict_of(py, &tables)
}

/// Writes the page of a study, finished or not, or of a single run, and returns its path.
#[pyfunction]
#[pyo3(signature = (folder, out=None))]
pub fn report(py: Python<'_>, folder: PathBuf, out: Option<PathBuf>) -> PyResult<PathBuf> {
    let out = out.unwrap_or_else(|| folder.join("report.html"));
    py.detach(|| leaklab_report::study::write_to(&folder, &out, None)).map_err(fault)
}
