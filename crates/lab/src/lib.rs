//! Runs studies and records their results: data sets, training, evaluation, analyses and sweeps.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod bench;
pub mod calibrate;
pub mod config;
pub mod data;
pub mod evaluate;
pub mod exchange;
pub mod golden;
pub mod health;
pub mod memory;
pub mod run;
pub mod study;
pub mod theory_tables;
pub mod train;
