//! A spiking network, event by event: spikes, encoding and noise, forward, backward, optimiser.
//!
//! No disk, no clock, no global state: everything a function depends on is an argument.
#![deny(unsafe_code)]

pub mod encode;
pub mod noise;
pub mod philox;
pub mod simd;
pub mod spikes;

pub use simd::Isa;
pub use spikes::{Input, Shape, Spikes};
