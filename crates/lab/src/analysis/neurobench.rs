//! The complexity metrics of NeuroBench, as that package names and defines them, from a forward pass's
//! spikes.
//!
//! Synaptic operations: for each conv and fully connected layer and step, non-zero inputs times non-zero
//! weights, exact at borders, without biases. At a step whose inputs are all -1, 0 or 1 they are accumulates
//! (ACs), otherwise multiply-accumulates (MACs). `tools/neurobench_check.py` compares these numbers with the
//! package's own. Neuron operations are in [`updates`].

pub mod updates;

use leaklab_engine::{Input, LayerKind, Network, Shape, Trace};

/// Effective operations of one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Operations {
    /// Accumulates.
    pub acs: u64,
    /// Multiply-accumulates.
    pub macs: u64,
}

/// The number of non-zero weights of each input of each layer.
pub struct Synapses {
    /// For each conv, FC and output layer: its index among the layers, and the number of non-zero weights of
    /// each of its inputs, `[channel][row][column]`.
    fan_out: Vec<(usize, Vec<u64>)>,
}

impl Synapses {
    /// Counts a network's non-zero weights.
    pub fn new(network: &Network) -> Self {
        let layers = network.architecture.layers().iter().enumerate();
        let fan_out = layers
            .filter_map(|(index, layer)| {
                let weights = network.tensor(&layer.name)?;
                let fan_out = match layer.kind {
                    LayerKind::Conv => conv_fan_out(weights, layer.input, layer.output.channels),
                    LayerKind::Full | LayerKind::Output => {
                        let mut fan_out = vec![0; layer.input.neurons()];
                        for row in weights.chunks_exact(layer.input.neurons()) {
                            let used = row.iter().map(|&w| u64::from(w != 0.0));
                            fan_out.iter_mut().zip(used).for_each(|(sum, n)| *sum += n);
                        }
                        fan_out
                    }
                    LayerKind::Pool => return None,
                };
                Some((index, fan_out))
            })
            .collect();
        Synapses { fan_out }
    }

    /// Effective operations of one image.
    pub fn operations(&self, trace: &Trace) -> Operations {
        let mut total = Operations::default();
        for (index, fan_out) in &self.fan_out {
            if *index == 0 {
                let input = input_operations(trace.input(), fan_out);
                total.acs += input.acs;
                total.macs += input.macs;
            } else {
                let counts = trace.spike_counts(index - 1);
                total.acs += counts.iter().zip(fan_out).map(|(&n, &f)| u64::from(n) * f).sum::<u64>();
            }
        }
        total
    }
}

/// Number of non-zero weights that each input of a 3x3 convolution with zero padding reaches.
fn conv_fan_out(weights: &[f32], input: Shape, outputs: usize) -> Vec<u64> {
    // used[channel][tap]: outputs whose weight is not zero.
    let mut used = vec![[0u64; 9]; input.channels];
    for output in 0..outputs {
        for channel in 0..input.channels {
            let taps = &weights[(output * input.channels + channel) * 9..][..9];
            used[channel].iter_mut().zip(taps).for_each(|(sum, &w)| *sum += u64::from(w != 0.0));
        }
    }
    let mut fan_out = Vec::with_capacity(input.neurons());
    for channel in 0..input.channels {
        for row in 0..input.height {
            for column in 0..input.width {
                let mut sum = 0;
                for (tap, n) in used[channel].iter().enumerate() {
                    // Tap (i, j) carries input (row, column) to output (row + 1 - i, column + 1 - j).
                    let (to_row, to_column) = (row + 1, column + 1);
                    let inside = |to: usize, tap: usize, size: usize| to >= tap && to - tap < size;
                    if inside(to_row, tap / 3, input.height) && inside(to_column, tap % 3, input.width) {
                        sum += n;
                    }
                }
                fan_out.push(sum);
            }
        }
    }
    fan_out
}

fn input_operations(input: &Input, fan_out: &[u64]) -> Operations {
    match input {
        Input::Ternary { shape, spikes } => {
            let mut acs = 0;
            for pixel in 0..spikes.pixels() {
                for step in 0..spikes.steps() {
                    for (i, &word) in spikes.at(pixel, step).iter().enumerate() {
                        let mut bits = word;
                        while bits != 0 {
                            // Channels C.. are the negative spikes of channels 0..C.
                            let channel = (64 * i + bits.trailing_zeros() as usize) % shape.channels;
                            acs += fan_out[channel * shape.pixels() + pixel];
                            bits &= bits - 1;
                        }
                    }
                }
            }
            Operations { acs, macs: 0 }
        }
        Input::Real { shape, values, .. } => {
            let mut total = Operations::default();
            for step in values.chunks_exact(shape.neurons()) {
                let reached =
                    step.iter().zip(fan_out).filter(|&(&x, _)| x != 0.0).map(|(_, &f)| f).sum::<u64>();
                let spiking = step.iter().all(|&x| x == 0.0 || x.abs() == 1.0);
                *if spiking { &mut total.acs } else { &mut total.macs } += reached;
            }
            total
        }
    }
}

/// Bytes of the weights as 32-bit numbers; the network has no biases or other stored state.
pub fn footprint(network: &Network) -> u64 {
    4 * network.architecture.parameter_count() as u64
}

/// Multiply-accumulates of one pass of a dense network of the same shape, exact at borders.
pub fn dense_macs(network: &Network) -> u64 {
    network.architecture.layers().iter().map(|layer| layer.dense_operations()).sum()
}
