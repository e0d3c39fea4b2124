//! What the theory of one neuron predicts for the response of a whole layer.
//!
//! The neuron has the layer's time constant and fires at the layer's mean rate. It is driven by a Poisson
//! train of spikes, each of which moves its membrane by `jump`, the root mean square of the layer's weights
//! in units of the threshold. With `n` spikes per step that is a mean input of `jump n` and white noise of
//! intensity `jump^2 n / 2` per step, so the rate fixes `n` and nothing is fitted. The theory modulates the
//! mean input alone; a modulated probability of spikes modulates the noise with it.

use leaklab_engine::Tau;
use leaklab_theory::{Drive, Integrator, Lif, ParameterError};
use std::f64::consts::TAU as TURN;

/// Number of bisections of the interval that contains the drive: enough for all digits.
const HALVINGS: u32 = 60;

/// Relative modulation of a neuron's rate over that of its mean input, at a frequency in cycles per step.
/// `None` if a layer does not fire or has no weights.
pub fn relative_gain(tau: Tau, rate: f64, jump: f64, frequency: f64) -> Option<f64> {
    if !(rate > 0.0 && jump > 0.0) {
        return None;
    }
    let gain = if tau.leaks() { leaky(tau, rate, jump, frequency) } else { perfect(rate, jump, frequency) };
    gain.ok().filter(|gain| gain.is_finite())
}

/// Without leak the rate is the mean input, in units of the threshold.
fn perfect(rate: f64, jump: f64, frequency: f64) -> Result<f64, ParameterError> {
    let neuron = Integrator::new(Drive::new(rate, jump * rate / 2.0)?)?;
    Ok(neuron.response(TURN * frequency)?.gain())
}

fn leaky(tau: Tau, rate: f64, jump: f64, frequency: f64) -> Result<f64, ParameterError> {
    let steps = tau.steps();
    // Mean and noise in units of the time constant, for `mu = jump n tau`.
    let neuron = |mu: f64| Ok::<_, ParameterError>(Lif::new(Drive::new(mu, jump * mu / 2.0)?));
    let wanted = (rate * steps).ln();
    // A leaky neuron needs more input than a perfect integrator, whose rate is `mu`: without noise, at most
    // one threshold per time constant more. The loop extends the interval if noise requires it.
    let (mut low, mut high) = (0.0, 1.0 + rate * steps);
    while neuron(high)?.log_rate() < wanted {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if neuron(middle)?.log_rate() < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    let neuron = neuron(high)?;
    let response = neuron.response(TURN * frequency * steps)?;
    Ok(response.gain() * high / neuron.rate())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tau(steps: f64) -> Tau {
        Tau::new(steps).unwrap()
    }

    #[test]
    fn slow_modulations_are_followed() {
        // The perfect integrator's rate is its mean input, so it follows slow modulations one to one.
        let slow = relative_gain(Tau::INFINITE, 0.1, 0.3, 1e-7).unwrap();
        assert!((slow - 1.0).abs() < 1e-6, "{slow}");
        // The leaky neuron loses part of its input, so its rate changes by more than its input does.
        let (steps, rate, jump) = (30.0, 0.1, 0.3);
        let slow = relative_gain(tau(steps), rate, jump, 1e-9).unwrap();
        assert!(slow > 1.0, "{slow}");
        // A very weak leak has no effect.
        let weak = relative_gain(tau(1e6), rate, jump, 0.05).unwrap();
        let none = relative_gain(Tau::INFINITE, rate, jump, 0.05).unwrap();
        assert!((weak - none).abs() < 1e-3 * none, "{weak} {none}");
    }

    #[test]
    fn fast_modulations_are_not() {
        for tau in [tau(5.0), tau(30.0), Tau::INFINITE] {
            let at = |frequency| relative_gain(tau, 0.02, 0.3, frequency).unwrap();
            assert!(at(0.5) < 0.5 * at(1e-4), "{tau}");
        }
    }

    #[test]
    fn silent_layers_have_none() {
        assert_eq!(relative_gain(tau(30.0), 0.0, 0.3, 0.1), None);
        assert_eq!(relative_gain(tau(30.0), 0.1, 0.0, 0.1), None);
    }
}
