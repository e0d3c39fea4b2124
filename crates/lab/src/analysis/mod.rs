//! Every measurement of the paper, on any trained run.

pub mod claims;
pub mod compare;
pub mod energy;
pub mod generalisation;
pub mod periodogram;
pub mod published;
pub mod statistics;
