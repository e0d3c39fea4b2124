//! What the test images are shown under, and what is measured there.

use leaklab_engine::noise::{Noise, NoiseError, NoiseSetting, Severities};
use leaklab_record::Stimulus;

/// The severity at which the paper looks at spectra.
pub const SPECTRUM_SEVERITY: usize = 5;

/// What the encoder needs to know of a stimulus.
pub fn setting(stimulus: Stimulus, severities: &Severities) -> Result<Option<NoiseSetting>, NoiseError> {
    match stimulus {
        Stimulus::Clean => Ok(None),
        Stimulus::Noisy(key, severity) => severities.setting(key.noise, key.scenario, severity),
    }
}

/// Whether spectra are measured: clean, and at the paper's severity its noises, and background activity,
/// which stands in for them where there is no encoder.
pub fn has_spectrum(stimulus: Stimulus) -> bool {
    match stimulus {
        Stimulus::Clean => true,
        Stimulus::Noisy(key, severity) => {
            let measured = matches!(key.noise, Noise::Gaussian | Noise::Impulse | Noise::Background);
            measured && severity == SPECTRUM_SEVERITY
        }
    }
}

/// Whether the activity of layers is measured: clean only, as in the paper.
pub fn has_activity(stimulus: Stimulus) -> bool {
    stimulus == Stimulus::Clean
}

/// One pass over the test images: what they are shown under, and for the how many-th time. Each presentation
/// draws fresh input spikes; spectra and activity are measured in the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PassKey {
    /// What the images are shown under.
    pub stimulus: Stimulus,
    /// Number of the presentation, from 1.
    pub presentation: u32,
}

impl PassKey {
    /// The first presentation.
    pub fn first(stimulus: Stimulus) -> Self {
        PassKey { stimulus, presentation: 1 }
    }

    /// File name of what was measured.
    pub fn file_name(self) -> String {
        let stimulus = self.stimulus.to_string().replace('/', "_");
        match self.presentation {
            1 => format!("{stimulus}.json"),
            n => format!("{stimulus}_{n}.json"),
        }
    }

    /// The epoch that input spikes are drawn with. Training counts up from 1; the first presentation is every
    /// evaluation's 0, and the others count down from the largest number, which no training reaches.
    /// `seed` shifts all of them to numbers of their own.
    pub fn epoch(self, seed: u64) -> u32 {
        match (self.presentation, seed) {
            (0 | 1, 0) => crate::evaluate::EVALUATION_EPOCH,
            (n, seed) => u32::MAX - (seed as u32 * 1000 + n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leaklab_record::PAPER_NOISES;

    #[test]
    fn names_levels_and_epochs() {
        let stimulus = Stimulus::at(PAPER_NOISES[0], 5);
        let key = PassKey { stimulus, presentation: 3 };
        assert_eq!(key.file_name(), "gaussian_pixel_5_3.json");
        assert_eq!(PassKey::first(stimulus).file_name(), "gaussian_pixel_5.json");
        assert_eq!((PassKey::first(stimulus).epoch(0), key.epoch(0)), (0, u32::MAX - 3));
        assert_ne!(PassKey::first(stimulus).epoch(1), PassKey::first(stimulus).epoch(2));
        assert!(has_spectrum(stimulus) && !has_activity(stimulus));
        assert!(!has_spectrum(Stimulus::at(PAPER_NOISES[0], 4)));
        assert_eq!(setting(Stimulus::Clean, &Severities::default()), Ok(None));
        let level = setting(stimulus, &Severities::default()).unwrap().unwrap().level();
        assert_eq!(
            level,
            Severities::default().levels(Noise::Gaussian, PAPER_NOISES[0].scenario).unwrap()[4]
        );
    }
}
