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

/// Scales the weights of every hidden conv and fully connected layer, from the first to the last, until it
/// fires at its target rate. `wanted` has a rate for each hidden layer; a layer with a target of 0 is not
/// changed.
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
        let (mut low, mut high) = (1e-3f64, 1e3f64);
        let mut scale = 1.0;
        let mut found = 0.0;
        for _ in 0..TRIALS {
            let mut part = Network::new(cut.clone(), leak.clone(), network.v_th())?;
            for (w, o) in network.weights[range.clone()].iter_mut().zip(&original) {
                *w = o * scale as f32;
            }
            part.weights[..range.end].copy_from_slice(&network.weights[..range.end]);
            found = rates(&Packed::new(&part, isa)?, shown)?[index];
            if (found / wanted - 1.0).abs() < CLOSE {
                break;
            }
            if found < wanted {
                low = scale;
            } else {
                high = scale;
            }
            scale = (low * high).sqrt();
        }
        if (found / wanted - 1.0).abs() > FAR {
            return Err(CalibrationError::Unreached { layer: layer.name.clone(), wanted, found });
        }
    }
    Ok(())
}
