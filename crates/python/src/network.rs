//! Networks: weights in and out, forward, gradients, and their way to other tools.

use crate::convert::{array, whole_numbers};
use crate::{fault, interruptible};
use leaklab_engine::{
    Architecture, Gradient, Input, Isa, LayerKind, Leak, LeakChange, Masks, Network as Engine, Packed,
    Scratch, Shape, Spikes, Tau, infer, train_batch,
};
use leaklab_lab::exchange::{self, ExportOptions, ImportOptions, Imported, Model, nir};
use leaklab_lab::memory;
use leaklab_lab::run::Weights;
use numpy::{AllowTypeChange, PyArrayDyn, PyArrayLikeDyn, PyUntypedArrayMethods};
use pyo3::exceptions::{PyIndexError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// The shape of a layer's output as Python sees it: fully connected layers have one dimension.
fn dimensions(kind: LayerKind, shape: Shape) -> Vec<usize> {
    match kind {
        LayerKind::Conv | LayerKind::Pool => vec![shape.channels, shape.height, shape.width],
        LayerKind::Full | LayerKind::Output => vec![shape.channels],
    }
}

/// One layer of a network.
#[pyclass(frozen, get_all, module = "leaklab")]
pub struct Layer {
    /// Name, such as conv1, pool1 or fc1.
    name: String,
    /// conv, pool, full or output.
    kind: &'static str,
    /// Shape of what comes in.
    input: Vec<usize>,
    /// Shape of what goes out.
    output: Vec<usize>,
}

#[pymethods]
impl Layer {
    fn __repr__(&self) -> String {
        format!(
            "Layer(name='{}', kind='{}', input={:?}, output={:?})",
            self.name, self.kind, self.input, self.output
        )
    }
}

/// A spiking network.
///
/// Parameters
/// ----------
/// notation : str
///     The network in the paper's notation, such as ``"1x8x8-16C3-2P-64FC-10o"``.
/// tau : float
///     Membrane time constant in time steps; ``float("inf")`` for no leak.
/// v_th : float
///     Threshold of conv and fully connected neurons.
/// seed : int
///     Seed of the initial weights, normal with deviation ``sqrt(2 / fan_in)``.
#[pyclass(module = "leaklab", eq)]
#[derive(PartialEq)]
pub struct Network {
    engine: Engine,
}

/// Rows `[step][sample]` of a contiguous `[T, N, C, H, W]` array.
struct Batch<'a> {
    values: &'a [f32],
    steps: usize,
    samples: usize,
    shape: Shape,
}

impl Batch<'_> {
    /// Shows a sample. Once the caller does not want the results any more, it unwinds out of the work instead,
    /// without the message of a panic; [`interruptible`] catches that.
    fn show_unless(&self, stopped: &AtomicBool, sample: usize, input: &mut Input) {
        if stopped.load(Ordering::Relaxed) {
            std::panic::resume_unwind(Box::new("interrupted"));
        }
        self.show(sample, input);
    }

    fn show(&self, sample: usize, input: &mut Input) {
        let size = self.shape.neurons();
        let rows = (0..self.steps).map(|step| &self.values[(step * self.samples + sample) * size..][..size]);
        *input = Input::from_values(self.shape, self.steps, &rows.collect::<Vec<_>>().concat());
    }
}

impl Network {
    fn batch<'a>(&self, shape: &[usize], values: &'a [f32]) -> PyResult<Batch<'a>> {
        let expected = self.engine.architecture.input();
        match *shape {
            [steps, samples, channels, height, width]
                if steps > 0 && expected == (Shape { channels, height, width }) =>
            {
                Ok(Batch { values, steps, samples, shape: expected })
            }
            _ => {
                let Shape { channels, height, width } = expected;
                Err(fault(format!(
                    "x has shape {shape:?}; [T, N, {channels}, {height}, {width}] with at least one step is expected"
                )))
            }
        }
    }

    fn weight_dict<'py>(&self, py: Python<'py>, flat: &[f32]) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for p in self.engine.architecture.parameters() {
            dict.set_item(&p.name, array(py, &p.shape, flat[p.offset..p.offset + p.len].to_vec()))?;
        }
        Ok(dict)
    }
}

#[pymethods]
impl Network {
    #[new]
    #[pyo3(signature = (notation, tau=100.0, v_th=1.0, seed=0, layer_tau=None, readout_tau=None))]
    fn new(
        notation: &str,
        tau: f64,
        v_th: f32,
        seed: u64,
        layer_tau: Option<BTreeMap<String, f64>>,
        readout_tau: Option<f64>,
    ) -> PyResult<Self> {
        let architecture = Architecture::parse(notation).map_err(fault)?;
        memory::check_network(&architecture).map_err(fault)?;
        let change = leak_change(Some(tau), layer_tau, readout_tau)?;
        let leak = Leak::uniform(Tau::INFINITE).changed(&change);
        Ok(Network { engine: Engine::initialised(architecture, leak, v_th, seed).map_err(fault)? })
    }

    /// The same weights with another leak: ``tau`` everywhere, ``layer_tau`` for named hidden layers,
    /// ``readout_tau`` for the output. What is not given stays as it is.
    #[pyo3(signature = (tau=None, *, layer_tau=None, readout_tau=None))]
    fn with_leak(
        &self,
        tau: Option<f64>,
        layer_tau: Option<BTreeMap<String, f64>>,
        readout_tau: Option<f64>,
    ) -> PyResult<Self> {
        let leak = self.engine.leak().changed(&leak_change(tau, layer_tau, readout_tau)?);
        Ok(Network { engine: self.engine.clone().with_leak(leak).map_err(fault)? })
    }

    /// The network in the paper's notation.
    #[getter]
    fn notation(&self) -> String {
        self.engine.architecture.to_string()
    }

    /// Membrane time constant in time steps.
    #[getter]
    fn tau(&self) -> f64 {
        self.engine.leak().tau.steps()
    }

    /// Time constants of the hidden layers that have their own.
    #[getter]
    fn layer_tau(&self) -> BTreeMap<String, f64> {
        self.engine.leak().layer_tau.iter().map(|(name, tau)| (name.clone(), tau.steps())).collect()
    }

    /// Time constant of the output layer.
    #[getter]
    fn readout_tau(&self) -> f64 {
        self.engine.leak().readout().steps()
    }

    /// Threshold of conv and fully connected neurons.
    #[getter]
    fn v_th(&self) -> f32 {
        self.engine.v_th()
    }

    /// The layers, the output layer last.
    #[getter]
    fn layers(&self) -> Vec<Layer> {
        let layers = self.engine.architecture.layers().iter();
        let first = self.engine.architecture.input();
        layers
            .enumerate()
            .map(|(i, layer)| Layer {
                name: layer.name.clone(),
                kind: layer.kind.name(),
                input: match i.checked_sub(1) {
                    Some(before) => dimensions(self.engine.architecture.layers()[before].kind, layer.input),
                    None => dimensions(LayerKind::Conv, first),
                },
                output: dimensions(layer.kind, layer.output),
            })
            .collect()
    }

    /// A copy of the weights: a dict of float32 arrays, [out, in, 3, 3] or [out, in], by layer name.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.weight_dict(py, &self.engine.weights)
    }

    /// Replaces the weights of the layers that are named; the others keep theirs. Nothing changes if one is
    /// refused.
    fn set_weights(&mut self, weights: &Bound<'_, PyDict>) -> PyResult<()> {
        let mut engine = self.engine.clone();
        for (name, values) in weights {
            let name: String = name.extract()?;
            let values: PyArrayLikeDyn<'_, f32, AllowTypeChange> = values
                .extract()
                .map_err(|_| fault(format!("weights '{name}' are not an array of numbers")))?;
            let (shape, values) =
                (values.shape().to_vec(), values.as_array().iter().copied().collect::<Vec<_>>());
            engine.set_tensor(&name, &shape, &values).map_err(fault)?;
        }
        self.engine = engine;
        Ok(())
    }

    /// Runs the network on input spikes ``x``, float32 ``[T, N, C, H, W]``.
    ///
    /// Values other than -1, 0 and 1 are allowed (noise on the spikes). ``threads`` changes no result.
    #[pyo3(signature = (x, *, threads=None))]
    fn forward(
        &self,
        py: Python<'_>,
        x: PyArrayLikeDyn<'_, f32, AllowTypeChange>,
        threads: Option<usize>,
    ) -> PyResult<Forward> {
        let x = x.as_array();
        let x = x.as_standard_layout();
        let batch = self.batch(x.shape(), x.as_slice().expect("standard layout is contiguous"))?;
        let hidden = self.engine.architecture.hidden().len();
        let traces = memory::traces(&self.engine.architecture, batch.steps, batch.samples as u64);
        let what = format!("the spikes of {} samples", batch.samples);
        memory::check(what, traces, "run fewer samples at a time").map_err(fault)?;
        let images = interruptible(py, threads, |stopped| -> Result<Vec<Image>, String> {
            let packed = Packed::new(&self.engine, Isa::best()).map_err(|e| e.to_string())?;
            let measure = |_: usize, trace: &leaklab_engine::Trace| Image {
                prediction: trace.prediction().to_vec(),
                signal: trace.signal().to_vec(),
                spikes: (0..hidden).map(|layer| trace.spikes(layer).clone()).collect(),
                counts: (0..hidden).map(|layer| trace.spike_counts(layer)).collect(),
                synops: trace.synops(),
                norms: trace.weighted_input_norms(),
            };
            let show = |sample: usize, input: &mut Input| batch.show_unless(stopped, sample, input);
            infer(&packed, batch.steps, batch.samples, &Scratch::default(), show, measure)
                .map_err(|e| e.to_string())
        })?
        .map_err(fault)?;
        Ok(Forward { images, steps: batch.steps, architecture: self.engine.architecture.clone() })
    }

    /// The loss and its gradient with respect to every weight, averaged over the samples of ``x``.
    ///
    /// ``gradient`` is "straight-through" or "exact". ``masks`` are dropout masks, one array ``[N, ...]`` per
    /// hidden conv and fully connected layer, of 0 and 1/(1-p).
    #[pyo3(signature = (x, labels, gradient="straight-through", masks=None, *, threads=None))]
    fn gradients(
        &self,
        py: Python<'_>,
        x: PyArrayLikeDyn<'_, f32, AllowTypeChange>,
        labels: &Bound<'_, PyAny>,
        gradient: &str,
        masks: Option<Vec<PyArrayLikeDyn<'_, f32, AllowTypeChange>>>,
        threads: Option<usize>,
    ) -> PyResult<Gradients> {
        let mode: Gradient = gradient.parse().map_err(fault)?;
        let x = x.as_array();
        let x = x.as_standard_layout();
        let batch = self.batch(x.shape(), x.as_slice().expect("standard layout is contiguous"))?;
        let labels = whole_numbers("labels", labels)?;
        if labels.len() != batch.samples || labels.is_empty() {
            return Err(fault(format!("{} labels for {} samples of x", labels.len(), batch.samples)));
        }
        let labels = labels
            .iter()
            .enumerate()
            .map(|(i, &label)| {
                usize::try_from(label)
                    .map_err(|_| fault(format!("sample {i}: label {label} is out of range")))
            })
            .collect::<PyResult<Vec<_>>>()?;
        let masks = self.masks(masks.unwrap_or_default(), batch.samples)?;
        let mut flat = vec![0.0; self.engine.weights.len()];
        let results = interruptible(py, threads, |stopped| {
            let packed = Packed::new(&self.engine, Isa::best()).map_err(|e| e.to_string())?;
            let prepare = |sample: usize, input: &mut Input, mask: &mut Masks| {
                batch.show_unless(stopped, sample, input);
                *mask = masks.get(sample).cloned().unwrap_or_else(Masks::none);
                labels[sample]
            };
            let measure = |sample: usize, trace: &leaklab_engine::Trace| {
                (trace.loss(labels[sample]), trace.prediction().to_vec())
            };
            let scratch = Scratch::default();
            train_batch(&packed, batch.steps, batch.samples, mode, &scratch, prepare, measure, &mut flat)
                .map_err(|e| e.to_string())
        })?
        .map_err(fault)?;
        let loss = results.iter().map(|(loss, _)| loss).sum::<f64>() / results.len() as f64;
        let prediction = results.into_iter().flat_map(|(_, prediction)| prediction).collect();
        Ok(Gradients {
            loss,
            prediction: array(py, &[batch.samples, self.engine.architecture.classes()], prediction).unbind(),
            weights: self.weight_dict(py, &flat)?.unbind(),
        })
    }

    /// The network of a run folder, or of a folder that ``save`` or ``leaklab export --safetensors`` made.
    #[staticmethod]
    #[pyo3(signature = (path, *, best=false))]
    fn load(py: Python<'_>, path: PathBuf, best: bool) -> PyResult<Self> {
        let weights = if best { Weights::Best } else { Weights::Last };
        let model = py.detach(|| Model::open(&path, weights)).map_err(fault)?;
        if let Some(notice) = &model.notice {
            warn(py, notice)?;
        }
        Ok(Network { engine: model.network })
    }

    /// Writes model.safetensors, config.json and a model card into a folder.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        py.detach(|| Model::bare(self.engine.clone()).write(&folder)).map_err(fault)
    }

    /// Writes a NIR graph, as Python's ``nir`` reads it.
    #[pyo3(signature = (path, *, dt=ExportOptions::default().dt, if_r=1.0, if_as_lif=false))]
    fn to_nir(&self, py: Python<'_>, path: PathBuf, dt: f64, if_r: f64, if_as_lif: bool) -> PyResult<()> {
        let options = ExportOptions { dt, if_r, if_as_lif };
        py.detach(|| nir::write(&path, &exchange::export(&self.engine, &options)?)).map_err(fault)
    }

    /// The network of a NIR graph of any tool, if it is a chain of LeakLab's layers; else the node that is
    /// not is named. What had to be changed is warned of.
    #[staticmethod]
    #[pyo3(signature = (path, *, dt=None, if_r=1.0, integrate_output=false))]
    fn from_nir(
        py: Python<'_>,
        path: PathBuf,
        dt: Option<f64>,
        if_r: f64,
        integrate_output: bool,
    ) -> PyResult<Self> {
        let options = ImportOptions { dt, if_r, integrate_output };
        let Imported { network, notes } =
            py.detach(|| exchange::import(&nir::read(&path)?, &options)).map_err(fault)?;
        for note in &notes {
            warn(py, note)?;
        }
        Ok(Network { engine: network })
    }

    fn __repr__(&self) -> String {
        let leak = self.engine.leak();
        let mut text = format!("Network('{}', tau={}, v_th={}", self.notation(), leak.tau, self.v_th());
        if !leak.layer_tau.is_empty() {
            let layers: Vec<String> =
                leak.layer_tau.iter().map(|(name, tau)| format!("'{name}': {tau}")).collect();
            text.push_str(&format!(", layer_tau={{{}}}", layers.join(", ")));
        }
        if let Some(tau) = leak.readout_tau {
            text.push_str(&format!(", readout_tau={tau}"));
        }
        text + ")"
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let this = slf.borrow();
        let readout = this.engine.leak().readout_tau.map(Tau::steps);
        let arguments =
            (this.notation(), this.tau(), this.v_th(), 0, this.layer_tau(), readout).into_pyobject(py)?;
        (slf.get_type(), arguments, this.weights(py)?).into_pyobject(py)
    }

    fn __setstate__(&mut self, weights: &Bound<'_, PyDict>) -> PyResult<()> {
        self.set_weights(weights)
    }
}

/// A change of leak from Python's arguments.
pub(crate) fn leak_change(
    tau: Option<f64>,
    layer_tau: Option<BTreeMap<String, f64>>,
    readout_tau: Option<f64>,
) -> PyResult<LeakChange> {
    let one = |steps: f64| Tau::new(steps).map_err(fault);
    let layers = layer_tau.unwrap_or_default().into_iter().map(|(name, steps)| Ok((name, one(steps)?)));
    Ok(LeakChange {
        tau: tau.map(one).transpose()?,
        layer_tau: layers.collect::<PyResult<_>>()?,
        readout_tau: readout_tau.map(one).transpose()?,
    })
}

impl Network {
    /// Masks of every sample; none at all if no arrays are given.
    fn masks(
        &self,
        arrays: Vec<PyArrayLikeDyn<'_, f32, AllowTypeChange>>,
        samples: usize,
    ) -> PyResult<Vec<Masks>> {
        let flat: Vec<Vec<f32>> =
            arrays.iter().map(|mask| mask.as_array().iter().copied().collect()).collect();
        if arrays.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(i) = arrays.iter().position(|mask| mask.shape().first() != Some(&samples)) {
            let shape = arrays[i].shape();
            return Err(fault(format!(
                "mask {i} has shape {shape:?}; its first dimension must be the {samples} samples"
            )));
        }
        (0..samples)
            .map(|sample| {
                let size = |mask: &[f32]| mask.len() / samples;
                let rows: Vec<&[f32]> =
                    flat.iter().map(|mask| &mask[sample * size(mask)..][..size(mask)]).collect();
                Masks::from_values(&rows, &self.engine.architecture).map_err(fault)
            })
            .collect()
    }
}

/// Warns as Python does: a user may silence it, or make it an error.
pub fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    let text = CString::new(message).map_err(fault)?;
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)
}

struct Image {
    prediction: Vec<f32>,
    signal: Vec<f32>,
    spikes: Vec<Spikes>,
    counts: Vec<Vec<u32>>,
    synops: Vec<u64>,
    norms: Vec<f64>,
}

/// What a network did with its input. Arrays are made when they are asked for; spikes are kept as bits.
#[pyclass(frozen, module = "leaklab")]
pub struct Forward {
    images: Vec<Image>,
    steps: usize,
    architecture: Architecture,
}

impl Forward {
    fn rows<'py, T>(
        &self,
        py: Python<'py>,
        shape: &[usize],
        of: impl Fn(&Image) -> &[T],
    ) -> Bound<'py, PyArrayDyn<T>>
    where
        T: numpy::Element + Clone,
    {
        let shape: Vec<usize> = [self.images.len()].iter().chain(shape).copied().collect();
        array(py, &shape, self.images.iter().flat_map(|image| of(image).iter().cloned()).collect())
    }

    fn hidden(&self, layer: usize) -> Vec<usize> {
        let layer = &self.architecture.hidden()[layer];
        dimensions(layer.kind, layer.output)
    }
}

#[pymethods]
impl Forward {
    /// Prediction, the output potential after the last step divided by T: float32 [N, classes].
    #[getter]
    fn prediction<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<f32>> {
        self.rows(py, &[self.architecture.classes()], |image| &image.prediction)
    }

    /// Weighted input of the output layer at every step: float32 [N, T, classes].
    #[getter]
    fn signal<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<f32>> {
        self.rows(py, &[self.steps, self.architecture.classes()], |image| &image.signal)
    }

    /// Spikes of each neuron: a list over hidden layers, pools included, of uint32 [N, ...].
    #[getter]
    fn spike_counts<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyArrayDyn<u32>>> {
        let layers = 0..self.architecture.hidden().len();
        layers.map(|layer| self.rows(py, &self.hidden(layer), |image| &image.counts[layer])).collect()
    }

    /// Synaptic operations of each image: uint64 [N, layers], over conv, fully connected and output layers.
    #[getter]
    fn synops<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<u64>> {
        self.rows(py, &[self.architecture.parameters().len()], |image| &image.synops)
    }

    /// Time mean of the Euclidean norm of the weighted input: float64 [N, layers], over hidden layers, pools
    /// included.
    #[getter]
    fn weighted_input_norm<'py>(&self, py: Python<'py>) -> Bound<'py, PyArrayDyn<f64>> {
        self.rows(py, &[self.architecture.hidden().len()], |image| &image.norms)
    }

    /// Spikes of a hidden layer, by index from 0 or by name: uint8 [T, N, ...].
    fn spikes<'py>(
        &self,
        py: Python<'py>,
        layer: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArrayDyn<u8>>> {
        let hidden = self.architecture.hidden();
        let index = match layer.extract::<String>() {
            Ok(name) => hidden.iter().position(|layer| layer.name == name),
            Err(_) => Some(layer.extract::<usize>()?).filter(|&index| index < hidden.len()),
        };
        let index = index.ok_or_else(|| {
            let names: Vec<&str> = hidden.iter().map(|layer| layer.name.as_str()).collect();
            PyIndexError::new_err(format!("there is no hidden layer {layer}; there are {}", names.join(", ")))
        })?;
        let (samples, size) = (self.images.len(), hidden[index].output.neurons());
        let pixels = hidden[index].output.pixels();
        let mut values = vec![0u8; self.steps * samples * size];
        py.detach(|| {
            for (sample, image) in self.images.iter().enumerate() {
                let spikes = &image.spikes[index];
                for step in 0..self.steps {
                    let row = &mut values[(step * samples + sample) * size..][..size];
                    for pixel in 0..pixels {
                        for (word, &bits) in spikes.at(pixel, step).iter().enumerate() {
                            let mut bits = bits;
                            while bits != 0 {
                                let channel = 64 * word + bits.trailing_zeros() as usize;
                                row[channel * pixels + pixel] = 1;
                                bits &= bits - 1;
                            }
                        }
                    }
                }
            }
        });
        let shape: Vec<usize> = [self.steps, samples].into_iter().chain(self.hidden(index)).collect();
        Ok(array(py, &shape, values))
    }

    fn __repr__(&self) -> String {
        format!("Forward({} samples, {} steps, '{}')", self.images.len(), self.steps, self.architecture)
    }
}

/// Loss and gradients of a batch.
#[pyclass(frozen, get_all, module = "leaklab")]
pub struct Gradients {
    /// Mean over the samples of half the squared error.
    loss: f64,
    /// float32 [N, classes].
    prediction: Py<PyArrayDyn<f32>>,
    /// A dict of float32 arrays by layer name.
    weights: Py<PyDict>,
}

#[pymethods]
impl Gradients {
    fn __repr__(&self) -> String {
        format!("Gradients(loss={})", self.loss)
    }
}
