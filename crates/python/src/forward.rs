//! The forward pass of a network: spikes, potentials, predictions and synaptic operations.
//!
//! The axes of all arrays have one order: time steps, samples, then channels, rows and columns. Arrays
//! without time begin with the samples.

use crate::arguments::MOST_STEPS;
use crate::convert::{array, numbers, real_array, room, shape_of, slice};
use crate::{fault, interruptible};
use leaklab_engine::{
    Architecture, Input, Isa, LayerKind, Network as Engine, Packed, Scratch, Shape, Spikes, Trace, infer,
};
use leaklab_lab::analysis::example;
use leaklab_lab::memory;
use numpy::{PyArrayDyn, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::atomic::{AtomicBool, Ordering};

/// The shape of a layer's output in Python: fully connected layers have one dimension.
pub fn dimensions(kind: LayerKind, shape: Shape) -> Vec<usize> {
    match kind {
        LayerKind::Conv | LayerKind::Pool => vec![shape.channels, shape.height, shape.width],
        LayerKind::Full | LayerKind::Output => vec![shape.channels],
    }
}

/// One layer of a network.
#[pyclass(frozen, get_all, module = "leaklab")]
pub struct Layer {
    /// Name, such as conv1, pool1 or fc1.
    pub name: String,
    /// conv, pool, full or output.
    pub kind: &'static str,
    /// Shape of the input.
    pub input: Vec<usize>,
    /// Shape of the output.
    pub output: Vec<usize>,
}

#[pymethods]
impl Layer {
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let layer = slf.get();
        let arguments = (&layer.name, layer.kind, layer.input.clone(), layer.output.clone());
        (slf.get_type().getattr("_restore")?, arguments).into_pyobject(slf.py())
    }

    /// Restores a pickled layer.
    #[staticmethod]
    fn _restore(name: String, kind: &str, input: Vec<usize>, output: Vec<usize>) -> PyResult<Self> {
        let kinds = [LayerKind::Conv, LayerKind::Pool, LayerKind::Full, LayerKind::Output];
        let kind = kinds.map(LayerKind::name).into_iter().find(|known| *known == kind);
        let kind = kind.ok_or_else(|| fault("this is not the kind of a layer"))?;
        Ok(Layer { name, kind, input, output })
    }

    fn __repr__(&self) -> String {
        format!(
            "Layer(name='{}', kind='{}', input={:?}, output={:?})",
            self.name, self.kind, self.input, self.output
        )
    }
}

/// Unwinds out of the work if the caller no longer wants the result, without the message of a panic.
/// [`polling_signals`](crate::polling_signals) catches this.
pub fn unwind_if(stopped: &AtomicBool) {
    if stopped.load(Ordering::Relaxed) {
        std::panic::resume_unwind(Box::new("interrupted"));
    }
}

/// Rows `[step][sample]` of a contiguous `[T, N, C, H, W]` array.
pub struct Batch<'a> {
    values: &'a [f32],
    /// Time steps.
    pub steps: usize,
    /// Samples.
    pub samples: usize,
    shape: Shape,
}

/// Input spikes as contiguous numbers. The shape is checked before anything is copied.
pub fn read_spikes<'py>(engine: &Engine, x: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArrayDyn<'py, f32>> {
    let x = real_array("x", x)?;
    let (shape, expected) = (shape_of(&x)?, engine.architecture.input());
    match shape[..] {
        [steps, _, channels, height, width]
            if (1..=MOST_STEPS).contains(&steps) && expected == (Shape { channels, height, width }) =>
        {
            numbers("x", &x)
        }
        _ => {
            let Shape { channels, height, width } = expected;
            Err(fault(format!(
                "x has shape {shape:?}; [T, N, {channels}, {height}, {width}] with 1 to {MOST_STEPS} steps \
                 is expected"
            )))
        }
    }
}

impl<'a> Batch<'a> {
    /// The samples of an array that [`read_spikes`] returned.
    pub fn new(engine: &Engine, x: &'a PyReadonlyArrayDyn<'_, f32>) -> Self {
        let (shape, values) = (engine.architecture.input(), slice(x));
        Batch { values, steps: x.shape()[0], samples: x.shape()[1], shape }
    }

    /// Refuses an array without samples.
    pub fn check_samples(&self) -> PyResult<()> {
        match self.samples {
            0 => Err(fault("x has no samples; at least one is expected")),
            _ => Ok(()),
        }
    }

    /// Writes a sample, unless the caller has stopped the work.
    pub fn show_unless(&self, stopped: &AtomicBool, sample: usize, input: &mut Input) {
        unwind_if(stopped);
        self.show(sample, input);
    }

    /// Writes a sample.
    pub fn show(&self, sample: usize, input: &mut Input) {
        let size = self.shape.neurons();
        let rows = (0..self.steps).map(|step| &self.values[(step * self.samples + sample) * size..][..size]);
        *input = Input::from_values(self.shape, self.steps, &rows.collect::<Vec<_>>().concat());
    }
}

/// Indices of the named layers, each once; pools have no membrane potential of their own.
fn recorded(architecture: &Architecture, names: &[String]) -> PyResult<Vec<usize>> {
    let layers = architecture.layers();
    let has = |layer: &&leaklab_engine::Layer| layer.kind != LayerKind::Pool;
    let find = |name: &String| {
        layers.iter().position(|layer| layer.name == *name && has(&layer)).ok_or_else(|| {
            let known: Vec<&str> = layers.iter().filter(has).map(|layer| layer.name.as_str()).collect();
            fault(format!("membranes: there is no layer '{name}'; there are {}", known.join(", ")))
        })
    };
    let mut found = names.iter().map(find).collect::<PyResult<Vec<usize>>>()?;
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Runs a network on `[T, N, C, H, W]`.
pub fn run(
    py: Python<'_>,
    engine: &Engine,
    x: &Bound<'_, PyAny>,
    membranes: &[String],
    threads: Option<usize>,
) -> PyResult<Forward> {
    let x = read_spikes(engine, x)?;
    let batch = Batch::new(engine, &x);
    let recorded = recorded(&engine.architecture, membranes)?;
    let hidden = engine.architecture.hidden().len();
    let neurons = |&layer: &usize| engine.architecture.layers()[layer].output.neurons() as u64;
    let neuron_steps = recorded.iter().map(neurons).sum::<u64>().saturating_mul(batch.steps as u64);
    let potential_bytes = neuron_steps.saturating_mul(4 * batch.samples as u64);
    let traces = memory::traces(&engine.architecture, batch.steps, batch.samples as u64);
    let what = format!("the spikes of {} samples", batch.samples);
    let needed = traces.saturating_add(potential_bytes);
    memory::check(what, needed, "run fewer samples at a time").map_err(fault)?;
    let images = interruptible(py, threads, |stopped| -> Result<Vec<Image>, String> {
        let packed = Packed::new(engine, Isa::best()).map_err(|e| e.to_string())?;
        let potentials = |trace: &Trace, layer: usize| {
            let values = example::potentials(engine, trace, layer, || unwind_if(stopped));
            values.into_iter().map(|potential| potential as f32).collect()
        };
        let measure = |_: usize, trace: &Trace| Image {
            prediction: trace.prediction().to_vec(),
            signal: trace.signal().to_vec(),
            spikes: (0..hidden).map(|layer| trace.spikes(layer).clone()).collect(),
            counts: (0..hidden).map(|layer| trace.spike_counts(layer)).collect(),
            synops: trace.synops(),
            norms: trace.weighted_input_norms(),
            membranes: recorded.iter().map(|&layer| potentials(trace, layer)).collect(),
        };
        let show = |sample: usize, input: &mut Input| batch.show_unless(stopped, sample, input);
        infer(&packed, batch.steps, batch.samples, &Scratch::default(), show, measure)
            .map_err(|e| e.to_string())
    })?
    .map_err(fault)?;
    Ok(Forward { images, steps: batch.steps, architecture: engine.architecture.clone(), recorded })
}

struct Image {
    prediction: Vec<f32>,
    signal: Vec<f32>,
    spikes: Vec<Spikes>,
    counts: Vec<Vec<u32>>,
    synops: Vec<u64>,
    norms: Vec<f64>,
    /// Potentials of each recorded layer, `[step][neuron]`.
    membranes: Vec<Vec<f32>>,
}

/// The results of a forward pass. Spikes are stored as bits, and arrays are made when they are requested.
#[pyclass(frozen, module = "leaklab")]
pub struct Forward {
    images: Vec<Image>,
    steps: usize,
    architecture: Architecture,
    /// Layers whose membranes were recorded.
    recorded: Vec<usize>,
}

impl Forward {
    fn rows<'py, T>(
        &self,
        py: Python<'py>,
        what: &str,
        shape: &[usize],
        of: impl Fn(&Image) -> &[T] + Sync + Send,
    ) -> PyResult<Bound<'py, PyArrayDyn<T>>>
    where
        T: numpy::Element + Clone + Send,
    {
        let shape: Vec<usize> = [self.images.len()].iter().chain(shape).copied().collect();
        let mut values = room(what, &shape)?;
        py.detach(|| self.images.iter().for_each(|image| values.extend_from_slice(of(image))));
        Ok(array(py, &shape, values))
    }

    /// Values `[step][...]` of each image as one array, with the steps as the first axis.
    fn by_step<'py>(
        &self,
        py: Python<'py>,
        what: &str,
        shape: &[usize],
        of: impl Fn(&Image) -> &[f32] + Sync + Send,
    ) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let size: usize = shape.iter().product();
        let shape: Vec<usize> = [self.steps, self.images.len()].iter().chain(shape).copied().collect();
        let mut values = room(what, &shape)?;
        py.detach(|| {
            for step in 0..self.steps {
                self.images
                    .iter()
                    .for_each(|image| values.extend_from_slice(&of(image)[step * size..][..size]));
            }
        });
        Ok(array(py, &shape, values))
    }

    fn hidden(&self, layer: usize) -> Vec<usize> {
        let layer = &self.architecture.hidden()[layer];
        dimensions(layer.kind, layer.output)
    }
}

#[pymethods]
impl Forward {
    /// Prediction, the output potential after the last step divided by T (or as the network's
    /// ``readout_divisor`` says): float32 [N, classes].
    #[getter]
    fn prediction<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        self.rows(py, "the prediction", &[self.architecture.classes()], |image| &image.prediction)
    }

    /// Weighted input of the output layer at every step: float32 [T, N, classes].
    #[getter]
    fn signal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        self.by_step(py, "the signal", &[self.architecture.classes()], |image| &image.signal)
    }

    /// Membrane potentials of the layers that ``forward(membranes=...)`` named, after the input of a step and
    /// before the threshold is applied: a dict of float32 [T, N, ...].
    #[getter]
    fn membranes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (i, &layer) in self.recorded.iter().enumerate() {
            let layer = &self.architecture.layers()[layer];
            let shape = dimensions(layer.kind, layer.output);
            let what = format!("the membranes of {}", layer.name);
            dict.set_item(&layer.name, self.by_step(py, &what, &shape, |image| &image.membranes[i])?)?;
        }
        Ok(dict)
    }

    /// Number of spikes of each neuron: a list over hidden layers, including pools, of uint32 [N, ...].
    #[getter]
    fn spike_counts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyArrayDyn<u32>>>> {
        let counts = |layer: usize| {
            self.rows(py, "the spike counts", &self.hidden(layer), |image| &image.counts[layer])
        };
        (0..self.architecture.hidden().len()).map(counts).collect()
    }

    /// Synaptic operations of each image: uint64 [N, layers], over conv, fully connected and output layers.
    #[getter]
    fn synops<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
        self.rows(py, "the synops", &[self.architecture.parameters().len()], |image| &image.synops)
    }

    /// Time mean of the Euclidean norm of the weighted input: float64 [N, layers], over hidden layers,
    /// including pools.
    #[getter]
    fn weighted_input_norm<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        self.rows(py, "the norms", &[self.architecture.hidden().len()], |image| &image.norms)
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
            Err(_) => {
                let index = layer.extract::<i64>()?;
                usize::try_from(index).ok().filter(|&index| index < hidden.len())
            }
        };
        let index = index.ok_or_else(|| {
            let names: Vec<&str> = hidden.iter().map(|layer| layer.name.as_str()).collect();
            PyIndexError::new_err(format!("there is no hidden layer {layer}; there are {}", names.join(", ")))
        })?;
        let (samples, size) = (self.images.len(), hidden[index].output.neurons());
        let pixels = hidden[index].output.pixels();
        let shape: Vec<usize> = [self.steps, samples].into_iter().chain(self.hidden(index)).collect();
        let mut values: Vec<u8> = room(&format!("the spikes of {}", hidden[index].name), &shape)?;
        py.detach(|| {
            values.resize(self.steps * samples * size, 0);
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
        Ok(array(py, &shape, values))
    }

    fn __repr__(&self) -> String {
        format!("Forward({} samples, {} steps, '{}')", self.images.len(), self.steps, self.architecture)
    }
}
