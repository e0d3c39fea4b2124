//! Accuracy and SSE against the severity of noise (Fig. 3), and a few numbers for each curve.
//!
//! Robustness is the mean accuracy over severities 1 to 8, in absolute points. If it were divided by the
//! clean accuracy, a network stuck at chance would count as perfectly robust. The relative form, which uses
//! the excess over chance, is given as well.

use super::statistics::wilson;
use super::stimulus::{PassKey, setting};
use super::{AnalysisError, Analyst, Progress};
use leaklab_engine::noise::HIGHEST_SEVERITY;
use leaklab_record::tables::{CorrectnessRow, RobustnessRow, RobustnessSummaryRow};
use leaklab_record::text::counted;
use leaklab_record::{NoiseKey, Rows, Stimulus, Table};

/// The stimuli that the analysis needs, each once.
pub(super) fn stimuli(noises: &[NoiseKey]) -> Vec<Stimulus> {
    let noisy = |&noise| (1..=HIGHEST_SEVERITY).map(move |severity| Stimulus::at(noise, severity));
    std::iter::once(Stimulus::Clean).chain(noises.iter().flat_map(noisy)).collect()
}

/// The tables `robustness`, `correctness` and `robustness_summary`.
pub(super) fn tables(analyst: &Analyst, progress: &mut Progress) -> Result<Vec<Table>, AnalysisError> {
    let (config, images) = (&analyst.run.config, analyst.dataset.test.len());
    let presentations = config.presentations;
    let mut correctness = Rows::new(
        "Which samples were classified correctly",
        format!(
            "One bit for each of {images} test samples, in the order of the data set, for every stimulus and \
             presentation."
        ),
    );
    let mut measured = Vec::new();
    for stimulus in stimuli(&config.noise) {
        let mut passes = Vec::new();
        for presentation in 1..=presentations as u32 {
            let pass = analyst.pass(PassKey { stimulus, presentation }, progress)?;
            correctness.rows.push(CorrectnessRow {
                stimulus,
                presentation: u64::from(presentation),
                correct: pass.correct.clone(),
            });
            passes.push(pass);
        }
        let correct: u64 = passes.iter().map(|pass| pass.correct.count()).sum();
        let sse: Option<Vec<f64>> = passes.iter().map(|pass| pass.sse).collect();
        let sse = sse.map(|values| values.iter().sum::<f64>() / values.len() as f64);
        measured.push((stimulus, correct, sse));
    }
    let mut curves = Rows::new(
        "Accuracy against severity of noise",
        format!(
            "Accuracy and SSE on {images} test samples, each shown {} with new input spikes, at each \
             severity of each noise; severity 0 is the clean evaluation. Intervals are Wilson's, 95 %, over \
             samples.",
            counted(presentations, "time")
        ),
    );
    let mut summary = Rows::new(
        "Robustness in a few numbers per noise",
        "Robustness: mean accuracy over severities 1 to 8. Relative: the mean excess over chance at these \
         severities, relative to the excess without noise. Half severity: the severity at which accuracy has \
         lost half of its excess over chance, interpolated linearly.",
    );
    if config.noise.is_empty() {
        curves.note(
            "The run's settings contain no noise; `noise` in its study file sets which noises to \
                     test.",
        );
    }
    let chance = 1.0 / analyst.dataset.classes.max(1) as f64;
    for &noise in &config.noise {
        curves.note(format!("{noise}: the level is the {}.", noise.noise.level_name()));
        let mut accuracies = Vec::new();
        for severity in 0..=HIGHEST_SEVERITY {
            let stimulus = Stimulus::at(noise, severity);
            let &(_, correct, sse) =
                measured.iter().find(|m| m.0 == stimulus).expect("every stimulus was measured");
            let level = setting(stimulus, &config.severities)?.map_or(0.0, |s| f64::from(s.level()));
            let shown = images as u64 * presentations;
            let accuracy = correct as f64 / shown.max(1) as f64;
            let interval = wilson(accuracy * images as f64, images as u64);
            curves.rows.push(RobustnessRow {
                noise: noise.noise,
                scenario: noise.scenario,
                severity: severity as u64,
                level: round(level),
                images: images as u64,
                presentations,
                correct,
                accuracy,
                accuracy_low: interval.map_or(0.0, |i| i.low),
                accuracy_high: interval.map_or(1.0, |i| i.high),
                sse,
            });
            accuracies.push(accuracy);
        }
        summary.rows.push(RobustnessSummaryRow {
            noise: noise.noise,
            scenario: noise.scenario,
            robustness: robustness(&accuracies),
            relative: relative(&accuracies, chance),
            half_severity: half_severity(&accuracies, chance),
        });
    }
    if curves.rows.iter().any(|row| row.sse.is_none()) {
        curves.note("An SSE is empty where the network's outputs were not finite.");
    }
    Ok(vec![curves.table(), correctness.table(), summary.table()])
}

/// A level as it was written: levels are 32-bit numbers, and 0.1 should not be printed as 0.10000000149.
fn round(level: f64) -> f64 {
    (level as f32).to_string().parse().unwrap_or(level)
}

/// Mean accuracy over severities 1 and up; `accuracies` begin with the clean one.
pub fn robustness(accuracies: &[f64]) -> f64 {
    let noisy = &accuracies[1.min(accuracies.len())..];
    noisy.iter().sum::<f64>() / noisy.len().max(1) as f64
}

/// Mean excess over chance under noise relative to that without noise; `None` if there is none without noise.
pub fn relative(accuracies: &[f64], chance: f64) -> Option<f64> {
    let clean = *accuracies.first()? - chance;
    (clean > 0.0).then(|| (robustness(accuracies) - chance) / clean)
}

/// The severity at which accuracy has first lost half of its excess over chance, interpolated linearly
/// between severities.
pub fn half_severity(accuracies: &[f64], chance: f64) -> Option<f64> {
    let clean = *accuracies.first()?;
    let half = chance + 0.5 * (clean - chance);
    if clean <= chance {
        return None;
    }
    let after = accuracies.iter().position(|&a| a <= half)?;
    let (a, b) = (accuracies[after - 1], accuracies[after]);
    Some((after - 1) as f64 + (a - half) / (a - b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leaklab_record::PAPER_NOISES;

    #[test]
    fn every_stimulus_once() {
        let stimuli = stimuli(&PAPER_NOISES[..2]);
        assert_eq!(stimuli.len(), 17);
        let names: std::collections::BTreeSet<String> = stimuli.iter().map(Stimulus::to_string).collect();
        assert_eq!(names.len(), 17);
    }

    #[test]
    fn robustness_is_absolute() {
        let line: Vec<f64> = (0..9).map(|s| 0.8 * (1.0 - f64::from(s) / 8.0)).collect();
        assert!((robustness(&line) - 0.35).abs() < 1e-12);
        assert!((relative(&line, 0.1).unwrap() - 0.25 / 0.7).abs() < 1e-12);
        // A network stuck at chance is not robust, and has no relative form.
        assert!((robustness(&[0.1; 9]) - 0.1).abs() < 1e-12);
        assert_eq!(relative(&[0.1; 9], 0.1), None);
    }

    #[test]
    fn half_severities() {
        // Excess over chance 0.8: half is lost at 0.5, between severities 2 (0.6) and 3 (0.4).
        let curve = [0.9, 0.8, 0.6, 0.4, 0.2];
        assert!((half_severity(&curve, 0.1).unwrap() - 2.5).abs() < 1e-12);
        assert_eq!(half_severity(&[0.9, 0.85, 0.8], 0.1), None);
        assert_eq!(half_severity(&[0.1, 0.0], 0.1), None);
        assert_eq!(half_severity(&[0.9, 0.5], 0.1), Some(1.0));
    }

    #[test]
    fn levels_read_as_written() {
        assert_eq!([0.1_f32, 0.45, 1.5, 200.0].map(|x| round(f64::from(x))), [0.1, 0.45, 1.5, 200.0]);
    }
}
