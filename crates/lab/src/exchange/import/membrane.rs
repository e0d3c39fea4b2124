//! Converts a neuron node to LeakLab's constants: gain, time constant in steps, and threshold.

use super::super::export::DT;
use super::super::nir::{Array, Node};
use super::{ExchangeError, ImportOptions, unmapped};
use leaklab_engine::neuron::nir::steps;
use leaklab_engine::{Architecture, LayerKind, Leak, LeakError, Tau};

/// A neuron. The threshold is infinite if it never fires.
pub struct Membrane {
    /// Change of the potential in a step per unit of input.
    pub gain: f64,
    /// Time constant in steps.
    pub tau: f64,
    pub threshold: f64,
}

impl Membrane {
    /// Reads the neuron of a layer of this shape.
    pub fn read(
        options: &ImportOptions,
        name: &str,
        node: &Node,
        shape: &[usize],
    ) -> Result<Membrane, ExchangeError> {
        let neuron = Neuron { options, name, shape };
        Ok(match node {
            Node::If { r, v_threshold, v_reset } => {
                neuron.zero("v_reset", v_reset)?;
                let threshold = neuron.threshold(v_threshold)?;
                Membrane { gain: neuron.gain_of_if(node, r)?, tau: f64::INFINITY, threshold }
            }
            Node::I { r } => {
                let gain = neuron.gain_of_if(node, r)?;
                Membrane { gain, tau: f64::INFINITY, threshold: f64::INFINITY }
            }
            Node::Lif { tau, r, v_leak, v_threshold, v_reset } => {
                neuron.zero("v_leak", v_leak)?;
                neuron.zero("v_reset", v_reset)?;
                let (tau, gain) = neuron.leak(neuron.one("tau", tau)?, neuron.one("r", r)?)?;
                Membrane { gain, tau, threshold: neuron.threshold(v_threshold)? }
            }
            Node::Li { tau, r, v_leak } => {
                neuron.zero("v_leak", v_leak)?;
                let (tau, gain) = neuron.leak(neuron.one("tau", tau)?, neuron.one("r", r)?)?;
                Membrane { gain, tau, threshold: f64::INFINITY }
            }
            Node::Input { .. }
            | Node::Output { .. }
            | Node::Conv2d { .. }
            | Node::Linear { .. }
            | Node::Affine { .. }
            | Node::Pool2d { .. }
            | Node::Flatten { .. }
            | Node::Other(_) => {
                return Err(unmapped(name, format!("it is a {} where a neuron is expected", node.kind())));
            }
        })
    }
}

/// A neuron node to be read.
struct Neuron<'a> {
    options: &'a ImportOptions,
    name: &'a str,
    shape: &'a [usize],
}

impl Neuron<'_> {
    /// The value that all neurons of the layer share.
    fn one(&self, field: &str, array: &Array) -> Result<f64, ExchangeError> {
        if array.shape != self.shape && array.values.len() != 1 {
            let reason = format!("'{field}' has shape {:?}, but the layer has {:?}", array.shape, self.shape);
            return Err(unmapped(self.name, reason));
        }
        array.uniform().ok_or_else(|| {
            let reason = format!("'{field}' differs from neuron to neuron; one value per layer is expected");
            unmapped(self.name, reason)
        })
    }

    fn zero(&self, field: &str, array: &Array) -> Result<(), ExchangeError> {
        match self.one(field, array)? {
            0.0 => Ok(()),
            value => {
                let reason = format!("'{field}' is {value}; LeakLab's neurons rest and reset at 0");
                Err(unmapped(self.name, reason))
            }
        }
    }

    fn threshold(&self, array: &Array) -> Result<f64, ExchangeError> {
        match self.one("v_threshold", array)? {
            value if value > 0.0 => Ok(value),
            value => {
                let reason = format!("'v_threshold' is {value}; a positive number is expected");
                Err(unmapped(self.name, reason))
            }
        }
    }

    fn gain_of_if(&self, node: &Node, r: &Array) -> Result<f64, ExchangeError> {
        match self.one("r", r)? {
            r if r as f32 == self.options.if_r as f32 => Ok(1.0),
            r => Err(unmapped(
                self.name,
                format!(
                    "r is {r}, and tools differ in what an {} adds to its potential in a step (r I or \
                     r I dt); give the r that means a gain of 1 with --if-r",
                    node.kind()
                ),
            )),
        }
    }

    /// Time constant in steps, and the gain `r dt/tau`.
    fn leak(&self, tau: f64, r: f64) -> Result<(f64, f64), ExchangeError> {
        let dt = self.options.dt.unwrap_or(DT);
        let steps = steps(tau, dt).ok_or_else(|| {
            unmapped(self.name, format!("tau is {tau}; it must be longer than the step, {dt} (--dt)"))
        })?;
        let gain = r * dt / tau;
        // tau and r are float32, so a gain of 1 may be off by a few rounding errors.
        if (gain - 1.0).abs() < 1e-6 {
            return Ok((steps, 1.0));
        }
        if self.options.dt.is_none() || !(gain > 0.0 && gain.is_finite()) {
            return Err(unmapped(
                self.name,
                format!(
                    "r dt/tau is {gain} for dt = {dt}; NIR does not state the length of a step: give it \
                     with --dt"
                ),
            ));
        }
        Ok((steps, gain))
    }
}

/// Time constants of the layers, in steps.
#[derive(Default)]
pub struct LayerLeaks {
    /// Time constants of the hidden layers, in order.
    pub hidden: Vec<f64>,
    /// Time constant of the output layer.
    pub readout: Option<f64>,
}

impl LayerLeaks {
    /// The leak of the network: that of the first hidden layer, with separate values for the layers and the
    /// readout that differ from it.
    pub fn of_network(&self, architecture: &Architecture) -> Result<Leak, LeakError> {
        let Some(&first) = self.hidden.first() else { return Ok(Leak::uniform(Tau::INFINITE)) };
        let mut leak = Leak::uniform(Tau::new(first)?);
        let layers = architecture.hidden().iter().filter(|layer| layer.kind != LayerKind::Pool);
        for (layer, &steps) in layers.zip(&self.hidden).filter(|(_, steps)| **steps != first) {
            leak.layer_tau.insert(layer.name.clone(), Tau::new(steps)?);
        }
        if let Some(steps) = self.readout.filter(|&steps| steps != first) {
            leak.readout_tau = Some(Tau::new(steps)?);
        }
        Ok(leak)
    }
}
