//! A network: its layers, their neurons and its weights in one flat array.

use crate::architecture::{Architecture, Parameter};
use crate::neuron::{Leak, LeakError, Neuron, ReadoutDivisor};
use crate::philox::{Purpose, Stream};

/// Layers, neurons and weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// The layers.
    pub architecture: Architecture,
    leak: Leak,
    readout_divisor: ReadoutDivisor,
    v_th: f32,
    /// All weights, at the offsets that [`Architecture::parameters`] defines.
    pub weights: Vec<f32>,
}

/// The reason why a network or one of its parts is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// The leak does not fit the network.
    #[error(transparent)]
    Leak(#[from] LeakError),
    /// The threshold is not positive.
    #[error("v_th is {0}; it must be a positive number")]
    Threshold(f32),
    /// The network has no tensor of this name.
    #[error("the network has no weights named '{name}'; it has {expected}")]
    UnknownTensor {
        /// The requested name.
        name: String,
        /// The names of the network's tensors.
        expected: String,
    },
    /// A tensor is missing from a set of weights.
    #[error("weights '{0}' are missing")]
    MissingTensor(String),
    /// A tensor has the wrong shape.
    #[error("weights '{name}' have shape {found:?}; the network needs {expected:?}")]
    WrongShape {
        /// The tensor.
        name: String,
        /// Its shape.
        found: Vec<usize>,
        /// The required shape.
        expected: Vec<usize>,
    },
    /// A weight is NaN or infinite.
    #[error("weights '{name}' hold {value} at element {element}; weights must be finite")]
    NonFinite {
        /// The tensor.
        name: String,
        /// Flat index within it.
        element: usize,
        /// The value.
        value: f32,
    },
}

impl Network {
    /// A network whose weights are zero, and whose output is divided by the number of steps.
    pub fn new(architecture: Architecture, leak: Leak, v_th: f32) -> Result<Self, NetworkError> {
        leak.check(&architecture)?;
        if !(v_th.is_finite() && v_th > 0.0) {
            return Err(NetworkError::Threshold(v_th));
        }
        let weights = vec![0.0; architecture.parameter_count()];
        let readout_divisor = ReadoutDivisor::default();
        Ok(Network { architecture, leak, readout_divisor, v_th, weights })
    }

    /// The leak of the network.
    pub fn leak(&self) -> &Leak {
        &self.leak
    }

    /// Threshold of the hidden conv and FC layers.
    pub fn v_th(&self) -> f32 {
        self.v_th
    }

    /// What the potential of the output after the last step is divided by.
    pub fn readout_divisor(&self) -> ReadoutDivisor {
        self.readout_divisor
    }

    /// The same weights, with an output that is divided by something else. The predicted classes do not
    /// depend on it; errors and gradients do.
    pub fn with_readout_divisor(self, readout_divisor: ReadoutDivisor) -> Self {
        Network { readout_divisor, ..self }
    }

    /// The same weights with another leak.
    pub fn with_leak(mut self, leak: Leak) -> Result<Self, NetworkError> {
        leak.check(&self.architecture)?;
        self.leak = leak;
        Ok(self)
    }

    /// The neurons of layer number `layer`, counted from 0; `None` for a pool,
    /// whose neurons have no such parameters.
    pub fn neuron(&self, layer: usize) -> Option<Neuron> {
        let tau = self.leak.of(&self.architecture.layers()[layer])?;
        Some(Neuron { tau, v_th: self.v_th })
    }

    /// The neurons of all layers; `None` for a pool.
    pub fn neurons(&self) -> Vec<Option<Neuron>> {
        (0..self.architecture.layers().len()).map(|layer| self.neuron(layer)).collect()
    }

    /// A network with normal initial weights of standard deviation `sqrt(2 / fan_in)` (specification,
    /// section 1).
    pub fn initialised(
        architecture: Architecture,
        leak: Leak,
        v_th: f32,
        seed: u64,
    ) -> Result<Self, NetworkError> {
        let mut network = Self::new(architecture, leak, v_th)?;
        for (index, parameter) in network.architecture.parameters().iter().enumerate() {
            let deviation = (2.0 / parameter.fan_in as f64).sqrt() as f32;
            let weights = &mut network.weights[parameter.offset..parameter.offset + parameter.len];
            Stream::new(seed, Purpose::Initialise, 0, index as u32).normals(weights);
            weights.iter_mut().for_each(|w| *w *= deviation);
        }
        Ok(network)
    }

    fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.architecture.parameters().iter().find(|p| p.name == name)
    }

    /// The weights of a layer.
    pub fn tensor(&self, name: &str) -> Option<&[f32]> {
        self.parameter(name).map(|p| &self.weights[p.offset..p.offset + p.len])
    }

    /// Replaces the weights of a layer.
    pub fn set_tensor(&mut self, name: &str, shape: &[usize], values: &[f32]) -> Result<(), NetworkError> {
        let Some(parameter) = self.parameter(name).cloned() else {
            let expected: Vec<&str> =
                self.architecture.parameters().iter().map(|p| p.name.as_str()).collect();
            return Err(NetworkError::UnknownTensor { name: name.to_owned(), expected: expected.join(", ") });
        };
        if parameter.shape != shape || parameter.len != values.len() {
            return Err(NetworkError::WrongShape {
                name: name.to_owned(),
                found: shape.to_vec(),
                expected: parameter.shape,
            });
        }
        check_finite(name, values)?;
        self.weights[parameter.offset..parameter.offset + parameter.len].copy_from_slice(values);
        Ok(())
    }

    /// Replaces all weights by named tensors. All tensors of the network must be given, and no others.
    pub fn set_tensors<'a>(
        &mut self,
        tensors: impl IntoIterator<Item = (&'a str, &'a [usize], &'a [f32])>,
    ) -> Result<(), NetworkError> {
        let mut missing: Vec<String> =
            self.architecture.parameters().iter().map(|p| p.name.clone()).collect();
        for (name, shape, values) in tensors {
            self.set_tensor(name, shape, values)?;
            missing.retain(|n| n != name);
        }
        missing.into_iter().next().map_or(Ok(()), |name| Err(NetworkError::MissingTensor(name)))
    }

    /// Refuses NaN and infinite weights.
    pub fn check(&self) -> Result<(), NetworkError> {
        for p in self.architecture.parameters() {
            check_finite(&p.name, &self.weights[p.offset..p.offset + p.len])?;
        }
        Ok(())
    }
}

/// Index of the first value that is NaN or infinite.
pub fn first_not_finite(values: &[f32]) -> Option<usize> {
    // There is no early exit within a piece, so that it compiles to a few vector operations.
    let suspect = |piece: &&[f32]| !piece.iter().fold(true, |all, x| all & x.is_finite());
    let piece = values.chunks(1024).position(|piece| suspect(&piece))?;
    values[1024 * piece..].iter().position(|x| !x.is_finite()).map(|i| 1024 * piece + i)
}

fn check_finite(name: &str, values: &[f32]) -> Result<(), NetworkError> {
    match first_not_finite(values) {
        Some(element) => {
            Err(NetworkError::NonFinite { name: name.to_owned(), element, value: values[element] })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neuron::Tau;

    fn initialised(notation: &str) -> Network {
        let leak = Leak::uniform(Tau::new(30.0).unwrap());
        Network::initialised(Architecture::parse(notation).unwrap(), leak, 1.0, 7).unwrap()
    }

    fn network() -> Network {
        initialised("1x4x4-12FC-9FC-3o")
    }

    #[test]
    fn weights_have_the_stated_deviation() {
        let network = initialised("1x16x16-400FC-3o");
        let w = network.tensor("fc1").unwrap();
        let mean = w.iter().map(|&x| f64::from(x)).sum::<f64>() / w.len() as f64;
        let variance = w.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / w.len() as f64;
        let expected = 2.0 / 256.0;
        // Five standard errors: of a mean sqrt(v/n), of a normal's variance v*sqrt(2/n).
        assert!(mean.abs() < 5.0 * (expected / w.len() as f64).sqrt(), "mean {mean}");
        assert!(
            (variance / expected - 1.0).abs() < 5.0 * (2.0 / w.len() as f64).sqrt(),
            "variance {variance}"
        );
        assert_ne!(network.tensor("fc1").unwrap()[..3], network.tensor("fc2").unwrap()[..3]);
    }

    #[test]
    fn faults_name_the_tensor() {
        let mut net = network();
        let message = |r: Result<(), NetworkError>| r.unwrap_err().to_string();
        assert!(message(net.set_tensor("conv1", &[1], &[0.0])).contains("'conv1'"));
        assert!(message(net.set_tensor("fc3", &[9, 3], &[0.0; 27])).contains("[3, 9]"));
        let mut values = [0.0; 27];
        values[4] = f32::NAN;
        assert!(message(net.set_tensor("fc3", &[3, 9], &values)).contains("'fc3' hold NaN at element 4"));
        assert!(
            message(net.set_tensors([("fc3", &[3, 9][..], &[0.0; 27][..])])).contains("'fc1' are missing")
        );
        net.weights[200] = f32::INFINITY;
        assert!(message(net.check()).contains("'fc2'"));
        for v_th in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let leak = Leak::uniform(Tau::INFINITE);
            assert!(message(Network::new(net.architecture.clone(), leak, v_th).map(drop)).contains("v_th"));
        }
    }
}
