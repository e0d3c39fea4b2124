//! A whole study from Python.

use crate::convert::object;
use crate::fault;
use crate::train::{describe, keep_data, settings};
use leaklab_engine::Isa;
use leaklab_lab::analysis::Advance;
use leaklab_lab::config::StudyConfig;
use leaklab_lab::study::{self as lab, Event, Options, Plan, Stage};
use leaklab_lab::train::{Control, threads as pool};
use leaklab_record::{RecordError, StudyFolder, metrics};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Trains every condition and seed, measures, compares, and writes the page that answers the question.
///
/// ``config`` is a dict of settings (``tau`` and ``seeds`` may be lists, ``dataset`` a ``Dataset``), the path of a study
/// file, or the name of a built-in study such as ``"digits"`` or ``"digits-events"``. ``out`` is the study's folder
/// (``leaklab-study/NAME`` if not given); a study that is there goes on, and a finished one is left as it is.
/// ``callback`` is called with a dict for what happens, from one thread at a time; if it returns False, the study stops
/// and can be gone on with.
///
/// Returns a dict: report (path of the page), folder, name, and runs (a list of run, condition, seed, epochs and
/// test_accuracy). ``leaklab.tables(folder)`` gives the tables.
#[pyfunction]
#[pyo3(signature = (config, out=None, *, callback=None, threads=None, checkpoint_minutes=10.0))]
pub fn study<'py>(
    py: Python<'py>,
    config: &Bound<'py, PyAny>,
    out: Option<PathBuf>,
    callback: Option<Py<PyAny>>,
    threads: Option<usize>,
    checkpoint_minutes: f64,
) -> PyResult<Bound<'py, PyDict>> {
    if checkpoint_minutes.is_nan() || checkpoint_minutes < 0.0 {
        return Err(fault(format!(
            "checkpoint_minutes is {checkpoint_minutes}; a number, 0 or more, is expected"
        )));
    }
    let named = config.extract::<String>().ok();
    let (config, data) = match (&named, config.cast::<PyDict>()) {
        (Some(name), _) => (StudyConfig::load(name, &[]).map_err(fault)?, None),
        (None, Ok(_)) => {
            let (settings, data) = settings(config)?;
            let name = settings.text("name").or(settings.text("dataset")).unwrap_or("study").to_owned();
            let name = name.split_once(':').map_or(name.as_str(), |(_, name)| name).to_owned();
            (StudyConfig::resolve(settings, &name).map_err(fault)?, data)
        }
        (None, Err(_)) => {
            let path: PathBuf = config
                .extract()
                .map_err(|_| fault("config must be a dict, a study file or a study's name"))?;
            (StudyConfig::load(&path.to_string_lossy(), &[]).map_err(fault)?, None)
        }
    };
    let plain = config.name.replace(['/', '\\'], "-");
    let out = out.unwrap_or_else(|| PathBuf::from("leaklab-study").join(plain));
    let folder = StudyFolder::at(&out);
    if let Some(data) = &data {
        let file = leaklab_lab::data::location::file_name(&data.name).unwrap_or_default();
        keep_data(py, Some(data), &out, out.join(file).is_file())?;
    }
    let threads = pool(threads).map_err(fault)?.current_num_threads();
    let command = "leaklab.study(...)".to_owned();
    let options = Options { command, checkpoint_minutes, isa: Isa::best() };
    let stopped: Mutex<Option<PyErr>> = Mutex::new(None);
    let page = py.detach(|| -> PyResult<PathBuf> {
        let plan = Plan::make(&config, &folder, threads).map_err(fault)?;
        if let Some(data) = &data
            && plan.config.base.data_sha256.as_ref() != Some(&data.digest())
        {
            let reason = "the study that is there has other data; choose another out=";
            return Err(fault(format!("{}: {reason}", out.display())));
        }
        let watcher = |event: &Event| watch(event, callback.as_ref(), &stopped);
        let outcome = lab::run(&plan, &folder, &options, &watcher);
        let page = leaklab_report::study::write(folder.path(), None);
        outcome.map_err(fault)?;
        page.map_err(fault)
    });
    if let Some(error) = stopped.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let page = page?;
    let runs: Result<Vec<Value>, RecordError> = config
        .runs()
        .iter()
        .map(|run| {
            let epochs = metrics::read(&folder.run(&run.key()).metrics())?;
            let last = epochs.last();
            Ok(json!({
                "run": folder.run(&run.key()).path(),
                "condition": run.condition_name(),
                "seed": run.seed,
                "epochs": last.map_or(0, |epoch| epoch.epoch),
                "test_accuracy": last.and_then(|epoch| epoch.test_accuracy),
            }))
        })
        .collect();
    let value = json!({
        "report": page, "folder": folder.path(), "name": config.name, "runs": runs.map_err(fault)?,
    });
    Ok(object(py, &value)?.cast_into()?)
}

/// Tells the callback, and Python whether Ctrl-C was pressed; one thread at a time.
fn watch(event: &Event, callback: Option<&Py<PyAny>>, stopped: &Mutex<Option<PyErr>>) -> Control {
    let answer = Python::attach(|py| -> PyResult<bool> {
        py.check_signals()?;
        let (Some(callback), Some(value)) = (callback, value(event)) else { return Ok(true) };
        let answer = callback.bind(py).call1((object(py, &value)?,))?;
        Ok(!answer.is(pyo3::types::PyBool::new(py, false)))
    });
    match answer {
        Ok(true) => Control::Continue,
        Ok(false) => Control::Stop,
        Err(error) => {
            let mut stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner);
            stopped.get_or_insert(error);
            Control::Stop
        }
    }
}

/// An event for Python; batches are left out.
fn value(event: &Event) -> Option<Value> {
    let analysing = |what: &str, advance: &Advance| json!({ "event": what, "stimulus": advance.stimulus, "done": advance.done, "total": advance.total });
    match event {
        Event::Run { name, stage, .. } => {
            let mut value = match stage {
                Stage::Training(leaklab_lab::train::Event::Batch(_)) => return None,
                Stage::Training(event) => describe(event),
                Stage::Trained(summary) => json!({ "event": "trained", "epochs": summary.epochs }),
                Stage::Analysing(advance) => analysing("analysing", advance),
                Stage::Analysed => json!({ "event": "analysed" }),
            };
            value["run"] = (*name).into();
            Some(value)
        }
        Event::Waiting { what, holder } => {
            Some(json!({ "event": "waiting", "for": what, "holder": holder.to_string() }))
        }
        Event::Theory => Some(json!({ "event": "theory" })),
        Event::Mechanism(advance) => Some(analysing("mechanism", advance)),
        Event::NoMechanism(error) => Some(json!({ "event": "notice", "message": error.to_string() })),
        Event::Compared { runs } => Some(json!({ "event": "compared", "runs": runs })),
    }
}
