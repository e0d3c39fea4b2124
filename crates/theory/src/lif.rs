//! The leaky integrate-and-fire neuron `dv/dt = -v + mu + sqrt(2D) xi`, threshold 1, reset 0, solved exactly.
//!
//! With `a = (mu-1)/sqrt(D)` and `b = mu/sqrt(D)`, the interval between spikes is a
//! first-passage time from `b` down to `a`. Its characteristic function
//! `rho = psi_{iw}(b) / psi_{iw}(a)` has the logarithm `i w integral_a^b G dx`, with `G` as in
//! `parabolic.rs`. All spectra follow from `rho` and `G` at the two ends.

use crate::drive::{Drive, ParameterError, check_omega};
use crate::parabolic::{Passage, passage};
use crate::response::{Interval, ROUNDING, Response};
use num_complex::Complex64;

/// If `mu` is further below the threshold than this, in units of `sqrt(D)`, the rate underflows.
const SILENT: f64 = 37.0;

/// A leaky integrate-and-fire neuron under a given drive.
#[derive(Debug, Clone)]
pub struct Lif {
    drive: Drive,
    a: f64,
    b: f64,
    width: f64,
    rate: f64,
    log_rate: f64,
    /// Frequency below which all results have their zero-frequency values to rounding; 0 for a silent neuron.
    lowest: f64,
    cv: f64,
    gain: f64,
}

impl Lif {
    /// Computes the stationary state: `1/r0 = tau_r + integral_a^b G|_{w=0} dx`,
    /// `dr0/dmu = r0^2 (G(a) - G(b)) / sqrt(D)` at `w = 0`, and `CV = r0 sqrt(var)` with
    /// `log rho = i w mean - w^2 var / 2` for small w.
    pub fn new(drive: Drive) -> Self {
        let root = drive.d().sqrt();
        let (a, b, width) = ((drive.mu() - 1.0) / root, drive.mu() / root, root.recip());
        let silent = Lif { drive, a, b, width, rate: 0.0, log_rate: 0.0, lowest: 0.0, cv: 1.0, gain: 0.0 };
        if a < -SILENT {
            return Lif { log_rate: log_rate_far_below(a, b, width), ..silent };
        }
        let still = passage(a, b, width, 0.0);
        let rate = (drive.tau_r() + still.integral.re).recip();
        let lowest = 1e-8 * rate.min(1.0);
        let moving = passage(a, b, width, lowest);
        let cv = (2.0 * (rate * moving.integral.im) * (rate / lowest)).sqrt();
        let gain = rate * (rate * still.difference.re) / root;
        Lif { rate, log_rate: rate.ln(), lowest, cv, gain, ..silent }
    }

    /// The drive.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Firing rate `r0`; 0 where it underflows, see [`Lif::log_rate`].
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Natural logarithm of the firing rate, finite for every drive.
    pub fn log_rate(&self) -> f64 {
        self.log_rate
    }

    /// Coefficient of variation of the interspike interval.
    pub fn cv(&self) -> f64 {
        self.cv
    }

    /// Slope of the rate, `dr0/dmu`.
    pub fn gain(&self) -> f64 {
        self.gain
    }

    /// Spectra at angular frequency `omega >= 0` (Eqns. 7, 8 and 11), with `H = G(a) - rho G(b)`:
    ///
    /// - `S_xx = r0 (1-|rho|^2) / |1 - rho e^{i w tau_r}|^2`
    /// - `S_xs = 2 sqrt(D) r0 (iw/(iw-1)) H / (1 - rho e^{i w tau_r}) D_st/D`
    /// - `C = 2 r0 w^2/(1+w^2) |H|^2 / (1-|rho|^2) D_st/D`
    pub fn response(&self, omega: f64) -> Result<Response, ParameterError> {
        check_omega(omega)?;
        if self.rate == 0.0 {
            return Ok(Response::silent(omega));
        }
        if omega < self.lowest {
            return self.evaluate(self.lowest).lowered_to(omega).checked(&self.drive, ROUNDING);
        }
        self.evaluate(omega).checked(&self.drive, ROUNDING)
    }

    fn evaluate(&self, w: f64) -> Response {
        let Passage { integral, difference, at_b } = passage(self.a, self.b, self.width, w);
        let log_rho = Complex64::new(-w * integral.im, w * integral.re);
        let interval = Interval::new(log_rho, w, self.drive.tau_r());
        let h = difference + interval.one_minus() * at_b;

        // iw/(iw-1), and w^2/(1+w^2) as two factors w/sqrt(1+w^2), so that neither a tiny nor a huge H
        // overflows.
        let low_pass = w / w.hypot(1.0);
        let turned = Complex64::new(w, -1.0) / w.hypot(1.0) * low_pass;
        let response = h * self.rate * turned / interval.one_minus_delayed();
        let susceptibility = response / self.drive.d().sqrt();
        let transferred = low_pass * h.norm();
        let coherence =
            self.drive.share() * 2.0 * transferred * (transferred * self.rate) / interval.one_minus_square();
        Response {
            omega: w,
            spectrum: self.rate * interval.relative_spectrum(),
            cross_spectrum: susceptibility * (2.0 * self.drive.d_st()),
            susceptibility,
            coherence,
        }
    }
}

/// `log r0` for `a` far below 0, where `integral_a^b G dx` is `sqrt(2 pi) integral_a^b e^{x^2/2} dx` to
/// rounding, by the series `integral_0^z e^{x^2/2} dx = e^{z^2/2}/z (1 + 1/z^2 + 3/z^4 + 15/z^6 + ..)`. The
/// refractory time is negligible.
fn log_rate_far_below(a: f64, b: f64, width: f64) -> f64 {
    let series = |z: f64| {
        let u = (z * z).recip();
        (1.0 + u * (1.0 + u * (3.0 + u * (15.0 + u * (105.0 + u * 945.0))))) / z
    };
    let upper = if b < -20.0 { (0.5 * width * (a + b)).exp() * series(-b) } else { 0.0 };
    -(0.5 * (2.0 * std::f64::consts::PI).ln() + 0.5 * a * a + (series(-a) - upper).ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_rate_continues_the_rate() {
        for d in [0.01, 0.3, 100.0] {
            let rate =
                |distance: f64| Lif::new(Drive::new(1.0 - distance * f64::sqrt(d), d).unwrap()).log_rate();
            let (before, after, beyond) = (rate(36.999), rate(37.001), rate(37.003));
            let slopes = ((after - before) / 0.002, (beyond - after) / 0.002);
            assert!((slopes.0 / slopes.1 - 1.0).abs() < 1e-3, "D {d}: {slopes:?}");
        }
        let far = Lif::new(Drive::new(-1e6, 1e-3).unwrap());
        assert!(far.log_rate().is_finite() && far.rate() == 0.0, "{}", far.log_rate());
        assert_eq!(far.response(1.0).unwrap().coherence, 0.0);
    }

    #[test]
    fn refractory_time_adds_to_the_interval() {
        let free = Lif::new(Drive::new(1.2, 0.1).unwrap());
        let slow = Lif::new(Drive::new(1.2, 0.1).unwrap().with_refractory(0.5).unwrap());
        assert!((1.0 / slow.rate() - 1.0 / free.rate() - 0.5).abs() < 1e-12);
        let ratio = slow.cv() / free.cv() / (slow.rate() / free.rate());
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn background_takes_its_share_of_the_coherence() {
        let all = Lif::new(Drive::new(1.2, 0.1).unwrap()).response(2.0).unwrap();
        let part = Lif::new(Drive::with_background(1.2, 0.04, 0.06).unwrap()).response(2.0).unwrap();
        assert!((part.coherence / all.coherence - 0.4).abs() < 1e-12);
        assert!((part.susceptibility - all.susceptibility).norm() < 1e-12);
        assert!((part.spectrum - all.spectrum).abs() < 1e-12);
    }
}
