//! The response of a neuron at one frequency, and the renewal formula that all models share.

use crate::drive::{Drive, ParameterError};
use num_complex::Complex64;

/// Spectra at one angular frequency; densities are two-sided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Response {
    /// Angular frequency, in units of the inverse membrane time constant.
    pub omega: f64,
    /// Power spectrum of the spike train, `S_xx`.
    pub spectrum: f64,
    /// Cross-spectrum of spike train and stimulus, `S_xs`.
    pub cross_spectrum: Complex64,
    /// Linear response of the firing rate to the mean input, `S_xs / S_ss`. A lag is a positive phase,
    /// because the Fourier sign is `e^{+i omega t}`.
    pub susceptibility: Complex64,
    /// Coherence between spike train and stimulus, `|S_xs|^2 / (S_xx S_ss)`, from 0 to 1.
    pub coherence: f64,
}

impl Response {
    /// A neuron that never fires: no output, no coherence.
    pub(crate) fn silent(omega: f64) -> Self {
        let zero = Complex64::new(0.0, 0.0);
        Response { omega, spectrum: 0.0, cross_spectrum: zero, susceptibility: zero, coherence: 0.0 }
    }

    /// `|S_xs / S_ss|`.
    pub fn gain(&self) -> f64 {
        self.susceptibility.norm()
    }

    /// Phase of the susceptibility in radians; positive when the rate lags behind the input.
    pub fn phase(&self) -> f64 {
        self.susceptibility.arg()
    }

    /// The response, or an error if rounding or overflow has destroyed it.
    pub(crate) fn checked(self, drive: &Drive, limit: &'static str) -> Result<Self, ParameterError> {
        let numbers = [self.spectrum, self.cross_spectrum.re, self.cross_spectrum.im, self.coherence];
        let sound = numbers.iter().all(|x| x.is_finite())
            && self.spectrum >= 0.0
            && (0.0..=1.0 + 1e-9).contains(&self.coherence);
        if sound { Ok(self) } else { Err(drive.unresolved(Some(self.omega), "response", limit)) }
    }

    /// The same response at a frequency so low that everything but the imaginary parts has its zero-frequency
    /// value. The imaginary parts are odd in omega and are scaled.
    pub(crate) fn lowered_to(self, omega: f64) -> Self {
        let odd = |z: Complex64| Complex64::new(z.re, z.im * (omega / self.omega));
        Response {
            omega,
            cross_spectrum: odd(self.cross_spectrum),
            susceptibility: odd(self.susceptibility),
            ..self
        }
    }
}

/// The limit of the closed forms, see [`Response::checked`].
pub(crate) const ROUNDING: &str = "double precision has too few digits for numbers of such different size";

/// The characteristic function `rho = e^{log}` of the interspike interval without its refractory part, and
/// the terms of spectra that depend on it. They lose no digits where `rho` is near 1.
pub(crate) struct Interval {
    log: Complex64,
    refractory_phase: f64,
}

impl Interval {
    pub(crate) fn new(log: Complex64, omega: f64, tau_r: f64) -> Self {
        Interval { log, refractory_phase: omega * tau_r }
    }

    /// `1 - |rho|^2`.
    pub(crate) fn one_minus_square(&self) -> f64 {
        -(2.0 * self.log.re).exp_m1()
    }

    /// `1 - rho`.
    pub(crate) fn one_minus(&self) -> Complex64 {
        one_minus_exp(self.log)
    }

    /// `1 - rho e^{i omega tau_r}`.
    pub(crate) fn one_minus_delayed(&self) -> Complex64 {
        one_minus_exp(self.log + Complex64::new(0.0, self.refractory_phase))
    }

    /// `(1 - |rho|^2) / |1 - rho e^{i omega tau_r}|^2`: the spectrum of a renewal
    /// process divided by its rate (Eqn. 8).
    pub(crate) fn relative_spectrum(&self) -> f64 {
        self.one_minus_square() / self.one_minus_delayed().norm_sqr()
    }
}

/// `1 - e^z`.
fn one_minus_exp(z: Complex64) -> Complex64 {
    let half = (0.5 * z.im).sin();
    let re = 2.0 * half * half - z.re.exp_m1() * z.im.cos();
    Complex64::new(re, -z.re.exp() * z.im.sin())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_minus_exp_keeps_small_parts() {
        let z = Complex64::new(-1e-16, 1e-8);
        let exact = Complex64::new(1e-16 + 0.5e-16, -1e-8);
        let ours = one_minus_exp(z);
        assert!((ours.re / exact.re - 1.0).abs() < 1e-7, "{ours}");
        assert!((ours.im / exact.im - 1.0).abs() < 1e-12, "{ours}");
    }
}
