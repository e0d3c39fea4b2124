//! Spectra estimated from a simulation: Welch's method with Hann windows that overlap by half.
//!
//! Rectangular windows leak the spike train's power into neighbouring frequencies, which causes false
//! deviations of many standard errors. A Hann window does not, and it confines a constant to the first two
//! bins, which are not used. The effect of the finite step is corrected exactly. Counting spikes per step
//! filters the spike train by `sinc(omega dt/2)` and folds back high frequencies, where its spectrum is `r0`.
//! Averaging the stimulus over a step filters it by the same `sinc` and leaves it white.

use crate::drive::Drive;
use crate::simulate::Settings;
use num_complex::Complex64;
use realfft::{RealFftPlanner, RealToComplex};
use std::f64::consts::TAU;
use std::sync::Arc;

/// Two-sided 95 % quantile of the standard normal distribution.
const NORMAL_95: f64 = 1.959_963_984_540_054;

/// An estimate at one frequency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Angular frequency of the Welch bin.
    pub omega: f64,
    /// Power spectrum `S_xx` of the spike train.
    pub spectrum: f64,
    /// Standard error of the power spectrum.
    pub spectrum_error: f64,
    /// Cross-spectrum `S_xs`.
    pub cross_spectrum: Complex64,
    /// Coherence, with its bias removed.
    pub coherence: f64,
    /// Lower end of the coherence's 95 % interval.
    pub low: f64,
    /// Upper end of the coherence's 95 % interval.
    pub high: f64,
}

/// Estimates from a simulation of a neuron.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Firing rate.
    pub rate: f64,
    /// Standard error of the rate, from the scatter of the blocks; `None` with a single block.
    pub rate_error: Option<f64>,
    /// Coefficient of variation of the interspike intervals; `None` with fewer than two.
    pub cv: Option<f64>,
    /// Effective number of independent segments; the segments overlap.
    pub segments: f64,
    /// Simulated time.
    pub time: f64,
    /// The estimates, by frequency.
    pub points: Vec<Point>,
}

impl Estimate {
    /// Variance of an estimated coherence whose true value is `c`: `(2 c + (1-c)^2/N) (1-c)^2 / N`, the first
    /// two orders of Goodman's distribution for `N` segments.
    pub fn coherence_variance(&self, c: f64) -> f64 {
        let free = (1.0 - c).powi(2) / self.segments;
        (2.0 * c + free) * free
    }
}

/// Sums over the segments of one block.
pub(crate) struct Sums {
    pub spikes: f64,
    pub time: f64,
    pub intervals: f64,
    pub interval_sum: f64,
    pub interval_squares: f64,
    xx: Vec<f64>,
    ss: Vec<f64>,
    xs: Vec<Complex64>,
}

/// A plan for Fourier transforms of one segment length, at chosen bins.
pub(crate) struct Welch {
    transform: Arc<dyn RealToComplex<f64>>,
    window: Vec<f64>,
    bins: Vec<usize>,
    step: f64,
}

impl Welch {
    /// Chooses the bins nearest to `omegas`, each once, without the first two,
    /// to which the window spreads the mean.
    pub(crate) fn new(settings: &Settings, omegas: &[f64]) -> Self {
        let n = settings.segment;
        let resolution = TAU / (n as f64 * settings.step);
        let mut bins: Vec<usize> =
            omegas.iter().map(|omega| ((omega / resolution).round() as usize).clamp(2, n / 2 - 1)).collect();
        bins.sort_unstable();
        bins.dedup();
        let window = (0..n).map(|i| 0.5 - 0.5 * (TAU * i as f64 / n as f64).cos()).collect();
        Welch { transform: RealFftPlanner::new().plan_fft_forward(n), window, bins, step: settings.step }
    }

    pub(crate) fn sums(&self) -> Sums {
        let n = self.bins.len();
        Sums {
            spikes: 0.0,
            time: 0.0,
            intervals: 0.0,
            interval_sum: 0.0,
            interval_squares: 0.0,
            xx: vec![0.0; n],
            ss: vec![0.0; n],
            xs: vec![Complex64::new(0.0, 0.0); n],
        }
    }

    /// Adds one segment: the stimulus averaged over each step, and the number of spikes in each.
    pub(crate) fn add(&self, stimulus: &[f64], spikes: &[f64], sums: &mut Sums) {
        let spectrum = |signal: &[f64]| {
            let mut windowed: Vec<f64> = signal.iter().zip(&self.window).map(|(x, w)| x * w).collect();
            let mut out = self.transform.make_output_vec();
            self.transform.process(&mut windowed, &mut out).expect("buffers of the planned length");
            out
        };
        let (s, x) = (spectrum(stimulus), spectrum(spikes));
        for (i, &bin) in self.bins.iter().enumerate() {
            // The transform has the sign e^{-i omega t} and we use e^{+i omega t}, hence the conjugate.
            sums.xx[i] += x[bin].norm_sqr();
            sums.ss[i] += s[bin].norm_sqr();
            sums.xs[i] += x[bin].conj() * s[bin];
        }
    }

    /// The estimate from all blocks, added in order. Neighbours among `M` half-overlapping Hann
    /// segments have a correlation of 1/6, so the segments are equivalent to
    /// `M / (1 + 2 (1/6)^2 (M-1)/M)` independent ones.
    pub(crate) fn estimate(&self, drive: &Drive, settings: &Settings, blocks: &[Sums]) -> Estimate {
        let count = blocks.len() as f64;
        let per_block = settings.segments as f64;
        let segments = count * per_block / (1.0 + (per_block - 1.0) / per_block / 18.0);
        let total = |f: &dyn Fn(&Sums) -> f64| blocks.iter().map(f).sum::<f64>();
        let time = total(&|b| b.time);
        let rate = total(&|b| b.spikes) / time;
        let scatter = total(&|b| (b.spikes / b.time - rate).powi(2));
        let rate_error = (count > 1.0).then(|| (scatter / (count * (count - 1.0))).sqrt());
        let intervals = total(&|b| b.intervals);
        let cv = (intervals > 1.0).then(|| {
            let mean = total(&|b| b.interval_sum) / intervals;
            (total(&|b| b.interval_squares) / intervals / (mean * mean) - 1.0).max(0.0).sqrt()
        });

        let power: f64 = self.window.iter().map(|w| w * w).sum();
        let norm = count * per_block * power;
        let points = (0..self.bins.len())
            .map(|i| {
                let omega = TAU * self.bins[i] as f64 / (settings.segment as f64 * self.step);
                let half = 0.5 * omega * self.step;
                let filter = (half.sin() / half).powi(2);
                // Counts per step are divided by dt to obtain a density; the stimulus already is one.
                let counted = total(&|b| b.xx[i]) / norm / self.step;
                let spectrum = (counted - rate * (1.0 - filter)) / filter;
                let cross = blocks.iter().map(|b| b.xs[i]).sum::<Complex64>() / norm / filter;
                let stimulus = total(&|b| b.ss[i]) / norm * self.step;
                let raw =
                    if counted > 0.0 { (cross * filter).norm_sqr() / (counted * stimulus) } else { 0.0 };
                let correction = if spectrum > 0.0 { counted / (filter * filter * spectrum) } else { 1.0 };
                let (coherence, low, high) = unbiased(raw, segments);
                Point {
                    omega,
                    spectrum,
                    spectrum_error: counted / filter / segments.sqrt(),
                    cross_spectrum: cross * (2.0 * drive.d_st() / stimulus),
                    coherence: coherence * correction,
                    low: low * correction,
                    high: (high * correction).min(1.0),
                }
            })
            .collect();
        Estimate { rate, rate_error, cv, segments, time, points }
    }
}

/// The coherence minus its bias `(1-c)^2/N`, and its 95 % interval: `atanh sqrt(c)` is nearly normal with
/// variance `1/(2N - 2)` (Enochson and Goodman).
fn unbiased(raw: f64, segments: f64) -> (f64, f64, f64) {
    let coherence = (raw - (1.0 - raw).powi(2) / segments).clamp(0.0, 1.0);
    let deviation = NORMAL_95 / (2.0 * segments - 2.0).max(1.0).sqrt();
    let centre = coherence.sqrt().min(1.0 - 1e-16).atanh();
    let end = |z: f64| z.max(0.0).tanh().powi(2);
    (coherence, end(centre - deviation), end(centre + deviation))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Welch's method on signals of known coherence: that of white s and x = s + noise of
    /// equal power is 1/2 at all frequencies.
    #[test]
    fn known_coherence() {
        let settings = Settings { step: 1.0, segment: 64, segments: 2000, blocks: 1, seed: 0 };
        let omegas: Vec<f64> = (2..32).map(|k| TAU * f64::from(k) / 64.0).collect();
        let welch = Welch::new(&settings, &omegas);
        let mut sums = welch.sums();
        let stream = crate::philox::Stream::new(3, 0);
        let signal: Vec<_> = (0..32 * 2001).map(|t| stream.draw(t, crate::philox::Purpose::Noise)).collect();
        for k in 0..2000 {
            let part = &signal[32 * k..32 * k + 64];
            let s: Vec<f64> = part.iter().map(|d| d.normal).collect();
            let x: Vec<f64> = part.iter().map(|d| d.normal + d.second).collect();
            welch.add(&s, &x, &mut sums);
        }
        sums.time = 1.0;
        let estimate = welch.estimate(&Drive::new(1.0, 0.5).unwrap(), &settings, &[sums]);
        assert_eq!(estimate.points.len(), 30);
        let variance = estimate.coherence_variance(0.5);
        // No spikes are counted, so what remains of the correction is the filter of the stimulus.
        let filter = |p: &Point| ((0.5 * p.omega).sin() / (0.5 * p.omega)).powi(2);
        let chi: f64 =
            estimate.points.iter().map(|p| (p.coherence * filter(p) - 0.5).powi(2) / variance).sum();
        // Neighbouring bins of a Hann window correlate, so the 30 bins are
        // equivalent to about 15 independent ones.
        assert!((chi / 30.0 - 1.0).abs() < 4.0 * (2.0f64 / 15.0).sqrt(), "{}", chi / 30.0);
        let covers = |p: &&Point| p.low * filter(p) < 0.5 && 0.5 < p.high * filter(p);
        let inside = estimate.points.iter().take(20).filter(covers).count();
        assert!(inside >= 16, "{inside} of 20 in their 95 % interval");
    }
}
