//! Neurons: the leak of each layer, and how a neuron responds to its input.
//!
//! Leak acts in every hidden layer and in the readout. It can be set separately for each ([`Leak`]), in order
//! to find out where it matters. Weights can be run with another leak than the one they were trained with;
//! only the membrane's decay changes then.
//!
//! Each neuron model is one module: [`spiking`] (conv and fully connected layers) and [`readout`] (the output
//! layer). Pools, whose membrane potential is a count of quarters, are in `layer/pool.rs`. [`nir`] converts
//! time constants to NIR, a file format for exchange with other tools, and back.

mod leak;
pub mod nir;
pub mod readout;
pub mod spiking;

pub use leak::{Leak, LeakChange, LeakError, Tau};
pub use readout::{ReadoutDivisor, UnknownDivisor};

/// The parameters of one layer's neurons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neuron {
    /// Membrane time constant.
    pub tau: Tau,
    /// Threshold; the output layer never fires and does not use it.
    pub v_th: f32,
}

impl Neuron {
    /// Membrane decay per step, `exp(-1/tau)`; 1 for the IF neuron.
    pub fn lambda(self) -> f64 {
        self.tau.lambda()
    }
}
