//! The neuron of the output layer, which leaks and never fires: `U = lambda U + (W O_in)[t]`, prediction
//! `U[T]/T`.
//!
//! The prediction is a function of the output layer's weighted input alone, so every readout of a run comes
//! from its recorded signal at no cost.

use super::Tau;

/// The prediction of each class from the signal `[step][class]`, for a time constant of the readout.
pub fn predict(signal: &[f32], classes: usize, readout: Tau) -> Vec<f32> {
    let lambda = readout.lambda() as f32;
    let mut membrane = vec![0.0f32; classes];
    for step in signal.chunks_exact(classes) {
        membrane.iter_mut().zip(step).for_each(|(u, &z)| *u = lambda * *u + z);
    }
    let steps = (signal.len() / classes) as f32;
    membrane.iter().map(|u| u / steps).collect()
}

/// The predicted class: the largest prediction, the lowest index on a tie.
pub fn class(prediction: &[f32]) -> usize {
    let mut best = 0;
    for (i, &p) in prediction.iter().enumerate() {
        if p > prediction[best] {
            best = i;
        }
    }
    best
}

/// The potential of an output neuron at every step, in double precision.
pub fn replay(tau: Tau, weighted: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let (lambda, mut u) = (tau.lambda(), 0.0);
    let step = |input: f64| {
        u = lambda * u + input;
        u
    };
    weighted.into_iter().map(step).collect()
}

/// `d` of an output neuron at every step, backward from the last: `error`, decayed.
pub(crate) fn backward(error: f32, decay: f32, steps: usize, mut write: impl FnMut(usize, f32)) {
    let mut d = error;
    for step in (0..steps).rev() {
        write(step, d);
        d *= decay;
    }
}
