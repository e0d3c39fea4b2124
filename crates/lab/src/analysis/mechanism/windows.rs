//! Readouts of networks run without leak in their hidden layers, and accuracy over time: both from the
//! recorded output signal.

use super::cell::Outcome;
use super::layers::trained;
use super::readout::{compared, over_time};
use super::subject::everywhere;
use super::subjects::{Panel, Subjects};
use crate::analysis::contrast::Contrast;
use leaklab_engine::Tau;
use leaklab_record::tables::{TimeRow, WindowRow};
use leaklab_record::{Readout, Rows};

/// The table of readouts of networks without leak in their hidden layers.
pub fn readouts(subjects: &Subjects, panel: &Panel) -> Rows<WindowRow> {
    let mut table = Rows::new(
        "Readouts of a network run without leak",
        format!(
            "Weights trained {} and run without leak in the hidden layers, read in different ways: tau X \
             (early steps count less), reversed X (late steps count less), steps A-B (the plain sum of these \
             steps). The gain is relative to the plain sum of all steps. Intervals (95 %) include the \
             variation over seeds and samples.",
            trained(subjects)
        ),
    );
    let Some(first) = subjects.reference.first() else { return table };
    for &stimulus in &subjects.stimuli {
        let outcomes: Vec<&Outcome> =
            subjects.reference.iter().map(|s| panel.get(s, &everywhere(Tau::INFINITE), stimulus)).collect();
        let plain: Vec<Vec<f64>> = outcomes.iter().map(|outcome| outcome.shares(Readout::PLAIN)).collect();
        for readout in compared(&subjects.taus, first.steps()) {
            let shares: Vec<Vec<f64>> = outcomes.iter().map(|outcome| outcome.shares(readout)).collect();
            let gains: Vec<Vec<f64>> = shares
                .iter()
                .zip(&plain)
                .map(|(a, b)| a.iter().zip(b).map(|(a, b)| a - b).collect())
                .collect();
            let (Some(accuracy), Some(gain)) = (Contrast::crossed(&shares), Contrast::crossed(&gains)) else {
                continue;
            };
            let interval = gain.interval();
            table.rows.push(WindowRow {
                stimulus,
                readout,
                accuracy: accuracy.mean,
                gain: gain.mean,
                low: interval.map(|i| i.low),
                high: interval.map(|i| i.high),
                seeds: gain.pairs as u64,
                images: first.split.len() as u64,
            });
        }
    }
    table
}

/// The table of accuracy over time.
pub fn time(subjects: &Subjects, panel: &Panel) -> Rows<TimeRow> {
    let mut table = Rows::new(
        "Accuracy over time",
        "Accuracy from the plain sum of the output signal over all steps up to a given one, and over each \
         tenth of the steps alone, of networks trained and run with the same time constant in their hidden \
         layers. Intervals (95 %) include the variation over seeds and samples.",
    );
    let of_tau = |tau: Tau| subjects.leaky.iter().find(|(own, _)| *own == tau).map(|(_, members)| members);
    let of_reference = subjects.reference.first().map_or(Tau::INFINITE, |subject| subject.trained);
    let mut groups: Vec<(Tau, _)> =
        subjects.taus.iter().filter_map(|&tau| of_tau(tau).map(|members| (tau, members))).collect();
    groups.push((of_reference, &subjects.reference));
    for (tau, members) in groups {
        let Some(first) = members.first() else { continue };
        for &stimulus in &subjects.stimuli {
            let outcomes: Vec<&Outcome> =
                members.iter().map(|subject| panel.get(subject, &everywhere(tau), stimulus)).collect();
            for (window, readout) in over_time(first.steps()) {
                let Readout::Window { first: from, last: to } = readout else { continue };
                let shares: Vec<Vec<f64>> = outcomes.iter().map(|outcome| outcome.shares(readout)).collect();
                let Some(accuracy) = Contrast::crossed(&shares) else { continue };
                let interval = accuracy.interval();
                table.rows.push(TimeRow {
                    tau,
                    stimulus,
                    window,
                    first: from,
                    last: to,
                    accuracy: accuracy.mean,
                    low: interval.map(|i| i.low.max(0.0)),
                    high: interval.map(|i| i.high.min(1.0)),
                    seeds: accuracy.pairs as u64,
                    images: first.split.len() as u64,
                });
            }
        }
    }
    table
}
