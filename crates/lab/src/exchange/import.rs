//! A NIR graph as a network, if it is one of ours in all but name.
//!
//! The graph must be a chain of LeakLab's layers: a convolution or matrix followed by a neuron, a pool
//! followed by its neuron, and a matrix followed by an integrator at the end. Gains (`r dt/tau`) and
//! thresholds that differ from layer to layer are folded into the weights, which changes no spike. Anything
//! else is refused with the node's name.

use super::ExchangeError;
use super::export::{DT, POOL_THRESHOLD};
use super::nir::{Array, Graph, Node, Padding};
use leaklab_engine::neuron::nir::steps;
use leaklab_engine::{Architecture, LayerKind, Leak, LeakError, Network, Tau};

/// What a graph does not say about itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImportOptions {
    /// Length of a step in NIR's seconds; 1e-4 if not given, but then every gain must come out as 1.
    pub dt: Option<f64>,
    /// The `r` of `IF` and `I` nodes that adds an input to the potential as it is.
    pub if_r: f64,
    /// Put LeakLab's integrating output where a graph ends in a matrix.
    pub integrate_output: bool,
}

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions { dt: None, if_r: 1.0, integrate_output: false }
    }
}

/// A network that came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The network.
    pub network: Network,
    /// What had to be changed to make it one, a sentence each; empty if nothing.
    pub notes: Vec<String>,
}

/// Maps a graph onto a network, or names the node that has no counterpart.
pub fn import(graph: &Graph, options: &ImportOptions) -> Result<Imported, ExchangeError> {
    let mut reader = Reader {
        options,
        chain: chain(graph)?,
        at: 0,
        notes: Vec::new(),
        v_th: None,
        hidden: Vec::new(),
        readout: None,
    };
    let mut layers = Vec::new();
    let mut notation = String::new();
    let mut shape = reader.input(&mut notation)?;
    loop {
        let (name, node) = reader.next();
        match node {
            Node::Conv2d { input_shape, weight, stride, padding, dilation, groups, bias } => {
                let &[_, height, width] = &shape[..] else {
                    return Err(unmapped(
                        name,
                        format!("a Conv2d on data of shape {shape:?}; [C, H, W] is expected"),
                    ));
                };
                if input_shape.is_some_and(|given| given != [height, width]) {
                    return Err(unmapped(
                        name,
                        format!("input_shape {input_shape:?} on data of shape {shape:?}"),
                    ));
                }
                let same = *padding == Padding::Size([1, 1]) || *padding == Padding::Word("same".into());
                if !matches!(weight.shape[..], [_, _, 3, 3])
                    || (*stride, *dilation, *groups) != ([1, 1], [1, 1], 1)
                    || !same
                {
                    return Err(unmapped(
                        name,
                        format!(
                            "weight {:?}, stride {stride:?}, padding {padding:?}, dilation {dilation:?}, groups \
                             {groups}; LeakLab's convolutions are 3x3, stride 1, padding 1, dilation 1, one group",
                            weight.shape
                        ),
                    ));
                }
                if weight.shape[1] != shape[0] {
                    return Err(unmapped(
                        name,
                        format!("weight {:?} on data of shape {shape:?}", weight.shape),
                    ));
                }
                no_bias(name, bias)?;
                shape = vec![weight.shape[0], height, width];
                let scale = reader.spiking(name, &shape)?;
                layers.push(reader.weights(name, weight, scale)?);
                notation.push_str(&format!("-{}C3", shape[0]));
            }
            Node::Linear { weight } | Node::Affine { weight, .. } => {
                if let Node::Affine { bias, .. } = node {
                    no_bias(name, bias)?;
                }
                let [out, inputs] = weight.shape[..] else {
                    return Err(unmapped(name, format!("weight {:?}; [out, in] is expected", weight.shape)));
                };
                if shape != [inputs] {
                    let hint = if shape.len() > 1 { "; a Flatten node is expected before it" } else { "" };
                    return Err(unmapped(
                        name,
                        format!("weight {:?} on data of shape {shape:?}{hint}", weight.shape),
                    ));
                }
                shape = vec![out];
                if let Some(scale) = reader.integrating(name, &shape)? {
                    layers.push(reader.weights(name, weight, scale)?);
                    notation.push_str(&format!("-{out}o"));
                    break;
                }
                let scale = reader.spiking(name, &shape)?;
                layers.push(reader.weights(name, weight, scale)?);
                notation.push_str(&format!("-{out}FC"));
            }
            Node::Pool2d { average, kernel_size, stride, padding } => {
                if (*kernel_size, *stride, *padding) != ([2, 2], [2, 2], [0, 0]) || shape.len() != 3 {
                    return Err(unmapped(
                        name,
                        format!(
                            "kernel {kernel_size:?}, stride {stride:?}, padding {padding:?} on data of shape {shape:?}; \
                             LeakLab pools 2x2 with stride 2 and no padding"
                        ),
                    ));
                }
                shape = vec![shape[0], shape[1] / 2, shape[2] / 2];
                reader.pool_neuron(
                    name,
                    &shape,
                    if *average { POOL_THRESHOLD } else { 4.0 * POOL_THRESHOLD },
                )?;
                notation.push_str("-2P");
            }
            Node::Flatten { input_type, start_dim, end_dim } => {
                let last = shape.len() as i64 - 1;
                let whole = *start_dim == 0 && (*end_dim == -1 || *end_dim == last);
                if !(whole || shape.len() == 1) || input_type.as_ref().is_some_and(|given| *given != shape) {
                    return Err(unmapped(
                        name,
                        format!(
                            "flattens dimensions {start_dim} to {end_dim} of {:?}; the whole of {shape:?}, without a \
                             batch dimension (0 to -1), is expected",
                            input_type.as_ref().unwrap_or(&shape)
                        ),
                    ));
                }
                shape = vec![shape.iter().product()];
            }
            Node::Output { .. } => {
                return Err(unmapped(
                    name,
                    "the graph ends before a matrix (Linear or Affine) with an integrator".into(),
                ));
            }
            other => {
                let kind = kind(other);
                return Err(unmapped(
                    name,
                    format!("a {kind} where a Conv2d, Linear, Affine, pool or Flatten is expected"),
                ));
            }
        }
    }
    let architecture = Architecture::parse(&notation).map_err(|e| ExchangeError::Unmapped(e.to_string()))?;
    let refused = |e: leaklab_engine::NetworkError| ExchangeError::Unmapped(e.to_string());
    let leak = reader.network_leak(&architecture).map_err(|e| ExchangeError::Unmapped(e.to_string()))?;
    let v_th = reader.v_th.unwrap_or(1.0) as f32;
    let mut network = Network::new(architecture, leak, v_th).map_err(refused)?;
    network.weights = layers.concat();
    network.check().map_err(refused)?;
    Ok(Imported { network, notes: reader.notes })
}

fn unmapped(node: &str, reason: String) -> ExchangeError {
    ExchangeError::Unmapped(format!("node '{node}' has no counterpart in LeakLab: {reason}"))
}

fn kind(node: &Node) -> &str {
    match node {
        Node::Input { .. } => "Input",
        Node::Output { .. } => "Output",
        Node::Conv2d { .. } => "Conv2d",
        Node::Linear { .. } => "Linear",
        Node::Affine { .. } => "Affine",
        Node::Pool2d { average: true, .. } => "AvgPool2d",
        Node::Pool2d { average: false, .. } => "SumPool2d",
        Node::Flatten { .. } => "Flatten",
        Node::If { .. } => "IF",
        Node::Lif { .. } => "LIF",
        Node::Li { .. } => "LI",
        Node::I { .. } => "I",
        Node::Other(kind) => kind,
    }
}

/// The nodes from the input to the output, each with one edge in and one out.
fn chain(graph: &Graph) -> Result<Vec<(&str, &Node)>, ExchangeError> {
    let refuse = |reason: String| Err(ExchangeError::Unmapped(reason));
    let mut inputs = graph.nodes.iter().filter(|(_, node)| matches!(node, Node::Input { .. }));
    let (Some(input), None) = (inputs.next(), inputs.next()) else {
        return refuse("the graph must have exactly one Input node".into());
    };
    let mut chain = vec![(input.0.as_str(), input.1)];
    loop {
        let &(name, node) = chain.last().expect("the chain starts with the input");
        let mut next = graph.edges.iter().filter(|(from, _)| from == name);
        match (next.next(), next.next()) {
            (None, _) if matches!(node, Node::Output { .. }) => break,
            (None, _) => return Err(unmapped(name, "nothing follows it, an Output node is expected".into())),
            (Some((_, to)), None) => {
                if graph.edges.iter().filter(|(_, target)| target == to).count() > 1 {
                    return Err(unmapped(to, "it has several inputs; LeakLab's networks are chains".into()));
                }
                match graph.nodes.get_key_value(to) {
                    Some((to, _)) if chain.iter().any(|(seen, _)| seen == to) => {
                        return Err(unmapped(
                            to,
                            "it is part of a loop; LeakLab's networks are chains".into(),
                        ));
                    }
                    Some((to, node)) => chain.push((to, node)),
                    None => return refuse(format!("an edge leads to '{to}', and there is no such node")),
                }
            }
            _ => return Err(unmapped(name, "it has several outputs; LeakLab's networks are chains".into())),
        }
    }
    match graph.nodes.keys().find(|name| !chain.iter().any(|(seen, _)| seen == name)) {
        Some(name) => Err(unmapped(name, "no path from the input leads to it".into())),
        None => Ok(chain),
    }
}

fn no_bias(name: &str, bias: &Array) -> Result<(), ExchangeError> {
    if bias.values.iter().all(|&b| b == 0.0) {
        return Ok(());
    }
    Err(unmapped(name, "it has a bias; LeakLab's layers have none".into()))
}

struct Reader<'a> {
    options: &'a ImportOptions,
    chain: Vec<(&'a str, &'a Node)>,
    at: usize,
    notes: Vec<String>,
    /// Threshold of the first hidden layer, which all others are brought to.
    v_th: Option<f64>,
    /// Time constants in steps of the hidden layers, in order.
    hidden: Vec<f64>,
    /// That of the output layer.
    readout: Option<f64>,
}

impl<'a> Reader<'a> {
    /// The next node; the output node again and again at the end.
    fn next(&mut self) -> (&'a str, &'a Node) {
        let node = self.chain[self.at.min(self.chain.len() - 1)];
        self.at += 1;
        node
    }

    fn input(&mut self, notation: &mut String) -> Result<Vec<usize>, ExchangeError> {
        let (name, node) = self.next();
        let Node::Input { shape } = node else { unreachable!("a chain starts with an input") };
        let [channels, height, width] = match shape[..] {
            [n] => [1, 1, n],
            [channels, height, width] => [channels, height, width],
            _ => return Err(unmapped(name, format!("its shape is {shape:?}; [N] or [C, H, W] is expected"))),
        };
        *notation = format!("{channels}x{height}x{width}");
        Ok(shape.clone())
    }

    /// Gain, time constant in steps and threshold of a neuron; the threshold is infinite if it never fires.
    fn membrane(&self, name: &str, node: &Node, shape: &[usize]) -> Result<Membrane, ExchangeError> {
        let one = |field: &str, array: &Array| -> Result<f64, ExchangeError> {
            if array.shape != shape && array.values.len() != 1 {
                return Err(unmapped(
                    name,
                    format!("'{field}' has shape {:?}, the layer {shape:?}", array.shape),
                ));
            }
            array.uniform().ok_or_else(|| {
                unmapped(
                    name,
                    format!("'{field}' differs from neuron to neuron; one value per layer is expected"),
                )
            })
        };
        let zero = |field: &str, array: &Array| match one(field, array)? {
            0.0 => Ok(()),
            value => {
                Err(unmapped(name, format!("'{field}' is {value}; LeakLab's neurons rest and reset at 0")))
            }
        };
        let threshold = |array: &Array| match one("v_threshold", array)? {
            value if value > 0.0 => Ok(value),
            value => Err(unmapped(name, format!("'v_threshold' is {value}; a positive number is expected"))),
        };
        let gain_of_if = |r: &Array| match one("r", r)? {
            r if r == self.options.if_r => Ok(1.0),
            r => Err(unmapped(
                name,
                format!(
                    "r is {r}, and tools differ in what an {} adds to its potential in a step (r I, or r I dt); say \
                     which r adds the input as it is with --if-r",
                    kind(node)
                ),
            )),
        };
        Ok(match node {
            Node::If { r, v_threshold, v_reset } => {
                zero("v_reset", v_reset)?;
                Membrane { gain: gain_of_if(r)?, tau: f64::INFINITY, threshold: threshold(v_threshold)? }
            }
            Node::I { r } => Membrane { gain: gain_of_if(r)?, tau: f64::INFINITY, threshold: f64::INFINITY },
            Node::Lif { tau, r, v_leak, v_threshold, v_reset } => {
                zero("v_leak", v_leak)?;
                zero("v_reset", v_reset)?;
                let (tau, gain) = self.leak(name, one("tau", tau)?, one("r", r)?)?;
                Membrane { gain, tau, threshold: threshold(v_threshold)? }
            }
            Node::Li { tau, r, v_leak } => {
                zero("v_leak", v_leak)?;
                let (tau, gain) = self.leak(name, one("tau", tau)?, one("r", r)?)?;
                Membrane { gain, tau, threshold: f64::INFINITY }
            }
            other => return Err(unmapped(name, format!("a {} where a neuron is expected", kind(other)))),
        })
    }

    /// Where the network leaks: as the first hidden layer does, but for the layers and the readout that
    /// differ from it.
    fn network_leak(&self, architecture: &Architecture) -> Result<Leak, LeakError> {
        let Some(&first) = self.hidden.first() else { return Ok(Leak::uniform(Tau::INFINITE)) };
        let mut leak = Leak::uniform(Tau::new(first)?);
        let layers = architecture.hidden().iter().filter(|layer| layer.kind != LayerKind::Pool);
        for (layer, &steps) in layers.zip(&self.hidden).filter(|(_, steps)| **steps != first) {
            leak.layer_tau.insert(layer.name.clone(), Tau::new(steps)?);
        }
        if let Some(steps) = self.readout.filter(|&steps| steps != first) {
            leak.readout_tau = Some(Tau::new(steps)?);
        }
        Ok(leak)
    }

    /// Time constant in steps, and what a unit of input adds to the potential in a step, `r dt/tau`.
    fn leak(&self, name: &str, tau: f64, r: f64) -> Result<(f64, f64), ExchangeError> {
        let dt = self.options.dt.unwrap_or(DT);
        let steps = steps(tau, dt).ok_or_else(|| {
            unmapped(name, format!("tau is {tau}, which must be longer than the step, {dt} (--dt)"))
        })?;
        let gain = r * dt / tau;
        // tau and r are float32: their quotient is 1 within a few roundings.
        if (gain - 1.0).abs() < 1e-6 {
            return Ok((steps, 1.0));
        }
        if self.options.dt.is_none() || !(gain > 0.0 && gain.is_finite()) {
            return Err(unmapped(
                name,
                format!(
                    "r dt/tau is {gain} for dt = {dt}; NIR does not say the length of a step: give it with --dt"
                ),
            ));
        }
        Ok((steps, gain))
    }

    /// The spiking neuron after weights; what the weights must be multiplied by to share one threshold.
    fn spiking(&mut self, weights: &str, shape: &[usize]) -> Result<f64, ExchangeError> {
        let (name, node) = self.next();
        if matches!(node, Node::Li { .. } | Node::I { .. } | Node::Output { .. }) {
            return Err(unmapped(
                name,
                format!("a {} after '{weights}', where a spiking neuron is expected", kind(node)),
            ));
        }
        let found = self.membrane(name, node, shape)?;
        self.hidden.push(found.tau);
        let v_th = *self.v_th.get_or_insert(found.threshold);
        Ok(found.gain * (v_th / found.threshold))
    }

    /// The integrator after the last weights, or none if a spiking neuron follows them.
    fn integrating(&mut self, weights: &str, shape: &[usize]) -> Result<Option<f64>, ExchangeError> {
        let (name, node) = self.chain[self.at.min(self.chain.len() - 1)];
        let spiking_output =
            self.at + 2 >= self.chain.len() && matches!(node, Node::If { .. } | Node::Lif { .. });
        match node {
            Node::Li { .. } | Node::I { .. } => {}
            Node::Output { .. } if self.options.integrate_output => {
                self.notes.push(format!("an integrating output layer was put after node '{weights}'"));
                return Ok(Some(1.0));
            }
            Node::Output { .. } => {
                return Err(unmapped(
                    weights,
                    "the graph ends in it, and LeakLab's output layer integrates (LI or I); --integrate-output adds that".into(),
                ));
            }
            _ if spiking_output => {
                let reason = "it spikes at the output, where LeakLab's network integrates (LI or I)";
                return Err(unmapped(name, reason.into()));
            }
            _ => return Ok(None),
        }
        self.at += 1;
        let found = self.membrane(name, node, shape)?;
        self.readout = Some(found.tau);
        match self.next() {
            (_, Node::Output { .. }) => Ok(Some(found.gain)),
            (after, node) => {
                Err(unmapped(after, format!("a {} after the integrating output '{name}'", kind(node))))
            }
        }
    }

    fn pool_neuron(&mut self, pool: &str, shape: &[usize], threshold: f64) -> Result<(), ExchangeError> {
        let (name, node) = self.next();
        let expected = format!(
            "LeakLab's pools are neurons: an IF with threshold {threshold} is expected after '{pool}'"
        );
        if !matches!(node, Node::If { .. } | Node::Lif { .. }) {
            return Err(unmapped(name, format!("a {}; {expected}", kind(node))));
        }
        let found = self.membrane(name, node, shape)?;
        if found.tau.is_finite() || found.gain * threshold != found.threshold {
            return Err(unmapped(
                name,
                format!("its threshold is {} at gain {}; {expected}", found.threshold, found.gain),
            ));
        }
        Ok(())
    }

    fn weights(&mut self, name: &str, weight: &Array, scale: f64) -> Result<Vec<f32>, ExchangeError> {
        if scale != 1.0 {
            self.notes.push(format!(
                "the weights of node '{name}' were multiplied by {scale} (gain and threshold)"
            ));
        } else if weight.values.iter().any(|&w| f64::from(w as f32) != w) {
            self.notes.push(format!("the weights of node '{name}' were rounded to float32"));
        }
        let values: Vec<f32> = weight.values.iter().map(|&w| (w * scale) as f32).collect();
        if values.iter().any(|w| !w.is_finite()) {
            return Err(unmapped(name, "its weights do not fit into float32".into()));
        }
        Ok(values)
    }
}

struct Membrane {
    gain: f64,
    tau: f64,
    threshold: f64,
}
