//! Accuracy and SSE against the severity of noise (Fig. 3), and one number for each curve.

use super::condition::Condition;
use super::pass::Pass;
use super::statistics::wilson;
use super::{AnalysisError, Analyst, Progress};
use leaklab_engine::noise::{HIGHEST_SEVERITY, Noise, Scenario};
use leaklab_record::{Cell, Table};

/// The conditions that the analysis needs, each once.
pub(super) fn conditions(noises: &[(Noise, Scenario)]) -> Vec<Condition> {
    let mut conditions = vec![Condition::CLEAN];
    for &(noise, scenario) in noises {
        conditions.extend((1..=HIGHEST_SEVERITY).map(|severity| Condition::new(noise, scenario, severity)));
    }
    conditions
}

/// The tables `robustness` and `robustness_summary`.
pub(super) fn tables(analyst: &Analyst, progress: &mut Progress) -> Result<Vec<Table>, AnalysisError> {
    let noises = &analyst.run.config.noise;
    let mut curves = Table::new(
        "robustness",
        "Accuracy against severity of noise",
        &format!(
            "Accuracy and SSE on {} test images at each severity of each noise; severity 0 is the clean evaluation. \
             Intervals are Wilson's, 95 %, over images.",
            analyst.dataset.test.len()
        ),
        &[
            ("noise", "", "Kind of noise."),
            ("scenario", "", "Where it enters: pixel (before encoding) or channel (added to the spikes)."),
            ("severity", "", "0 is clean, 8 the strongest."),
            ("level", "", "Strength: a standard deviation, probability or fraction, as the noise has it."),
            ("images", "", "Test images."),
            ("correct", "", "Those classified correctly."),
            ("accuracy", "fraction", "Share classified correctly."),
            ("accuracy_low", "fraction", "Lower end of its interval."),
            ("accuracy_high", "fraction", "Upper end of its interval."),
            ("sse", "SSE", "Mean over images of the sum over outputs of (p - onehot)^2."),
        ],
    );
    let mut summary = Table::new(
        "robustness_summary",
        "Robustness in one number per curve",
        "Area: mean over severities 0 to 8 of the accuracy relative to the clean accuracy (1: noise does nothing). Half \
         severity: where accuracy has lost half of its excess over chance, linear between severities.",
        &[
            ("noise", "", "Kind of noise."),
            ("scenario", "", "Where it enters: pixel or channel."),
            (
                "area",
                "fraction of clean accuracy",
                "Mean relative accuracy; empty if the clean accuracy is 0.",
            ),
            (
                "half_severity",
                "severity",
                "Empty if it is not reached, or if the clean accuracy is not above chance.",
            ),
        ],
    );
    if noises.is_empty() {
        curves
            .notes
            .push("The run's settings name no noise; `noise` in its study file lists what to test.".into());
    }
    let chance = 1.0 / analyst.dataset.classes.max(1) as f64;
    for &(noise, scenario) in noises {
        curves.notes.push(format!("{noise}/{scenario}: the level is the {}.", noise.level_name()));
        let mut accuracies = Vec::new();
        for severity in 0..=HIGHEST_SEVERITY {
            let condition = Condition::new(noise, scenario, severity);
            let pass = analyst.pass(condition, progress)?;
            let level =
                condition.setting(&analyst.run.config.severities)?.map_or(0.0, |s| f64::from(s.level()));
            let mut row =
                vec![noise.name().into(), scenario.name().into(), severity.into(), round(level).into()];
            row.extend(accuracy_cells(&pass));
            row.push(Cell::from(pass.sse));
            curves.push(row);
            accuracies.push(pass.correct as f64 / pass.images.max(1) as f64);
        }
        summary.push(vec![
            noise.name().into(),
            scenario.name().into(),
            Cell::from(relative_area(&accuracies)),
            Cell::from(half_severity(&accuracies, chance)),
        ]);
    }
    if curves.rows.iter().any(|row| curves.cell(row, "sse") == &Cell::Empty) {
        curves.notes.push("An SSE is empty where the network's outputs were not finite.".into());
    }
    Ok(vec![curves, summary])
}

/// `images, correct, accuracy, accuracy_low, accuracy_high` of a pass.
fn accuracy_cells(pass: &Pass) -> [Cell; 5] {
    let interval = wilson(pass.correct, pass.images);
    [
        pass.images.into(),
        pass.correct.into(),
        Cell::from(interval.map(|i| i.mean)),
        Cell::from(interval.map(|i| i.low)),
        Cell::from(interval.map(|i| i.high)),
    ]
}

/// A level as it was written: levels are 32-bit numbers, and 0.1 should not read 0.10000000149.
fn round(level: f64) -> f64 {
    (level as f32).to_string().parse().unwrap_or(level)
}

/// Mean accuracy over all severities, clean included, relative to clean; `None` if the clean accuracy is 0.
pub fn relative_area(accuracies: &[f64]) -> Option<f64> {
    let clean = *accuracies.first()?;
    (clean > 0.0).then(|| accuracies.iter().sum::<f64>() / (accuracies.len() as f64 * clean))
}

/// The severity at which accuracy has first lost half of its excess over chance, linear between severities.
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

    #[test]
    fn every_condition_once() {
        let noises = [(Noise::Gaussian, Scenario::Pixel), (Noise::Impulse, Scenario::Channel)];
        let conditions = conditions(&noises);
        assert_eq!(conditions.len(), 17);
        let names: std::collections::BTreeSet<String> = conditions.iter().map(Condition::to_string).collect();
        assert_eq!(names.len(), 17);
    }

    #[test]
    fn areas() {
        assert_eq!(relative_area(&[0.5; 9]), Some(1.0));
        let line: Vec<f64> = (0..9).map(|s| 0.8 * (1.0 - f64::from(s) / 8.0)).collect();
        assert!((relative_area(&line).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(relative_area(&[0.0, 0.1]), None);
        assert_eq!(relative_area(&[]), None);
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
