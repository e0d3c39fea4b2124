//! What test images are shown under: clean, or a noise in a scenario at a severity.

use leaklab_engine::noise::{Noise, NoiseError, NoiseSetting, Scenario, Severities};
use std::fmt;

/// The severity at which the paper looks at spectra.
pub const SPECTRUM_SEVERITY: usize = 5;

/// A condition, written `clean` or `gaussian/pixel/5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Condition(Option<(Noise, Scenario, usize)>);

impl Condition {
    /// No noise.
    pub const CLEAN: Condition = Condition(None);

    /// Noise at a severity; severity 0 is [`Condition::CLEAN`] itself, whatever the noise.
    pub fn new(noise: Noise, scenario: Scenario, severity: usize) -> Self {
        Condition((severity > 0).then_some((noise, scenario, severity)))
    }

    /// What the encoder needs to know.
    pub fn setting(self, severities: &Severities) -> Result<Option<NoiseSetting>, NoiseError> {
        self.0.map_or(Ok(None), |(noise, scenario, severity)| severities.setting(noise, scenario, severity))
    }

    /// Whether spectra are measured: clean, and the paper's noises at its severity.
    pub fn has_spectrum(self) -> bool {
        self.0.is_none_or(|(noise, _, severity)| {
            matches!(noise, Noise::Gaussian | Noise::Impulse) && severity == SPECTRUM_SEVERITY
        })
    }

    /// Whether the activity of layers is measured: clean only, as in the paper.
    pub fn has_activity(self) -> bool {
        self.0.is_none()
    }

    /// File name of what was measured under it.
    pub fn file_name(self) -> String {
        format!("{}.json", self.to_string().replace('/', "_"))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.pad("clean"),
            Some((noise, scenario, severity)) => f.pad(&format!("{noise}/{scenario}/{severity}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_levels() {
        let condition = Condition::new(Noise::Gaussian, Scenario::Pixel, 5);
        assert_eq!(condition.to_string(), "gaussian/pixel/5");
        assert_eq!(condition.file_name(), "gaussian_pixel_5.json");
        let severities = Severities::default();
        let level = severities.levels(Noise::Gaussian, Scenario::Pixel).unwrap()[4];
        assert_eq!(condition.setting(&severities).unwrap().unwrap().level(), level);
        assert!(condition.has_spectrum() && !condition.has_activity());
        assert!(!Condition::new(Noise::Gaussian, Scenario::Pixel, 4).has_spectrum());
    }

    #[test]
    fn severity_0_is_clean() {
        let condition = Condition::new(Noise::Jitter, Scenario::Channel, 0);
        assert_eq!(condition, Condition::CLEAN);
        assert_eq!(condition.setting(&Severities::default()), Ok(None));
        assert!(condition.has_spectrum() && condition.has_activity());
    }
}
