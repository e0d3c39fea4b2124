//! The neuron without leak (IF, the perfect integrator) `dv/dt = mu + sqrt(2D) xi`, threshold 1, reset 0: the
//! limit of the LIF neuron as its membrane resistance grows, in closed form.

use crate::drive::{Drive, ParameterError, check_omega};
use crate::response::{Interval, ROUNDING, Response};
use num_complex::Complex64;

/// A perfect integrate-and-fire neuron under a given drive.
#[derive(Debug, Clone)]
pub struct Integrator {
    drive: Drive,
    rate: f64,
}

impl Integrator {
    /// The neuron, or an error if its mean input is not positive: it would then have no stationary rate.
    pub fn new(drive: Drive) -> Result<Self, ParameterError> {
        if drive.mu() <= 0.0 {
            return Err(ParameterError::NoDrift { mu: drive.mu() });
        }
        Ok(Integrator { drive, rate: (drive.tau_r() + drive.mu().recip()).recip() })
    }

    /// The drive.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Firing rate, `1/r0 = tau_r + 1/mu`.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Coefficient of variation of the interspike interval, whose variance is `2D/mu^3`.
    pub fn cv(&self) -> f64 {
        self.rate / self.drive.mu() * (2.0 * self.drive.d() / self.drive.mu()).sqrt()
    }

    /// Slope of the rate, `dr0/dmu = (r0/mu)^2`.
    pub fn gain(&self) -> f64 {
        (self.rate / self.drive.mu()).powi(2)
    }

    /// Spectra at angular frequency `omega >= 0`. With `l = -2iw / (mu + sqrt(mu^2 - 4iwD))`, `rho = e^{-l}`:
    /// `S_xx = r0 (1-|rho|^2) / |1 - rho e^{i w tau_r}|^2` and
    /// `S_xs = 2 D_st r0 (i l / w) (1-rho) / (1 - rho e^{i w tau_r})`.
    pub fn response(&self, omega: f64) -> Result<Response, ParameterError> {
        check_omega(omega)?;
        let mu = self.drive.mu();
        let lowest = 1e-8 * mu.min(mu * (mu / self.drive.d())).min(self.rate);
        if omega < lowest {
            return self.evaluate(lowest).lowered_to(omega).checked(&self.drive, ROUNDING);
        }
        self.evaluate(omega).checked(&self.drive, ROUNDING)
    }

    fn evaluate(&self, w: f64) -> Response {
        let mu = self.drive.mu();
        // The expression is scaled by mu, so that neither square overflows. Real and
        // imaginary parts each keep their accuracy.
        let bend = 4.0 * (w / mu) * (self.drive.d() / mu);
        let re = (0.5 * (1.0 + bend.hypot(1.0))).sqrt();
        let sum = Complex64::new(1.0 + re, -0.5 * bend / re);
        let l_over_w = Complex64::new(0.0, -2.0 / mu) / sum;
        let interval = Interval::new(-l_over_w * w, w, self.drive.tau_r());

        let free = Complex64::new(0.0, 1.0) * l_over_w * self.rate;
        let (susceptibility, spectrum) = if self.drive.tau_r() == 0.0 {
            (free, self.rate * interval.relative_spectrum())
        } else {
            let held = interval.one_minus() / interval.one_minus_delayed();
            (free * held, self.rate * interval.relative_spectrum())
        };
        let coherence = 2.0 * self.drive.d_st() * free.norm_sqr() / self.rate
            * (interval.one_minus().norm_sqr() / interval.one_minus_square());
        Response {
            omega: w,
            spectrum,
            cross_spectrum: susceptibility * (2.0 * self.drive.d_st()),
            susceptibility,
            coherence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_neuron_that_drifts_away() {
        for mu in [0.0, -1.0] {
            let error = Integrator::new(Drive::new(mu, 0.1).unwrap()).unwrap_err();
            assert!(error.to_string().contains("no stationary rate"), "{error}");
        }
    }

    #[test]
    fn follows_its_input_at_low_frequency() {
        let neuron = Integrator::new(Drive::new(1.5, 0.1).unwrap()).unwrap();
        let still = neuron.response(0.0).unwrap();
        assert!((still.coherence - 1.0).abs() < 1e-12, "{still:?}");
        assert!((still.spectrum - neuron.rate() * neuron.cv().powi(2)).abs() < 1e-12);
        assert!((still.susceptibility.re - 1.0).abs() < 1e-12 && still.susceptibility.im == 0.0);
    }
}
