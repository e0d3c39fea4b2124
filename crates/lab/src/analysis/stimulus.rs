//! The stimuli under which the test images are shown, and what is measured under each.

use leaklab_engine::noise::{Noise, NoiseError, NoiseSetting, Severities};
use leaklab_record::Stimulus;

/// The severity at which the paper shows spectra.
pub const SPECTRUM_SEVERITY: usize = 5;

/// The noise of a stimulus, for the encoder; `None` for clean.
pub fn setting(stimulus: Stimulus, severities: &Severities) -> Result<Option<NoiseSetting>, NoiseError> {
    match stimulus {
        Stimulus::Clean => Ok(None),
        Stimulus::Noisy(key, severity) => severities.setting(key.noise, key.scenario, severity),
    }
}

/// Whether spectra are measured: for clean, and at the paper's severity for its noises and for background
/// activity, which replaces them where there is no encoder.
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

/// Identifies a pass over the test images: the stimulus, and the number of the presentation. Each
/// presentation draws new input spikes; spectra and activity are measured in the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PassKey {
    /// The stimulus under which the images are shown.
    pub stimulus: Stimulus,
    /// Number of the presentation, from 1.
    pub presentation: u32,
}

impl PassKey {
    /// The first presentation.
    pub fn first(stimulus: Stimulus) -> Self {
        PassKey { stimulus, presentation: 1 }
    }

    /// File name of the stored pass.
    pub fn file_name(self) -> String {
        let stimulus = self.stimulus.to_string().replace('/', "_");
        match self.presentation {
            1 => format!("{stimulus}.json"),
            n => format!("{stimulus}_{n}.json"),
        }
    }

    /// The epoch number with which input spikes are drawn. Training counts up from 1. The first presentation
    /// has 0, like every evaluation; the others count down from the largest number, which no training
    /// reaches. A `seed` other than 0 shifts all of them to separate numbers.
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
