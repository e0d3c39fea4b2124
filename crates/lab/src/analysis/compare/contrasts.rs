//! Differences and ratios between tau, pair by pair with the same seed.

use super::RunRecord;
use super::series::{Series, step};
use crate::analysis::generalisation::{self, Curve};
use crate::analysis::statistics::{self, paired_differences, stepped_mean_interval};
use leaklab_record::{Cell, Table, number_text};

/// Columns that all contrasts have.
const CONTRAST_COLUMNS: [(&str, &str, &str); 8] = [
    ("quantity", "", "What is compared."),
    ("tau_a", "steps", "The one membrane time constant."),
    ("tau_b", "steps", "The other."),
    ("mean", "", "Mean over seeds, in `unit`."),
    ("low", "", "Lower end of the 95 % interval (Student's t over seeds)."),
    ("high", "", "Upper end of the interval."),
    ("seeds", "", "Pairs of runs with the same seed."),
    ("unit", "", "Unit of mean and interval."),
];

/// The tables `differences` (a - b) and `ratios` (a / b), over pairs of runs with the same seed.
pub(super) fn contrasts(runs: &[&RunRecord], taus: &[String], series: &[Series], ratio: bool) -> Table {
    let mut table = if ratio {
        Table::new(
            "ratios",
            "Ratios between tau",
            "Value at tau_a over value at tau_b, pair by pair with the same seed: geometric mean and 95 % interval \
             (Student's t on the logarithms). For quantities whose scale is free.",
            &CONTRAST_COLUMNS,
        )
    } else {
        Table::new(
            "differences",
            "Differences between tau",
            "Value at tau_a minus value at tau_b, pair by pair with the same seed: mean and 95 % interval (Student's \
             t). Rows named `... minus clean` compare noise with no noise within one tau (tau_a = tau_b).",
            &CONTRAST_COLUMNS,
        )
    };
    let mut push = |quantity: &str, a: &str, b: &str, values: &[f64], unit: &str| {
        let Some(mean) = statistics::mean(values) else { return };
        let step = if ratio { 0.0 } else { step(runs, quantity) };
        let interval = stepped_mean_interval(values, step);
        let scale = |x: f64| if ratio { x.exp() } else { x };
        table.push(vec![
            quantity.into(),
            a.into(),
            b.into(),
            scale(mean).into(),
            Cell::from(interval.map(|i| scale(i.low)).filter(|x| x.is_finite())),
            Cell::from(interval.map(|i| scale(i.high)).filter(|x| x.is_finite())),
            values.len().into(),
            if ratio { "ratio" } else { unit }.into(),
        ]);
    };
    for s in series.iter().filter(|s| !ratio || s.ratio) {
        if s.quantity.ends_with(" minus clean") {
            for tau in taus {
                push(&s.quantity, tau, tau, &s.plain(tau), s.unit);
            }
            continue;
        }
        for (a, b) in pairs(taus) {
            let scale = |values: &[(u64, f64)]| -> Vec<(u64, f64)> {
                let positive = values.iter().filter(|v| !ratio || v.1 > 0.0);
                positive.map(|&(seed, x)| (seed, if ratio { x.ln() } else { x })).collect()
            };
            push(&s.quantity, a, b, &paired_differences(&scale(s.of(a)), &scale(s.of(b))), s.unit);
        }
    }
    if ratio {
        let curves: Vec<(String, u64, Curve)> = runs
            .iter()
            .filter_map(|run| Some((number_text(run.tau), run.seed, Curve::new(&run.epochs)?)))
            .collect();
        for (a, b) in pairs(taus) {
            let logarithms: Vec<f64> = curves
                .iter()
                .filter(|curve| curve.0 == *a)
                .filter_map(|(_, seed, curve)| {
                    let other = curves.iter().find(|c| c.0 == *b && c.1 == *seed)?;
                    generalisation::log_ratio_at_equal_train_sse(curve, &other.2)
                })
                .collect();
            push("test_sse_at_equal_train_sse", a, b, &logarithms, "ratio");
        }
        table.notes.push("A run whose value is 0 has no ratio and is left out of its pair.".into());
    }
    table
}

fn pairs(taus: &[String]) -> impl Iterator<Item = (&String, &String)> {
    taus.iter().enumerate().flat_map(|(i, a)| taus[i + 1..].iter().map(move |b| (a, b)))
}
