//! One-sided power spectra of short trains, and the frequency below which most of the power lies.
//!
//! There is no window and no averaging over segments: a train is as long as the presentation of an image,
//! every bin counts, and Parseval's theorem holds exactly, so "70 % of the power" is exact.

use super::statistics::regularised_beta;
use leaklab_engine::Spikes;
use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use std::sync::Arc;

/// Share of the power that lies at or below the critical frequency.
pub const SHARE: f64 = 0.7;

/// The Fourier plan for trains of one length. Cheap to share: computing a spectrum takes `&self`.
pub struct Periodogram {
    steps: usize,
    plan: Arc<dyn RealToComplex<f64>>,
}

impl Periodogram {
    /// For trains of `steps` time steps.
    ///
    /// # Panics
    /// If `steps` is zero.
    pub fn new(steps: usize) -> Self {
        assert!(steps > 0, "a train has at least one step");
        Periodogram { steps, plan: RealFftPlanner::new().plan_fft_forward(steps) }
    }

    /// Number of bins, `floor(T/2)`: bin `k = 1..` stands for `k/T` cycles per step; the mean is not a bin.
    pub fn bins(&self) -> usize {
        self.steps / 2
    }

    /// Frequency of a bin counted from 0, in cycles per step.
    pub fn frequency(&self, bin: usize) -> f64 {
        (bin + 1) as f64 / self.steps as f64
    }

    /// The one-sided power density of a train, mean removed:
    ///
    /// `P_k = c_k |sum_t x_t e^(-2 pi i k t / T)|^2 / T`, `c_k` = 2 except 1 at the Nyquist bin (even T),
    ///
    /// so that `sum_k P_k / T` is the train's variance (divisor T). White noise of variance `s` has
    /// `P = 2 s`.
    ///
    /// # Panics
    /// If `train` does not have as many steps as the plan.
    pub fn power(&self, train: &[f64]) -> Vec<f64> {
        let mean = train.iter().sum::<f64>() / self.steps as f64;
        let mut centred: Vec<f64> = train.iter().map(|x| x - mean).collect();
        let mut spectrum = vec![Complex::new(0.0, 0.0); self.steps / 2 + 1];
        self.plan.process(&mut centred, &mut spectrum).expect("a train of the planned length");
        (1..=self.bins()).map(|k| self.weight(k) * spectrum[k].norm_sqr() / self.steps as f64).collect()
    }

    /// Adds the power densities of all neurons of a layer to `sum`, from their spikes' circular
    /// autocorrelation:
    ///
    /// `sum over neurons |X_k|^2 = sum_d A_d cos(2 pi k d / T)`, `A_d = sum over neurons, t of O_t O_(t+d)`.
    ///
    /// `A` is counted 64 neurons at a time from the spikes' bits and is a whole number: exact, and a hundred
    /// times cheaper than a transform per neuron.
    pub fn add_layer(&self, spikes: &Spikes, sum: &mut [f64]) {
        assert_eq!(spikes.steps(), self.steps, "spikes of another length");
        let (steps, words) = (self.steps, spikes.words_per_step());
        let mut autocorrelation = vec![0u64; steps / 2 + 1];
        for pixel in spikes.words().chunks_exact((steps * words).max(1)) {
            for word in 0..words {
                let train: Vec<u64> = pixel[word..].iter().step_by(words).copied().collect();
                if train.iter().all(|&w| w == 0) {
                    continue;
                }
                for (lag, count) in autocorrelation.iter_mut().enumerate() {
                    let (early, late) = train.split_at(steps - lag);
                    let straight = early.iter().zip(&train[lag..]);
                    let wrapped = late.iter().zip(&train[..lag]);
                    *count +=
                        straight.chain(wrapped).map(|(a, b)| u64::from((a & b).count_ones())).sum::<u64>();
                }
            }
        }
        for k in 1..=self.bins() {
            let mut power = 0.0;
            for (lag, &count) in autocorrelation.iter().enumerate() {
                // A_d = A_(T-d): lags other than 0 and T/2 count twice.
                let twice = if lag == 0 || 2 * lag == steps { 1.0 } else { 2.0 };
                let phase = (k * lag % steps) as f64 / steps as f64;
                power += twice * count as f64 * (2.0 * std::f64::consts::PI * phase).cos();
            }
            // Rounding may make the power of a silent or regular layer slightly negative.
            sum[k - 1] += self.weight(k) * power.max(0.0) / steps as f64;
        }
    }

    fn weight(&self, k: usize) -> f64 {
        if 2 * k == self.steps { 1.0 } else { 2.0 }
    }

    /// The critical frequency of a train in cycles per step: the lowest `k/T` at which the cumulative power
    /// reaches [`SHARE`] of the total. `None` if the train is constant.
    pub fn critical_frequency(&self, train: &[f64]) -> Option<f64> {
        if train.windows(2).all(|pair| pair[0] == pair[1]) {
            return None;
        }
        critical_bin(&self.power(train)).map(|bin| self.frequency(bin))
    }
}

/// The lowest bin (from 0) at which the cumulative power reaches [`SHARE`] of the total; `None` without
/// power.
pub fn critical_bin(power: &[f64]) -> Option<usize> {
    let total: f64 = power.iter().sum();
    if !(total > 0.0 && total.is_finite()) {
        return None;
    }
    let mut cumulative = 0.0;
    let reached = power.iter().position(|p| {
        cumulative += p;
        cumulative >= SHARE * total
    });
    // The sum in the same order reaches the total, so a bin is always found.
    reached.or(Some(power.len() - 1))
}

/// Mean and variance over realisations of the critical frequency of Gaussian white noise of `steps` steps.
///
/// Bins below the Nyquist frequency are independent exponential variables, and the Nyquist bin is half a
/// chi-squared variable with one degree of freedom, so the share of the first `k` bins is Beta(k, (T-1)/2 -
/// k), and `E[k] = sum over j >= 0 of P(share of the first j bins < 0.7)`. At T = 100 the mean is 0.3495.
pub fn white_noise(steps: usize) -> Option<(f64, f64)> {
    let bins = steps / 2;
    if bins == 0 {
        return None;
    }
    let shape = 0.5 * (steps as f64 - 1.0);
    // P(critical bin > j)
    let above = |j: usize| match j {
        0 => 1.0,
        _ => regularised_beta(SHARE, j as f64, shape - j as f64),
    };
    let (mut first, mut second) = (0.0, 0.0);
    for j in 0..bins {
        let probability = above(j);
        first += probability;
        second += (2 * j + 1) as f64 * probability;
    }
    let steps = steps as f64;
    Some((first / steps, (second - first * first) / (steps * steps)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise for the tests, by SplitMix64 and Box-Muller.
    struct Noise(u64);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
            radius * (2.0 * std::f64::consts::PI * self.uniform()).cos()
        }
    }

    #[test]
    fn parseval_holds() {
        let mut noise = Noise(1);
        for steps in [1, 2, 3, 16, 30, 99, 100] {
            let train: Vec<f64> = (0..steps).map(|_| noise.normal() + 3.0).collect();
            let mean = train.iter().sum::<f64>() / steps as f64;
            let variance = train.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / steps as f64;
            let total = Periodogram::new(steps).power(&train).iter().sum::<f64>() / steps as f64;
            assert!((total - variance).abs() <= 1e-13 * variance.max(1.0), "{steps}: {total} {variance}");
        }
    }

    #[test]
    fn a_sine_is_one_bin() {
        let periodogram = Periodogram::new(100);
        for k in [1, 7, 35, 49] {
            let omega = 2.0 * std::f64::consts::PI * k as f64 / 100.0;
            let train: Vec<f64> = (0..100).map(|t| 2.0 + 3.0 * (omega * t as f64 + 0.4).sin()).collect();
            let power = periodogram.power(&train);
            // Amplitude 3 has variance 4.5; all of it lies in bin k, of width 1/T.
            assert!((power[k - 1] - 450.0).abs() < 1e-9);
            assert!(power.iter().enumerate().all(|(bin, p)| bin == k - 1 || *p < 1e-20));
            assert_eq!(periodogram.critical_frequency(&train), Some(k as f64 / 100.0));
        }
        let alternating: Vec<f64> = (0..100).map(|t| f64::from(t % 2)).collect();
        assert_eq!(periodogram.critical_frequency(&alternating), Some(0.5));
        assert!((periodogram.power(&alternating)[49] - 25.0).abs() < 1e-12);
    }

    #[test]
    fn two_sines_split_the_power() {
        let periodogram = Periodogram::new(100);
        let wave = |k: usize, t: usize| (2.0 * std::f64::consts::PI * (k * t) as f64 / 100.0).cos();
        let mixture = |share: f64| -> Vec<f64> {
            (0..100).map(|t| share.sqrt() * wave(5, t) + (1.0 - share).sqrt() * wave(40, t)).collect()
        };
        assert_eq!(periodogram.critical_frequency(&mixture(0.71)), Some(0.05));
        assert_eq!(periodogram.critical_frequency(&mixture(0.69)), Some(0.40));
    }

    #[test]
    fn constant_trains_have_no_critical_frequency() {
        for value in [0.0, 0.1, -7.3] {
            assert_eq!(Periodogram::new(100).critical_frequency(&[value; 100]), None);
        }
        assert_eq!(Periodogram::new(1).critical_frequency(&[1.0]), None);
        assert_eq!(critical_bin(&[]), None);
    }

    #[test]
    fn white_noise_has_the_published_critical_frequency() {
        let (expected, variance) = white_noise(100).unwrap();
        assert!((expected - 0.3495).abs() < 5e-5, "{expected}");
        let periodogram = Periodogram::new(100);
        let mut noise = Noise(2);
        let images = 20_000;
        let (mut sum, mut squares, mut mean_power) = (0.0, 0.0, [0.0; 50]);
        for _ in 0..images {
            let train: Vec<f64> = (0..100).map(|_| noise.normal()).collect();
            let critical = periodogram.critical_frequency(&train).unwrap();
            sum += critical;
            squares += critical * critical;
            for (total, p) in mean_power.iter_mut().zip(periodogram.power(&train)) {
                *total += p / f64::from(images);
            }
        }
        let n = f64::from(images);
        // Four standard errors of the mean, from the exact variance: one false alarm in 16,000.
        assert!((sum / n - expected).abs() < 4.0 * (variance / n).sqrt(), "{}", sum / n);
        // The sample variance has a relative error of about sqrt(2/n).
        let sampled = squares / n - (sum / n).powi(2);
        assert!((sampled / variance - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "{sampled} {variance}");
        // Flat at 2, the Nyquist bin at 1; relative error of an exponential mean 1/sqrt(n), of chi-squared
        // sqrt(2/n).
        for (bin, p) in mean_power.iter().enumerate() {
            let (flat, error) = if bin == 49 { (1.0, (2.0 / n).sqrt()) } else { (2.0, 2.0 / n.sqrt()) };
            assert!((p - flat).abs() < 4.5 * error, "{bin}: {p}");
        }
    }

    #[test]
    fn autoregressive_noise_has_its_analytic_spectrum() {
        // x_t = a x_(t-1) + e: S(f) = 2 / |1 - a e^(-2 pi i f)|^2. A circular recursion has no leakage, so
        // the expectation is exact at every bin: E[P_k] = S(k/T).
        let (a, steps, trains) = (0.6_f64, 100, 4000);
        let periodogram = Periodogram::new(steps);
        let analytic = |bin: usize| {
            let omega = 2.0 * std::f64::consts::PI * periodogram.frequency(bin);
            (if bin == 49 { 1.0 } else { 2.0 }) / (1.0 - 2.0 * a * omega.cos() + a * a)
        };
        let mut noise = Noise(3);
        let mut mean_power = vec![0.0; 50];
        let mut critical = 0.0;
        for _ in 0..trains {
            let kicks: Vec<f64> = (0..steps).map(|_| noise.normal()).collect();
            // The periodic solution: the value before the first step is that of the last.
            let end: f64 = (0..steps).map(|t| a.powi((steps - 1 - t) as i32) * kicks[t]).sum();
            let mut x = end / (1.0 - a.powi(steps as i32));
            let train: Vec<f64> = kicks
                .iter()
                .map(|kick| {
                    x = a * x + kick;
                    x
                })
                .collect();
            for (total, p) in mean_power.iter_mut().zip(periodogram.power(&train)) {
                *total += p / f64::from(trains);
            }
            critical += periodogram.critical_frequency(&train).unwrap() / f64::from(trains);
        }
        for (bin, p) in mean_power.iter().enumerate() {
            let error = if bin == 49 { 2.0_f64 } else { 1.0 }.sqrt() / f64::from(trains).sqrt();
            assert!((p / analytic(bin) - 1.0).abs() < 4.5 * error, "{bin}: {p} {}", analytic(bin));
        }
        // In the continuum F(f) = (2/pi) atan((1+a)/(1-a) tan(pi f)) of the power lies below f. A train of
        // 100 steps scatters around it; the quantile moves by at most a bin.
        let continuum = ((1.0 - a) / (1.0 + a) * (std::f64::consts::FRAC_PI_2 * SHARE).tan()).atan()
            / std::f64::consts::PI;
        assert!((critical - continuum).abs() < 0.01, "{critical} {continuum}");
        let expected: Vec<f64> = (0..50).map(analytic).collect();
        let bin = critical_bin(&expected).unwrap();
        assert!((periodogram.frequency(bin) - continuum).abs() < 0.01);
    }

    #[test]
    fn bits_and_transforms_agree() {
        let mut noise = Noise(4);
        for (steps, channels) in [(1, 3), (2, 70), (29, 64), (30, 65), (100, 3)] {
            let mut spikes = Spikes::new(4, steps, channels);
            let periodogram = Periodogram::new(steps);
            let mut expected = vec![0.0; periodogram.bins()];
            for pixel in 0..4 {
                for channel in 0..channels {
                    let train: Vec<f64> = (0..steps).map(|_| f64::from(noise.uniform() < 0.2)).collect();
                    for step in (0..steps).filter(|&t| train[t] == 1.0) {
                        spikes.set(pixel, step, channel);
                    }
                    expected.iter_mut().zip(periodogram.power(&train)).for_each(|(sum, p)| *sum += p);
                }
            }
            let mut sum = vec![0.0; periodogram.bins()];
            periodogram.add_layer(&spikes, &mut sum);
            for (ours, expected) in sum.iter().zip(&expected) {
                assert!((ours - expected).abs() < 1e-10 * expected.max(1.0), "{steps}: {ours} {expected}");
            }
        }
    }
}
