//! The target output's signal after the last hidden layer's spikes were shuffled in time: the same spike
//! counts and weights, and no temporal structure. Whatever a reading of the real signal shows beyond this
//! comes from temporal structure.

use leaklab_engine::philox::{Purpose, Stream};
use leaklab_engine::{Network, Trace};

/// Shuffles spike trains and sums them with their weights.
pub(super) struct Surrogate {
    /// Weights of the output layer, `[class][input]`, the inputs in the order channel, row, column.
    weights: Vec<f32>,
    /// Index of the last hidden layer.
    layer: usize,
    seed: u64,
}

impl Surrogate {
    pub(super) fn new(network: &Network, seed: u64) -> Self {
        let output = network.architecture.layers().last().map_or("", |layer| layer.name.as_str());
        let weights = network.tensor(output).unwrap_or_default().to_vec();
        Surrogate { weights, layer: network.architecture.hidden().len() - 1, seed }
    }

    /// The weighted input of an output neuron at every step, with each of its input trains shuffled: the same
    /// number of spikes, at randomly chosen steps.
    pub(super) fn signal(&self, trace: &Trace, class: usize, sample: u32) -> Vec<f64> {
        let steps = trace.steps();
        let mut signal = vec![0.0; steps];
        let counts = trace.spike_counts(self.layer);
        let row = &self.weights[class * counts.len()..][..counts.len()];
        let mut order: Vec<u32> = (0..steps as u32).collect();
        let stream = Stream::new(self.seed, Purpose::Analyse, 1, sample);
        let mut drawn = 0;
        for (&count, &weight) in counts.iter().zip(row) {
            // The first `count` of a shuffled list; what the list was before does not matter.
            for i in 0..count as usize {
                let j = i + stream.below_at(drawn, (steps - i) as u64) as usize;
                drawn += 1;
                order.swap(i, j);
                signal[order[i] as usize] += f64::from(weight);
            }
        }
        signal
    }
}
