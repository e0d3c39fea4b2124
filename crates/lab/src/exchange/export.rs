//! A network as a NIR graph.
//!
//! NIR speaks of differential equations, LeakLab of steps; a step `dt` joins them. Forward Euler of NIR's
//! LIF, `tau v' = -v + r I`, is `v <- (1 - dt/tau) v + (r dt/tau) I`, so `tau = dt/(1 - lambda)` and
//! `r = tau/dt` give `v <- lambda v + I` and then the threshold test: LeakLab's own neuron, which decays after
//! the test instead of before the next input. The output layer is the same integrator without a threshold
//! (`LI`, or `I` without leak). NIR cannot say that it is divided by T after the last step; the class is the
//! same.

use super::ExchangeError;
use super::nir::{Array, Graph, Node, Padding};
use super::target::ExportOptions;
use leaklab_engine::neuron::nir::{NO_LEAK, constants};
use leaklab_engine::{Layer, LayerKind, Network, Shape, Tau};

/// Threshold of a pool neuron on the mean of its four inputs: it fires above this.
pub const POOL_THRESHOLD: f64 = 0.75;
/// The potential at which it surely fires: potentials are quarters.
pub const POOL_FIRES: f64 = 1.0;
/// The threshold that is written. No potential lies between 0.75 and 1, so every threshold between them gives
/// the same spikes. This one gives them in tools that fire *at* the threshold too.
const POOL_WRITTEN: f64 = 0.875;
/// The step that most tools assume.
pub const DT: f64 = 1e-4;

/// The network as a graph: `input`, then for every layer its weights or pool and its neuron (`conv1`,
/// `conv1_lif`), `flatten` before the first fully connected layer, `output`.
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

/// All three dimensions as one, counted from the last: so a tool that counts the batch as a dimension, as torch
/// does, and one that does not, as NIR says, mean the same.
fn flatten(input: Shape) -> Node {
    Node::Flatten { input_type: Some(dimensions(input)), start_dim: -3, end_dim: -1 }
}

/// What brings a layer its input: its weights, times `factor`, or its pool.
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

/// A graph that grows at its end.
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

/// One layer's neurons; NIR wants every parameter in the layer's full shape.
struct Membrane<'a> {
    shape: Vec<usize>,
    /// `tau` in NIR's seconds and `r`.
    leak: Option<(f64, f64)>,
    /// Whether it integrates the readout or spikes.
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

    /// What the weights before it are multiplied by, so that it needs no `r`.
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
            "tau = {tau} steps: dt/(1 - lambda) in float32 does not give this decay back; NIR can hold tau from about \
             0.07 to 1e12 steps, or inf"
        ))
    })
}
