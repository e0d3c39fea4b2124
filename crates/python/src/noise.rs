//! Noises by name.

use crate::fault;
use leaklab_engine::noise::{Noise, NoiseSetting, Scenario, Severities};
use pyo3::prelude::*;

/// The noise that the arguments name, in its first scenario if none is given.
pub fn noise_setting(
    noise: Option<&str>,
    scenario: Option<&str>,
    severity: Option<usize>,
    level: Option<f32>,
) -> PyResult<Option<NoiseSetting>> {
    let Some((noise, scenario)) = named_noise(noise, scenario)? else {
        return match (severity, level) {
            (None | Some(0), None) => Ok(None),
            _ => Err(fault("a severity or level was given without a noise; name the noise with noise=")),
        };
    };
    match (severity, level) {
        (Some(severity), None) => Severities::default().setting(noise, scenario, severity).map_err(fault),
        (None, Some(level)) => NoiseSetting::new(noise, scenario, level).map(Some).map_err(fault),
        _ => Err(fault(format!("noise {noise}: either severity= (0 to 8) or level= is expected"))),
    }
}

/// A noise and its scenario by name.
pub fn named_noise(noise: Option<&str>, scenario: Option<&str>) -> PyResult<Option<(Noise, Scenario)>> {
    let Some(noise) = noise else {
        return match scenario {
            None => Ok(None),
            Some(_) => Err(fault("a scenario was given without a noise; name the noise with noise=")),
        };
    };
    Noise::named(noise, scenario).map(Some).map_err(fault)
}
