//! Compares threshold integration with what is known exactly: the LIF and IF
//! neurons, and limits of the nonlinear neurons.

use leaklab_theory::neuron::{Neuron, Shape};
use leaklab_theory::threshold::ThresholdIntegration;
use leaklab_theory::{Drive, Integrator, Lif, Model, Response};

fn drive(mu: f64, d: f64, tau_r: f64) -> Drive {
    Drive::with_background(mu, 0.7 * d, 0.3 * d).unwrap().with_refractory(tau_r).unwrap()
}

fn assert_close(ours: Response, exact: Response, tolerance: f64, what: &str) {
    let cross = (ours.cross_spectrum - exact.cross_spectrum).norm() / exact.cross_spectrum.norm();
    let spectrum = (ours.spectrum / exact.spectrum - 1.0).abs();
    let coherence = (ours.coherence / exact.coherence - 1.0).abs();
    let worst = cross.max(spectrum).max(coherence);
    assert!(worst < tolerance, "{what}, omega {}: {cross:e} {spectrum:e} {coherence:e}", ours.omega);
}

#[test]
fn linear_drift_gives_the_exact_lif() {
    for (mu, d, tau_r) in
        [(0.8, 0.05, 0.0), (1.5, 0.1, 0.0), (1.2, 0.1, 0.3), (0.5, 0.02, 0.1), (3.0, 1.0, 0.0)]
    {
        let exact = Lif::new(drive(mu, d, tau_r));
        let ours = ThresholdIntegration::new(drive(mu, d, tau_r), |v| -v, 1.0, 0.0).unwrap();
        let what = format!("mu {mu}, D {d}, tau_r {tau_r}");
        assert!((ours.rate() / exact.rate() - 1.0).abs() < 1e-9, "{what}: {} {}", ours.rate(), exact.rate());
        assert!((ours.cv() / exact.cv() - 1.0).abs() < 1e-5, "{what}: {} {}", ours.cv(), exact.cv());
        assert!((ours.gain() / exact.gain() - 1.0).abs() < 1e-5, "{what}");
        for omega in [0.0, 0.01, 0.3, 1.0, 4.0, 20.0, 100.0] {
            let tolerance = if omega < 0.1 { 1e-5 } else { 1e-7 };
            assert_close(ours.response(omega).unwrap(), exact.response(omega).unwrap(), tolerance, &what);
        }
    }
}

#[test]
fn no_drift_gives_the_exact_integrator() {
    for (mu, d, tau_r) in [(1.5, 0.1, 0.0), (0.5, 0.3, 0.4)] {
        let exact = Integrator::new(drive(mu, d, tau_r)).unwrap();
        let ours = ThresholdIntegration::new(drive(mu, d, tau_r), |_| 0.0, 1.0, 0.0).unwrap();
        assert!((ours.rate() / exact.rate() - 1.0).abs() < 1e-9);
        assert!((ours.gain() / exact.gain() - 1.0).abs() < 1e-5);
        assert!((ours.cv() / exact.cv() - 1.0).abs() < 1e-5);
        for omega in [0.1, 1.0, 9.0, 60.0] {
            let what = format!("mu {mu}, D {d}, tau_r {tau_r}");
            assert_close(ours.response(omega).unwrap(), exact.response(omega).unwrap(), 1e-7, &what);
        }
    }
}

#[test]
fn far_below_threshold_the_rate_has_a_logarithm() {
    let exact = Lif::new(Drive::new(0.0, 0.001).unwrap());
    let ours = ThresholdIntegration::new(Drive::new(0.0, 0.001).unwrap(), |v| -v, 1.0, 0.0).unwrap();
    assert!((ours.log_rate() - exact.log_rate()).abs() < 1e-6, "{} {}", ours.log_rate(), exact.log_rate());
    let silent = ThresholdIntegration::new(Drive::new(-3.0, 0.001).unwrap(), |v| -v, 1.0, 0.0).unwrap();
    let exact = Lif::new(Drive::new(-3.0, 0.001).unwrap());
    assert_eq!(silent.rate(), 0.0);
    assert!((silent.log_rate() / exact.log_rate() - 1.0).abs() < 1e-6);
    assert_eq!(silent.response(1.0).unwrap().coherence, 0.0);
}

#[test]
fn quadratic_neuron_without_much_noise_fires_as_its_flow() {
    let neuron = Neuron::new(Model::Qif, Drive::new(1.0, 1e-4).unwrap(), Shape::default()).unwrap();
    let period = 2.0 * 50f64.atan();
    assert!((neuron.rate() * period - 1.0).abs() < 1e-3, "{}", neuron.rate() * period);
}

#[test]
fn sharp_exponential_neuron_is_a_leaky_one() {
    // As the onset sharpens, the spike starts at 1 and the neuron becomes the LIF neuron.
    let exact = Lif::new(Drive::new(1.5, 0.1).unwrap());
    let error = |delta: f64| {
        let shape = Shape { delta, ..Shape::default() };
        let neuron = Neuron::new(Model::Eif, Drive::new(1.5, 0.1).unwrap(), shape).unwrap();
        (neuron.rate() / exact.rate() - 1.0).abs()
    };
    let (wide, narrow, sharp) = (error(0.05), error(0.01), error(0.002));
    assert!(narrow < 0.5 * wide && sharp < 0.5 * narrow && sharp < 0.05, "{wide} {narrow} {sharp}");
}

#[test]
fn refuses_a_membrane_without_floor() {
    let error = ThresholdIntegration::new(Drive::new(-0.5, 0.1).unwrap(), |_| 0.0, 1.0, 0.0).unwrap_err();
    assert!(error.to_string().contains("no stationary state"), "{error}");
    let error = ThresholdIntegration::new(Drive::new(0.5, 0.1).unwrap(), |v| -v, 0.0, 1.0).unwrap_err();
    assert!(error.to_string().contains("below the threshold"), "{error}");
}

#[test]
fn high_frequencies_have_the_limits_of_the_theory() {
    // The exponential upstroke gives r0/(omega delta) above the membrane's own frequencies (Fourcaud-Trocme
    // et al., 2003), until the finite threshold limits it at r0/F(threshold).
    for (mu, d) in [(0.5, 0.001), (0.8, 0.05), (1.5, 0.1)] {
        let neuron = Neuron::new(Model::Eif, Drive::new(mu, d).unwrap(), Shape::default()).unwrap();
        for omega in [300.0, 1000.0, 3000.0] {
            let response = neuron.response(omega).unwrap();
            let expected = neuron.rate() / (0.1 * omega);
            let error = (response.susceptibility.im / expected - 1.0).abs();
            assert!(error < 0.02, "mu {mu}, D {d}, omega {omega}: {error}");
            assert!((response.spectrum / neuron.rate() - 1.0).abs() < 1e-9, "{response:?}");
            assert!(response.coherence < 1e-3, "{response:?}");
        }
    }
    // The response of the quadratic neuron reaches that limit earlier.
    let neuron = Neuron::new(Model::Qif, Drive::new(0.0, 0.1).unwrap(), Shape::default()).unwrap();
    let response = neuron.response(1000.0).unwrap();
    assert!((response.susceptibility.re * 2500.0 / neuron.rate() - 1.0).abs() < 0.01, "{response:?}");
    // With f = -v the exact response is known at all frequencies.
    let drive = Drive::new(0.8, 0.05).unwrap();
    let ours = ThresholdIntegration::new(drive, |v| -v, 1.0, 0.0).unwrap();
    for omega in [1e4, 1e6, 1e8] {
        let what = "f = -v";
        assert_close(ours.response(omega).unwrap(), Lif::new(drive).response(omega).unwrap(), 1e-5, what);
    }
}

#[test]
fn what_cannot_be_computed_is_an_error() {
    let shape = Shape::default();
    let error = Neuron::new(Model::Qif, Drive::new(-1.0, 1e-6).unwrap(), shape).unwrap_err().to_string();
    assert!(
        error.starts_with("at mu = -1.0, D = 1e-6 the rate of the neuron cannot be computed: "),
        "{error}"
    );
    let neuron = Neuron::new(Model::Eif, Drive::new(0.5, 0.001).unwrap(), shape).unwrap();
    let error = neuron.response(1e9).unwrap_err().to_string();
    assert!(error.starts_with("at mu = 0.5, D = 0.001 and omega = 1000000000.0 the response"), "{error}");
    assert!(Drive::new(1e300, 0.1).is_err());
    let neuron = Neuron::new(Model::Lif, Drive::new(0.5, 0.1).unwrap(), shape).unwrap();
    assert!(neuron.response(1e300).is_err());

    // Numbers are finite at every point of a coarse grid, or there is an error.
    let sizes = [1e-12, 1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6, 1e12];
    let mut computed = [0; 4];
    for (at, model) in Model::ALL.into_iter().enumerate() {
        for mu in sizes.into_iter().chain(sizes.map(|mu| -mu)) {
            for d in sizes {
                let Ok(neuron) = Neuron::new(model, Drive::new(mu, d).unwrap(), shape) else { continue };
                let state = [neuron.rate(), neuron.log_rate(), neuron.cv(), neuron.gain()];
                assert!(state.iter().all(|x| x.is_finite()), "{model:?}, mu {mu}, D {d}: {state:?}");
                for response in [0.0, 1e-3, 1.0, 1e3, 1e12].map(|omega| neuron.response(omega)) {
                    let Ok(response) = response else { continue };
                    let numbers = [response.spectrum, response.gain(), response.coherence];
                    let sound = numbers.iter().all(|x| x.is_finite() && *x >= 0.0);
                    assert!(sound && response.coherence < 1.0 + 1e-9, "{model:?}, {mu}, {d}: {response:?}");
                    computed[at] += 1;
                }
            }
        }
    }
    assert!(computed.iter().all(|n| *n > 100), "{computed:?}");
}
