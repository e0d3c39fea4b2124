//! One type for the four models, so that commands, figures and simulations do not depend on the model.

use crate::drive::{Drive, ParameterError, require};
use crate::integrator::Integrator;
use crate::lif::Lif;
use crate::response::Response;
use crate::threshold::ThresholdIntegration;

/// A neuron model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// Leaky integrate-and-fire.
    Lif,
    /// Perfect integrate-and-fire: no leak.
    If,
    /// Exponential integrate-and-fire.
    Eif,
    /// Quadratic integrate-and-fire.
    Qif,
}

impl Model {
    /// All models, in the order in which users see them.
    pub const ALL: [Model; 4] = [Model::Lif, Model::If, Model::Eif, Model::Qif];

    /// Name in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Model::Lif => "lif",
            Model::If => "if",
            Model::Eif => "eif",
            Model::Qif => "qif",
        }
    }
}

/// The part `f(v)` of the drift `f(v) + mu` that depends on the membrane potential.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drift {
    /// `f = 0`.
    None,
    /// `f = -v`.
    Leak,
    /// `f = -v + delta e^{(v-1)/delta}`: leak, and an upstroke that starts near 1 without further input.
    Exponential {
        /// Width of the spike's onset.
        delta: f64,
    },
    /// `f = v^2`.
    Quadratic,
}

impl Drift {
    /// `f(v)`.
    #[inline]
    pub fn value(self, v: f64) -> f64 {
        match self {
            Drift::None => 0.0,
            Drift::Leak => -v,
            Drift::Exponential { delta } => -v + delta * ((v - 1.0) / delta).exp(),
            Drift::Quadratic => v * v,
        }
    }

    /// `f'(v)`.
    #[inline]
    pub fn slope(self, v: f64) -> f64 {
        match self {
            Drift::None => 0.0,
            Drift::Leak => -1.0,
            Drift::Exponential { delta } => -1.0 + ((v - 1.0) / delta).exp(),
            Drift::Quadratic => 2.0 * v,
        }
    }
}

/// Shape of the nonlinear models; the linear models have threshold 1 and reset 0 by definition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Width of the exponential neuron's onset.
    pub delta: f64,
    /// Potential at which a spike is counted; by default `1 + 10 delta` (exponential) or 50 (quadratic), so
    /// high that the membrane reaches it without further input.
    pub threshold: Option<f64>,
    /// Potential after a spike; by default 0 (exponential) or -50 (quadratic).
    pub reset: Option<f64>,
}

impl Default for Shape {
    fn default() -> Self {
        Shape { delta: 0.1, threshold: None, reset: None }
    }
}

#[derive(Debug, Clone)]
enum Solution {
    Lif(Lif),
    If(Integrator),
    Threshold(ThresholdIntegration),
}

/// A neuron of any model under a given drive.
#[derive(Debug, Clone)]
pub struct Neuron {
    drive: Drive,
    drift: Drift,
    threshold: f64,
    reset: f64,
    solution: Solution,
}

impl Neuron {
    /// Solves the stationary state of a model; `shape` affects only the nonlinear ones.
    pub fn new(model: Model, drive: Drive, shape: Shape) -> Result<Self, ParameterError> {
        let linear = |drift, solution| Neuron { drive, drift, threshold: 1.0, reset: 0.0, solution };
        let (drift, threshold, reset) = match model {
            Model::Lif => return Ok(linear(Drift::Leak, Solution::Lif(Lif::new(drive)))),
            Model::If => return Ok(linear(Drift::None, Solution::If(Integrator::new(drive)?))),
            Model::Eif => {
                let delta = require("delta", shape.delta, |x| x > 0.0, "a finite number above 0")?;
                (
                    Drift::Exponential { delta },
                    shape.threshold.unwrap_or(1.0 + 10.0 * delta),
                    shape.reset.unwrap_or(0.0),
                )
            }
            Model::Qif => (Drift::Quadratic, shape.threshold.unwrap_or(50.0), shape.reset.unwrap_or(-50.0)),
        };
        let solution = ThresholdIntegration::new(drive, |v| drift.value(v), threshold, reset)?;
        Ok(Neuron { drive, drift, threshold, reset, solution: Solution::Threshold(solution) })
    }

    /// The drive.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }
    /// The part of the drift that depends on the membrane potential.
    pub fn drift(&self) -> Drift {
        self.drift
    }
    /// Potential at which a spike is counted.
    pub fn threshold(&self) -> f64 {
        self.threshold
    }
    /// Potential after a spike.
    pub fn reset(&self) -> f64 {
        self.reset
    }

    /// Firing rate.
    pub fn rate(&self) -> f64 {
        match &self.solution {
            Solution::Lif(n) => n.rate(),
            Solution::If(n) => n.rate(),
            Solution::Threshold(n) => n.rate(),
        }
    }

    /// Natural logarithm of the rate, finite also where the rate underflows.
    pub fn log_rate(&self) -> f64 {
        match &self.solution {
            Solution::Lif(n) => n.log_rate(),
            Solution::If(n) => n.rate().ln(),
            Solution::Threshold(n) => n.log_rate(),
        }
    }

    /// Coefficient of variation of the interspike interval.
    pub fn cv(&self) -> f64 {
        match &self.solution {
            Solution::Lif(n) => n.cv(),
            Solution::If(n) => n.cv(),
            Solution::Threshold(n) => n.cv(),
        }
    }

    /// Slope of the rate, `dr0/dmu`.
    pub fn gain(&self) -> f64 {
        match &self.solution {
            Solution::Lif(n) => n.gain(),
            Solution::If(n) => n.gain(),
            Solution::Threshold(n) => n.gain(),
        }
    }

    /// Spectra at angular frequency `omega >= 0`.
    pub fn response(&self, omega: f64) -> Result<Response, ParameterError> {
        match &self.solution {
            Solution::Lif(n) => n.response(omega),
            Solution::If(n) => n.response(omega),
            Solution::Threshold(n) => n.response(omega),
        }
    }
}
