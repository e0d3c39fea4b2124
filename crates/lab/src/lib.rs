//! From a study file to records: data sets, training, evaluation, analyses, sweeps.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod data;
pub mod exchange;
pub mod golden;
