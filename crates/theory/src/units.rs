//! Conversion of ohm, farad and ampere to `mu` and `D`, and of results to hertz.
//!
//! Two neurons can only be compared on a common axis. `omega` is in units of each neuron's own inverse
//! membrane time constant, so the same `omega` means different frequencies for two neurons with
//! different leak. Hertz means the same for both.

use crate::drive::{Drive, ParameterError, require};
use std::f64::consts::TAU;

/// A membrane and its input in physical units (any consistent set; the names are those of SI).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Membrane {
    /// Leak resistance `R` in ohm; unused for the IF neuron, which has none.
    pub resistance: f64,
    /// Capacitance `C` in farad.
    pub capacitance: f64,
    /// Mean input current `I` in ampere.
    pub current: f64,
    /// Intensity `D_I` of the current noise, `<dI(t) dI(t')> = 2 D_I delta(t - t')`, in ampere^2 second.
    pub current_noise: f64,
    /// Intensity of background current noise that is not part of the stimulus, in ampere^2 second; 0 if there
    /// is none.
    pub background_noise: f64,
    /// Distance `V = V_th - U_rest` from rest to threshold in volt.
    pub gap: f64,
}

/// The units of a dimensionless neuron in physical units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Seconds per unit of time: the membrane time constant, or one second for IF.
    pub time: f64,
    /// `mu` per ampere.
    pub drive_per_current: f64,
}

impl Scale {
    /// No conversion, for dimensionless neurons.
    pub const DIMENSIONLESS: Scale = Scale { time: 1.0, drive_per_current: 1.0 };

    /// Angular frequency of the dimensionless neuron at `f` hertz, `omega = 2 pi f time`.
    pub fn omega(&self, frequency: f64) -> f64 {
        TAU * frequency * self.time
    }

    /// Frequency in hertz of a dimensionless angular frequency.
    pub fn frequency(&self, omega: f64) -> f64 {
        omega / (TAU * self.time)
    }

    /// A rate or a spike-train spectrum in hertz.
    pub fn rate(&self, rate: f64) -> f64 {
        rate / self.time
    }

    /// A susceptibility, per unit of `mu`, as hertz per ampere.
    pub fn per_current(&self) -> f64 {
        self.drive_per_current / self.time
    }
}

impl Membrane {
    /// The leaky neuron: `tau = R C`, `mu = R I / V`, `D = D_I R / (C V^2)` (Eqns. e and f of the
    /// supplement).
    pub fn leaky(&self) -> Result<(Drive, Scale), ParameterError> {
        self.check()?;
        let r = self.resistance;
        if r.is_nan() || r <= 0.0 {
            return Err(ParameterError::Range {
                name: "R",
                value: r,
                expected: "a finite number above 0; a membrane without leak is the model if",
            });
        }
        let scale = Scale { time: r * self.capacitance, drive_per_current: r / self.gap };
        let noise = r / self.capacitance / self.gap / self.gap;
        let mu = r * self.current / self.gap;
        Ok((self.drive(mu, noise, "R must be finite; for a membrane without leak use the model if")?, scale))
    }

    /// The perfect integrator, time in seconds: `mu = I / (C V)`, `D = D_I / (C V)^2`.
    pub fn perfect(&self) -> Result<(Drive, Scale), ParameterError> {
        self.check()?;
        let charge = self.capacitance * self.gap;
        let scale = Scale { time: 1.0, drive_per_current: charge.recip() };
        let noise = charge.recip() / charge;
        Ok((self.drive(self.current / charge, noise, "C V must be larger")?, scale))
    }

    fn check(&self) -> Result<(), ParameterError> {
        require("C", self.capacitance, |x| x > 0.0, "a finite number above 0")?;
        require("V", self.gap, |x| x > 0.0, "a finite number above 0 (threshold minus rest)")?;
        require("I", self.current, |_| true, "a finite number")?;
        require("D_I", self.current_noise, |x| x > 0.0, "a finite number above 0")?;
        require("D_bg", self.background_noise, |x| x >= 0.0, "a finite number, 0 or more")?;
        Ok(())
    }

    /// The drive of mean `mu` whose noise is `noise` times that of the current.
    fn drive(&self, mu: f64, noise: f64, hint: &'static str) -> Result<Drive, ParameterError> {
        let (d_st, d_bg) = (self.current_noise * noise, self.background_noise * noise);
        for (name, value, right) in
            [("mu", mu, mu.is_finite()), ("D", d_st + d_bg, (d_st + d_bg).is_finite() && d_st > 0.0)]
        {
            if !right {
                let given = format!(
                    "R = {}, C = {}, I = {}, D_I = {}, V = {}",
                    self.resistance, self.capacitance, self.current, self.current_noise, self.gap
                );
                return Err(ParameterError::NotFinite { given, name, value, hint });
            }
        }
        Drive::with_background(mu, d_st, d_bg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: Membrane = Membrane {
        resistance: 1e8,
        capacitance: 2e-10,
        current: 3e-10,
        current_noise: 1e-23,
        background_noise: 0.0,
        gap: 0.02,
    };

    #[test]
    fn a_cell_of_twenty_milliseconds() {
        let (drive, scale) = CELL.leaky().unwrap();
        assert!((scale.time - 0.02).abs() < 1e-15);
        assert!((drive.mu() - 1.5).abs() < 1e-12);
        assert!((drive.d() - 1e-23 * 1e8 / (2e-10 * 4e-4)).abs() < 1e-12);
        assert!((scale.frequency(scale.omega(7.0)) - 7.0).abs() < 1e-12);
        let (drive, scale) = CELL.perfect().unwrap();
        assert!((drive.mu() - 75.0).abs() < 1e-9 && scale.time == 1.0);
        assert!((drive.d() * 1.6 - 1.0).abs() < 1e-9, "{}", drive.d());
        let noisy = Membrane { background_noise: 3e-23, ..CELL }.leaky().unwrap().0;
        assert!((noisy.share() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn no_leak_needs_another_model() {
        for resistance in [f64::INFINITY, f64::NAN, 0.0, -1.0] {
            let error = Membrane { resistance, ..CELL }.leaky().unwrap_err().to_string();
            assert!(error.contains("model if"), "{error}");
            assert!(Membrane { resistance, ..CELL }.perfect().is_ok());
        }
        assert!(Membrane { gap: 0.0, ..CELL }.leaky().is_err());
        assert!(Membrane { current: f64::NAN, ..CELL }.perfect().is_err());
    }
}
