//! Scales weights layer by layer until each hidden layer fires at its target rate.

use crate::evaluate::Inputs;
use leaklab_engine::{
    Architecture, Input, InputError, Isa, LayerKind, Network, NetworkError, Packed, Scratch, infer,
};

/// Number of trials per layer.
const TRIALS: usize = 24;
/// The search ends when the relative error of the rate is below this.
const CLOSE: f64 = 0.01;
/// The search has failed if the relative error of the rate is above this after all trials.
const FAR: f64 = 0.1;

/// Why weights could not be scaled.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// The network is not valid.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The images do not fit the network.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The rate cannot be reached.
    #[error(
        "no scale of the weights of '{layer}' gives a spike rate of {wanted}; the nearest rate was {found:.4}"
    )]
    Unreached {
        /// Name of the layer.
        layer: String,
        /// The target rate.
        wanted: f64,
        /// The nearest rate that was found.
        found: f64,
    },
}

/// Mean spikes per neuron and step of each hidden layer.
pub fn rates(
    packed: &Packed,
    shown: &Inputs<impl Fn(usize, &mut Input) + Sync>,
) -> Result<Vec<f64>, InputError> {
    let hidden = packed.architecture().hidden().len();
    let scratch = Scratch::default();
    let counts = infer(packed, shown.steps, shown.count, &scratch, &shown.show, |_, trace| {
        (0..hidden).map(|layer| trace.spikes(layer).count()).collect::<Vec<u64>>()
    })?;
    let neurons = packed.architecture().hidden().iter().map(|layer| layer.output.neurons());
    let rate = |(layer, neurons): (usize, usize)| {
        let spikes: u64 = counts.iter().map(|c| c[layer]).sum();
        spikes as f64 / (neurons * shown.steps * shown.count) as f64
    };
    Ok(neurons.enumerate().map(rate).collect())
}

/// A scale of a layer's weights, and the rate at which the layer then fires.
#[derive(Clone, Copy)]
struct Trial {
    scale: f64,
    rate: f64,
}

impl Trial {
    /// Relative error of the rate.
    fn error(self, wanted: f64) -> f64 {
        (self.rate / wanted - 1.0).abs()
    }
}

/// Scales the weights of every hidden conv and fully connected layer, from the first to the last, until it
/// fires at its target rate. `wanted` has a rate for each hidden layer; a layer with a target of 0 is not
/// changed. The rate is a step function of the scale, and a few presentations may step over the target: the
/// closest of the trials counts.
pub fn scale_to_rates(
    network: &mut Network,
    wanted: &[f64],
    shown: &Inputs<impl Fn(usize, &mut Input) + Sync>,
    isa: Isa,
) -> Result<(), CalibrationError> {
    let layers = network.architecture.layers().to_vec();
    for (index, layer) in layers.iter().enumerate() {
        let Some(parameter) = layer.parameter.filter(|_| layer.kind != LayerKind::Output) else { continue };
        let wanted = wanted[index];
        if wanted <= 0.0 {
            continue;
        }
        // Later layers do not influence this one, and a network that ends here runs faster.
        let notation = network.architecture.to_string();
        let prefix: Vec<&str> = notation.split('-').take(index + 2).collect();
        let cut = Architecture::parse(&format!("{}-1o", prefix.join("-"))).expect("a prefix is a network");
        let mut leak = network.leak().clone();
        leak.layer_tau.retain(|name, _| cut.hidden().iter().any(|layer| layer.name == *name));
        let parameter = network.architecture.parameters()[parameter].clone();
        let range = parameter.offset..parameter.offset + parameter.len;
        let original = network.weights[range.clone()].to_vec();
        let mut part = Network::new(cut, leak, network.v_th())?;
        part.weights[..range.start].copy_from_slice(&network.weights[..range.start]);
        let (mut low, mut high) = (1e-3f64, 1e3f64);
        let mut scale = 1.0;
        let mut best: Option<Trial> = None;
        for _ in 0..TRIALS {
            scale_by(&mut part.weights[range.clone()], &original, scale);
            let trial = Trial { scale, rate: rates(&Packed::new(&part, isa)?, shown)?[index] };
            // Of equally close trials, the last one.
            if best.is_none_or(|best| trial.error(wanted) <= best.error(wanted)) {
                best = Some(trial);
            }
            if trial.error(wanted) < CLOSE {
                break;
            }
            if trial.rate < wanted {
                low = scale;
            } else {
                high = scale;
            }
            scale = (low * high).sqrt();
        }
        let best = best.expect("there is at least one trial");
        if best.error(wanted) > FAR {
            return Err(CalibrationError::Unreached { layer: layer.name.clone(), wanted, found: best.rate });
        }
        scale_by(&mut network.weights[range], &original, best.scale);
    }
    Ok(())
}

/// Writes the original weights times a scale.
fn scale_by(weights: &mut [f32], original: &[f32], scale: f64) {
    weights.iter_mut().zip(original).for_each(|(weight, original)| *weight = original * scale as f32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use leaklab_engine::{Leak, Shape, Tau};

    /// A single neuron without leak, with an input spike at each of twelve steps, fires at every step, every
    /// second, every third and so on: 12, 6, 4, 3, 2 or 1 times, or never.
    #[test]
    fn the_closest_trial_counts() {
        const STEPS: usize = 12;
        let shape = Shape { channels: 1, height: 1, width: 1 };
        let show = |_: usize, input: &mut Input| *input = Input::from_values(shape, STEPS, &[1.0; STEPS]);
        let inputs = Inputs { count: 1, steps: STEPS, show };
        let architecture = Architecture::parse("1x1x1-1FC-1o").unwrap();
        // Between two counts, the search ends at either of them.
        for (wanted, closest) in [(1.4, 1.0), (1.6, 2.0), (3.4, 3.0), (3.6, 4.0), (8.5, 6.0), (9.5, 12.0)] {
            let mut network = Network::new(architecture.clone(), Leak::uniform(Tau::INFINITE), 1.0).unwrap();
            network.weights.fill(0.5);
            let isa = Isa::best();
            let found = match scale_to_rates(&mut network, &[wanted / STEPS as f64], &inputs, isa) {
                Ok(()) => rates(&Packed::new(&network, isa).unwrap(), &inputs).unwrap()[0],
                Err(CalibrationError::Unreached { found, .. }) => found,
                Err(error) => panic!("{error}"),
            };
            assert_eq!(found * STEPS as f64, closest, "{wanted}");
        }
    }
}
