//! Properties that must hold for every neuron, tested with random parameters.

use leaklab_theory::units::Membrane;
use leaklab_theory::{Drive, Integrator, Lif, Response};
use proptest::prelude::*;

fn assert_sane(response: Response, what: &str) {
    let Response { spectrum, coherence, cross_spectrum, .. } = response;
    assert!((0.0..=1.0 + 1e-12).contains(&coherence), "coherence {coherence} at {what}");
    assert!(spectrum > 0.0 && spectrum.is_finite(), "spectrum {spectrum} at {what}");
    assert!(cross_spectrum.re.is_finite() && cross_spectrum.im.is_finite(), "{cross_spectrum} at {what}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// The parameters include distances from the threshold up to 37, and cover eight
    /// decades of noise and twelve of frequency.
    #[test]
    fn lif_coherence_is_between_zero_and_one(
        distance in -36.9f64..300.0, log_d in -5.0f64..3.0, log_omega in -6.0f64..6.5, tau_r in 0.0f64..2.0
    ) {
        let d = 10f64.powf(log_d);
        let drive = Drive::new(1.0 + distance * d.sqrt(), d).unwrap().with_refractory(tau_r).unwrap();
        let neuron = Lif::new(drive);
        let what = format!("{drive:?} omega 1e{log_omega}");
        prop_assert!(neuron.rate() > 0.0 && neuron.rate().is_finite(), "{what}");
        prop_assert!(neuron.cv() > 0.0 && neuron.gain() > 0.0, "{what}");
        assert_sane(neuron.response(10f64.powf(log_omega)).unwrap(), &what);
    }

    #[test]
    fn if_coherence_is_between_zero_and_one(
        log_mu in -3.0f64..4.0, log_d in -5.0f64..4.0, log_omega in -8.0f64..8.0, tau_r in 0.0f64..2.0
    ) {
        let drive =
            Drive::new(10f64.powf(log_mu), 10f64.powf(log_d)).unwrap().with_refractory(tau_r).unwrap();
        let response = Integrator::new(drive).unwrap().response(10f64.powf(log_omega)).unwrap();
        assert_sane(response, &format!("{drive:?} omega 1e{log_omega}"));
    }

    /// Beyond a distance of 37, rate and coherence are 0, and the logarithm of the rate
    /// is finite and falls with the distance.
    #[test]
    fn silence_has_a_log_rate(distance in 37.0f64..1e6, log_d in -5.0f64..3.0) {
        let d = 10f64.powf(log_d);
        let at = |distance: f64| Lif::new(Drive::new(1.0 - distance * d.sqrt() * (1.0 + 1e-12), d).unwrap());
        let (near, far) = (at(distance), at(1.01 * distance));
        prop_assert!(near.log_rate().is_finite() && far.log_rate() < near.log_rate());
        prop_assert!(near.rate() <= 1e-290);
        let response = far.response(1.0).unwrap();
        prop_assert_eq!((response.coherence, response.spectrum), (0.0, 0.0));
    }

    /// S_xx -> r0 and C -> 2 r0/omega: the first correction is of order sqrt(D/omega) (1 + |mu-1|/D).
    #[test]
    fn high_frequency_limits(mu in 0.6f64..3.0, log_d in -1.5f64..0.5) {
        let d = 10f64.powf(log_d);
        let neuron = Lif::new(Drive::new(mu, d).unwrap());
        let integrator = Integrator::new(Drive::new(mu, d).unwrap()).unwrap();
        for omega in [1e6, 1e7, 1e8] {
            let small = 2.0 * (1.0 + (mu - 1.0).abs().max(mu)) / (d * omega).sqrt();
            for (rate, response) in
                [(neuron.rate(), neuron.response(omega)), (integrator.rate(), integrator.response(omega))]
            {
                let response = response.unwrap();
                prop_assert!(
                    (response.spectrum / rate - 1.0).abs() < 1e-9 + small * small,
                    "S_xx at {omega}"
                );
                let ratio = response.coherence * omega / (2.0 * rate);
                prop_assert!((ratio - 1.0).abs() < small, "C at {omega}: {ratio}, {small}");
            }
        }
    }

    /// C is continuous down to its zero-frequency value, `2 D (dr0/dmu)^2 / (r0 CV^2)`. It is even in omega,
    /// so the difference falls with the square of omega.
    #[test]
    fn continuous_to_zero(distance in -8.0f64..40.0, log_d in -2.0f64..2.0) {
        let d = 10f64.powf(log_d);
        let neuron = Lif::new(Drive::new(1.0 + distance * d.sqrt(), d).unwrap());
        let still = neuron.response(0.0).unwrap();
        let formula = 2.0 * d * neuron.gain().powi(2) / (neuron.rate() * neuron.cv().powi(2));
        prop_assert!((still.coherence / formula - 1.0).abs() < 1e-9, "{} {formula}", still.coherence);
        let scale = neuron.rate().min(1.0);
        for small in [1e-3, 1e-5, 1e-7, 1e-9, 1e-12] {
            let near = neuron.response(small * scale).unwrap();
            let bound = 1e3 * small * small + 1e-10;
            prop_assert!(
                (near.coherence / still.coherence - 1.0).abs() < bound,
                "{small}: {near:?} {still:?}"
            );
            prop_assert!((near.spectrum / still.spectrum - 1.0).abs() < bound, "{small}: {near:?} {still:?}");
        }
    }

    /// LIF becomes IF as R grows, at a fixed frequency in hertz, with an error proportional to 1/R.
    #[test]
    fn lif_becomes_if(current in 0.8f64..3.0, log_noise in -1.5f64..0.0, frequency in 0.05f64..3.0) {
        let membrane = |resistance| Membrane {
            resistance,
            capacitance: 1.0,
            current,
            current_noise: 10f64.powf(log_noise),
            background_noise: 0.0,
            gap: 1.0,
        };
        let (drive, scale) = membrane(1.0).perfect().unwrap();
        let limit = Integrator::new(drive).unwrap();
        let exact = limit.response(scale.omega(frequency)).unwrap();
        let errors: Vec<[f64; 3]> = [1e3, 1e4, 1e5]
            .into_iter()
            .map(|resistance| {
                let (drive, scale) = membrane(resistance).leaky().unwrap();
                let neuron = Lif::new(drive);
                let ours = neuron.response(scale.omega(frequency)).unwrap();
                [
                    scale.rate(neuron.rate()) / limit.rate() - 1.0,
                    scale.rate(ours.spectrum) / exact.spectrum - 1.0,
                    ours.coherence / exact.coherence - 1.0,
                ]
            })
            .collect();
        for quantity in 0..3 {
            let [first, second, third] = [0, 1, 2].map(|k| errors[k][quantity]);
            prop_assert!(first.abs() < 0.1, "{errors:?}");
            // Ten times the resistance gives a tenth of the error. Where the leading term happens to vanish,
            // the next one, of order 1/R^2, remains.
            prop_assert!((second * 10.0 - first).abs() < 0.1 * first.abs() + 1e-5, "{errors:?}");
            prop_assert!((third * 10.0 - second).abs() < 0.1 * second.abs() + 1e-7, "{errors:?}");
        }
    }
}
