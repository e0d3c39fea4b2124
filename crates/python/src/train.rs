//! Training from Python: settings as a dict or a file, a callback for every event, and Ctrl-C, which writes a
//! checkpoint.

use crate::convert::{key_name, object, pairs, setting};
use crate::dataset::Dataset;
use crate::network::Network;
use crate::{SIGNALS, arguments, fault, warn};
use leaklab_lab::config::{RunConfig, Settings};
use leaklab_lab::data::{self, Binning, location, npz};
use leaklab_lab::run::{difference, read_config};
use leaklab_lab::train::{self as lab, Control, Event, Initial, Options, Outcome, Summary, TrainError};
use leaklab_record::RunFolder;
use leaklab_record::health::Trouble;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Trains a network into a run folder.
///
/// ``config`` is a dict of settings or the path of a TOML file; keys that are not set have the data set's
/// defaults, so ``{"dataset": "digits", "tau": 30}`` is complete. The data set may be a ``Dataset``: it is
/// stored in the run's folder, so that the run can be continued and analysed anywhere. ``out`` is the folder
/// of the new run (``runs/DATASET_tau-TAU_seed-SEED`` if not given); with ``exist_ok=True`` an existing run
/// of the same settings is continued, or left unchanged if it is finished. ``initial`` is a ``Network`` whose
/// weights training starts from. ``callback`` is called with a dict for every event ("started", "batch",
/// "evaluated", "health", "epoch", "checkpoint", "notice"); if it returns False (Python's or NumPy's),
/// training stops with a checkpoint. Ctrl-C does the same and raises ``KeyboardInterrupt``. ``resume``
/// continues with bit-identical results.
///
/// Returns a dict: run, outcome ("finished", "interrupted", "diverged"), epochs, best_epoch, best_accuracy,
/// last (the metrics of the last epoch), validation (the fraction of training images that replaced the test
/// images) and notices.
#[pyfunction]
#[pyo3(signature = (config, out=None, *, initial=None, exist_ok=false, callback=None, threads=None,
    checkpoint_minutes=10.0, stop_on_divergence=false))]
#[allow(clippy::too_many_arguments)]
pub fn train<'py>(
    py: Python<'py>,
    config: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = arguments::out)] out: Option<PathBuf>,
    initial: Option<Bound<'py, Network>>,
    exist_ok: bool,
    #[pyo3(from_py_with = arguments::callback)] callback: Option<Py<PyAny>>,
    #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
    checkpoint_minutes: f64,
    stop_on_divergence: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let (settings, data) = settings(config)?;
    let mut config = RunConfig::resolve(settings).map_err(fault)?;
    let out = out.unwrap_or_else(|| config.default_folder());
    let mut options = options(threads, checkpoint_minutes, stop_on_divergence)?;
    if let Some(initial) = initial.map(|initial| initial.get().engine()) {
        if initial.architecture != config.network {
            let (given, needed) = (&initial.architecture, &config.network);
            return Err(fault(format!("initial is the network {given}, but the run has {needed}")));
        }
        options.initial = Some(Initial { weights: initial.weights.clone() });
    }
    let folder = RunFolder::at(&out);
    if exist_ok && folder.exists() {
        config.initial_sha256 = options.initial.as_ref().map(Initial::digest);
        same_settings(&config, data.as_ref(), &folder)?;
        return watched(py, callback, |report| lab::resume(&out, &options, report));
    }
    keep_data(py, data.as_ref(), &out, folder.exists())?;
    config.data_sha256 = config.data_sha256.or_else(|| data.as_ref().map(data::Dataset::digest));
    watched(py, callback, |report| lab::train(&config, &out, &options, report))
}

/// Writes a `Dataset` into the folder of a run or study, where runs find it. A file that is there already is
/// replaced only if it is such a copy, left over from a call that was refused: any other is the user's own.
pub fn keep_data(py: Python<'_>, data: Option<&data::Dataset>, out: &Path, exists: bool) -> PyResult<()> {
    let Some(data) = data.filter(|_| !exists) else { return Ok(()) };
    let file = location::file_name(&data.name).unwrap_or_else(|| "data.npz".to_owned());
    let path = out.join(file);
    std::fs::create_dir_all(out)?;
    py.detach(|| {
        let same = |path: &Path| {
            let found = data::load_complete(&data.name, Some(path), &Binning::default());
            found.is_ok_and(|found| found.digest() == data.digest())
        };
        if path.exists() && !npz::is_copy(&path) {
            let reason = "there is a file already, whose data are not those of the Dataset";
            let remedy = "choose another out=, or another name= for the Dataset";
            return if same(&path) { Ok(()) } else { Err(format!("{}: {reason}; {remedy}", path.display())) };
        }
        npz::save(data, &path).map_err(|e| e.to_string())
    })
    .map_err(fault)
}

/// Refuses to continue a run whose settings differ from the requested ones.
fn same_settings(config: &RunConfig, data: Option<&data::Dataset>, folder: &RunFolder) -> PyResult<()> {
    let existing = read_config(folder).map_err(fault)?;
    let digest = data.map(data::Dataset::digest).or_else(|| config.data_sha256.clone());
    let requested = RunConfig { data_sha256: digest, ..config.clone() };
    match difference(&existing, &requested, &[]) {
        None => Ok(()),
        Some((key, theirs, ours)) => Err(fault(format!(
            "{}: the existing run has {key} = {theirs}, not {ours}; choose another out=",
            folder.path().display(),
        ))),
    }
}

/// Continues a run from its last checkpoint; see ``train``.
#[pyfunction]
#[pyo3(signature = (run, *, callback=None, threads=None, checkpoint_minutes=10.0,
    stop_on_divergence=false, data_dir=None))]
pub fn resume<'py>(
    py: Python<'py>,
    run: PathBuf,
    #[pyo3(from_py_with = arguments::callback)] callback: Option<Py<PyAny>>,
    #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
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

/// Settings from a dict or a TOML file, and the data set if a `Dataset` was given in place of a name.
pub fn settings(config: &Bound<'_, PyAny>) -> PyResult<(Settings, Option<data::Dataset>)> {
    let Ok(mapping) = config.cast::<PyMapping>() else {
        let path: PathBuf = config
            .extract()
            .map_err(|_| fault("config must be a dict of settings or the path of a TOML file"))?;
        return Ok((Settings::from_file(&path).map_err(fault)?, None));
    };
    let (mut settings, mut data) = (Settings::default(), None);
    for (key, value) in pairs(mapping)? {
        let key = key_name("a setting", &key)?;
        match value.cast::<Dataset>().map(|given| given.get()) {
            Ok(given) if key == "dataset" => {
                if given.data.has_events() {
                    return Err(fault(format!(
                        "data set {} has recordings; give its name, and data_dir if it has files",
                        given.data.name
                    )));
                }
                let mut own = given.data.clone();
                if location::file_name(&own.name).is_none() {
                    own.name = format!("npz:{}", own.name.replace(':', "-"));
                }
                settings.set("dataset", own.name.as_str());
                data = Some(own);
            }
            _ if key == "dataset" && value.extract::<&str>().is_err() => {
                let kind = value.get_type();
                return Err(fault(format!(
                    "dataset is of type {}; the name of a data set or a Dataset is expected; \
                     Dataset.from_arrays(images, labels) makes one",
                    kind.name()?
                )));
            }
            _ => settings.set(&key, setting(&key, &value)?),
        }
    }
    if data.is_some() && settings.contains("data_dir") {
        return Err(fault("data_dir is for a data set that is given by name, and a Dataset was given"));
    }
    Ok((settings, data))
}

/// Trains without the GIL; it is taken for callbacks, and at intervals to check for Ctrl-C.
fn watched<'py>(
    py: Python<'py>,
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(Event) -> Control) -> Result<Summary, TrainError> + Send,
) -> PyResult<Bound<'py, PyDict>> {
    let mut stopped: Option<PyErr> = None;
    let mut checked = Instant::now();
    let summary = py.detach(|| {
        work(&mut |event| {
            if stopped.is_some() {
                return Control::Stop;
            }
            let notice = warning(&event);
            if callback.is_none() && notice.is_none() && checked.elapsed() < SIGNALS {
                return Control::Continue;
            }
            let answer = Python::attach(|py| -> PyResult<bool> {
                notice.as_deref().map_or(Ok(()), |notice| warn(py, notice))?;
                if checked.elapsed() >= SIGNALS {
                    checked = Instant::now();
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
        "validation": summary.validation,
    });
    Ok(object(py, &value)?.cast_into()?)
}

/// The warning for an event, if there is one.
pub fn warning(event: &Event) -> Option<String> {
    match event {
        Event::Notice(text) => Some((*text).to_owned()),
        Event::Health(notice) if is_severe(notice.kind) => {
            Some(format!("{}; {}", notice.message, notice.advice))
        }
        Event::Health(_)
        | Event::Started { .. }
        | Event::Batch(_)
        | Event::Evaluated { .. }
        | Event::Epoch(_)
        | Event::Checkpoint { .. } => None,
    }
}

/// Whether a problem is worth a warning, for users who do not read the notices.
fn is_severe(trouble: Trouble) -> bool {
    matches!(trouble, Trouble::NoGradient | Trouble::Collapsed | Trouble::Diverged | Trouble::NonFinite)
}

/// Whether a callback returned False, Python's or NumPy's. None, 0 and an empty list do not count: only False
/// stops the work.
pub fn is_false(answer: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = answer.get_type();
    let numpy = matches!(kind.name()?.to_str()?, "bool" | "bool_") && kind.module()?.to_str()? == "numpy";
    Ok((numpy || answer.is_instance_of::<pyo3::types::PyBool>()) && !answer.is_truthy()?)
}

pub fn describe(event: &Event) -> serde_json::Value {
    match event {
        Event::Started { images, test_images, validation, batches, epochs, epoch, batch, threads } => json!({
            "event": "started", "images": images, "test_images": test_images,
            "validation": validation, "batches": batches, "epochs": epochs,
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
