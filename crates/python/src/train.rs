//! Training from Python: settings as a dict or a file, a callback for every event, Ctrl-C that leaves a
//! checkpoint.

use crate::convert::{object, setting};
use crate::fault;
use crate::network::warn;
use leaklab_lab::config::{RunConfig, Settings};
use leaklab_lab::train::{self as lab, Control, Event, Options, Outcome, Summary, TrainError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often Python is asked whether Ctrl-C was pressed.
const SIGNALS: Duration = Duration::from_millis(100);

/// Trains a network into a run folder.
///
/// ``config`` is a dict of settings or the path of a TOML file; what it does not say has the data set's
/// defaults, so
/// ``{"dataset": "digits", "tau": 30}`` is complete. ``out`` is the new run's folder
/// (``runs/DATASET_tau-TAU_seed-SEED`` if not given). ``callback`` is called with a dict for every event
/// ("started", "batch", "evaluated", "health", "epoch", "checkpoint", "notice"); if it returns False,
/// training stops with a checkpoint. So it does on Ctrl-C, and ``resume`` goes on to the same bits.
///
/// Returns a dict: run, outcome ("finished", "interrupted", "diverged"), epochs, best_epoch, best_accuracy,
/// last (the last epoch's metrics) and notices.
#[pyfunction]
#[pyo3(signature = (config, out=None, *, callback=None, threads=None, checkpoint_minutes=10.0, stop_on_divergence=false))]
pub fn train<'py>(
    py: Python<'py>,
    config: &Bound<'py, PyAny>,
    out: Option<PathBuf>,
    callback: Option<Py<PyAny>>,
    threads: Option<usize>,
    checkpoint_minutes: f64,
    stop_on_divergence: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let config = RunConfig::resolve(settings(config)?).map_err(fault)?;
    let name =
        || format!("runs/{}_{}", config.dataset.replace(['/', '\\'], "-"), config.folder_name()).into();
    let out: PathBuf = out.unwrap_or_else(name);
    let options = options(threads, checkpoint_minutes, stop_on_divergence)?;
    watched(py, callback, |report| lab::train(&config, &out, &options, report))
}

/// Goes on with a run from its last checkpoint; see ``train``.
#[pyfunction]
#[pyo3(signature = (run, *, callback=None, threads=None, checkpoint_minutes=10.0, stop_on_divergence=false, data_dir=None))]
pub fn resume<'py>(
    py: Python<'py>,
    run: PathBuf,
    callback: Option<Py<PyAny>>,
    threads: Option<usize>,
    checkpoint_minutes: f64,
    stop_on_divergence: bool,
    data_dir: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = Options { data_dir, ..options(threads, checkpoint_minutes, stop_on_divergence)? };
    watched(py, callback, |report| lab::resume(Path::new(&run), &options, report))
}

fn options(threads: Option<usize>, checkpoint_minutes: f64, stop_on_divergence: bool) -> PyResult<Options> {
    if checkpoint_minutes.is_nan() || checkpoint_minutes < 0.0 {
        return Err(fault(format!(
            "checkpoint_minutes is {checkpoint_minutes}; a number, 0 or more, is expected"
        )));
    }
    Ok(Options { threads, checkpoint_minutes, stop_on_divergence, ..Options::default() })
}

fn settings(config: &Bound<'_, PyAny>) -> PyResult<Settings> {
    if let Ok(dict) = config.cast::<PyDict>() {
        let mut settings = Settings::default();
        for (key, value) in dict {
            let key: String = key.extract()?;
            settings.set(&key, setting(&key, &value)?);
        }
        return Ok(settings);
    }
    let path: PathBuf = config
        .extract()
        .map_err(|_| fault("config must be a dict of settings or the path of a TOML file"))?;
    Settings::from_file(&path).map_err(fault)
}

/// Trains without the GIL; takes it for a callback, and now and then to see whether Ctrl-C was pressed.
fn watched<'py>(
    py: Python<'py>,
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(Event) -> Control) -> Result<Summary, TrainError> + Send,
) -> PyResult<Bound<'py, PyDict>> {
    let mut stopped: Option<PyErr> = None;
    let mut asked = Instant::now();
    let summary = py.detach(|| {
        work(&mut |event| {
            if stopped.is_some() {
                return Control::Stop;
            }
            let notice = if let Event::Notice(text) = &event { Some(*text) } else { None };
            if callback.is_none() && notice.is_none() && asked.elapsed() < SIGNALS {
                return Control::Continue;
            }
            let answer = Python::attach(|py| -> PyResult<bool> {
                notice.map_or(Ok(()), |notice| warn(py, notice))?;
                if asked.elapsed() >= SIGNALS {
                    asked = Instant::now();
                    py.check_signals()?;
                }
                match &callback {
                    Some(callback) => {
                        let answer = callback.bind(py).call1((object(py, &describe(&event))?,))?;
                        Ok(!is_false(&answer)?)
                    }
                    None => Ok(true),
                }
            });
            match answer {
                Ok(true) => Control::Continue,
                Ok(false) => Control::Stop,
                Err(error) => {
                    stopped = Some(error);
                    Control::Stop
                }
            }
        })
    });
    if let Some(error) = stopped {
        return Err(error);
    }
    let summary = summary.map_err(fault)?;
    let value = json!({
        "run": summary.run,
        "outcome": match summary.outcome {
            Outcome::Finished => "finished",
            Outcome::Interrupted => "interrupted",
            Outcome::Diverged => "diverged",
        },
        "epochs": summary.epochs,
        "best_epoch": summary.best_epoch,
        "best_accuracy": summary.best_accuracy,
        "last": summary.last,
        "notices": summary.notices,
    });
    Ok(object(py, &value)?.cast_into()?)
}

/// Whether a callback's answer is False, Python's own or NumPy's. None, 0 and an empty list are not: only who
/// says False means to stop.
fn is_false(answer: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = answer.get_type();
    let numpy = matches!(kind.name()?.to_str()?, "bool" | "bool_") && kind.module()?.to_str()? == "numpy";
    Ok((numpy || answer.is_instance_of::<pyo3::types::PyBool>()) && !answer.is_truthy()?)
}

fn describe(event: &Event) -> serde_json::Value {
    match event {
        Event::Started { images, test_images, batches, epochs, epoch, batch, threads } => json!({
            "event": "started", "images": images, "test_images": test_images, "batches": batches, "epochs": epochs,
            "epoch": epoch, "batch": batch, "threads": threads,
        }),
        Event::Notice(text) => json!({"event": "notice", "message": text}),
        Event::Batch(b) => json!({
            "event": "batch", "epoch": b.epoch, "epochs": b.epochs, "batch": b.batch, "batches": b.batches,
            "sse": b.sse, "accuracy": b.accuracy, "images_per_second": b.images_per_second,
            "seconds_to_go": b.seconds_to_go,
        }),
        Event::Evaluated { done, total } => json!({"event": "evaluated", "done": done, "total": total}),
        Event::Health(notice) => tagged("health", json!(notice)),
        Event::Epoch(epoch) => tagged("epoch", json!(epoch)),
        Event::Checkpoint { epoch, batch } => json!({"event": "checkpoint", "epoch": epoch, "batch": batch}),
    }
}

fn tagged(name: &str, mut value: serde_json::Value) -> serde_json::Value {
    if let Some(object) = value.as_object_mut() {
        object.insert("event".into(), name.into());
    }
    value
}
