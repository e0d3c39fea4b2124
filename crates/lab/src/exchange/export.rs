//! A network as a NIR graph.
//!
//! NIR speaks of differential equations, LeakLab of steps; a step `dt` joins them. Forward Euler of NIR's
//! LIF,
//! `tau v' = -v + r I`, is `v <- (1 - dt/tau) v + (r dt/tau) I`, so `tau = dt/(1 - lambda)` and `r = tau/dt`
//! give
//! `v <- lambda v + I` and then the threshold test: LeakLab's own neuron, which decays after the test instead
//! of before the next input. The output layer is the same integrator without a threshold (`LI`, or `I`
//! without leak). Its division by T at the last step is not a thing NIR can say; it does not change the
//! class.

use super::ExchangeError;
use super::nir::{Array, Graph, Node, Padding};
use leaklab_engine::neuron::nir::{NO_LEAK, constants};
use leaklab_engine::{LayerKind, Network, Shape, Tau};

/// Threshold of a pool neuron on the mean of its four inputs.
pub const POOL_THRESHOLD: f64 = 0.75;
/// The step that other tools assume.
pub const DT: f64 = 1e-4;

/// How a network is written where tools read NIR differently.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExportOptions {
    /// Length of a step in NIR's seconds.
    pub dt: f64,
    /// `r` of `IF` and `I` nodes: 1 where a step adds `r I`, `1/dt` where it adds `r I dt`.
    pub if_r: f64,
    /// Write IF neurons as LIF neurons with a decay of 1, for tools that read `IF` as leaky.
    pub if_as_lif: bool,
}

impl Default for ExportOptions {
    fn default() -> Self {
        ExportOptions { dt: DT, if_r: 1.0, if_as_lif: false }
    }
}

/// The network as a graph: `input`, then for every layer its weights or pool and its neuron (`conv1`,
/// `conv1_lif`),
/// `flatten` before the first fully connected layer, `output`.
pub fn export(network: &Network, options: &ExportOptions) -> Result<Graph, ExchangeError> {
    let refuse = |reason: String| Err(ExchangeError::Inexpressible(reason));
    for (name, value) in [("dt", options.dt), ("the r of IF nodes", options.if_r)] {
        if !(value as f32).is_normal() || value <= 0.0 {
            return refuse(format!("{name} is {value}; it must be a positive number"));
        }
    }
    network.check().map_err(|e| ExchangeError::Inexpressible(e.to_string()))?;
    let v_th = f64::from(network.v_th());

    let mut chain = Chain::default();
    let dimensions = |shape: Shape| vec![shape.channels, shape.height, shape.width];
    let mut flat = false;
    chain.append("input", Node::Input { shape: dimensions(network.architecture.input()) });
    for layer in network.architecture.layers() {
        let weight = layer.parameter.map(|index| {
            let parameter = &network.architecture.parameters()[index];
            let values = &network.weights[parameter.offset..parameter.offset + parameter.len];
            Array { shape: parameter.shape.clone(), values: values.iter().map(|&w| f64::from(w)).collect() }
        });
        let fully_connected = matches!(layer.kind, LayerKind::Full | LayerKind::Output);
        if fully_connected && !flat {
            let input_type = Some(dimensions(layer.input));
            chain.append("flatten", Node::Flatten { input_type, start_dim: 0, end_dim: -1 });
            flat = true;
        }
        let shape = if fully_connected { vec![layer.output.channels] } else { dimensions(layer.output) };
        match (layer.kind, weight) {
            (LayerKind::Conv, Some(weight)) => chain.append(
                &layer.name,
                Node::Conv2d {
                    input_shape: Some([layer.input.height, layer.input.width]),
                    weight,
                    stride: [1, 1],
                    padding: Padding::Size([1, 1]),
                    dilation: [1, 1],
                    groups: 1,
                    bias: Array::full(&[layer.output.channels], 0.0),
                },
            ),
            (LayerKind::Pool, _) => chain.append(
                &layer.name,
                Node::Pool2d { average: true, kernel_size: [2, 2], stride: [2, 2], padding: [0, 0] },
            ),
            (_, Some(weight)) => chain.append(&layer.name, Node::Linear { weight }),
            (_, None) => unreachable!("only pools have no weights"),
        }
        let tau = network.leak().of(layer).filter(|tau| tau.leaks());
        let leak = tau.map(|tau| nir_constants(tau, options.dt)).transpose()?;
        let neuron = Membrane { shape, leak, options };
        match layer.kind {
            LayerKind::Conv | LayerKind::Full => chain.neuron(&layer.name, neuron.spiking(v_th)),
            LayerKind::Pool => chain.neuron(&layer.name, neuron.spiking(POOL_THRESHOLD)),
            LayerKind::Output => chain.neuron(&layer.name, neuron.integrating()),
        }
    }
    chain.append("output", Node::Output { shape: vec![network.architecture.classes()] });
    Ok(chain.graph)
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
        let kind = match node {
            Node::If { .. } => "if",
            Node::Lif { .. } => "lif",
            Node::Li { .. } => "li",
            _ => "i",
        };
        self.append(&format!("{layer}_{kind}"), node);
    }
}

/// One layer's neurons; NIR wants every parameter in the layer's full shape.
struct Membrane<'a> {
    shape: Vec<usize>,
    /// `tau` in NIR's seconds and `r`.
    leak: Option<(f64, f64)>,
    options: &'a ExportOptions,
}

impl Membrane<'_> {
    fn full(&self, value: f64) -> Array {
        Array::full(&self.shape, value)
    }

    fn leak(&self) -> Option<(f64, f64)> {
        let none = (self.options.dt / NO_LEAK, 1.0 / NO_LEAK);
        self.leak.or(self.options.if_as_lif.then_some(none))
    }

    fn spiking(&self, threshold: f64) -> Node {
        let (v_threshold, v_reset) = (self.full(threshold), self.full(0.0));
        match self.leak() {
            Some((tau, r)) => Node::Lif {
                tau: self.full(tau),
                r: self.full(r),
                v_leak: self.full(0.0),
                v_threshold,
                v_reset,
            },
            None => Node::If { r: self.full(self.options.if_r), v_threshold, v_reset },
        }
    }

    fn integrating(&self) -> Node {
        match self.leak() {
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
