//! A whole study from Python.

use crate::convert::object;
use crate::train::{describe, is_false, keep_data, settings, warning};
use crate::{abandonable, arguments, fault, polling_signals, warn};
use leaklab_engine::Isa;
use leaklab_lab::analysis::Advance;
use leaklab_lab::config::StudyConfig;
use leaklab_lab::study::{self as lab, Event, Options, Plan, Stage, StudyError};
use leaklab_lab::train::{self, Control, threads as pool};
use leaklab_record::{RecordError, StudyFolder, metrics};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Trains every condition with every seed, measures and compares the networks, and writes the page.
///
/// ``config`` is a dict of settings (``tau`` and ``seeds`` may be lists, ``dataset`` a ``Dataset``), the path
/// of a study file, or the name of a built-in study such as ``"digits"`` or ``"digits-events"``. ``out`` is
/// the study's folder (``leaklab-study/NAME`` if not given); an existing study is continued, and a finished
/// one is left unchanged. ``callback`` is called with a dict for every event except batches, by one thread at
/// a time, which is not the main thread; if it returns False (Python's or NumPy's), the study stops with
/// checkpoints. Ctrl-C does the same and raises ``KeyboardInterrupt``. In both cases the same call continues
/// the study, with bit-identical results.
///
/// Returns a dict: outcome ("finished", or "interrupted" if the callback returned False), report (path of the
/// page), folder, name, and runs (a list of run, condition, seed, epochs and test_accuracy).
/// ``leaklab.tables(folder)`` returns the tables.
#[pyfunction]
#[pyo3(signature = (config, out=None, *, callback=None, threads=None, checkpoint_minutes=10.0))]
pub fn study<'py>(
    py: Python<'py>,
    config: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::out)] out: Option<PathBuf>,
    #[pyo3(from_py_with = arguments::callback)] callback: Option<Py<PyAny>>,
    #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
    checkpoint_minutes: f64,
) -> PyResult<Bound<'py, PyDict>> {
    if checkpoint_minutes.is_nan() || checkpoint_minutes < 0.0 {
        return Err(fault(format!(
            "checkpoint_minutes is {checkpoint_minutes}; a number, 0 or more, is expected"
        )));
    }
    let named = config.extract::<String>().ok();
    let (config, data) = match (&named, config.cast::<PyMapping>()) {
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
                .map_err(|_| fault("config must be a dict, a study file or the name of a study"))?;
            (StudyConfig::load(&path.to_string_lossy(), &[]).map_err(fault)?, None)
        }
    };
    let folder = out.map_or_else(|| StudyFolder::default_for(&config.name), StudyFolder::at);
    let out = folder.path();
    if let Some(data) = &data {
        // A data file without a study is left over from a call that was refused, and is replaced.
        let file = leaklab_lab::data::location::file_name(&data.name).unwrap_or_default();
        keep_data(py, Some(data), out, folder.exists() && out.join(file).is_file())?;
    }
    let threads = pool(threads).map_err(fault)?.current_num_threads();
    let plan = {
        let (config, folder) = (config.clone(), folder.clone());
        abandonable(py, move || Plan::make(&config, &folder, threads).map_err(fault))??
    };
    if let Some(data) = &data
        && plan.config.base.data_sha256.as_ref() != Some(&data.digest())
    {
        let reason = "the existing study has other data; choose another out=";
        return Err(fault(format!("{}: {reason}", out.display())));
    }
    let command = "leaklab.study(...)".to_owned();
    let options = Options { command, checkpoint_minutes, isa: Isa::best() };
    let reports = Mutex::new(Reports::default());
    let outcome = polling_signals(py, |interrupted| -> PyResult<(&str, PathBuf)> {
        let watcher = |event: &Event| watch(event, callback.as_ref(), interrupted, &reports);
        let outcome = lab::run(&plan, &folder, &options, &watcher);
        let page = leaklab_report::study::write(folder.path(), None);
        let outcome = match outcome {
            Ok(()) => "finished",
            Err(StudyError::Interrupted) => "interrupted",
            Err(error) => return Err(fault(error)),
        };
        Ok((outcome, page.map_err(fault)?))
    });
    let outcome = outcome?;
    let reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = reports.error {
        return Err(error);
    }
    let (outcome, page) = outcome?;
    if !plan.omitted.is_empty() {
        let names = plan.omitted.join(", ");
        warn(py, &format!("{}: runs of other conditions or seeds are not compared: {names}", out.display()))?;
    }
    for (text, runs) in &reports.notices {
        warn(py, &format!("{}: {text}", runs.join(", ")))?;
    }
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
        "outcome": outcome, "report": page, "folder": folder.path(), "name": config.name,
        "runs": runs.map_err(fault)?,
    });
    Ok(object(py, &value)?.cast_into()?)
}

/// The results of reporting events so far.
#[derive(Default)]
struct Reports {
    /// Whether the callback returned False or raised an exception; it is then not called again.
    stopped: bool,
    /// The exception.
    error: Option<PyErr>,
    /// Warnings for the user, and their runs; they are issued when the study ends.
    notices: BTreeMap<String, Vec<String>>,
}

/// Passes an event to the callback, and returns whether to continue. The threads of several runs call this;
/// the callback is called by one at a time.
fn watch(
    event: &Event,
    callback: Option<&Py<PyAny>>,
    interrupted: &AtomicBool,
    reports: &Mutex<Reports>,
) -> Control {
    if interrupted.load(Ordering::Relaxed) {
        return Control::Stop;
    }
    let notice = notice(event);
    let value = callback.zip(value(event));
    if value.is_none() && notice.is_none() {
        return Control::Continue;
    }
    // Locked before the GIL is taken, and held while the callback runs: the callback may release the GIL, and
    // other threads then still wait here.
    let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((text, run)) = notice {
        reports.notices.entry(text).or_default().push(run.to_owned());
    }
    if let Some((callback, value)) = value.filter(|_| !reports.stopped) {
        let answer = Python::attach(|py| -> PyResult<bool> {
            is_false(&callback.bind(py).call1((object(py, &value)?,))?)
        });
        reports.stopped = !matches!(answer, Ok(false));
        reports.error = answer.err();
    }
    if reports.stopped { Control::Stop } else { Control::Continue }
}

/// The warning that `train` would issue for an event, and the name of the run.
fn notice<'a>(event: &'a Event) -> Option<(String, &'a str)> {
    let Event::Run { name, stage: Stage::Training(event), .. } = event else { return None };
    warning(event).map(|text| (text, *name))
}

/// An event as a JSON object for Python; batches are omitted.
fn value(event: &Event) -> Option<Value> {
    let analysing = |what: &str, advance: &Advance| {
        json!({
            "event": what, "stimulus": advance.stimulus, "done": advance.done, "total": advance.total,
        })
    };
    match event {
        Event::Run { name, stage, .. } => {
            let mut value = match stage {
                Stage::Training(train::Event::Batch(_)) => return None,
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
        Event::TheoryCurve { .. } => None,
        Event::Theory => Some(json!({ "event": "theory" })),
        Event::Mechanism(advance) => Some(analysing("mechanism", advance)),
        Event::NoMechanism(error) => Some(json!({ "event": "notice", "message": error.to_string() })),
        Event::Compared { runs } => Some(json!({ "event": "compared", "runs": runs })),
    }
}
