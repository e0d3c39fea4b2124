//! Reads the nodes of a chain as LeakLab's layers, each kind of layer by one function.

use super::super::export::{POOL_FIRES, POOL_THRESHOLD};
use super::super::nir::{Array, Node, Padding};
use super::membrane::{LayerLeaks, Membrane};
use super::{ExchangeError, ImportOptions, unmapped};

/// Follows a chain and collects the parts of the network.
pub struct Reader<'a> {
    options: &'a ImportOptions,
    chain: Vec<(&'a str, &'a Node)>,
    at: usize,
    /// Shape of the input of the next node.
    shape: Vec<usize>,
    /// The network so far, in LeakLab's notation.
    pub notation: String,
    /// Its weights so far.
    pub weights: Vec<f32>,
    /// What had to be changed, one sentence each.
    pub notes: Vec<String>,
    /// Threshold of the first hidden layer; all others are scaled to it.
    pub v_th: Option<f64>,
    /// Time constants of the layers so far.
    pub leak: LayerLeaks,
}

impl<'a> Reader<'a> {
    /// Starts with the input node, which is the first in the chain.
    pub fn new(
        options: &'a ImportOptions,
        chain: Vec<(&'a str, &'a Node)>,
    ) -> Result<Reader<'a>, ExchangeError> {
        let (name, node) = chain[0];
        let Node::Input { shape } = node else { unreachable!("a chain starts with an input") };
        let [channels, height, width] = match shape[..] {
            [n] => [1, 1, n],
            [channels, height, width] => [channels, height, width],
            _ => return Err(unmapped(name, format!("its shape is {shape:?}; [N] or [C, H, W] is expected"))),
        };
        Ok(Reader {
            options,
            chain,
            at: 1,
            shape: shape.clone(),
            notation: format!("{channels}x{height}x{width}"),
            weights: Vec::new(),
            notes: Vec::new(),
            v_th: None,
            leak: LayerLeaks::default(),
        })
    }

    /// Reads one layer with its neuron; true if it was the output layer.
    pub fn layer(&mut self) -> Result<bool, ExchangeError> {
        let (name, node) = self.next();
        match node {
            Node::Conv2d { .. } => self.convolution(name, node).map(|()| false),
            Node::Linear { weight } => self.matrix(name, weight),
            Node::Affine { weight, bias } => {
                no_bias(name, bias)?;
                self.matrix(name, weight)
            }
            Node::Pool2d { average, kernel_size, stride, padding } => {
                self.pool(name, *average, (*kernel_size, *stride, *padding)).map(|()| false)
            }
            Node::Flatten { input_type, start_dim, end_dim } => {
                self.flatten(name, input_type.as_deref(), (*start_dim, *end_dim)).map(|()| false)
            }
            Node::Output { .. } => {
                let reason = "the graph ends before a matrix (Linear or Affine) with an integrator";
                Err(unmapped(name, reason.into()))
            }
            Node::Input { .. }
            | Node::If { .. }
            | Node::Lif { .. }
            | Node::Li { .. }
            | Node::I { .. }
            | Node::Other(_) => {
                let expected = "a Conv2d, Linear, Affine, pool or Flatten is expected";
                Err(unmapped(name, format!("it is a {} where {expected}", node.kind())))
            }
        }
    }

    /// The next node; at the end of the chain, always the output node.
    fn next(&mut self) -> (&'a str, &'a Node) {
        let node = self.chain[self.at.min(self.chain.len() - 1)];
        self.at += 1;
        node
    }

    fn convolution(&mut self, name: &str, node: &Node) -> Result<(), ExchangeError> {
        let Node::Conv2d { input_shape, weight, stride, padding, dilation, groups, bias } = node else {
            unreachable!("only convolutions are passed here")
        };
        let shape = &self.shape;
        let &[_, height, width] = &shape[..] else {
            let reason = format!("its input has the shape {shape:?}; [C, H, W] is expected");
            return Err(unmapped(name, reason));
        };
        if input_shape.is_some_and(|given| given != [height, width]) {
            let reason = format!("its input_shape is {input_shape:?}, but its input has the shape {shape:?}");
            return Err(unmapped(name, reason));
        }
        let same = *padding == Padding::Size([1, 1]) || *padding == Padding::Word("same".into());
        let plain = (*stride, *dilation, *groups) == ([1, 1], [1, 1], 1);
        if !matches!(weight.shape[..], [_, _, 3, 3]) || !plain || !same {
            let reason = format!(
                "it has weight {:?}, stride {stride:?}, padding {padding:?}, dilation {dilation:?}, groups \
                 {groups}; LeakLab's convolutions are 3x3 with stride 1, padding 1, dilation 1 and one group",
                weight.shape
            );
            return Err(unmapped(name, reason));
        }
        if weight.shape[1] != shape[0] {
            let reason = format!("its weight is {:?}, but its input has the shape {shape:?}", weight.shape);
            return Err(unmapped(name, reason));
        }
        no_bias(name, bias)?;
        self.shape = vec![weight.shape[0], height, width];
        let scale = self.spiking(name)?;
        self.take_weights(name, weight, scale)?;
        self.notation.push_str(&format!("-{}C3", self.shape[0]));
        Ok(())
    }

    /// A matrix with its neuron; true if it is the output layer.
    fn matrix(&mut self, name: &str, weight: &Array) -> Result<bool, ExchangeError> {
        let [out, inputs] = weight.shape[..] else {
            return Err(unmapped(name, format!("its weight is {:?}; [out, in] is expected", weight.shape)));
        };
        if self.shape != [inputs] {
            let hint = if self.shape.len() > 1 { "; a Flatten node is expected before it" } else { "" };
            let (weight, shape) = (&weight.shape, &self.shape);
            let reason = format!("its weight is {weight:?}, but its input has the shape {shape:?}{hint}");
            return Err(unmapped(name, reason));
        }
        self.shape = vec![out];
        let gain = self.integrating(name)?;
        let (scale, kind) = match gain {
            Some(gain) => (gain, "o"),
            None => (self.spiking(name)?, "FC"),
        };
        self.take_weights(name, weight, scale)?;
        self.notation.push_str(&format!("-{out}{kind}"));
        Ok(gain.is_some())
    }

    fn pool(
        &mut self,
        name: &str,
        average: bool,
        geometry: ([usize; 2], [usize; 2], [usize; 2]),
    ) -> Result<(), ExchangeError> {
        let shape = &self.shape;
        if geometry != ([2, 2], [2, 2], [0, 0]) || shape.len() != 3 {
            let (kernel, stride, padding) = geometry;
            let reason = format!(
                "it has kernel {kernel:?}, stride {stride:?}, padding {padding:?}, and its input has the \
                 shape {shape:?}; LeakLab pools 2x2 with stride 2 and no padding"
            );
            return Err(unmapped(name, reason));
        }
        self.shape = vec![shape[0], shape[1] / 2, shape[2] / 2];
        self.pool_neuron(name, if average { 1.0 } else { 4.0 })?;
        self.notation.push_str("-2P");
        Ok(())
    }

    /// Dimensions may be counted from the first or from the last, but without the batch dimension.
    fn flatten(
        &mut self,
        name: &str,
        input_type: Option<&[usize]>,
        (start, end): (i64, i64),
    ) -> Result<(), ExchangeError> {
        let rank = self.shape.len() as i64;
        let whole = (start == 0 || start == -rank) && (end == -1 || end == rank - 1);
        if !(whole || rank == 1) || input_type.is_some_and(|given| given != self.shape) {
            let reason = format!(
                "it flattens dimensions {start} to {end} of {:?}; all of {:?}, without a batch dimension \
                 (0 to -1), are expected",
                input_type.unwrap_or(&self.shape),
                self.shape
            );
            return Err(unmapped(name, reason));
        }
        self.shape = vec![self.shape.iter().product()];
        Ok(())
    }

    /// Reads the spiking neuron after weights. Returns the factor of the weights with which all layers have
    /// the same threshold.
    fn spiking(&mut self, weights: &str) -> Result<f64, ExchangeError> {
        let (name, node) = self.next();
        if matches!(node, Node::Li { .. } | Node::I { .. } | Node::Output { .. }) {
            let reason =
                format!("it is a {} after '{weights}', where a spiking neuron is expected", node.kind());
            return Err(unmapped(name, reason));
        }
        let found = Membrane::read(self.options, name, node, &self.shape)?;
        self.leak.hidden.push(found.tau);
        let v_th = *self.v_th.get_or_insert(found.threshold);
        Ok(found.gain * (v_th / found.threshold))
    }

    /// The gain of the integrator after the last weights; `None` if a spiking neuron follows them.
    fn integrating(&mut self, weights: &str) -> Result<Option<f64>, ExchangeError> {
        let (name, node) = self.chain[self.at.min(self.chain.len() - 1)];
        let last = self.at + 2 >= self.chain.len();
        match node {
            Node::Li { .. } | Node::I { .. } => {}
            Node::Output { .. } if self.options.integrate_output => {
                self.notes.push(format!(
                    "an integrating output layer, with the leak of the first hidden layer, was added after \
                     node '{weights}'"
                ));
                return Ok(Some(1.0));
            }
            Node::Output { .. } => {
                let reason = "the graph ends in it, and LeakLab's output layer integrates (LI or I); \
                              --integrate-output adds that";
                return Err(unmapped(weights, reason.into()));
            }
            Node::If { .. } | Node::Lif { .. } if last => {
                let reason = "it spikes at the output, where LeakLab's network integrates (LI or I)";
                return Err(unmapped(name, reason.into()));
            }
            Node::If { .. }
            | Node::Lif { .. }
            | Node::Input { .. }
            | Node::Conv2d { .. }
            | Node::Linear { .. }
            | Node::Affine { .. }
            | Node::Pool2d { .. }
            | Node::Flatten { .. }
            | Node::Other(_) => return Ok(None),
        }
        self.at += 1;
        let found = Membrane::read(self.options, name, node, &self.shape)?;
        self.leak.readout = Some(found.tau);
        match self.next() {
            (_, Node::Output { .. }) => Ok(Some(found.gain)),
            (after, node) => {
                let kind = node.kind();
                let reason = format!("it is a {kind} after the integrating output '{name}', the last layer");
                Err(unmapped(after, reason))
            }
        }
    }

    /// Reads the neuron after a pool, whose potential is a multiple of a quarter of `full`. It must fire at
    /// `full` but not at three quarters of it, so every threshold between them is equivalent.
    fn pool_neuron(&mut self, pool: &str, full: f64) -> Result<(), ExchangeError> {
        let (name, node) = self.next();
        let (least, below) = (full * POOL_THRESHOLD, full * POOL_FIRES);
        let expected = format!(
            "LeakLab's pools are neurons: an IF with a threshold from {least} to below {below} is expected \
             after '{pool}'"
        );
        if !matches!(node, Node::If { .. } | Node::Lif { .. }) {
            return Err(unmapped(name, format!("it is a {}; {expected}", node.kind())));
        }
        let found = Membrane::read(self.options, name, node, &self.shape)?;
        let fires_alike = (found.gain * least..found.gain * below).contains(&found.threshold);
        if found.tau.is_finite() || !fires_alike {
            let reason = format!("its threshold is {} at gain {}; {expected}", found.threshold, found.gain);
            return Err(unmapped(name, reason));
        }
        Ok(())
    }

    fn take_weights(&mut self, name: &str, weight: &Array, scale: f64) -> Result<(), ExchangeError> {
        if scale != 1.0 {
            let change = format!("were multiplied by {scale} (gain and threshold)");
            self.notes.push(format!("the weights of node '{name}' {change}"));
        } else if weight.values.iter().any(|&w| f64::from(w as f32) != w) {
            self.notes.push(format!("the weights of node '{name}' were rounded to float32"));
        }
        let start = self.weights.len();
        self.weights.extend(weight.values.iter().map(|&w| (w * scale) as f32));
        if self.weights[start..].iter().any(|w| !w.is_finite()) {
            return Err(unmapped(name, "its weights do not fit into float32".into()));
        }
        Ok(())
    }
}

fn no_bias(name: &str, bias: &Array) -> Result<(), ExchangeError> {
    if bias.values.iter().all(|&b| b == 0.0) {
        return Ok(());
    }
    Err(unmapped(name, "it has a bias; LeakLab's layers have none".into()))
}
