//! A network with its weights in the order of the kernels, and its forward and
//! backward pass over a small group of images.

use crate::architecture::{Architecture, Layer, LayerKind};
use crate::batch::GROUP;
use crate::events::{Events, grow_to};
use crate::layer::conv::{Conv, ConvEvents, ConvInput, ConvWorkspace, Upstream};
use crate::layer::full::{Full, FullRecord, FullSource, StepRows};
use crate::layer::pool;
use crate::network::{Network, NetworkError};
use crate::neuron::spiking::Dynamics;
use crate::neuron::{Leak, Neuron, ReadoutDivisor, readout};
use crate::simd::lists::MOST;
use crate::simd::{Isa, Row};
use crate::spikes::{Input, Shape};
use crate::trace::Trace;
use std::sync::Arc;

/// The derivative of the membrane's decay that the gradient uses (specification, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gradient {
    /// 1, as published: the spike derivative already accounts for the leak.
    #[default]
    StraightThrough,
    /// `lambda`.
    Exact,
}

#[derive(Debug, Clone)]
pub(crate) enum PackedLayer {
    Conv(Conv),
    Pool,
    Full(Full),
}

/// A network that is ready to run, with its weights in the order in which the
/// kernels of one instruction set read them.
///
/// It is a copy: call [`Packed::update`] after the weights have changed.
#[derive(Debug, Clone)]
pub struct Packed {
    architecture: Arc<Architecture>,
    leak: Leak,
    readout_divisor: ReadoutDivisor,
    /// The neurons of each layer; `None` for a pool.
    neurons: Vec<Option<Neuron>>,
    isa: Isa,
    pub(crate) layers: Vec<PackedLayer>,
    /// Index of the dropout mask that acts on each layer's output, if any.
    masks: Vec<Option<usize>>,
}

/// Buffers of one thread; their contents between calls do not matter.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pub traces: Vec<Trace>,
    conv: ConvWorkspace,
    step_rows: Vec<StepRows>,
    currents: Vec<Vec<Row>>,
    derivatives: Vec<Row>,
    /// `d` of a pool's frame, or the loss derivatives of a group's events.
    floats: Vec<f32>,
    upper: Vec<Spiked>,
    lower: Vec<Spiked>,
}

/// Events of a layer's output and the loss derivative of each.
#[derive(Debug, Default)]
struct Spiked {
    events: Events,
    /// At least as long as `events`.
    gradient: Vec<f32>,
}

/// The contribution of a group of images to the gradient.
#[derive(Debug, Default)]
pub(crate) struct GroupGradient {
    /// Packed gradients of the convolutions, in order.
    pub conv: Vec<Vec<[Row; 9]>>,
    /// Records of the fully connected layers, in order.
    pub full: Vec<FullRecord>,
}

/// The weights of a layer; empty for a pool.
fn layer_weights<'a>(network: &'a Network, layer: &Layer) -> &'a [f32] {
    layer.parameter.map_or(&[][..], |p| {
        let p = &network.architecture.parameters()[p];
        &network.weights[p.offset..p.offset + p.len]
    })
}

impl Packed {
    /// Packs a network; refuses weights that are not finite.
    ///
    /// # Panics
    /// If this CPU does not support `isa`.
    pub fn new(network: &Network, isa: Isa) -> Result<Self, NetworkError> {
        assert!(isa.is_available(), "this CPU does not support {isa}");
        network.check()?;
        let architecture = Arc::new(network.architecture.clone());
        let mut layers = Vec::new();
        let mut masks = Vec::new();
        let mut hidden = 0;
        for (i, layer) in architecture.layers().iter().enumerate() {
            let weights = layer_weights(network, layer);
            let outputs = layer.output.channels;
            layers.push(match layer.kind {
                LayerKind::Conv => {
                    PackedLayer::Conv(Conv::new(isa, layer.input, layer.output, weights, i == 0))
                }
                LayerKind::Pool => PackedLayer::Pool,
                LayerKind::Full | LayerKind::Output => {
                    PackedLayer::Full(Full::new(layer.input, outputs, weights, i == 0))
                }
            });
            let masked = layer.kind.takes_dropout();
            masks.push(masked.then_some(hidden));
            hidden += usize::from(masked);
        }
        let neurons = (0..layers.len()).map(|layer| network.neuron(layer)).collect();
        let leak = network.leak().clone();
        let readout_divisor = network.readout_divisor();
        Ok(Packed { architecture, leak, readout_divisor, neurons, isa, layers, masks })
    }

    /// Packs a network again, in place, after its weights have changed; refuses weights that are not finite.
    ///
    /// # Panics
    /// If the network has another architecture.
    pub fn update(&mut self, network: &Network) -> Result<(), NetworkError> {
        assert_eq!(network.architecture, *self.architecture, "the network has another architecture");
        network.check()?;
        self.set_leak(network);
        for (packed, layer) in self.layers.iter_mut().zip(self.architecture.layers()) {
            let weights = layer_weights(network, layer);
            match packed {
                PackedLayer::Conv(conv) => conv.pack(weights),
                PackedLayer::Pool => {}
                PackedLayer::Full(full) => full.pack(weights),
            }
        }
        Ok(())
    }

    /// The layers.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// The leak of the network.
    pub fn leak(&self) -> &Leak {
        &self.leak
    }

    /// Copies the leak, the threshold and the readout's divisor of a network; the packed weights do not
    /// change.
    ///
    /// # Panics
    /// If the network has another architecture.
    pub fn set_leak(&mut self, network: &Network) {
        assert_eq!(network.architecture, *self.architecture, "the network has another architecture");
        self.leak = network.leak().clone();
        self.readout_divisor = network.readout_divisor();
        self.neurons = (0..self.layers.len()).map(|layer| network.neuron(layer)).collect();
    }

    fn neuron(&self, layer: usize) -> Neuron {
        self.neurons[layer].expect("conv, fully connected and output layers have neuron parameters")
    }

    /// The largest number of time steps that a sample can have, and the layer that limits it: 32 bits must be
    /// able to number the entries of the layer's event lists, whichever neurons fire.
    pub fn most_steps(&self) -> (usize, &str) {
        let limits =
            self.architecture.layers().iter().zip(&self.layers).enumerate().map(|(i, (layer, packed))| {
                let neurons = layer.input.neurons() * if i == 0 { 2 } else { 1 };
                let most = match packed {
                    PackedLayer::Conv(conv) => conv.most_steps().min(MOST / neurons),
                    PackedLayer::Pool => MOST / neurons,
                    PackedLayer::Full(_) => MOST / (GROUP * neurons),
                };
                (most.min(usize::from(u16::MAX)), layer.name.as_str())
            });
        limits.min_by_key(|&(most, _)| most).expect("a network has layers")
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    pub(crate) fn shared_architecture(&self) -> Arc<Architecture> {
        Arc::clone(&self.architecture)
    }

    /// The mask on the input of layer `i`: which neurons are kept, and the value of a spike.
    fn input_mask<'a>(&self, trace: &'a Trace, i: usize) -> (Option<&'a [u64]>, f32) {
        let mask = i.checked_sub(1).and_then(|below| self.masks[below]).and_then(|m| trace.masks.get(m));
        mask.map_or((None, 1.0), |mask| (Some(mask.keep.as_slice()), mask.scale))
    }

    fn dynamics(&self, layer: usize, scale: f32) -> Dynamics {
        Dynamics::of(self.neuron(layer), scale)
    }

    /// Runs the first `count` traces of the workspace, whose inputs and masks must be set.
    pub(crate) fn forward(&self, workspace: &mut Workspace, count: usize) {
        for i in 0..self.layers.len() {
            match &self.layers[i] {
                PackedLayer::Full(full) => self.forward_full(full, i, workspace, count),
                PackedLayer::Conv(_) | PackedLayer::Pool => {
                    for trace in &mut workspace.traces[..count] {
                        self.forward_local(i, trace, &mut workspace.conv);
                    }
                }
            }
        }
    }

    /// Runs a convolution or pool for one image.
    fn forward_local(&self, i: usize, trace: &mut Trace, workspace: &mut ConvWorkspace) {
        let layer = &self.architecture.layers()[i];
        let (below, above) = trace.spikes.split_at_mut(i);
        let mask = i.checked_sub(1).and_then(|b| self.masks[b]).and_then(|m| trace.masks.get(m));
        let (keep, scale) = mask.map_or((None, 1.0), |mask| (Some(mask.keep.as_slice()), mask.scale));
        match &self.layers[i] {
            PackedLayer::Conv(conv) => {
                let input = match (below.last(), &trace.input) {
                    (Some(spikes), _) => ConvInput::Spikes(spikes, keep),
                    (None, Input::Ternary { spikes, .. }) => ConvInput::Spikes(spikes, None),
                    (None, Input::Real { values, steps, .. }) => ConvInput::Real(values, *steps),
                };
                let dynamics = self.dynamics(i, scale);
                conv.forward(self.isa, dynamics, &input, workspace, &mut above[0], &mut trace.squares[i]);
            }
            PackedLayer::Pool => {
                let spikes = below.last().expect("a pool is never the first layer");
                pool::forward(
                    self.isa,
                    layer.input,
                    layer.output,
                    spikes,
                    keep,
                    scale,
                    &mut above[0],
                    &mut trace.squares[i],
                );
            }
            PackedLayer::Full(_) => unreachable!("fully connected layers run as a group"),
        }
    }

    fn forward_full(&self, full: &Full, i: usize, workspace: &mut Workspace, count: usize) {
        let Workspace { traces, step_rows, currents, .. } = workspace;
        let traces = &mut traces[..count];
        step_rows.resize_with(count.max(step_rows.len()), StepRows::default);
        currents.resize_with(count.max(currents.len()), Vec::new);
        for (trace, rows) in traces.iter().zip(step_rows.iter_mut()) {
            match (i, &trace.input) {
                (0, Input::Ternary { spikes, .. }) => rows.build(spikes, None),
                (0, Input::Real { .. }) => {}
                (1.., _) => rows.build(&trace.spikes[i - 1], self.input_mask(trace, i).0),
            }
        }
        let sources: Vec<FullSource> = traces
            .iter()
            .zip(step_rows.iter())
            .map(|(trace, rows)| match (i, &trace.input) {
                (0, Input::Real { values, steps, .. }) => FullSource::Real(values, *steps),
                (0, Input::Ternary { .. }) | (1.., _) => {
                    FullSource::Spikes(rows, self.input_mask(trace, i).1)
                }
            })
            .collect();
        full.currents(self.isa, &sources, currents);
        for (trace, current) in traces.iter_mut().zip(currents.iter()) {
            let steps = trace.steps();
            if i + 1 == self.layers.len() {
                full.signal(steps, current, &mut trace.signal);
                let (classes, tau) = (self.architecture.classes(), self.neuron(i).tau);
                trace.prediction = readout::predict(&trace.signal, classes, tau, self.readout_divisor);
            } else {
                let (out, squares) = (&mut trace.spikes[i], &mut trace.squares[i]);
                full.fire(self.isa, self.dynamics(i, 1.0), steps, current, out, squares);
            }
        }
    }

    /// Lists the events that reach layer `i`. Returns false if its input
    /// is real values, which have no events.
    fn list_input(&self, trace: &Trace, i: usize, spiked: &mut Spiked) -> bool {
        let layer = &self.architecture.layers()[i];
        match (i, &trace.input) {
            (0, Input::Real { .. }) => return false,
            (0, Input::Ternary { spikes, .. }) => {
                let shape = Shape { channels: 2 * layer.input.channels, ..layer.input };
                spiked.events.build(self.isa, shape, spikes, None);
            }
            (1.., _) => {
                let keep = self.input_mask(trace, i).0;
                spiked.events.build(self.isa, layer.input, &trace.spikes[i - 1], keep);
            }
        }
        true
    }

    /// Overwrites `gradient` with the gradient of the loss of the first
    /// `labels.len()` traces, divided by `batch`.
    pub(crate) fn backward(
        &self,
        workspace: &mut Workspace,
        labels: &[usize],
        mode: Gradient,
        batch: usize,
        gradient: &mut GroupGradient,
    ) {
        let count = labels.len();
        let first_full = self.layers.iter().position(|l| matches!(l, PackedLayer::Full(_)));
        let first_full = first_full.expect("the output layer is fully connected");
        let GroupGradient { conv, full } = gradient;
        full.resize_with(self.layers.len() - first_full, FullRecord::default);
        for spiked in [&mut workspace.upper, &mut workspace.lower] {
            spiked.resize_with(count.max(spiked.len()), Spiked::default);
        }
        for i in (first_full..self.layers.len()).rev() {
            self.backward_full(i, workspace, labels, mode, batch, &mut full[i - first_full]);
            std::mem::swap(&mut workspace.upper, &mut workspace.lower);
        }
        let lengths = self.layers[..first_full].iter().filter_map(|layer| match layer {
            PackedLayer::Conv(conv) => Some(conv.gradient_len()),
            PackedLayer::Pool | PackedLayer::Full(_) => None,
        });
        let lengths: Vec<usize> = lengths.collect();
        conv.resize_with(lengths.len(), Vec::new);
        for (conv, len) in conv.iter_mut().zip(lengths) {
            conv.clear();
            conv.resize(len, [Row::ZERO; 9]);
        }
        for image in 0..count {
            let mut next = conv.len();
            for i in (0..first_full).rev() {
                self.backward_local(i, image, workspace, mode, conv, &mut next);
                let Workspace { upper, lower, .. } = workspace;
                std::mem::swap(&mut upper[image], &mut lower[image]);
            }
        }
    }

    fn decay(&self, layer: usize, mode: Gradient) -> f32 {
        match mode {
            Gradient::StraightThrough => 1.0,
            Gradient::Exact => self.neuron(layer).lambda() as f32,
        }
    }

    /// The backward pass of a fully connected layer for the group, from `upper` (the events of its
    /// output) to `lower` (those of its input).
    fn backward_full(
        &self,
        i: usize,
        workspace: &mut Workspace,
        labels: &[usize],
        mode: Gradient,
        batch: usize,
        record: &mut FullRecord,
    ) {
        let PackedLayer::Full(full) = &self.layers[i] else { unreachable!("called for these layers only") };
        let Workspace { traces, upper, lower, derivatives, floats, .. } = workspace;
        let (traces, lower) = (&traces[..labels.len()], &mut lower[..labels.len()]);
        let listed: Vec<bool> = traces
            .iter()
            .zip(lower.iter_mut())
            .map(|(trace, lower)| self.list_input(trace, i, lower))
            .collect();
        let inputs = listed.iter().zip(lower.iter()).map(|(listed, lower)| listed.then_some(&lower.events));
        let inputs: Vec<Option<&Events>> = inputs.collect();
        let real = traces.iter().map(|trace| match (i, &trace.input) {
            (0, Input::Real { values, .. }) => values.as_slice(),
            (0, Input::Ternary { .. }) | (1.., _) => &[],
        });
        let (real, steps) = (real.collect::<Vec<_>>(), traces[0].steps());
        full.start_record(&inputs, &real, steps, record);
        for (image, ((trace, &label), upper)) in traces.iter().zip(labels).zip(upper.iter()).enumerate() {
            let scale = self.input_mask(trace, i).1;
            if i + 1 == self.layers.len() {
                let divisor = self.readout_divisor.of(self.neuron(i).tau, steps);
                let error = |(class, &p): (usize, &f32)| {
                    let target = if class == label { 1.0 } else { 0.0 };
                    (f64::from(p) - target) / (divisor * batch as f64)
                };
                let error: Vec<f32> = trace.prediction.iter().enumerate().map(|x| error(x) as f32).collect();
                full.output_d(&error, scale, self.decay(i, mode), image, record);
            } else {
                let up = self.upstream(trace, i, upper, scale, mode);
                full.hidden_d(self.isa, &up, derivatives, image, record);
            }
        }
        if i > 0 {
            floats.clear();
            floats.resize(lower.iter().map(|lower| lower.events.len()).sum(), 0.0);
            full.input_gradients(self.isa, record, floats);
            let mut rest = floats.as_slice();
            for lower in lower {
                let (own, after) = rest.split_at(lower.events.len());
                grow_to(&mut lower.gradient, own.len());
                lower.gradient[..own.len()].copy_from_slice(own);
                rest = after;
            }
        }
    }

    /// The input of layer `i`'s backward pass.
    fn upstream<'a>(
        &self,
        trace: &'a Trace,
        i: usize,
        spiked: &'a Spiked,
        scale: f32,
        mode: Gradient,
    ) -> Upstream<'a> {
        Upstream {
            spikes: &trace.spikes[i],
            lambda: self.neuron(i).lambda(),
            v_th: self.neuron(i).v_th,
            decay: self.decay(i, mode),
            scale,
            events: &spiked.events,
            gradient: &spiked.gradient,
        }
    }

    /// The backward pass of a convolution or pool for one image, from `upper[image]` to `lower[image]`.
    fn backward_local(
        &self,
        i: usize,
        image: usize,
        workspace: &mut Workspace,
        mode: Gradient,
        gradients: &mut [Vec<[Row; 9]>],
        next: &mut usize,
    ) {
        let Workspace { traces, conv: buffers, upper, lower, floats, .. } = workspace;
        let (trace, upper, lower) = (&traces[image], &upper[image], &mut lower[image]);
        self.list_input(trace, i, lower);
        grow_to(&mut lower.gradient, lower.events.len());
        let scale = self.input_mask(trace, i).1;
        match &self.layers[i] {
            PackedLayer::Conv(conv) => {
                *next -= 1;
                let mut input = match (i, &trace.input) {
                    (0, Input::Real { values, .. }) => ConvEvents::Real(values),
                    (0, Input::Ternary { .. }) => ConvEvents::Events(&lower.events, &mut []),
                    (1.., _) => ConvEvents::Events(&lower.events, &mut lower.gradient),
                };
                let up = self.upstream(trace, i, upper, scale, mode);
                conv.backward(self.isa, &up, &mut input, buffers, &mut gradients[*next]);
            }
            PackedLayer::Pool => {
                let target = &mut lower.gradient;
                pool::backward(&upper.events, &upper.gradient, scale, &lower.events, target, floats);
            }
            PackedLayer::Full(_) => unreachable!("fully connected layers run as a group"),
        }
    }
}
