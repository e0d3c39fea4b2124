//! The record of one image's forward pass, which is sufficient for the backward pass and all measurements.

use crate::architecture::{Architecture, LayerKind};
use crate::masks::Masks;
use crate::neuron::readout;
use crate::spikes::{Input, Spikes};
use std::sync::Arc;

/// The record of one image's forward pass.
#[derive(Debug, Clone)]
pub struct Trace {
    pub(crate) architecture: Arc<Architecture>,
    pub(crate) input: Input,
    pub(crate) masks: Masks,
    /// Spikes of each hidden layer, before its mask.
    pub(crate) spikes: Vec<Spikes>,
    /// For each hidden layer and step, the sum of the squared weighted inputs of its neurons.
    pub(crate) squares: Vec<Vec<f64>>,
    /// Weighted input of the output layer, `[step][class]`.
    pub(crate) signal: Vec<f32>,
    pub(crate) prediction: Vec<f32>,
}

impl Trace {
    pub(crate) fn new(architecture: Arc<Architecture>, steps: usize) -> Self {
        let hidden = architecture.hidden().len();
        Trace {
            input: Input::silent(architecture.input(), steps),
            masks: Masks::none(),
            spikes: vec![Spikes::default(); hidden],
            squares: vec![Vec::new(); hidden],
            signal: Vec::new(),
            prediction: Vec::new(),
            architecture,
        }
    }

    /// The input of the network.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// The dropout masks that were applied.
    pub fn masks(&self) -> &Masks {
        &self.masks
    }

    /// Time steps.
    pub fn steps(&self) -> usize {
        self.input.steps()
    }

    /// Prediction for each class: the potential of its output after the last step, divided (see
    /// [`crate::ReadoutDivisor`]).
    pub fn prediction(&self) -> &[f32] {
        &self.prediction
    }

    /// The predicted class: the one with the largest prediction, and the lowest index in case of a tie.
    pub fn class(&self) -> usize {
        readout::class(&self.prediction)
    }

    /// Sum over the outputs of `(p - onehot)^2`.
    pub fn sse(&self, label: usize) -> f64 {
        let error = |(i, &p): (usize, &f32)| (f64::from(p) - f64::from(u8::from(i == label))).powi(2);
        self.prediction.iter().enumerate().map(error).sum()
    }

    /// Loss of this sample, half of [`Trace::sse`].
    pub fn loss(&self, label: usize) -> f64 {
        0.5 * self.sse(label)
    }

    /// Weighted input of the output layer, `(W_L O)[t]`, as `[step][class]`.
    pub fn signal(&self) -> &[f32] {
        &self.signal
    }

    /// Spikes of hidden layer `layer` (counted from 0, pools included), before its dropout mask.
    pub fn spikes(&self, layer: usize) -> &Spikes {
        &self.spikes[layer]
    }

    /// Number of spikes of each neuron of hidden layer `layer`, `[channel][row][column]`.
    pub fn spike_counts(&self, layer: usize) -> Vec<u32> {
        let spikes = &self.spikes[layer];
        let (pixels, words) = (spikes.pixels(), spikes.words_per_step());
        let mut counts = vec![0; pixels * spikes.channels()];
        for (i, &word) in spikes.words().iter().enumerate() {
            let (pixel, mut bits) = (i / (words * spikes.steps()), word);
            while bits != 0 {
                let channel = 64 * (i % words) + bits.trailing_zeros() as usize;
                counts[channel * pixels + pixel] += 1;
                bits &= bits - 1;
            }
        }
        counts
    }

    /// Synaptic operations of each conv, fully connected and output layer over all steps: non-zero inputs
    /// times fan-out, exact at the borders.
    pub fn synops(&self) -> Vec<u64> {
        let layers = self.architecture.layers();
        let mut mask = 0;
        let mut synops = Vec::new();
        for (i, layer) in layers.iter().enumerate() {
            // Events of each pixel over all steps and channels that reach this layer.
            let events = if i == 0 {
                input_events(&self.input)
            } else if layers[i - 1].kind.takes_dropout() {
                let keep = self.masks.get(mask).map(|m| m.keep.as_slice());
                mask += 1;
                spike_events(&self.spikes[i - 1], keep)
            } else {
                spike_events(&self.spikes[i - 1], None)
            };
            match layer.kind {
                LayerKind::Pool => {}
                LayerKind::Full | LayerKind::Output => {
                    synops.push(events.iter().sum::<u64>() * layer.output.channels as u64);
                }
                LayerKind::Conv => {
                    let (height, width) = (layer.input.height, layer.input.width);
                    let taps = |x: usize, n: usize| 1 + u64::from(x > 0) + u64::from(x + 1 < n);
                    let reach = |(p, &n): (usize, &u64)| n * taps(p / width, height) * taps(p % width, width);
                    let total: u64 = events.iter().enumerate().map(reach).sum();
                    synops.push(total * layer.output.channels as u64);
                }
            }
        }
        synops
    }

    /// For each hidden layer (pools included), the mean over time of the
    /// Euclidean norm of its weighted input.
    pub fn weighted_input_norms(&self) -> Vec<f64> {
        let mean = |squares: &Vec<f64>| squares.iter().map(|s| s.sqrt()).sum::<f64>() / squares.len() as f64;
        self.squares.iter().map(mean).collect()
    }
}

fn spike_events(spikes: &Spikes, keep: Option<&[u64]>) -> Vec<u64> {
    let words = spikes.words_per_step();
    let per_pixel = words * spikes.steps();
    let count = |(pixel, train): (usize, &[u64])| {
        let masked = |(i, &word): (usize, &u64)| match keep {
            Some(keep) => word & keep[pixel * words + i % words],
            None => word,
        };
        train.iter().enumerate().map(|word| u64::from(masked(word).count_ones())).sum()
    };
    spikes.words().chunks(per_pixel.max(1)).enumerate().map(count).collect()
}

fn input_events(input: &Input) -> Vec<u64> {
    match input {
        Input::Ternary { spikes, .. } => spike_events(spikes, None),
        Input::Real { shape, values, .. } => {
            let mut events = vec![0; shape.pixels()];
            for (i, _) in values.iter().enumerate().filter(|&(_, &x)| x != 0.0) {
                events[i % shape.pixels()] += 1;
            }
            events
        }
    }
}
