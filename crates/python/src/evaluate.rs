//! How good a network is: a trained run on its own test set, or any network on any images.

use crate::convert::{object, whole_numbers};
use crate::dataset::Dataset;
use crate::encode::{MOST_STEPS, normalised};
use crate::fault;
use crate::forward::Batch;
use crate::network::{Network, leak_change};
use crate::noise::{named_noise, noise_setting};
use crate::warn;
use leaklab_engine::encode::{Encoder, Encoding, encode};
use leaklab_engine::noise::NoiseSetting;
use leaklab_engine::{Input, Isa, LeakChange, Network as Engine, Packed, Shape};
use leaklab_lab::data::{Normaliser, Presentation};
use leaklab_lab::evaluate::{self as lab, EVALUATION_EPOCH, Evaluation, Inputs};
use leaklab_lab::run::{TrainedRun, Weights};
use leaklab_lab::train::threads as pool;
use numpy::{AllowTypeChange, PyArrayLikeDyn};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is evaluated, and how it sees.
struct Subject {
    network: Engine,
    encoding: Encoding,
    seed: u64,
    epoch: u64,
    run: Option<TrainedRun>,
}

/// Accuracy of a network, clean or under noise; a dict of images, correct, accuracy, accuracy_low, accuracy_high, sse,
/// spike_rate, synops and layers.
///
/// ``network`` is the folder of a trained run or a ``Network``. Without ``x`` a run is evaluated on its test set
/// (``train=True``: on its training set). ``x`` is a ``Dataset``, images ``[N, C, H, W]`` with labels ``y`` (uint8, or
/// floats in [-1, 1] that are encoded as they are), or spikes ``[T, N, C, H, W]`` with labels. A run sees images as it
/// was trained to; a ``Network`` for ``time_steps`` steps, with ``encoder`` and ``seed``. ``noise`` acts in a
/// ``scenario`` at a ``severity`` from 0 to 8, or at a ``level`` of its own scale.
#[pyfunction]
#[pyo3(signature = (network, x=None, y=None, *, noise=None, scenario=None, severity=None, level=None, best=false,
    train=false, limit=None, data_dir=None, time_steps=None, encoder=None, seed=None, threads=None, tau=None,
    layer_tau=None, readout_tau=None))]
#[allow(clippy::too_many_arguments)]
pub fn evaluate<'py>(
    py: Python<'py>,
    network: &Bound<'py, PyAny>,
    x: Option<&Bound<'py, PyAny>>,
    y: Option<&Bound<'py, PyAny>>,
    noise: Option<&str>,
    scenario: Option<&str>,
    severity: Option<usize>,
    level: Option<f32>,
    best: bool,
    train: bool,
    limit: Option<usize>,
    data_dir: Option<PathBuf>,
    time_steps: Option<usize>,
    encoder: Option<&str>,
    seed: Option<u64>,
    threads: Option<usize>,
    tau: Option<f64>,
    layer_tau: Option<BTreeMap<String, f64>>,
    readout_tau: Option<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let leak = leak_change(tau, layer_tau, readout_tau)?;
    let refuse = |names: &[(&str, bool)], why: &str| match names.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(fault(format!("{name} {why}"))),
        None => Ok(()),
    };
    let mut subject = match network.extract::<PyRef<'_, Network>>() {
        Ok(network) => {
            let of_runs = [("best", best), ("data_dir", data_dir.is_some())];
            refuse(&of_runs, "is for the folder of a run, and a Network was given")?;
            of_network(
                &network.engine,
                &leak,
                time_steps.unwrap_or(100),
                encoder.unwrap_or("signed"),
                seed.unwrap_or(0),
            )?
        }
        Err(_) => {
            let of_networks = [
                ("time_steps", time_steps.is_some()),
                ("encoder", encoder.is_some()),
                ("seed", seed.is_some()),
            ];
            refuse(&of_networks, "is a setting of the run, and cannot be given")?;
            let folder: PathBuf =
                network.extract().map_err(|_| fault("the folder of a run or a Network is expected first"))?;
            of_run(py, folder, &leak, best, data_dir)?
        }
    };
    let setting = match (&subject.run, named_noise(noise, scenario)?, severity) {
        // A study may have its own levels.
        (Some(run), Some((noise, scenario)), Some(severity)) if level.is_none() => {
            run.config.severities.setting(noise, scenario, severity).map_err(fault)?
        }
        _ => noise_setting(noise, scenario, severity, level)?,
    };
    let stimulus = describe(setting, severity);
    let pool = pool(threads).map_err(fault)?;
    let mut interrupted = None;
    let mut progress = |_: usize| {
        interrupted = Python::attach(|py| py.check_signals()).err();
        interrupted.is_none()
    };
    let packed = Packed::new(&subject.network, Isa::best()).map_err(fault)?;
    let architecture = subject.network.architecture.clone();
    let dataset = x.and_then(|x| x.extract::<PyRef<'_, Dataset>>().ok());
    let result: PyResult<Option<Evaluation>> = match (x, &dataset) {
        (Some(_), None) => {
            refuse(
                &[("train", train), ("limit", limit.is_some())],
                "is for data sets, and arrays were given",
            )?;
            let labels = labels(y)?;
            let (x, run) = (x.expect("it was matched"), subject.run.as_ref());
            arrays(py, x, &labels, &subject, run, setting, &packed, &pool, &mut progress)
        }
        _ => {
            refuse(&[("y", y.is_some())], "is for arrays; a data set has its own labels")?;
            let data = match (&dataset, &mut subject.run) {
                (Some(given), _) => given.data.clone(),
                (None, Some(run)) => {
                    let place = if train { &mut run.config.train_limit } else { &mut run.config.test_limit };
                    *place = limit.or(*place);
                    py.detach(|| run.dataset()).map_err(fault)?
                }
                (None, None) => {
                    return Err(fault("a Network needs x=, images or a Dataset, to be evaluated on"));
                }
            };
            let mut data = data;
            if dataset.is_some() {
                let (train_limit, test_limit) = if train { (limit, None) } else { (None, limit) };
                let limits = leaklab_lab::data::Limits {
                    train: train_limit,
                    test: test_limit,
                    ..leaklab_lab::data::Limits::NONE
                };
                limits.apply(&mut data).map_err(fault)?;
            }
            fits(&subject.network, data.shape, data.classes)?;
            let presentation = match &subject.run {
                Some(run) => lab::presentation(&run.config, &data),
                None => Presentation::new(&data, Normaliser::PER_IMAGE, subject.encoding, subject.seed),
            };
            let mut presentation = presentation.noisy(setting).map_err(fault)?;
            let split = if train { &data.train } else { &data.test };
            if let Some(recordings) = split.recordings() {
                presentation.encoding.time_steps = recordings.steps();
            }
            py.detach(|| lab::evaluate(&packed, &architecture, &presentation, split, &pool, &mut progress))
                .map_err(fault)
        }
    };
    let evaluation =
        result?.ok_or_else(|| interrupted.unwrap_or_else(|| PyKeyboardInterrupt::new_err(())))?;
    Ok(object(py, &evaluation.object(subject.epoch, &stimulus))?.cast_into()?)
}

fn of_network(
    network: &Engine,
    leak: &LeakChange,
    steps: usize,
    encoder: &str,
    seed: u64,
) -> PyResult<Subject> {
    if !(1..=MOST_STEPS).contains(&steps) {
        return Err(fault(format!(
            "time_steps is {steps}; a whole number from 1 to {MOST_STEPS} is expected"
        )));
    }
    let leak = network.leak().changed(leak);
    let network = network.clone().with_leak(leak).map_err(fault)?;
    let encoder: Encoder = encoder.parse().map_err(fault)?;
    let encoding = Encoding { encoder, ..Encoding::clean(steps) };
    Ok(Subject { network, encoding, seed, epoch: 0, run: None })
}

fn of_run(
    py: Python<'_>,
    folder: PathBuf,
    leak: &LeakChange,
    best: bool,
    data_dir: Option<PathBuf>,
) -> PyResult<Subject> {
    let weights = if best { Weights::Best } else { Weights::Last };
    let mut run = py.detach(|| TrainedRun::open(&folder, weights)).map_err(fault)?;
    run.change_leak(leak).map_err(fault)?;
    run.config.data_dir = data_dir.or(run.config.data_dir);
    if let Some(notice) = &run.notice {
        warn(py, notice)?;
    }
    let encoding = Encoding { encoder: run.config.encoder, ..Encoding::clean(run.config.time_steps) };
    let (network, seed, epoch) = (run.network.clone(), run.config.seed, run.position.epoch);
    Ok(Subject { network, encoding, seed, epoch, run: Some(run) })
}

/// Name of what is shown: `clean`, `gaussian/pixel/5`, or `gaussian/pixel at 0.3`.
fn describe(setting: Option<NoiseSetting>, severity: Option<usize>) -> String {
    match (setting, severity) {
        (None, _) => "clean".to_owned(),
        (Some(s), Some(severity)) => format!("{}/{}/{severity}", s.noise(), s.scenario()),
        (Some(s), None) => format!("{}/{} at {}", s.noise(), s.scenario(), s.level()),
    }
}

fn labels(y: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<usize>> {
    let y = y.ok_or_else(|| fault("arrays need y=, their labels"))?;
    let labels = whole_numbers("y", y)?;
    let label = |(i, label): (usize, i64)| {
        usize::try_from(label).map_err(|_| fault(format!("label {label} of sample {i} is out of range")))
    };
    labels.into_iter().enumerate().map(label).collect()
}

fn fits(network: &Engine, shape: Shape, classes: usize) -> PyResult<()> {
    let (input, outputs) = (network.architecture.input(), network.architecture.classes());
    if input == shape && outputs >= classes {
        return Ok(());
    }
    let text = |s: Shape| format!("{}x{}x{}", s.channels, s.height, s.width);
    Err(fault(format!(
        "the network takes {} and tells {outputs} classes, but the data have {} and {classes}",
        text(input),
        text(shape)
    )))
}

/// Evaluates on images `[N, C, H, W]` or spikes `[T, N, C, H, W]`.
#[allow(clippy::too_many_arguments)]
fn arrays(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    labels: &[usize],
    subject: &Subject,
    run: Option<&TrainedRun>,
    noise: Option<NoiseSetting>,
    packed: &Packed,
    pool: &rayon::ThreadPool,
    progress: &mut (dyn FnMut(usize) -> bool + Send),
) -> PyResult<Option<Evaluation>> {
    let architecture = &subject.network.architecture;
    if let Some(label) = labels.iter().find(|&&label| label >= architecture.classes()) {
        return Err(fault(format!(
            "label {label} is not one of the network's {} classes",
            architecture.classes()
        )));
    }
    let dimensions = x.getattr("ndim").and_then(|n| n.extract::<usize>()).unwrap_or(0);
    let count = |found: usize| match found == labels.len() {
        true => Ok(found),
        false => Err(fault(format!("{} labels for {found} samples of x", labels.len()))),
    };
    if dimensions == 5 {
        if noise.is_some() {
            return Err(fault(
                "x holds spikes already; noise= acts when images are encoded (leaklab.encode)",
            ));
        }
        let spikes: PyArrayLikeDyn<'_, f32, AllowTypeChange> =
            x.extract().map_err(|_| fault("x is not an array of numbers"))?;
        let view = spikes.as_array();
        let view = view.as_standard_layout();
        let values = view.as_slice().expect("standard layout is contiguous");
        let batch = Batch::new(&subject.network, view.shape(), values)?;
        let show = |i: usize, input: &mut Input| batch.show(i, input);
        let inputs = Inputs { count: count(batch.samples)?, steps: batch.steps, show };
        let label = |i: usize| labels[i];
        return py
            .detach(|| lab::evaluate_inputs(packed, architecture, &inputs, label, pool, progress))
            .map_err(fault);
    }
    if run.is_some_and(|run| run.config.has_events()) {
        return Err(fault("the run sees recordings; give their spikes as x, [T, N, C, H, W]"));
    }
    if run.is_some_and(|run| run.config.normalise != leaklab_lab::data::Normalisation::PerImage) {
        return Err(fault(
            "the run's images are normalised by constants of its data set (normalise = \"per-channel\"); give x as a Dataset",
        ));
    }
    let (shape, pixels) = normalised(x)?;
    let &[samples, channels, height, width] = &shape[..] else {
        return Err(fault(format!(
            "x has shape {shape:?}; images [N, C, H, W] or spikes [T, N, C, H, W] are expected"
        )));
    };
    let shape = Shape { channels, height, width };
    fits(&subject.network, shape, 0)?;
    let encoding = subject.encoding.with_noise(noise);
    let show = |i: usize, input: &mut Input| {
        let image = &pixels[i * shape.neurons()..][..shape.neurons()];
        encode(image, shape, &encoding, subject.seed, EVALUATION_EPOCH, i as u32, input);
    };
    let inputs = Inputs { count: count(samples)?, steps: encoding.time_steps, show };
    let label = |i: usize| labels[i];
    py.detach(|| lab::evaluate_inputs(packed, architecture, &inputs, label, pool, progress)).map_err(fault)
}
