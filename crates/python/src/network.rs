//! Networks: their weights, files, and export to other tools. Running them is in `forward` and `gradients`.

use crate::convert::{array, key_name, numbers, pairs, real_array, shape_of, slice};
use crate::forward::{self, Batch, Forward, Layer, dimensions, read_spikes};
use crate::gradients::{self, Gradients};
use crate::{arguments, fault, interruptible, warn};
use leaklab_engine::{
    Architecture, Input, Isa, LayerKind, Leak, LeakChange, Network as Engine, NetworkError, ReadoutDivisor,
    Tau,
};
use leaklab_lab::calibrate::scale_to_rates;
use leaklab_lab::evaluate::Inputs;
use leaklab_lab::exchange::{self, ImportOptions, Imported, Model, Target, nir};
use leaklab_lab::memory;
use leaklab_lab::run::Weights;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
///     Seed of the initial weights, which are normal with standard deviation ``sqrt(2 / fan_in)``.
#[pyclass(frozen, module = "leaklab", eq)]
pub struct Network {
    /// Computations use the network as it was when they began; other threads may replace it meanwhile.
    engine: Mutex<Arc<Engine>>,
}

impl Network {
    fn from(engine: Engine) -> Self {
        Network { engine: Mutex::new(Arc::new(engine)) }
    }

    /// The engine's network, locked for a moment. As in `pool`, it is locked only while the GIL is held, so
    /// that it is never locked in a forked child.
    fn locked(&self) -> MutexGuard<'_, Arc<Engine>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine's network.
    pub fn engine(&self) -> Arc<Engine> {
        self.locked().clone()
    }
}

impl PartialEq for Network {
    fn eq(&self, other: &Self) -> bool {
        self.engine() == other.engine()
    }
}

#[pymethods]
impl Network {
    #[new]
    #[pyo3(signature = (
        notation, tau=100.0, v_th=1.0, seed=0, layer_tau=None, readout_tau=None, readout_divisor="steps",
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        notation: &str,
        tau: f64,
        v_th: f32,
        #[pyo3(from_py_with = arguments::seed)] seed: u64,
        #[pyo3(from_py_with = arguments::layer_tau)] layer_tau: Option<BTreeMap<String, f64>>,
        readout_tau: Option<f64>,
        readout_divisor: &str,
    ) -> PyResult<Self> {
        let divisor: ReadoutDivisor = readout_divisor.parse().map_err(fault)?;
        let architecture = Architecture::parse(notation).map_err(fault)?;
        memory::check_network(&architecture).map_err(fault)?;
        let change = leak_change(Some(tau), layer_tau, readout_tau)?;
        let leak = Leak::uniform(Tau::INFINITE).changed(&change);
        let engine = py.detach(|| Engine::initialised(architecture, leak, v_th, seed)).map_err(fault)?;
        Ok(Network::from(engine.with_readout_divisor(divisor)))
    }

    /// The same weights with another leak: ``tau`` for all layers, ``layer_tau`` for named hidden layers,
    /// ``readout_tau`` for the output layer. Time constants that are not given do not change.
    #[pyo3(signature = (tau=None, *, layer_tau=None, readout_tau=None))]
    fn with_leak(
        &self,
        tau: Option<f64>,
        #[pyo3(from_py_with = arguments::layer_tau)] layer_tau: Option<BTreeMap<String, f64>>,
        readout_tau: Option<f64>,
    ) -> PyResult<Self> {
        let engine = self.engine();
        let leak = engine.leak().changed(&leak_change(tau, layer_tau, readout_tau)?);
        Ok(Network::from(Engine::clone(&engine).with_leak(leak).map_err(fault)?))
    }

    /// The network in the paper's notation.
    #[getter]
    fn notation(&self) -> String {
        self.engine().architecture.to_string()
    }

    /// Membrane time constant in time steps.
    #[getter]
    fn tau(&self) -> f64 {
        self.engine().leak().tau.steps()
    }

    /// Time constants of the hidden layers that have their own.
    #[getter]
    fn layer_tau(&self) -> BTreeMap<String, f64> {
        let engine = self.engine();
        engine.leak().layer_tau.iter().map(|(name, tau)| (name.clone(), tau.steps())).collect()
    }

    /// Time constant of the output layer.
    #[getter]
    fn readout_tau(&self) -> f64 {
        self.engine().leak().readout().steps()
    }

    /// What the potential of the output after the last step is divided by: ``"steps"`` or ``"memory"``.
    #[getter]
    fn readout_divisor(&self) -> String {
        self.engine().readout_divisor().to_string()
    }

    /// Threshold of conv and fully connected neurons.
    #[getter]
    fn v_th(&self) -> f32 {
        self.engine().v_th()
    }

    /// The layers; the output layer is the last one.
    #[getter]
    fn layers(&self) -> Vec<Layer> {
        let architecture = &self.engine().architecture;
        let (layers, first) = (architecture.layers(), architecture.input());
        layers
            .iter()
            .enumerate()
            .map(|(i, layer)| Layer {
                name: layer.name.clone(),
                kind: layer.kind.name(),
                input: match i.checked_sub(1) {
                    Some(before) => dimensions(layers[before].kind, layer.input),
                    None => dimensions(LayerKind::Conv, first),
                },
                output: dimensions(layer.kind, layer.output),
            })
            .collect()
    }

    /// A copy of the weights: a dict of float32 arrays, [out, in, 3, 3] or [out, in], by layer name.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let engine = self.engine();
        weight_dict(py, &engine, &engine.weights)
    }

    /// Replaces the weights of the named layers; those of other layers do not change. If an array is refused,
    /// nothing changes.
    fn set_weights(&self, py: Python<'_>, weights: &Bound<'_, PyMapping>) -> PyResult<()> {
        let engine = self.engine();
        let mut given = Vec::new();
        for (name, values) in pairs(weights)? {
            let name = key_name("a layer", &name)?;
            let what = format!("weights '{name}'");
            let values = real_array(&what, &values)?;
            let shape = shape_of(&values)?;
            // The shape is checked before anything is copied.
            if let Some(expected) = engine.architecture.parameters().iter().find(|p| p.name == name)
                && expected.shape != shape
            {
                let expected = &expected.shape;
                return Err(fault(format!("{what} has shape {shape:?}; {expected:?} is expected")));
            }
            given.push((name, shape, numbers::<f32>(&what, &values)?));
        }
        let given: Vec<(&String, &Vec<usize>, &[f32])> =
            given.iter().map(|(name, shape, values)| (name, shape, slice(values))).collect();
        // If another thread replaces the weights meanwhile, these are set in the new ones.
        loop {
            let engine = self.engine();
            let changed = py.detach(|| {
                let mut changed = Engine::clone(&engine);
                given.iter().try_for_each(|(name, shape, values)| changed.set_tensor(name, shape, values))?;
                Ok(changed)
            });
            let changed = changed.map_err(|error: NetworkError| fault(error))?;
            let mut current = self.locked();
            if Arc::ptr_eq(&current, &engine) {
                *current = Arc::new(changed);
                return Ok(());
            }
        }
    }

    /// Runs the network on input spikes ``x``, float32 ``[T, N, C, H, W]``.
    ///
    /// Values other than -1, 0 and 1 are allowed (noise on the spikes). ``membranes`` names layers,
    /// ``"conv1"`` for example, whose membrane potentials are computed as well. Results do not depend on
    /// ``threads``.
    #[pyo3(signature = (x, *, membranes=Vec::new(), threads=None),
        text_signature = "($self, x, *, membranes=(), threads=None)")]
    fn forward(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::names)] membranes: Vec<String>,
        #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
    ) -> PyResult<Forward> {
        forward::run(py, &self.engine(), x, &membranes, threads)
    }

    /// The loss and its gradient with respect to every weight, averaged over the samples of ``x``.
    ///
    /// ``gradient`` is "straight-through" or "exact". ``masks`` are dropout masks, one array ``[N, ...]`` per
    /// hidden conv and fully connected layer, with values 0 and 1/(1-p). If the gradient is zero everywhere,
    /// there is a warning.
    #[pyo3(signature = (x, labels, gradient="straight-through", masks=None, *, threads=None))]
    fn gradients(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        labels: &Bound<'_, PyAny>,
        gradient: &str,
        masks: Option<Vec<Bound<'_, PyAny>>>,
        #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
    ) -> PyResult<Gradients> {
        gradients::run(py, &self.engine(), x, labels, gradient, masks.unwrap_or_default(), threads)
    }

    /// Scales the weights, layer by layer, until every hidden conv and fully connected layer fires with
    /// probability ``spike_rate`` per neuron and step on the input spikes ``x``, float32 ``[T, N, C, H, W]``.
    #[pyo3(signature = (x, spike_rate, *, threads=None))]
    fn calibrate(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        spike_rate: f64,
        #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
    ) -> PyResult<()> {
        if !(spike_rate > 0.0 && spike_rate < 1.0) {
            return Err(fault(format!("spike_rate is {spike_rate}; a number between 0 and 1 is expected")));
        }
        let architecture = self.engine().architecture.clone();
        let x = read_spikes(&self.engine(), x)?;
        let batch = Batch::new(&self.engine(), &x);
        batch.check_samples()?;
        let wanted = vec![spike_rate; architecture.hidden().len()];
        // The output layer is not scaled and changes no rate. Its weights are the last ones.
        let scaled = ..architecture.parameters().last().map_or(0, |output| output.offset);
        // If another thread replaces weights that are scaled meanwhile, the new ones are scaled instead.
        loop {
            let engine = self.engine();
            let mut calibrated = Engine::clone(&engine);
            interruptible(py, threads, |stopped| {
                let show = |sample: usize, input: &mut Input| batch.show_unless(stopped, sample, input);
                let inputs = Inputs { count: batch.samples, steps: batch.steps, show };
                scale_to_rates(&mut calibrated, &wanted, &inputs, Isa::best()).map_err(|e| e.to_string())
            })?
            .map_err(fault)?;
            let mut current = self.locked();
            if current.weights[scaled] == engine.weights[scaled] {
                calibrated.weights[scaled.end..].copy_from_slice(&current.weights[scaled.end..]);
                *current = Arc::new(calibrated);
                return Ok(());
            }
        }
    }

    /// The network of a run folder, or of a folder written by ``save`` or ``leaklab export --safetensors``.
    #[staticmethod]
    #[pyo3(signature = (path, *, best=false))]
    fn load(py: Python<'_>, path: PathBuf, best: bool) -> PyResult<Self> {
        let weights = Weights::of(best);
        let model = py.detach(|| Model::open(&path, weights)).map_err(fault)?;
        if let Some(notice) = &model.notice {
            warn(py, notice)?;
        }
        Ok(Network::from(model.network))
    }

    /// Writes model.safetensors, config.json and a model card into a folder.
    fn save(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::folder)] folder: PathBuf,
    ) -> PyResult<()> {
        let engine = self.engine();
        py.detach(|| Model::bare(Engine::clone(&engine)).write(&folder)).map_err(fault)
    }

    /// Writes a NIR graph, in the layout of Python's ``nir``. ``target`` is the tool that will load and run
    /// it: ``generic``, ``norse``, ``snntorch`` or ``spikingjelly``.
    #[pyo3(signature = (path, *, target="generic", dt=None, if_r=None, if_as_lif=false))]
    fn to_nir(
        &self,
        py: Python<'_>,
        path: PathBuf,
        target: &str,
        dt: Option<f64>,
        if_r: Option<f64>,
        if_as_lif: bool,
    ) -> PyResult<()> {
        let options = target.parse::<Target>().map_err(fault)?.with(dt, if_r, if_as_lif);
        let graph = exchange::export(&self.engine(), &options).map_err(fault)?;
        let integrates = |node: &nir::Node| matches!(node, nir::Node::If { .. } | nir::Node::I { .. });
        if if_r.is_some() && !graph.nodes.values().any(integrates) {
            return Err(fault(
                "if_r is for IF nodes (layers without leak, and pools), and this network has none",
            ));
        }
        py.detach(|| nir::write(&path, &graph)).map_err(fault)
    }

    /// The network of a NIR graph of any tool, if it is a chain of LeakLab's layers; otherwise the error
    /// names the node without counterpart. There is a warning about everything that had to be changed.
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
        Ok(Network::from(network))
    }

    fn __repr__(&self) -> String {
        let engine = self.engine();
        let leak = engine.leak();
        let mut text = format!("Network('{}', tau={}, v_th={}", self.notation(), leak.tau, self.v_th());
        if !leak.layer_tau.is_empty() {
            let layers: Vec<String> =
                leak.layer_tau.iter().map(|(name, tau)| format!("'{name}': {tau}")).collect();
            text.push_str(&format!(", layer_tau={{{}}}", layers.join(", ")));
        }
        if let Some(tau) = leak.readout_tau {
            text.push_str(&format!(", readout_tau={tau}"));
        }
        if engine.readout_divisor() != ReadoutDivisor::default() {
            text.push_str(&format!(", readout_divisor='{}'", engine.readout_divisor()));
        }
        text + ")"
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        let this = slf.get();
        let readout = this.engine().leak().readout_tau.map(Tau::steps);
        let (layers, divisor) = (this.layer_tau(), this.readout_divisor());
        let arguments =
            (this.notation(), this.tau(), this.v_th(), 0, layers, readout, divisor).into_pyobject(py)?;
        (slf.get_type(), arguments, this.weights(py)?).into_pyobject(py)
    }

    fn __setstate__(&self, py: Python<'_>, weights: &Bound<'_, PyMapping>) -> PyResult<()> {
        self.set_weights(py, weights)
    }
}

/// Weights, or their gradients, by layer name.
pub(crate) fn weight_dict<'py>(
    py: Python<'py>,
    engine: &Engine,
    flat: &[f32],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for p in engine.architecture.parameters() {
        dict.set_item(&p.name, array(py, &p.shape, flat[p.offset..p.offset + p.len].to_vec()))?;
    }
    Ok(dict)
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
