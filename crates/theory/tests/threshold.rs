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
