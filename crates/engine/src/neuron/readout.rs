//! The neuron of the output layer, which leaks and never fires:
//! `U = lambda U + (W O_in)[t]`. Its prediction is `U[T]/T`.
//!
//! The prediction depends only on the output layer's weighted input, so the prediction for any readout can be
//! computed from the recorded signal, without running the network again.

use super::Tau;

/// The prediction for each class, given the signal `[step][class]` and the time constant of the readout.
pub fn predict(signal: &[f32], classes: usize, readout: Tau) -> Vec<f32> {
    let lambda = readout.lambda() as f32;
    let mut membrane = vec![0.0f32; classes];
    for step in signal.chunks_exact(classes) {
        membrane.iter_mut().zip(step).for_each(|(u, &z)| *u = lambda * *u + z);
    }
    let steps = (signal.len() / classes) as f32;
    membrane.iter().map(|u| u / steps).collect()
}

/// The predicted class: the one with the largest prediction, and the lowest index in case of a tie.
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

/// Writes `d` of an output neuron at every step: `error` at the last step, which decays backward in time.
pub(crate) fn backward(error: f32, decay: f32, steps: usize, mut write: impl FnMut(usize, f32)) {
    let mut d = error;
    for step in (0..steps).rev() {
        write(step, d);
        d *= decay;
    }
}
