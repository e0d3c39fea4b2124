//! Further questions that are debated in the field. They are answered if two conditions of a study differ in
//! that one setting: signed or unsigned input spikes, the number of time steps, or initial weights that
//! compensate for the leak.

use super::conditions::{Group, differences};
use super::values::Comparison;
use crate::analysis::claims::{ACCURACY_MARGIN, SIGNIFICANT};
use crate::analysis::contrast::{Contrast, holm};
use crate::config::{InitialScale, RunConfig};
use leaklab_engine::encode::Encoder;
use leaklab_record::tables::FurtherRow;
use leaklab_record::{NoiseKey, Quantity, Question, Rows};

/// The question that two conditions answer, if they differ only in its setting and the first has the value
/// that the question is about.
fn question(a: &RunConfig, b: &RunConfig) -> Option<Question> {
    let differs: Vec<String> = differences(a, b).into_iter().map(|(key, _)| key).collect();
    let differs: Vec<&str> = differs.iter().map(String::as_str).collect();
    let longer = a.time_steps > b.time_steps;
    match differs[..] {
        ["encoder"] if a.encoder == Encoder::Signed => Some(Question::Encoder),
        ["time_steps"] if longer => Some(Question::Steps),
        ["tau", "time_steps"] if longer => {
            let share = |run: &RunConfig| run.leak.tau.steps() / run.time_steps as f64;
            ((share(a) / share(b) - 1.0).abs() < 1e-6).then_some(Question::StepsAndTau)
        }
        ["initial"] if a.initial == InitialScale::Rate => Some(Question::Initial),
        _ => None,
    }
}

/// The subject of a sentence.
fn subject(question: Question, a: &RunConfig, b: &RunConfig) -> String {
    let tau = |run: &RunConfig| match run.leak.as_uniform() {
        Some(tau) if tau.leaks() => format!("tau {tau}"),
        Some(_) => "no leak".to_owned(),
        None => run.condition_name(),
    };
    match question {
        Question::Encoder => format!("Signed compared with unsigned input spikes ({})", tau(a)),
        Question::Steps => format!("{} time steps compared with {} ({})", a.time_steps, b.time_steps, tau(a)),
        Question::StepsAndTau => {
            format!(
                "{} time steps with {} compared with {} with \
                     {}",
                a.time_steps,
                tau(a),
                b.time_steps,
                tau(b)
            )
        }
        Question::Initial => format!("Initial weights that compensate for the leak ({})", tau(a)),
    }
}

/// The verdict on a difference of accuracy.
fn verdict(contrast: &Contrast, p: Option<f64>) -> &'static str {
    match contrast.interval() {
        None => "one pair of runs has no interval",
        Some(i) if i.low > 0.0 && p.is_some_and(|p| p <= SIGNIFICANT) => "more accurate",
        Some(i) if i.high < 0.0 && p.is_some_and(|p| p <= SIGNIFICANT) => "less accurate",
        Some(i) if i.low > -ACCURACY_MARGIN && i.high < ACCURACY_MARGIN => {
            "no difference of a percentage point or more"
        }
        Some(_) => "not enough evidence for a difference",
    }
}

fn points(x: f64) -> String {
    format!("{:+.1}", 100.0 * x)
}

fn sentence(
    subject: &str,
    noise: Option<NoiseKey>,
    contrast: &Contrast,
    p: Option<f64>,
    learned: [Option<bool>; 2],
) -> String {
    let under = noise.map_or_else(|| "without noise".to_owned(), |noise| format!("under {}", noise.words()));
    let interval =
        contrast.interval().map_or_else(String::new, |i| format!(" [{}, {}]", points(i.low), points(i.high)));
    let failed = match (learned, noise) {
        ([Some(true), Some(false)], None) => " Every run learned with them, but not without them.",
        ([Some(false), Some(true)], None) => {
            " Not every run learned with them, but every run did without them."
        }
        ([Some(false), Some(false)], None) => " Not every run learned, with or without them.",
        _ => "",
    };
    let verdict = verdict(contrast, p);
    format!("{subject}, {under}: {} points{interval}: {verdict}.{failed}", points(contrast.mean))
}

fn of_pair(comparison: &Comparison, question: Question, a: &Group, b: &Group) -> Vec<FurtherRow> {
    let (name_a, name_b) = (&a.row.condition, &b.row.condition);
    let noises = comparison.noises().into_iter().map(|noise| (Some(noise), Quantity::Robustness(noise)));
    let all = std::iter::once((None, Quantity::Accuracy)).chain(noises);
    let contrasts: Vec<(Option<NoiseKey>, Contrast)> = all
        .filter_map(|(noise, quantity)| Some((noise, comparison.contrast(&quantity, name_a, name_b)?)))
        .collect();
    let p: Vec<f64> = contrasts.iter().filter_map(|(_, c)| c.worth.map(|worth| worth.p)).collect();
    let mut corrected = holm(&p).into_iter();
    let subject = subject(question, &a.runs[0].config, &b.runs[0].config);
    let (a_learned, b_learned) = (a.row.learned, b.row.learned);
    let row = |(noise, contrast): (Option<NoiseKey>, Contrast)| {
        let p = contrast.worth.and_then(|_| corrected.next());
        FurtherRow {
            question,
            a: name_a.clone(),
            b: name_b.clone(),
            noise,
            mean: contrast.mean,
            low: contrast.interval().map(|i| i.low),
            high: contrast.interval().map(|i| i.high),
            p,
            seeds: contrast.pairs as u64,
            a_learned,
            b_learned,
            sentence: sentence(&subject, noise, &contrast, p, [a_learned, b_learned]),
        }
    };
    contrasts.into_iter().map(row).collect()
}

/// All pairs of conditions that answer a question, compared by accuracy without noise and under each noise.
pub(super) fn rows(comparison: &Comparison) -> Rows<FurtherRow> {
    let mut table = Rows::new(
        "Further questions",
        "Pairs of conditions that differ in one setting other than leak, compared seed by seed: accuracy \
         without noise, and its mean over severities 1 to 8 of each noise. Intervals (95 %) include the \
         variation over seeds and samples; p values are corrected (Holm) within a pair.",
    );
    for wanted in Question::ALL {
        for a in comparison.groups() {
            for b in comparison.groups() {
                let found = question(&a.runs[0].config, &b.runs[0].config);
                if found == Some(wanted) {
                    table.rows.extend(of_pair(comparison, wanted, a, b));
                }
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn config(settings: &[&str]) -> RunConfig {
        let mut all = Settings::default();
        let common = ["dataset=digits", "tau=30", "seed=1", "time_steps=100"];
        common.iter().chain(settings).for_each(|text| all.assign(text).unwrap());
        RunConfig::resolve(all).unwrap()
    }

    #[test]
    fn a_pair_answers_one_question_in_one_direction() {
        let plain = config(&[]);
        let asked = |a: &RunConfig, b: &RunConfig| (question(a, b), question(b, a));
        let unsigned = config(&["encoder=unsigned"]);
        assert_eq!(asked(&plain, &unsigned), (Some(Question::Encoder), None));
        let short = config(&["time_steps=50"]);
        assert_eq!(asked(&plain, &short), (Some(Question::Steps), None));
        let scaled = config(&["time_steps=50", "tau=15"]);
        assert_eq!(asked(&plain, &scaled), (Some(Question::StepsAndTau), None));
        let rate = config(&["initial=rate"]);
        assert_eq!(asked(&rate, &plain), (Some(Question::Initial), None));
        // Two differences answer no question, and neither does leak alone.
        assert_eq!(asked(&rate, &unsigned), (None, None));
        assert_eq!(asked(&config(&["tau=100"]), &plain), (None, None));
        assert_eq!(asked(&plain, &config(&["time_steps=50", "tau=20"])), (None, None));
    }

    #[test]
    fn the_sentence_agrees_with_the_interval() {
        let contrast = |values: &[f64]| Contrast::of_seeds(values).unwrap();
        let better = contrast(&[0.04, 0.05, 0.045, 0.05]);
        let text = sentence(
            "A compared with B",
            None,
            &better,
            better.worth.map(|w| w.p),
            [Some(true), Some(false)],
        );
        assert!(
            text.starts_with(
                "A compared with B, without noise: +4.6 points \
                              ["
            ) && text.contains("more accurate.")
        );
        assert!(text.ends_with("Every run learned with them, but not without them."), "{text}");
        let equal = contrast(&[0.001, -0.001, 0.002, -0.002]);
        assert_eq!(verdict(&equal, Some(1.0)), "no difference of a percentage point or more");
        let open = contrast(&[0.1, -0.1, 0.05]);
        assert_eq!(verdict(&open, Some(0.9)), "not enough evidence for a difference");
        assert_eq!(verdict(&better, Some(0.2)), "not enough evidence for a difference");
        assert_eq!(verdict(&contrast(&[0.1]), None), "one pair of runs has no interval");
    }
}
