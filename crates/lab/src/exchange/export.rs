//! Exports a network as a NIR graph.
//!
//! NIR uses differential equations and LeakLab uses steps; the length of a step, `dt`, relates them. The
//! forward Euler method turns NIR's LIF, `tau v' = -v + r I`, into `v <- (1 - dt/tau) v + (r dt/tau) I`. With
//! `tau = dt/(1 - lambda)` and `r = tau/dt` this is `v <- lambda v + I`, followed by the threshold test. This
//! is LeakLab's neuron, except that LeakLab's decays after the test instead of before the next input. The
//! output layer is the same integrator without a threshold (`LI`, or `I` without leak). NIR cannot express
//! that its potential is divided after the last step; the predicted class is the same.

use super::ExchangeError;
use super::nir::{Array, Graph, Node, Padding};
use super::target::ExportOptions;
use leaklab_engine::neuron::nir::{NO_LEAK, constants};
use leaklab_engine::{Layer, LayerKind, Network, Shape, Tau};

/// Threshold of a pool neuron on the mean of its four inputs: it fires above this value.
pub const POOL_THRESHOLD: f64 = 0.75;
/// The smallest potential at which it fires: potentials are multiples of a quarter.
pub const POOL_FIRES: f64 = 1.0;
/// The threshold that is written. No potential lies between 0.75 and 1, so every threshold between them gives
/// the same spikes. With this value, tools that fire *at* the threshold give the same spikes too.
const POOL_WRITTEN: f64 = 0.875;
/// The step that most tools assume.
pub const DT: f64 = 1e-4;

/// The network as a graph: `input`, then for every layer its weights or pool and its neuron (`conv1`,
/// `conv1_lif`), with `flatten` before the first fully connected layer, and then `output`.
pub fn export(network: &Network, options: &ExportOptions) -> Result<Graph, ExchangeError> {
    for (name, value) in [("dt", options.dt), ("the r of IF nodes", options.if_r)] {
        if !(value as f32).is_normal() || value <= 0.0 {
            let reason = format!("{name} is {value}; it must be a positive number");
            return Err(ExchangeError::Inexpressible(reason));
        }
    }
    network.check().map_err(|e| ExchangeError::Inexpressible(e.to_string()))?;

    let mut chain = Chain::default();
    let mut flat = false;
    chain.append("input", Node::Input { shape: dimensions(network.architecture.input()) });
    for layer in network.architecture.layers() {
        let fully_connected = match layer.kind {
            LayerKind::Conv | LayerKind::Pool => false,
            LayerKind::Full | LayerKind::Output => true,
        };
        if fully_connected && !flat {
            chain.append("flatten", flatten(layer.input));
            flat = true;
        }
        let shape = if fully_connected { vec![layer.output.channels] } else { dimensions(layer.output) };
        let neuron = Membrane::new(network, layer, shape, options)?;
        chain.append(&layer.name, connection(network, layer, neuron.weight_factor(), options));
        match layer.kind {
            LayerKind::Conv | LayerKind::Full => {
                chain.neuron(&layer.name, neuron.spiking(f64::from(network.v_th())));
            }
            LayerKind::Pool => {
                let scale = if options.sum_pool { 4.0 } else { 1.0 };
                chain.neuron(&layer.name, neuron.spiking(scale * POOL_WRITTEN));
            }
            LayerKind::Output if options.integrator => chain.neuron(&layer.name, neuron.integrating()),
            LayerKind::Output => {}
        }
    }
    chain.append("output", Node::Output { shape: vec![network.architecture.classes()] });
    Ok(chain.graph)
}

fn dimensions(shape: Shape) -> Vec<usize> {
    vec![shape.channels, shape.height, shape.width]
}

/// Flattens all three dimensions, which are counted from the last. The meaning is then the same for tools
/// that count the batch as a dimension, as torch does, and for tools that do not, as NIR specifies.
fn flatten(input: Shape) -> Node {
    Node::Flatten { input_type: Some(dimensions(input)), start_dim: -3, end_dim: -1 }
}

/// The node before a layer's neurons: its weights, multiplied by `factor`, or its pool.
fn connection(network: &Network, layer: &Layer, factor: f64, options: &ExportOptions) -> Node {
    let weight = || {
        let index = layer.parameter.expect("every layer but a pool has weights");
        let parameter = &network.architecture.parameters()[index];
        let values = &network.weights[parameter.offset..parameter.offset + parameter.len];
        let values = values.iter().map(|&w| factor * f64::from(w)).collect();
        Array { shape: parameter.shape.clone(), values }
    };
    match layer.kind {
        LayerKind::Conv => Node::Conv2d {
            input_shape: Some([layer.input.height, layer.input.width]),
            weight: weight(),
            stride: [1, 1],
            padding: Padding::Size([1, 1]),
            dilation: [1, 1],
            groups: 1,
            bias: Array::full(&[layer.output.channels], 0.0),
        },
        LayerKind::Pool => {
            Node::Pool2d { average: !options.sum_pool, kernel_size: [2, 2], stride: [2, 2], padding: [0, 0] }
        }
        LayerKind::Full | LayerKind::Output => Node::Linear { weight: weight() },
    }
}

/// A graph that is a chain; nodes are appended at its end.
#[derive(Default)]
struct Chain {
    graph: Graph,
    last: Option<String>,
}

impl Chain {
    fn append(&mut self, name: &str, node: Node) {
        if let Some(last) = self.last.replace(name.to_owned()) {
            self.graph.edges.push((last, name.to_owned()));
        }
        self.graph.nodes.insert(name.to_owned(), node);
    }

    fn neuron(&mut self, layer: &str, node: Node) {
        self.append(&format!("{layer}_{}", node.kind().to_lowercase()), node);
    }
}

/// The neurons of one layer; NIR requires every parameter in the full shape of the layer.
struct Membrane<'a> {
    shape: Vec<usize>,
    /// `tau` in NIR's seconds, and `r`.
    leak: Option<(f64, f64)>,
    /// Whether it is the integrating readout and not a spiking layer.
    readout: bool,
    options: &'a ExportOptions,
}

impl<'a> Membrane<'a> {
    fn new(
        network: &Network,
        layer: &Layer,
        shape: Vec<usize>,
        options: &'a ExportOptions,
    ) -> Result<Self, ExchangeError> {
        let tau = network.leak().of(layer).filter(|tau| tau.leaks());
        let leak = tau.map(|tau| nir_constants(tau, options.dt)).transpose()?;
        let none = (options.dt / NO_LEAK, 1.0 / NO_LEAK);
        let leak = leak.or(options.if_as_lif.then_some(none));
        Ok(Membrane { shape, leak, readout: layer.kind == LayerKind::Output, options })
    }

    fn full(&self, value: f64) -> Array {
        Array::full(&self.shape, value)
    }

    /// Factor of the weights before it, if `r` is folded into them.
    fn weight_factor(&self) -> f64 {
        match self.leak {
            Some((_, r)) if self.options.fold_r && !self.readout => r,
            Some(_) | None => 1.0,
        }
    }

    fn spiking(&self, threshold: f64) -> Node {
        let (v_threshold, v_reset) = (self.full(threshold), self.full(0.0));
        match self.leak {
            Some((tau, r)) => Node::Lif {
                tau: self.full(tau),
                r: self.full(if self.options.fold_r { 1.0 } else { r }),
                v_leak: self.full(0.0),
                v_threshold,
                v_reset,
            },
            None => Node::If { r: self.full(self.options.if_r), v_threshold, v_reset },
        }
    }

    fn integrating(&self) -> Node {
        match self.leak {
            Some((tau, r)) => Node::Li { tau: self.full(tau), r: self.full(r), v_leak: self.full(0.0) },
            None => Node::I { r: self.full(self.options.if_r) },
        }
    }
}

/// NIR's `tau` and `r` for a time constant.
fn nir_constants(tau: Tau, dt: f64) -> Result<(f64, f64), ExchangeError> {
    constants(tau.steps(), dt).ok_or_else(|| {
        ExchangeError::Inexpressible(format!(
            "tau = {tau} steps: float32 cannot represent dt/(1 - lambda) accurately enough for this decay; \
             NIR can express tau from about 0.07 to 1e12 steps, or inf"
        ))
    })
}
