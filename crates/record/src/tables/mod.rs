//! The tables that LeakLab writes: one row type each, with its columns.

mod compare;
mod run;
mod theory;
mod why;

pub use compare::*;
pub use run::*;
pub use theory::*;
pub use why::*;
