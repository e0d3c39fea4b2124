//! The neuron of the output layer, which leaks and never fires:
//! `U = lambda U + (W O_in)[t]`. Its prediction is `U[T]` divided by `T`, or by the sum of the weights of all
//! steps ([`ReadoutDivisor`]).
//!
//! The prediction depends only on the output layer's weighted input, so the prediction for any readout can be
//! computed from the recorded signal, without running the network again.

use super::Tau;
use std::fmt;
use std::str::FromStr;

/// What the potential of an output neuron after the last step is divided by (specification, section 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ReadoutDivisor {
    /// The number of steps `T`, as published. A readout with leak forgets early steps, so its inputs must be
    /// larger for the same prediction.
    #[default]
    Steps,
    /// The sum of the weights that the steps have in the potential, `1 + lambda + ... + lambda^(T-1)`. The
    /// prediction is then the weighted mean of the inputs, at any leak. Without leak the sum is `T`.
    Memory,
}

impl ReadoutDivisor {
    /// Both divisors.
    pub const ALL: [ReadoutDivisor; 2] = [ReadoutDivisor::Steps, ReadoutDivisor::Memory];

    /// The divisor of a readout after a number of steps.
    pub fn of(self, readout: Tau, steps: usize) -> f64 {
        match self {
            ReadoutDivisor::Steps => steps as f64,
            // Horner's rule, from the oldest step to the last: exact without leak.
            ReadoutDivisor::Memory => {
                let lambda = readout.lambda();
                (0..steps).fold(0.0, |sum, _| lambda * sum + 1.0)
            }
        }
    }
}

impl fmt::Display for ReadoutDivisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ReadoutDivisor::Steps => "steps",
            ReadoutDivisor::Memory => "memory",
        })
    }
}

/// The error that no divisor of the readout has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("readout_divisor '{0}' is not one of steps, memory")]
pub struct UnknownDivisor(String);

impl FromStr for ReadoutDivisor {
    type Err = UnknownDivisor;

    fn from_str(name: &str) -> Result<Self, UnknownDivisor> {
        let found = Self::ALL.into_iter().find(|divisor| divisor.to_string() == name);
        found.ok_or_else(|| UnknownDivisor(name.to_owned()))
    }
}

/// The prediction for each class, given the signal `[step][class]`, the time constant of the readout and what
/// its potential is divided by.
pub fn predict(signal: &[f32], classes: usize, readout: Tau, divisor: ReadoutDivisor) -> Vec<f32> {
    let lambda = readout.lambda() as f32;
    let mut membrane = vec![0.0f32; classes];
    for step in signal.chunks_exact(classes) {
        membrane.iter_mut().zip(step).for_each(|(u, &z)| *u = lambda * *u + z);
    }
    let divisor = divisor.of(readout, signal.len() / classes);
    membrane.iter().map(|&u| (f64::from(u) / divisor) as f32).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_input_is_its_own_mean_at_any_leak() {
        for tau in [1.0 / 64.0, 1.0, 9.0, 30.0, f64::INFINITY].map(|steps| Tau::new(steps).unwrap()) {
            for steps in [1, 2, 30, 1000] {
                let signal = [0.75, -2.0].repeat(steps);
                let prediction = predict(&signal, 2, tau, ReadoutDivisor::Memory);
                // Each of the `steps` roundings has a relative error of at most half a unit in the last
                // place, and errors of earlier steps decay with the potential: at most twice that of `steps`.
                let bound = (steps + 1) as f32 * f32::EPSILON;
                for (p, x) in prediction.iter().zip([0.75f32, -2.0]) {
                    assert!((p / x - 1.0).abs() <= bound, "{tau} {steps}: {p}, not {x}");
                }
                let steps_divided = predict(&signal, 2, tau, ReadoutDivisor::Steps);
                let share = ReadoutDivisor::Memory.of(tau, steps) / steps as f64;
                assert!(
                    (f64::from(steps_divided[0]) - 0.75 * share).abs() <= f64::from(bound),
                    "{tau} {steps}"
                );
            }
        }
    }

    #[test]
    fn divisors_by_hand() {
        let tau = Tau::new(1.0 / std::f64::consts::LN_2).unwrap();
        assert!((ReadoutDivisor::Memory.of(tau, 4) - (1.0 + 0.5 + 0.25 + 0.125)).abs() < 1e-14);
        for steps in [1, 30, 65_535] {
            // Without leak, both are exactly the number of steps.
            assert!(ReadoutDivisor::ALL.map(|d| d.of(Tau::INFINITE, steps)) == [steps as f64; 2]);
        }
        for divisor in ReadoutDivisor::ALL {
            assert_eq!(divisor.to_string().parse(), Ok(divisor));
        }
        assert!("mean".parse::<ReadoutDivisor>().unwrap_err().to_string().contains("steps, memory"));
    }
}
