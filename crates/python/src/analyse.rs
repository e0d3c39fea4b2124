//! Analyses as arrays, the comparison of runs, and the page.

use crate::convert::columns;
use crate::network::leak_change;
use crate::{arguments, fault, polling_signals, warn};
use leaklab_engine::Isa;
use leaklab_lab::analysis::compare::compare_folders;
use leaklab_lab::analysis::mechanism::sentences;
use leaklab_lab::analysis::{self, Analysis, Options, mechanism};
use leaklab_lab::run::{TrainedRun, Weights};
use leaklab_lab::study::{Members, check_unedited, members};
use leaklab_lab::train::threads as pool;
use leaklab_record::{NoiseKey, RunFolder, StudyFolder, Table};
use leaklab_report::study::records::Study;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Runs an analysis of a trained run, or of a study, and returns its tables.
///
/// ``name`` is an analysis (robustness, generalisation, activity, energy) or one of the tables of an analysis
/// (robustness_summary, input_spectrum, critical_frequency, ...); the table is returned as a dict of arrays,
/// ready for ``pandas.DataFrame``. ``"all"``, ``"mechanism"``, ``"spectrum"`` and ``"example"`` return a dict
/// of all their tables.
///
/// ``run`` is the folder of a run. ``"mechanism"``, which measures where robustness comes from, also accepts
/// the folder of a study: its networks are run with each other's leaks, so that their differences can be
/// explained.
///
/// All tables are written into the run's ``analysis`` folder, or into the study's ``compare`` folder;
/// ``tables`` reads them. With ``best=True`` they are made from the weights of the epoch with the highest
/// test accuracy, and written into a folder ``best`` within it. ``noise`` lists noises to test besides those
/// of the settings, such as ``["deletion/channel"]``. ``images`` is the number of test images, if not all.
/// Finished passes over the images are stored: after Ctrl-C, the same call continues.
#[pyfunction]
#[pyo3(
    signature = (run, name, *, images=None, noise=Vec::new(), best=false, data_dir=None, threads=None,
        tau=None, layer_tau=None, readout_tau=None),
    text_signature = "(run, name, *, images=None, noise=(), best=False, data_dir=None, threads=None, \
        tau=None, layer_tau=None, readout_tau=None)",
)]
#[allow(clippy::too_many_arguments)]
pub fn analyse<'py>(
    py: Python<'py>,
    run: PathBuf,
    name: &str,
    #[pyo3(from_py_with = arguments::images)] images: Option<usize>,
    #[pyo3(from_py_with = arguments::names)] noise: Vec<String>,
    best: bool,
    data_dir: Option<PathBuf>,
    #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
    tau: Option<f64>,
    #[pyo3(from_py_with = arguments::layer_tau)] layer_tau: Option<BTreeMap<String, f64>>,
    readout_tau: Option<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let leak = leak_change(tau, layer_tau, readout_tau)?;
    let why = name == "mechanism";
    if why && !leak.is_empty() {
        return Err(fault("mechanism varies the leak itself; omit tau, layer_tau and readout_tau"));
    }
    let named = |name: &String| name.parse().map_err(|e| fault(format!("noise is '{name}': {e}")));
    let noise = noise.iter().map(named).collect::<PyResult<Vec<NoiseKey>>>()?;
    let chosen: Vec<Analysis> = match (name, Analysis::of_table(name)) {
        ("all", _) => Analysis::ALL.into(),
        ("mechanism", _) => Vec::new(),
        (_, Some(analysis)) => vec![analysis],
        (_, None) => vec![name.parse::<Analysis>().map_err(fault)?],
    };
    let weights = Weights::of(best);
    let study = study_at(&run);
    match &study {
        Some(_) if !why => {
            let only = "a whole study has the analysis mechanism only; give the folder of one of its runs";
            return Err(fault(format!("{}: {only}", run.display())));
        }
        Some(_) => {}
        None => {
            if let Some(notice) = py.detach(|| TrainedRun::open(&run, weights)).map_err(fault)?.notice {
                warn(py, &notice)?;
            }
        }
    }
    let pool = Arc::new(pool(threads).map_err(fault)?);
    let made = polling_signals(py, |stopped| -> PyResult<Vec<Table>> {
        let options = Options { images, noise, weights, leak, data_dir, pool, isa: Isa::best() };
        let report = &mut |_: &analysis::Advance| !stopped.load(Ordering::Relaxed);
        match &study {
            Some(study) => {
                let Members { runs, baseline } = members(std::slice::from_ref(&run)).map_err(fault)?;
                let _lock = study.lock().map_err(fault)?;
                mechanism::study(&runs, baseline.as_deref(), &study.compare(), &options, report)
            }
            None if why => mechanism::run(&run, &options, report),
            None => analysis::analyse(&run, &chosen, &options, report),
        }
        .map_err(fault)
    })??;
    if why || name == "all" {
        return dict_of(py, &made);
    }
    // An analysis such as spectrum has several tables, none of which has its name.
    match made.iter().find(|table| table.name == name) {
        Some(table) => columns(py, table),
        None => dict_of(py, &made),
    }
}

/// The study in a folder, if there is one.
fn study_at(folder: &Path) -> Option<StudyFolder> {
    Some(StudyFolder::at(folder)).filter(|study| study.exists() && !RunFolder::at(folder).exists())
}

/// Tables as a dict, by their names.
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

/// Every table of a run (in its ``analysis`` folder) or of a study (in ``compare``): a dict of dicts of
/// arrays, by the tables' names.
#[pyfunction]
#[pyo3(signature = (run))]
pub fn tables(py: Python<'_>, run: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let folder = match study_at(&run) {
        Some(study) => study.compare(),
        None => RunFolder::open(&run).map_err(fault)?.analysis(),
    };
    read_all(py, &folder)
}

/// Compares several analysed runs and judges the paper's claims; returns all tables.
///
/// ``runs`` are folders of runs, or the folder of a study. The tables are written into ``out``; if it is not
/// given, those of a study are written into its ``compare`` folder. ``baseline`` names the condition that
/// others are compared with; if it is not given, it is the study's own, or the one with the least leak.
#[pyfunction]
#[pyo3(signature = (runs, out=None, *, baseline=None))]
pub fn compare<'py>(
    py: Python<'py>,
    runs: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::out)] out: Option<PathBuf>,
    baseline: Option<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let given: Vec<PathBuf> = match runs.extract::<PathBuf>() {
        Ok(one) => vec![one],
        Err(_) => runs.extract().map_err(|_| fault("runs must be a folder or a list of folders"))?,
    };
    for folder in given.iter().filter(|folder| study_at(folder).is_none()) {
        RunFolder::open(folder).map_err(fault)?;
    }
    let of_study = match &given[..] {
        [one] => study_at(one).map(|study| study.compare()),
        _ => None,
    };
    let out = out.or(of_study).ok_or_else(|| fault("give the folder for the tables with out="))?;
    let tables = py.detach(|| -> PyResult<Vec<Table>> {
        let Members { runs, baseline: own } = members(&given).map_err(fault)?;
        let mut tables = compare_folders(&runs, baseline.or(own).as_deref(), &out).map_err(fault)?;
        if let [study] = &given[..] {
            let renewed = sentences::renew(&StudyFolder::at(study).compare(), &out).map_err(fault)?;
            tables.extend(renewed.map(|table| table.table()));
        }
        Ok(tables)
    })?;
    dict_of(py, &tables)
}

/// Writes the page of a study, finished or not, or of a single run, and returns its path.
#[pyfunction]
#[pyo3(signature = (folder, out=None))]
pub fn report(py: Python<'_>, folder: PathBuf, out: Option<PathBuf>) -> PyResult<PathBuf> {
    let out = out.unwrap_or_else(|| folder.join("report.html"));
    py.detach(|| -> PyResult<PathBuf> {
        let study = Study::read(&folder).map_err(fault)?;
        check_unedited(&StudyFolder::at(&folder)).map_err(fault)?;
        leaklab_report::study::write_page(&study, &out, None).map_err(fault)?;
        Ok(out)
    })
}
