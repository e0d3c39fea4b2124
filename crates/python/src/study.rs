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
use pyo3::types::PyDict;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Trains every condition and seed, measures, compares, and writes the page that answers the question.
///
/// ``config`` is a dict of settings (``tau`` and ``seeds`` may be lists, ``dataset`` a ``Dataset``), the path
/// of a study file, or the name of a built-in study such as ``"digits"`` or ``"digits-events"``. ``out`` is
/// the study's folder (``leaklab-study/NAME`` if not given); an existing study is continued, and a finished
/// one is left unchanged. ``callback`` is called with a dict for every event but batches, by one thread at a
/// time, which is not the main one; if it returns False (Python's or NumPy's), the study stops with
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
    out: Option<PathBuf>,
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
        // Data without a study are what a call that was refused has left.
        let file = leaklab_lab::data::location::file_name(&data.name).unwrap_or_default();
        keep_data(py, Some(data), &out, folder.exists() && out.join(file).is_file())?;
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
    let told = Mutex::new(Told::default());
    let outcome = polling_signals(py, |interrupted| -> PyResult<(&str, PathBuf)> {
        let watcher = |event: &Event| watch(event, callback.as_ref(), interrupted, &told);
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
    let told = told.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = told.error {
        return Err(error);
    }
    let (outcome, page) = outcome?;
    for (text, runs) in &told.notices {
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

/// What became of a study's events so far.
#[derive(Default)]
struct Told {
    /// The callback returned False or raised an exception; it is not called again.
    stopped: bool,
    /// The exception.
    error: Option<PyErr>,
    /// What users must know, and of which runs; they are warned when the study ends.
    notices: BTreeMap<String, Vec<String>>,
}

/// Tells the callback; several runs' threads come here, one at a time. It answers whether to go on.
fn watch(
    event: &Event,
    callback: Option<&Py<PyAny>>,
    interrupted: &AtomicBool,
    told: &Mutex<Told>,
) -> Control {
    if interrupted.load(Ordering::Relaxed) {
        return Control::Stop;
    }
    let notice = notice(event);
    let value = callback.zip(value(event));
    if value.is_none() && notice.is_none() {
        return Control::Continue;
    }
    // Taken before the GIL, and held while the callback runs: it may release the GIL, and the next one waits.
    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((text, run)) = notice {
        told.notices.entry(text).or_default().push(run.to_owned());
    }
    if let Some((callback, value)) = value.filter(|_| !told.stopped) {
        let answer = Python::attach(|py| -> PyResult<bool> {
            is_false(&callback.bind(py).call1((object(py, &value)?,))?)
        });
        told.stopped = !matches!(answer, Ok(false));
        told.error = answer.err();
    }
    if told.stopped { Control::Stop } else { Control::Continue }
}

/// What `train` would warn of, and the run.
fn notice<'a>(event: &'a Event) -> Option<(String, &'a str)> {
    let Event::Run { name, stage: Stage::Training(event), .. } = event else { return None };
    warning(event).map(|text| (text, *name))
}

/// An event for Python; batches are omitted.
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
        Event::Theory => Some(json!({ "event": "theory" })),
        Event::Mechanism(advance) => Some(analysing("mechanism", advance)),
        Event::NoMechanism(error) => Some(json!({ "event": "notice", "message": error.to_string() })),
        Event::Compared { runs } => Some(json!({ "event": "compared", "runs": runs })),
    }
}
