//! Simulation and theory, which share no formula, agree within the statistical error of the simulation.

use leaklab_theory::neuron::{Neuron, Shape};
use leaklab_theory::simulate::{Settings, simulate};
use leaklab_theory::{Drive, Model};

/// Frequencies on a logarithmic scale.
fn omegas(from: f64, to: f64, n: usize) -> Vec<f64> {
    (0..n).map(|k| from * (to / from).powf(k as f64 / (n - 1) as f64)).collect()
}

/// Independent simulations of each neuron.
const SEEDS: u64 = 4;

/// Chi-squared per point of coherence and of power spectrum, over all frequencies and seeds. Bins of a Hann
/// window are independent (their estimates have a correlation of 1/36 or less) if their distance is at least
/// two, as in the grid below. The sum over n points then has mean n and variance 2n, and the bounds are four
/// standard deviations, `1 +- 4 sqrt(2/n)`, which is 0.5 either way for 128 points.
fn check(model: Model, drive: Drive, segments: usize, seed: u64) {
    let neuron = Neuron::new(model, drive, Shape::default()).unwrap();
    let (mut points, mut inside) = (0, 0);
    let (mut coherence, mut spectrum, mut rate) = (0.0, 0.0, 0.0);
    for seed in seed..seed + SEEDS {
        let settings = Settings::plan(&neuron, 0.4, 40.0, segments, seed);
        let resolution = std::f64::consts::TAU / (settings.segment as f64 * settings.step);
        let mut wanted = omegas(resolution * 3.0, 40.0, 40);
        let mut last = 0.0;
        wanted.retain(|omega| {
            let bin = (omega / resolution).round();
            let independent = bin >= last + 2.0;
            if independent {
                last = bin;
            }
            independent
        });
        let estimate = simulate(&neuron, &wanted, &settings).unwrap();
        assert!(estimate.points.len() >= 20, "{} frequencies", estimate.points.len());
        points += estimate.points.len();
        for point in &estimate.points {
            let exact = neuron.response(point.omega).unwrap();
            let variance = estimate.coherence_variance(exact.coherence);
            coherence += (point.coherence - exact.coherence).powi(2) / variance;
            spectrum += (point.spectrum / exact.spectrum - 1.0).powi(2) * estimate.segments;
            inside += usize::from(point.low <= exact.coherence && exact.coherence <= point.high);
        }
        rate += (estimate.rate - neuron.rate()) / estimate.rate_error.unwrap() / (SEEDS as f64).sqrt();
        let cv = estimate.cv.unwrap();
        assert!((cv / neuron.cv() - 1.0).abs() < 0.03, "CV {cv}, not {}", neuron.cv());
    }
    let n = points as f64;
    let (coherence, spectrum) = (coherence / n, spectrum / n);
    println!(
        "{} mu {} D {} tau_r {}: {points} points, chi-squared per point {coherence:.2} (coherence) \
         {spectrum:.2} (spectrum), {inside} in their interval, rate {rate:+.1} standard errors off",
        model.name(),
        drive.mu(),
        drive.d(),
        drive.tau_r(),
    );
    let bound = 4.0 * (2.0 / n).sqrt();
    assert!((coherence - 1.0).abs() < bound, "coherence: chi-squared per point {coherence}, bound {bound}");
    assert!((spectrum - 1.0).abs() < bound, "spectrum: chi-squared per point {spectrum}, bound {bound}");
    assert!(rate.abs() < 4.5, "rate {rate} standard errors off");
    // 95 % intervals: the bound is four standard deviations of a binomial count.
    assert!(inside as f64 > 0.95 * n - 4.0 * (0.0475 * n).sqrt(), "{inside} of {points} in their interval");
}

#[test]
fn leaky_neuron() {
    for (mu, d) in [(0.8, 0.1), (1.5, 0.1), (3.0, 1.0)] {
        check(Model::Lif, Drive::new(mu, d).unwrap(), 600, 20_100);
    }
}

#[test]
fn perfect_integrator() {
    for (mu, d) in [(0.8, 0.05), (1.5, 0.1), (3.0, 1.0)] {
        check(Model::If, Drive::new(mu, d).unwrap(), 600, 20_200);
    }
}

#[test]
fn background_and_refractory_time() {
    let drive = Drive::with_background(1.5, 0.06, 0.04).unwrap().with_refractory(0.2).unwrap();
    check(Model::Lif, drive, 300, 20_300);
    check(Model::If, drive, 300, 20_400);
}

#[test]
fn nonlinear_neurons() {
    check(Model::Eif, Drive::new(1.0, 0.1).unwrap(), 120, 20_500);
    check(Model::Qif, Drive::new(0.5, 0.2).unwrap(), 120, 20_600);
    let drive = Drive::with_background(1.2, 0.06, 0.04).unwrap().with_refractory(0.1).unwrap();
    check(Model::Eif, drive, 120, 20_700);
}

#[test]
fn same_seed_same_numbers_on_any_number_of_threads() {
    let neuron = Neuron::new(Model::Lif, Drive::new(1.2, 0.1).unwrap(), Shape::default()).unwrap();
    let settings = Settings { blocks: 5, ..Settings::plan(&neuron, 1.0, 20.0, 40, 1) };
    let on = |threads: usize, settings: Settings| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| simulate(&neuron, &[1.0, 3.0, 20.0], &settings).unwrap())
    };
    let one = on(1, settings);
    assert_eq!(one, on(3, settings));
    assert_ne!(one, on(1, Settings { seed: 2, ..settings }));
}

#[test]
fn refuses_steps_it_cannot_use() {
    let drive = Drive::new(1.2, 0.1).unwrap().with_refractory(0.01).unwrap();
    let neuron = Neuron::new(Model::Lif, drive, Shape::default()).unwrap();
    let settings = Settings::plan(&neuron, 1.0, 20.0, 40, 1);
    for bad in [
        Settings { step: 0.0, ..settings },
        Settings { step: 0.02, ..settings },
        Settings { segment: 7, ..settings },
        Settings { segments: 0, ..settings },
        Settings { blocks: 0, ..settings },
    ] {
        assert!(simulate(&neuron, &[1.0], &bad).is_err(), "{bad:?}");
    }
}
