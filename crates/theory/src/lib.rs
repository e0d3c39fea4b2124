//! The theory of a single spiking neuron: firing rate, spectra and coherence,
//! and a simulation to compare them with.
//!
//! The neuron is `dv/dt = f(v) + mu + sqrt(2D) xi(t)` with threshold 1 and reset 0; the nonlinear models have
//! a threshold and reset of their own. Time is in units of the membrane time constant, `omega` is an angular
//! frequency, and the Fourier sign is `e^{+i omega t}`. The output is the spike train `x`, and the stimulus
//! is `s = sqrt(2 D_st) xi_st`. Spectra are two-sided, so that `S_ss = 2 D_st`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`drive`] | the input: mean, stimulus, background noise, refractory time; and errors in parameters |
//! | [`response`] | spectra and coherence at one frequency |
//! | [`lif`] | `f(v) = -v`, solved exactly by parabolic cylinder functions |
//! | [`integrator`] | `f(v) = 0`, the neuron without leak, in closed form |
//! | [`threshold`] | any `f(v)` (exponential, quadratic or your own), by threshold integration |
//! | [`neuron`] | one type for the four models |
//! | [`units`] | conversion of ohm, farad and ampere to `mu` and `D`, and back |
//! | [`simulate`], [`estimate`] | simulation of the same neuron, and spectra estimated from it |
//! | [`information`] | a lower bound of the information rate |
#![forbid(unsafe_code)]

pub mod drive;
pub mod estimate;
pub mod information;
pub mod integrator;
pub mod lif;
pub mod neuron;
mod parabolic;
mod philox;
mod quadrature;
pub mod response;
pub mod simulate;
mod stepper;
pub mod threshold;
pub mod units;

pub use drive::{Drive, ParameterError};
pub use integrator::Integrator;
pub use lif::Lif;
pub use neuron::{Drift, Model, Neuron};
pub use num_complex::Complex64;
pub use response::Response;
