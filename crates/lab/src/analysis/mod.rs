//! Every measurement of the paper, on any trained run.

pub mod periodogram;
pub mod statistics;
