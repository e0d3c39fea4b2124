//! Event-driven simulation and training of spiking neural networks: encoding and noise,
//! forward and backward passes, optimisers.
//!
//! There is no disk access, clock or global state: everything that a function depends on is an argument.
//!
//! ```
//! use leaklab_engine::*;
//!
//! let architecture = Architecture::parse("1x4x4-8C3-2P-3o").unwrap();
//! let leak = Leak::uniform(Tau::new(30.0).unwrap());
//! let network = Network::initialised(architecture, leak, 1.0, 7).unwrap();
//! let packed = Packed::new(&network, Isa::best()).unwrap();
//! let all = vec![1.0; 20 * 16];
//! let shape = network.architecture.input();
//! let show = |_: usize, input: &mut Input| *input = Input::from_values(shape, 20, &all);
//! let classes = infer(&packed, 20, 2, &Scratch::default(), show, |_, trace| trace.class()).unwrap();
//! assert_eq!(classes[0], classes[1]);
//! ```
#![deny(unsafe_code)]

pub mod architecture;
pub mod batch;
pub mod encode;
mod events;
mod gradient;
mod layer;
pub mod masks;
pub mod network;
pub mod neuron;
pub mod noise;
pub mod optimiser;
pub mod packed;
pub mod philox;
pub mod shares;
pub mod simd;
pub mod spikes;
pub mod trace;

pub use architecture::{Architecture, Layer, LayerKind, NotationError, Parameter};
pub use batch::{InputError, Scratch, infer, train_batch};
pub use gradient::UnknownGradient;
pub use masks::{Mask, MaskError, Masks};
pub use network::{Network, NetworkError, first_not_finite};
pub use neuron::{Leak, LeakChange, LeakError, Neuron, ReadoutDivisor, Tau, UnknownDivisor};
pub use optimiser::Optimiser;
pub use packed::{Gradient, Packed};
pub use shares::{Place, SharedBatch};
pub use simd::Isa;
pub use spikes::{Input, Shape, Spikes};
pub use trace::Trace;
