//! Names of the gradient modes in files and flags.

use crate::packed::Gradient;
use std::fmt;
use std::str::FromStr;

/// The error that no gradient mode has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("gradient '{0}' is not one of straight-through, exact")]
pub struct UnknownGradient(String);

impl fmt::Display for Gradient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Gradient::StraightThrough => "straight-through",
            Gradient::Exact => "exact",
        })
    }
}

impl FromStr for Gradient {
    type Err = UnknownGradient;

    fn from_str(name: &str) -> Result<Self, UnknownGradient> {
        let found = [Gradient::StraightThrough, Gradient::Exact].into_iter().find(|g| g.to_string() == name);
        found.ok_or_else(|| UnknownGradient(name.to_owned()))
    }
}
