//! A network as a NIR graph.
//!
//! NIR speaks of differential equations, LeakLab of steps; a step `dt` joins them. Forward Euler of NIR's LIF,
//! `tau v' = -v + r I`, is `v <- (1 - dt/tau) v + (r dt/tau) I`, so `tau = dt/(1 - lambda)` and `r = tau/dt` give
//! `v <- lambda v + I` and then the threshold test: LeakLab's own neuron, which decays after the test instead of before
//! the next input. The output layer is the same integrator without a threshold (`LI`, or `I` without leak). Its
//! division by T at the last step is not a thing NIR can say; it does not change the class.

use super::ExchangeError;
use super::nir::{Array, Graph, Node, Padding};
use leaklab_engine::{LayerKind, Network, Shape};

/// Threshold of a pool neuron on the mean of its four inputs.
pub const POOL_THRESHOLD: f64 = 0.75;
/// The step that other tools assume.
pub const DT: f64 = 1e-4;
/// `1 - lambda` of an IF neuron written as a LIF neuron: in float32 the decay is exactly 1, and a power of two
/// scales inputs without rounding.
pub const NO_LEAK: f64 = 1.0 / (1u64 << 40) as f64;

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

/// The network as a graph: `input`, then for every layer its weights or pool and its neuron (`conv1`, `conv1_lif`),
/// `flatten` before the first fully connected layer, `output`.
pub fn export(network: &Network, options: &ExportOptions) -> Result<Graph, ExchangeError> {
    let refuse = |reason: String| Err(ExchangeError::Inexpressible(reason));
    for (name, value) in [("dt", options.dt), ("the r of IF nodes", options.if_r)] {
        if !(value as f32).is_normal() || value <= 0.0 {
            return refuse(format!("{name} is {value}; it must be a positive number"));
        }
    }
    network.check().map_err(|e| ExchangeError::Inexpressible(e.to_string()))?;
    let tau = network.neuron.tau;
    let leak = if tau.is_infinite() { None } else { Some(time_constant(tau, options.dt)?) };
    let v_th = f64::from(network.neuron.v_th);

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
        let neuron = Membrane { shape, leak, options };
        match layer.kind {
            LayerKind::Conv | LayerKind::Full => chain.neuron(&layer.name, neuron.spiking(v_th)),
            LayerKind::Pool => {
                chain.neuron(&layer.name, Membrane { leak: None, ..neuron }.spiking(POOL_THRESHOLD))
            }
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

/// NIR's `tau` and `r` (both float32) for a membrane time constant in steps, if float32 can hold them without
/// changing the decay by more than its own rounding.
fn time_constant(steps: f64, dt: f64) -> Result<(f64, f64), ExchangeError> {
    let tau = f64::from(seconds(steps, dt));
    let lambda = |steps: f64| (-1.0 / steps).exp();
    let kept = self::steps(tau, dt)
        .filter(|back| back.is_finite() && (lambda(*back) - lambda(steps)).abs() <= 2f64.powi(-24));
    if !tau.is_normal() || kept.is_none() {
        return Err(ExchangeError::Inexpressible(format!(
            "tau = {steps} steps: dt/(1 - lambda) in float32 does not give this decay back; NIR can hold \
             tau from about 0.07 to 1e12 steps, or inf"
        )));
    }
    Ok((tau, f64::from((1.0 / -(-1.0 / steps).exp_m1()) as f32)))
}

/// `dt/(1 - exp(-1/steps))`, as NIR files hold it.
fn seconds(steps: f64, dt: f64) -> f32 {
    (dt / -(-1.0 / steps).exp_m1()) as f32
}

/// The membrane time constant in steps that a NIR time constant stands for, or infinity for [`NO_LEAK`]; none if
/// nothing would be left of a potential after a step. Of all numbers that NIR's float32 cannot tell apart it is
/// the shortest decimal one, so that 30 comes back as 30.
pub(super) fn steps(tau: f64, dt: f64) -> Option<f64> {
    let lost = dt / tau;
    if !(lost > 0.0 && lost < 1.0) {
        return None;
    }
    if lost <= NO_LEAK * (1.0 + 1e-6) {
        return Some(f64::INFINITY);
    }
    let exact = -1.0 / (-lost).ln_1p();
    let shortest = (0..17).find_map(|digits| {
        let rounded: f64 = format!("{exact:.digits$e}").parse().ok()?;
        (seconds(rounded, dt) == tau as f32).then_some(rounded)
    });
    shortest.or(Some(exact))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_constants_come_back() {
        for dt in [1e-4, 1e-3, 1.0] {
            for tau in [0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 33.3, 100.0, 123.456, 1e4, 1e9] {
                assert_eq!(steps(f64::from(seconds(tau, dt)), dt), Some(tau), "tau {tau} at dt {dt}");
                assert!(time_constant(tau, dt).is_ok(), "tau {tau} at dt {dt}");
            }
        }
        assert_eq!(steps(DT / NO_LEAK, DT), Some(f64::INFINITY));
    }

    #[test]
    fn what_float32_cannot_hold_is_refused() {
        for tau in [0.01, 2e12, 1e60, f64::MAX] {
            let message = time_constant(tau, DT).unwrap_err().to_string();
            assert!(message.contains("float32"), "{message}");
        }
        assert_eq!(steps(1e-4, 1e-4), None);
        assert_eq!(steps(-1.0, 1e-4), None);
    }
}
