//! One spiking neuron as equations: firing rate, spectra, coherence and the simulation beside them.
//!
//! The neuron is `dv/dt = f(v) + mu + sqrt(2D) xi(t)` with threshold 1 and reset 0 (the reset and threshold
//! of the nonlinear models are their own), time in units of the membrane time constant, `omega` angular and
//! the Fourier sign `e^{+i omega t}`. Its output is the spike train `x`, its stimulus `s = sqrt(2 D_st)
//! xi_st`, and spectra are two-sided, so that `S_ss = 2 D_st`.
//!
//! | file | what it knows |
//! | --- | --- |
//! | [`drive`] | the input: mean, stimulus, background noise, refractory time; and what is wrong with one |
//! | [`response`] | what comes out at one frequency |
//! | [`lif`] | `f(v) = -v`, exactly, by parabolic cylinder functions |
//! | [`integrator`] | `f(v) = 0`, the neuron without leak, in closed form |
//! | [`threshold`] | any `f(v)`: exponential, quadratic, or your own, by threshold integration |
//! | [`neuron`] | the four models behind one type |
//! | [`units`] | ohm, farad and ampere to `mu` and `D`, and back |
//! | [`simulate`], [`estimate`] | the same neuron simulated, and spectra estimated from it |
//! | [`information`] | the lower bound of the information rate |
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
