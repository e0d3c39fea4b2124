//! Severities: the levels 1 to 8 of every noise in each of its scenarios.

use super::{Noise, NoiseError, NoiseSetting, Scenario};

/// Levels of severities 1 to 8.
pub type Levels = [f32; 8];

/// The highest severity.
pub const HIGHEST_SEVERITY: usize = 8;

/// Each noise in each of its scenarios, with the default levels of severities 1 to 8.
pub const SEVERITIES: [(Noise, Scenario, Levels); 11] = [
    (Noise::Gaussian, Scenario::Pixel, [0.1, 0.3, 0.6, 1.0, 1.6, 2.4, 3.5, 5.0]),
    (Noise::Gaussian, Scenario::Channel, [0.1, 0.3, 0.6, 1.0, 1.7, 2.8, 4.5, 7.0]),
    (Noise::Impulse, Scenario::Pixel, [0.05, 0.15, 0.35, 0.65, 1.0, 1.3, 1.6, 1.9]),
    (Noise::Impulse, Scenario::Channel, [0.02, 0.1, 0.35, 1.0, 1.7, 2.8, 4.5, 7.0]),
    (Noise::Deletion, Scenario::Channel, [0.2, 0.5, 0.7, 0.8, 0.87, 0.92, 0.96, 0.98]),
    (Noise::Jitter, Scenario::Channel, [1.0, 5.0, 15.0, 30.0, 60.0, 100.0, 180.0, 300.0]),
    (Noise::StuckPixel, Scenario::Pixel, [0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.45, 0.6]),
    (Noise::SaltAndPepper, Scenario::Pixel, [0.01, 0.03, 0.06, 0.1, 0.18, 0.3, 0.45, 0.6]),
    (Noise::Background, Scenario::Channel, [0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3]),
    (Noise::HotPixel, Scenario::Channel, [0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12]),
    (Noise::PolarityFlip, Scenario::Channel, [0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5]),
];

// Every kind has a row of levels.
const _: () = {
    let mut kind = 0;
    while kind < Noise::ALL.len() {
        let mut row = 0;
        while row < SEVERITIES.len() && SEVERITIES[row].0 as usize != Noise::ALL[kind] as usize {
            row += 1;
        }
        assert!(row < SEVERITIES.len(), "a kind of noise has no row in SEVERITIES");
        kind += 1;
    }
};

/// Levels of every noise, scenario and severity: the defaults, or a study's own.
#[derive(Debug, Clone, PartialEq)]
pub struct Severities {
    rows: [(Noise, Scenario, Levels); SEVERITIES.len()],
}

impl Default for Severities {
    fn default() -> Self {
        Severities { rows: SEVERITIES }
    }
}

impl Severities {
    /// Replaces the levels of one noise and scenario.
    pub fn set(&mut self, noise: Noise, scenario: Scenario, levels: Levels) -> Result<(), NoiseError> {
        for level in levels {
            NoiseSetting::new(noise, scenario, level)?;
        }
        for row in self.rows.iter_mut().filter(|row| (row.0, row.1) == (noise, scenario)) {
            row.2 = levels;
        }
        Ok(())
    }

    /// The levels of severities 1 to 8.
    pub fn levels(&self, noise: Noise, scenario: Scenario) -> Result<Levels, NoiseError> {
        NoiseSetting::new(noise, scenario, 0.0)?;
        let row = self.rows.iter().find(|row| (row.0, row.1) == (noise, scenario));
        Ok(row.expect("every noise has a row for each of its scenarios").2)
    }

    /// Noise of a severity from 0 to 8; `None` for severity 0, which is clean.
    pub fn setting(
        &self,
        noise: Noise,
        scenario: Scenario,
        severity: usize,
    ) -> Result<Option<NoiseSetting>, NoiseError> {
        let levels = self.levels(noise, scenario)?;
        match severity {
            0 => Ok(None),
            1..=HIGHEST_SEVERITY => NoiseSetting::new(noise, scenario, levels[severity - 1]).map(Some),
            _ => Err(NoiseError::UnknownSeverity(severity)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_can_have_its_own_levels() {
        let mut own = Severities::default();
        own.set(Noise::Gaussian, Scenario::Channel, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
        let level =
            |s: &Severities, scenario| s.setting(Noise::Gaussian, scenario, 3).unwrap().unwrap().level();
        assert_eq!(level(&own, Scenario::Channel), 3.0);
        assert_eq!(level(&own, Scenario::Pixel), level(&Severities::default(), Scenario::Pixel));
        assert!(own.set(Noise::Deletion, Scenario::Channel, [2.0; 8]).is_err());
    }
}
