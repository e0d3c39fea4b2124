//! Membrane time constants: one for a whole network, with exceptions for named hidden layers and the readout.

use crate::architecture::{Architecture, Layer, LayerKind};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A membrane time constant in steps, written as `30` or `inf`. It is infinite without leak.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tau(f64);

impl Tau {
    /// No leak: the IF neuron.
    pub const INFINITE: Tau = Tau(f64::INFINITY);

    /// The smallest accepted number of steps. At 1/64 of a step, 1e-28 of the membrane potential remains
    /// after one step, and powers of the decay still have finite logarithms in single precision.
    pub const SMALLEST: f64 = 1.0 / 64.0;

    /// Returns the time constant, or an error if `steps` is below [`Tau::SMALLEST`] or NaN.
    pub fn new(steps: f64) -> Result<Self, LeakError> {
        if steps >= Self::SMALLEST { Ok(Tau(steps)) } else { Err(LeakError::Tau(steps.to_string())) }
    }

    /// The number of steps.
    pub fn steps(self) -> f64 {
        self.0
    }

    /// Whether there is leak.
    pub fn leaks(self) -> bool {
        self.0.is_finite()
    }

    /// Membrane decay per step, `exp(-1/tau)`; 1 without leak.
    pub fn lambda(self) -> f64 {
        (-1.0 / self.0).exp()
    }
}

// A time constant is never NaN, so the order is total.
impl Eq for Tau {}

impl std::hash::Hash for Tau {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl Ord for Tau {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Tau {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Tau {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string())
    }
}

impl FromStr for Tau {
    type Err = LeakError;

    fn from_str(text: &str) -> Result<Self, LeakError> {
        let steps = text.trim().parse::<f64>().map_err(|_| LeakError::Tau(text.to_owned()))?;
        Tau::new(steps).map_err(|_| LeakError::Tau(text.to_owned()))
    }
}

/// The reason why a leak is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeakError {
    /// The time constant is not a number of at least 1/64.
    #[error("tau is {0}; it must be a number of steps of at least 1/64, or inf for no leak")]
    Tau(String),
    /// The network has no hidden layer of this name that can leak.
    #[error("layer_tau names '{name}', which is not one of the hidden layers that can leak: {known}")]
    Layer {
        /// The name.
        name: String,
        /// The hidden layers that can leak.
        known: String,
    },
    /// The text is not of the form `LAYER=TAU`.
    #[error("'{0}' is not of the form LAYER=TAU, such as conv1=5")]
    Assignment(String),
}

/// The leak of a network: `tau` in all layers, except hidden layers and a readout that have their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Leak {
    /// Time constant of every hidden conv and FC layer and of the output layer. Pool neurons never leak.
    pub tau: Tau,
    /// Time constants of the hidden layers that have their own, by name.
    pub layer_tau: BTreeMap<String, Tau>,
    /// Time constant of the output layer, if it has its own.
    pub readout_tau: Option<Tau>,
}

/// Changes to a leak. What is not set stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeakChange {
    /// Time constant of all layers; removes the exceptions of the original leak.
    pub tau: Option<Tau>,
    /// Time constants of named hidden layers.
    pub layer_tau: BTreeMap<String, Tau>,
    /// Time constant of the output layer.
    pub readout_tau: Option<Tau>,
}

impl Leak {
    /// The same leak everywhere.
    pub fn uniform(tau: Tau) -> Self {
        Leak { tau, layer_tau: BTreeMap::new(), readout_tau: None }
    }

    /// One time constant in all hidden layers and one in the readout.
    pub fn split(hidden: Tau, readout: Tau) -> Self {
        Leak { readout_tau: (hidden != readout).then_some(readout), ..Self::uniform(hidden) }
    }

    /// The time constant of a layer; pools have none.
    pub fn of(&self, layer: &Layer) -> Option<Tau> {
        match layer.kind {
            LayerKind::Pool => None,
            LayerKind::Output => Some(self.readout()),
            LayerKind::Conv | LayerKind::Full => {
                Some(self.layer_tau.get(&layer.name).copied().unwrap_or(self.tau))
            }
        }
    }

    /// The time constant of the output layer.
    pub fn readout(&self) -> Tau {
        self.readout_tau.unwrap_or(self.tau)
    }

    /// The time constant of all layers, if they have the same one.
    pub fn as_uniform(&self) -> Option<Tau> {
        let same = self.readout() == self.tau && self.layer_tau.values().all(|&tau| tau == self.tau);
        same.then_some(self.tau)
    }

    /// Refuses names that are not hidden conv or FC layers of the network.
    pub fn check(&self, architecture: &Architecture) -> Result<(), LeakError> {
        let known = || architecture.hidden().iter().filter(|layer| layer.kind != LayerKind::Pool);
        match self.layer_tau.keys().find(|name| known().all(|layer| layer.name != **name)) {
            None => Ok(()),
            Some(name) => Err(LeakError::Layer {
                name: name.clone(),
                known: known().map(|layer| layer.name.as_str()).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// This leak with the changes applied.
    pub fn changed(&self, change: &LeakChange) -> Leak {
        let mut leak = change.tau.map_or_else(|| self.clone(), Leak::uniform);
        leak.layer_tau.extend(change.layer_tau.iter().map(|(name, &tau)| (name.clone(), tau)));
        leak.readout_tau = change.readout_tau.or(leak.readout_tau);
        leak
    }
}

impl LeakChange {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        *self == LeakChange::default()
    }

    /// Sets the time constant of a layer, written as `conv1=5`.
    pub fn set_layer(&mut self, assignment: &str) -> Result<(), LeakError> {
        let refused = || LeakError::Assignment(assignment.to_owned());
        let (name, tau) = assignment.split_once('=').ok_or_else(refused)?;
        self.layer_tau.insert(name.trim().to_owned(), tau.parse()?);
        Ok(())
    }
}

impl fmt::Display for Leak {
    /// `30`, or `inf, conv1 5, readout 30`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.tau.to_string();
        for (name, tau) in &self.layer_tau {
            text.push_str(&format!(", {name} {tau}"));
        }
        if let Some(tau) = self.readout_tau {
            text.push_str(&format!(", readout {tau}"));
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tau(steps: f64) -> Tau {
        Tau::new(steps).unwrap()
    }

    #[test]
    fn time_constants() {
        assert_eq!(Tau::INFINITE.lambda(), 1.0);
        assert_eq!(tau(30.0).to_string(), "30");
        assert_eq!("inf".parse(), Ok(Tau::INFINITE));
        for text in ["0", "-3", "nan", "0.001", "much"] {
            let message = text.parse::<Tau>().unwrap_err().to_string();
            assert!(message.contains(text) && message.contains("inf for no leak"), "{message}");
        }
        assert!(tau(5.0) < tau(30.0) && tau(30.0) < Tau::INFINITE);
    }

    #[test]
    fn exceptions_by_layer() {
        let architecture = Architecture::parse("1x8x8-4C3-2P-6FC-3o").unwrap();
        let mut change = LeakChange { readout_tau: Some(Tau::INFINITE), ..Default::default() };
        change.set_layer("conv1=5").unwrap();
        let leak = Leak::uniform(tau(30.0)).changed(&change);
        leak.check(&architecture).unwrap();
        let of: Vec<Option<Tau>> = architecture.layers().iter().map(|layer| leak.of(layer)).collect();
        assert_eq!(of, [Some(tau(5.0)), None, Some(tau(30.0)), Some(Tau::INFINITE)]);
        assert_eq!(leak.to_string(), "30, conv1 5, readout inf");
        assert_eq!(leak.as_uniform(), None);
        assert_eq!(Leak::split(tau(5.0), tau(5.0)).as_uniform(), Some(tau(5.0)));
        // A new tau for all layers removes all old exceptions.
        let again = leak.changed(&LeakChange { tau: Some(tau(7.0)), ..Default::default() });
        assert_eq!(again, Leak::uniform(tau(7.0)));
        for name in ["conv2", "pool1", "fc2"] {
            let mut change = LeakChange::default();
            change.set_layer(&format!("{name}=5")).unwrap();
            let message =
                Leak::uniform(tau(30.0)).changed(&change).check(&architecture).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains("conv1, fc1"), "{message}");
        }
        assert!(LeakChange::default().set_layer("conv1").is_err());
    }
}
