//! Evaluates a trained run on its own test set, or any network on any images.

use crate::convert::{kind_of, object, real_array, shape_of, whole_numbers};
use crate::dataset::Dataset;
use crate::encode::{normalised, sample_numbers};
use crate::forward::{Batch, read_spikes, unwind_if};
use crate::network::{Network, leak_change};
use crate::noise::{named_noise, noise_setting};
use crate::{arguments, fault, polling_signals, warn};
use leaklab_engine::encode::{Encoder, Encoding, encode};
use leaklab_engine::noise::NoiseSetting;
use leaklab_engine::{Input, Isa, Leak, LeakChange, Network as Engine, Packed, Shape, Tau};
use leaklab_lab::data::{self, Limits, Normalisation, Normaliser, Presentation, TEST_SAMPLES, present};
use leaklab_lab::evaluate::{self as lab, EVALUATION_EPOCH, Evaluation, Inputs};
use leaklab_lab::run::{TrainedRun, Weights, keep_training_images};
use leaklab_lab::train::threads as pool;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::ThreadPool;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// The network that is evaluated, and how images are presented to it.
struct Subject {
    network: Engine,
    encoding: Encoding,
    seed: u64,
    epoch: u64,
    run: Option<TrainedRun>,
}

impl Subject {
    /// The normalisation of images that are not from the run's data set. Its constants are those of the run's
    /// training images, as in training.
    fn normaliser(&self, py: Python<'_>) -> PyResult<Normaliser> {
        match &self.run {
            Some(run) if run.config.normalise != Normalisation::PerImage => {
                let own = py.detach(|| run.dataset()).map_err(fault)?;
                Ok(Normaliser::new(run.config.normalise, &own))
            }
            Some(_) | None => Ok(Normaliser::PER_IMAGE),
        }
    }

    /// Refuses recordings that are not divided into steps in the same way as those of the run.
    fn check_recordings(&self, given: &Dataset) -> PyResult<()> {
        let Some(run) = &self.run else { return Ok(()) };
        let name = &given.data.name;
        let words = |events: bool| if events { "recordings" } else { "images" };
        let (own, other) = (run.config.has_events(), given.data.has_events());
        if own != other {
            let (own, other) = (words(own), words(other));
            return Err(fault(format!("the run was trained on {own}, and data set {name} has {other}")));
        }
        let Some(binning) = &given.binning else { return Ok(()) };
        let own = run.config.binning();
        if *binning == own {
            return Ok(());
        }
        let words = |binning: &data::Binning| {
            let length = binning.step_us.map_or(String::new(), |us| format!(" of {us} us"));
            format!("{} steps{length}", binning.time_steps)
        };
        let mut call = format!("load_dataset(\"{name}\", time_steps={}", own.time_steps);
        own.step_us.iter().for_each(|us| call.push_str(&format!(", step_us={us}")));
        Some(own.downsample)
            .filter(|&n| n != 1)
            .iter()
            .for_each(|n| call.push_str(&format!(", downsample={n}")));
        Err(fault(format!(
            "the run was trained on recordings of {}, and those of data set {name} have {}; load them with \
             {call}), or evaluate Network.load(run)",
            words(&own),
            words(binning)
        )))
    }
}

/// Refuses arguments that were given and would have no effect.
fn refuse(names: &[(&str, bool)], why: &str) -> PyResult<()> {
    match names.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(fault(format!("{name} {why}"))),
        None => Ok(()),
    }
}

/// Accuracy of a network, clean or with noise; a dict of images, correct, accuracy, accuracy_low,
/// accuracy_high, sse, spike_rate, synops and layers; of tau, layer_tau and readout_tau, the leak (as of a
/// ``Network``; leak is all of it as text), for a run also trained_tau, trained_layer_tau,
/// trained_readout_tau and trained_leak; and of stimulus, level, split and epoch.
///
/// ``network`` is the folder of a trained run or a ``Network``. Without ``x`` a run is evaluated on its test
/// set, or with ``train=True`` on its training set. ``x`` is a ``Dataset``, images ``[N, C, H, W]`` with
/// labels ``y`` (uint8, or floats in [-1, 1], which are not normalised), or spikes ``[T, N, C, H, W]`` with
/// labels. ``limit`` is the number of images of a data set, class-balanced. ``samples`` are the sample
/// numbers of images, on which their random numbers depend; if not given, those of a test set, 2**31 + i.
/// With ``samples=data.test_samples``, the test images of a data set give the same result as the data set.
///
/// A run sees images as in training: with its number of time steps, encoder, seed, and normalisation by its
/// own training images. Recordings and spikes with another number of steps are refused. A ``Network`` sees
/// images for ``time_steps`` steps (100 if not given), with ``encoder`` ("signed" if not given) and ``seed``
/// (0 if not given), and each image is normalised separately.
///
/// ``noise`` acts in a ``scenario`` at a ``severity`` from 0 to 8, or at a ``level`` on its own scale.
/// ``tau``, ``layer_tau`` and ``readout_tau`` replace the leak. ``best=True`` uses the weights of the epoch
/// with the highest test accuracy.
#[pyfunction]
#[pyo3(signature = (network, x=None, y=None, *, noise=None, scenario=None, severity=None, level=None,
    best=false, train=false, limit=None, data_dir=None, time_steps=None, encoder=None, seed=None,
    threads=None, tau=None, layer_tau=None, readout_tau=None, samples=None))]
#[allow(clippy::too_many_arguments)]
pub fn evaluate<'py>(
    py: Python<'py>,
    network: &Bound<'py, PyAny>,
    x: Option<&Bound<'py, PyAny>>,
    y: Option<&Bound<'py, PyAny>>,
    noise: Option<&str>,
    scenario: Option<&str>,
    #[pyo3(from_py_with = arguments::severity)] severity: Option<usize>,
    level: Option<f32>,
    best: bool,
    train: bool,
    #[pyo3(from_py_with = arguments::limit)] limit: Option<usize>,
    data_dir: Option<PathBuf>,
    #[pyo3(from_py_with = arguments::optional_time_steps)] time_steps: Option<usize>,
    encoder: Option<&str>,
    #[pyo3(from_py_with = arguments::optional_seed)] seed: Option<u64>,
    #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
    tau: Option<f64>,
    #[pyo3(from_py_with = arguments::layer_tau)] layer_tau: Option<BTreeMap<String, f64>>,
    readout_tau: Option<f64>,
    samples: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let leak = leak_change(tau, layer_tau, readout_tau)?;
    let mut subject = match network.cast::<Network>() {
        Ok(network) => {
            let of_runs = [("best", best), ("data_dir", data_dir.is_some())];
            refuse(&of_runs, "is for the folder of a run, and a Network was given")?;
            of_network(
                &network.get().engine(),
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
                network.extract().map_err(|_| fault("network must be the folder of a run, or a Network"))?;
            of_run(py, folder, &leak, best, data_dir)?
        }
    };
    let setting = match (&subject.run, named_noise(noise, scenario)?, severity) {
        // The severities of a run may have levels of its own.
        (Some(run), Some((noise, scenario)), Some(severity)) if level.is_none() => {
            run.config.severities.setting(noise, scenario, severity).map_err(fault)?
        }
        _ => noise_setting(noise, scenario, severity, level)?,
    };
    let stimulus = describe(setting, severity);
    let pool = pool(threads).map_err(fault)?;
    let packed = py.detach(|| pool.install(|| Packed::new(&subject.network, Isa::best()))).map_err(fault)?;
    let dataset = x.and_then(|x| x.cast::<Dataset>().ok()).map(|dataset| dataset.get());
    let evaluation = match (x, dataset) {
        (Some(x), None) => {
            let of_data = [("train", train), ("limit", limit.is_some())];
            refuse(&of_data, "is for data sets, and arrays were given")?;
            let labels = labels(y)?;
            let x = real_array("x", x)?;
            if x.getattr("ndim")?.extract::<usize>()? == 5 {
                let of_images = [
                    ("encoder", encoder.is_some()),
                    ("seed", seed.is_some()),
                    ("samples", samples.is_some()),
                ];
                refuse(&of_images, "is for images, and spikes were given")?;
                spikes(py, &x, &labels, &subject, time_steps, setting, (&packed, &pool))?
            } else {
                images(py, (&x, samples.as_ref()), &labels, &subject, setting, (&packed, &pool))?
            }
        }
        _ => {
            let of_arrays = [("y", y.is_some()), ("samples", samples.is_some())];
            refuse(&of_arrays, "is for arrays; a data set has its own")?;
            let (data, presentation) = if let Some(given) = dataset {
                subject.check_recordings(given)?;
                fits(&subject.network, given.data.shape, Some(given.data.classes))?;
                let normaliser = subject.normaliser(py)?;
                let mut data = given.data.clone();
                let (train_limit, test_limit) = if train { (limit, None) } else { (None, limit) };
                let limits = Limits { train: train_limit, test: test_limit, ..Limits::NONE };
                limits.apply(&mut data).map_err(fault)?;
                let presentation = Presentation::new(&data, normaliser, subject.encoding, subject.seed);
                (data, presentation)
            } else if let Some(run) = &mut subject.run {
                if !train {
                    run.config.test_limit = limit.or(run.config.test_limit);
                }
                let mut data = py.detach(|| run.dataset()).map_err(fault)?;
                let presentation = lab::presentation(&run.config, &data);
                // Normalisation may depend on all training images, so they are limited only now.
                if let Some(limit) = limit.filter(|_| train) {
                    keep_training_images(&mut data, limit).map_err(fault)?;
                }
                (data, presentation)
            } else {
                return Err(fault("a Network needs x=, a Dataset or images, for its evaluation"));
            };
            let mut presentation = presentation.noisy(setting).map_err(fault)?;
            let split = if train { &data.train } else { &data.test };
            if split.is_empty() {
                let part = if train { "training" } else { "test" };
                return Err(fault(format!("data set {} has no {part} images", data.name)));
            }
            if let Some(recordings) = split.recordings() {
                let steps = recordings.steps();
                if let Some(other) = time_steps.filter(|&other| other != steps) {
                    return Err(fault(format!(
                        "time_steps is {other}, and the recordings of {} have {steps} steps",
                        data.name
                    )));
                }
                refuse(&[("encoder", encoder.is_some())], "is for images, and recordings were given")?;
                presentation.encoding.time_steps = steps;
            }
            let show = |i: usize, input: &mut Input| {
                presentation.show(split, i, EVALUATION_EPOCH, &mut present::Scratch::default(), input);
            };
            let inputs = Inputs { count: split.len(), steps: presentation.encoding.time_steps, show };
            evaluated(py, inputs, |i| split.label(i), (&packed, &pool))?
        }
    };
    let mut result = evaluation.object(subject.epoch, &stimulus);
    // Arrays and data sets of the caller are not a part of the run's data.
    let split = match &subject.run {
        _ if train => Some("train"),
        Some(run) if x.is_none() => Some(run.config.tested_on()),
        _ => dataset.is_some().then_some("test"),
    };
    result["level"] = setting.map(|setting| setting.level()).into();
    result["split"] = split.into();
    let result = object(py, &result)?.cast_into()?;
    let leak = subject.network.leak();
    add_leak(&result, "", leak)?;
    if let Some(run) = &subject.run {
        add_leak(&result, "trained_", run.trained_leak.as_ref().unwrap_or(leak))?;
    }
    Ok(result)
}

/// Adds a leak to a result: time constants as the attributes of a `Network`, and all of it as text.
fn add_leak(result: &Bound<'_, PyDict>, prefix: &str, leak: &Leak) -> PyResult<()> {
    let layers: BTreeMap<&String, f64> =
        leak.layer_tau.iter().map(|(name, tau)| (name, tau.steps())).collect();
    result.set_item(format!("{prefix}tau"), leak.tau.steps())?;
    result.set_item(format!("{prefix}layer_tau"), layers)?;
    result.set_item(format!("{prefix}readout_tau"), Tau::steps(leak.readout()))?;
    result.set_item(format!("{prefix}leak"), leak.to_string())
}

fn of_network(
    network: &Engine,
    leak: &LeakChange,
    steps: usize,
    encoder: &str,
    seed: u64,
) -> PyResult<Subject> {
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
    let weights = Weights::of(best);
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

/// Name of the stimulus: `clean`, `gaussian/pixel/5`, or `gaussian/pixel at 0.3`.
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

/// Refuses data of another size, or with more classes than the network has.
fn fits(network: &Engine, shape: Shape, classes: Option<usize>) -> PyResult<()> {
    let (input, outputs) = (network.architecture.input(), network.architecture.classes());
    if input != shape {
        return Err(fault(format!("the network is for images of {input}, and these are {shape}")));
    }
    match classes.filter(|&classes| classes > outputs) {
        Some(classes) => {
            Err(fault(format!("the network has {outputs} classes, and the data set has {classes}")))
        }
        None => Ok(()),
    }
}

/// Refuses labels that are not one per sample, or not classes of the network.
fn check_labels(network: &Engine, labels: &[usize], samples: usize) -> PyResult<()> {
    let classes = network.architecture.classes();
    if let Some(label) = labels.iter().find(|&&label| label >= classes) {
        return Err(fault(format!("label {label} is not one of the network's {classes} classes")));
    }
    if labels.len() != samples {
        return Err(fault(format!("{} labels for {samples} samples of x", labels.len())));
    }
    if samples == 0 {
        return Err(fault("x has no samples; at least one is expected"));
    }
    Ok(())
}

/// Evaluates on spikes `[T, N, C, H, W]`.
fn spikes(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    labels: &[usize],
    subject: &Subject,
    time_steps: Option<usize>,
    noise: Option<NoiseSetting>,
    engine: (&Packed, &ThreadPool),
) -> PyResult<Evaluation> {
    if noise.is_some() {
        return Err(fault("x contains spikes, and noise= acts when images are encoded (leaklab.encode)"));
    }
    let x = read_spikes(&subject.network, x)?;
    let batch = Batch::new(&subject.network, &x);
    check_labels(&subject.network, labels, batch.samples)?;
    if let Some(run) = subject.run.as_ref().filter(|run| run.config.time_steps != batch.steps) {
        return Err(fault(format!(
            "x has {} steps, and the run was trained with {}; evaluate Network.load(run) for another number",
            batch.steps, run.config.time_steps
        )));
    }
    if let Some(other) = time_steps.filter(|&other| other != batch.steps) {
        return Err(fault(format!("time_steps is {other}, and x has {} steps", batch.steps)));
    }
    let show = |i: usize, input: &mut Input| batch.show(i, input);
    let inputs = Inputs { count: batch.samples, steps: batch.steps, show };
    evaluated(py, inputs, |i| labels[i], engine)
}

/// Evaluates on images `[N, C, H, W]`.
fn images(
    py: Python<'_>,
    (x, samples): (&Bound<'_, PyAny>, Option<&Bound<'_, PyAny>>),
    labels: &[usize],
    subject: &Subject,
    noise: Option<NoiseSetting>,
    engine: (&Packed, &ThreadPool),
) -> PyResult<Evaluation> {
    if subject.run.as_ref().is_some_and(|run| run.config.has_events()) {
        return Err(fault("the run was trained on recordings; give their spikes as x, [T, N, C, H, W]"));
    }
    let dimensions = shape_of(x)?;
    let &[count, channels, height, width] = &dimensions[..] else {
        return Err(fault(format!(
            "x has shape {dimensions:?}; images [N, C, H, W] or spikes [T, N, C, H, W] are expected"
        )));
    };
    let shape = Shape { channels, height, width };
    fits(&subject.network, shape, None)?;
    check_labels(&subject.network, labels, count)?;
    let samples = sample_numbers(samples, count, TEST_SAMPLES)?;
    let pixels = normalised("x", x, &subject.normaliser(py)?)?;
    if kind_of(x)? == "f"
        && pixels.iter().all(|pixel| *pixel >= 0.0)
        && pixels.iter().any(|pixel| *pixel > 0.0)
    {
        warn(
            py,
            "x has floats without a negative value; floats are encoded as they are, so give pixels as uint8 \
             if they should be normalised as in training",
        )?;
    }
    let encoding = subject.encoding.with_noise(noise);
    let show = |i: usize, input: &mut Input| {
        let image = &pixels[i * shape.neurons()..][..shape.neurons()];
        encode(image, shape, &encoding, subject.seed, EVALUATION_EPOCH, samples[i], input);
    };
    let inputs = Inputs { count, steps: encoding.time_steps, show };
    evaluated(py, inputs, |i| labels[i], engine)
}

/// Evaluates on any inputs. Ctrl-C ends it at once, without waiting for the current chunk of images.
fn evaluated(
    py: Python<'_>,
    inputs: Inputs<impl Fn(usize, &mut Input) + Sync + Send>,
    label: impl Fn(usize) -> usize + Sync + Send,
    (packed, pool): (&Packed, &ThreadPool),
) -> PyResult<Evaluation> {
    let Inputs { count, steps, show } = inputs;
    let result = polling_signals(py, |stopped| {
        let show = |i: usize, input: &mut Input| {
            unwind_if(stopped);
            show(i, input);
        };
        let (inputs, progress) =
            (Inputs { count, steps, show }, &mut |_: usize| !stopped.load(Ordering::Relaxed));
        lab::evaluate_inputs(packed, packed.architecture(), &inputs, label, pool, progress)
    })?;
    result.map_err(fault)?.ok_or_else(|| PyKeyboardInterrupt::new_err(()))
}
