//! A lower bound of the information that a spike train carries about its stimulus.

use crate::drive::{ParameterError, require};
use crate::neuron::Neuron;
use crate::quadrature::adaptive;
use std::f64::consts::TAU;

/// Lower bound of the information rate in bits per unit of time,
/// `-integral_0^{omega_c} log2(1 - C) domega / 2 pi`, over the
/// stimulus' frequencies up to `cutoff = omega_c`.
///
/// The result depends on the cutoff: the coherence falls as `2 r0/omega`, so for white noise of unlimited
/// bandwidth the integral grows without bound, as `2 r0 log(omega_c) / (2 pi ln 2)`.
pub fn lower_bound(neuron: &Neuron, cutoff: f64) -> Result<f64, ParameterError> {
    require("cutoff", cutoff, |w| w > 0.0, "a finite number above 0")?;
    // Where C rounds to 1 (an IF neuron at frequency 0), `1 - C` is replaced by the rounding
    // error, which does not affect the integral.
    let mut failed = None;
    let mut density = |omega: f64| {
        if failed.is_some() {
            return 0.0;
        }
        match neuron.response(omega) {
            Ok(response) => -(1.0 - response.coherence).max(f64::EPSILON).log2(),
            Err(error) => {
                failed = Some(error);
                0.0
            }
        }
    };
    // The coherence varies on different scales below and above the rate,
    // and has peaks at multiples of the rate.
    let mut edges = vec![0.0];
    let rate = TAU * neuron.rate();
    for edge in [0.03, 0.5, 1.5, 2.5, 4.5, 20.0, 200.0].map(|x| x * rate).into_iter().chain([0.3, 3.0]) {
        if edge > 0.0 && edge < cutoff {
            edges.push(edge);
        }
    }
    edges.push(cutoff);
    edges.sort_unstable_by(f64::total_cmp);
    let integral: f64 = edges.windows(2).map(|ends| adaptive(&mut density, ends[0], ends[1], 1e-9)).sum();
    match failed {
        Some(error) => Err(error),
        // The integral over a coherence of 0 is -0, which would be printed with its sign.
        None => Ok(integral / TAU + 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Drive;
    use crate::neuron::{Model, Shape};

    fn neuron(model: Model, mu: f64, d: f64) -> Neuron {
        Neuron::new(model, Drive::new(mu, d).unwrap(), Shape::default()).unwrap()
    }

    #[test]
    fn agrees_with_a_plain_sum() {
        for (model, mu, d) in [(Model::Lif, 1.5, 0.1), (Model::Lif, 0.8, 0.05), (Model::If, 1.5, 0.1)] {
            let neuron = neuron(model, mu, d);
            let ours = lower_bound(&neuron, 30.0).unwrap();
            // The midpoint rule has an error of second order in the step, and of first order at the
            // IF neuron's logarithmic singularity.
            let n = 60_000;
            let h = 30.0 / f64::from(n);
            let plain: f64 = (0..n)
                .map(|k| -(1.0 - neuron.response((f64::from(k) + 0.5) * h).unwrap().coherence).log2() * h)
                .sum::<f64>()
                / TAU;
            assert!((ours - plain).abs() < 2.0 * h, "{ours} {plain}");
        }
    }

    #[test]
    fn grows_without_bound_like_a_logarithm() {
        let neuron = neuron(Model::Lif, 1.5, 0.1);
        let bits = |cutoff| lower_bound(&neuron, cutoff).unwrap();
        let per_decade = bits(1e6) - bits(1e5);
        let expected = 2.0 * neuron.rate() * 10f64.ln() / (TAU * 2f64.ln());
        assert!((per_decade / expected - 1.0).abs() < 0.01, "{per_decade} {expected}");
    }

    #[test]
    fn a_silent_neuron_carries_nothing() {
        let bits = lower_bound(&neuron(Model::Lif, -9.0, 0.1), 10.0).unwrap();
        assert_eq!(format!("{bits:.6}"), "0.000000");
    }

    /// A response that cannot be computed at some frequency below the cutoff is an error.
    #[test]
    fn a_response_beyond_the_limits_is_an_error() {
        let error = |model, mu, d, cutoff| lower_bound(&neuron(model, mu, d), cutoff).unwrap_err();
        let unresolved = error(Model::Qif, 5.0, 1e-3, 100.0);
        assert!(matches!(unresolved, ParameterError::Unresolved { omega: Some(_), .. }), "{unresolved}");
        let above = error(Model::Lif, 1.5, 0.1, 1e13);
        assert!(matches!(above, ParameterError::Range { name: "omega", .. }), "{above}");
    }

    #[test]
    fn needs_a_cutoff() {
        for cutoff in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            assert!(lower_bound(&neuron(Model::Lif, 1.5, 0.1), cutoff).is_err());
        }
    }
}
