//! Neurons: how much each layer leaks, and what a neuron does with its input.
//!
//! Leak acts in every hidden layer and in the readout, and each place can be set alone ([`Leak`]): that is
//! how one finds out which of them matters. Weights can be run with another leak than they were trained with;
//! nothing but the membrane's decay changes.
//!
//! Each neuron rule is one module that knows all of it: [`spiking`] (conv and fully connected layers),
//! [`readout`] (the output layer); pools, whose membrane is a count of quarters, are in `layer/pool.rs`.
//! [`nir`] is their form in files of other tools.

mod leak;
pub mod nir;
pub mod readout;
pub mod spiking;

pub use leak::{Leak, LeakChange, LeakError, Tau};

/// The constants of one layer's neurons.
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
