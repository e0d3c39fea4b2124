//! Leak layer by layer: in one hidden layer only, and in all but one, with the weights of the reference
//! networks.

use super::cell::Outcome;
use super::subject::{Subject, everywhere};
use super::subjects::{Panel, Subjects};
use crate::analysis::contrast::Contrast;
use crate::analysis::statistics::mean;
use leaklab_engine::{Leak, Tau};
use leaklab_record::tables::LayerLeakRow;
use leaklab_record::{LayerChoice, Readout, Rows, Stimulus};

/// The leaks to try: the layer, whether only this layer or all others leak, and the leak.
pub fn leaks(subject: &Subject, tau: Tau) -> Vec<(String, LayerChoice, Leak)> {
    let mut all = Vec::new();
    for layer in subject.leaking_layers() {
        for choice in LayerChoice::ALL {
            let leak = subject.leak_where(tau, |name| match choice {
                LayerChoice::Only => name == layer,
                LayerChoice::AllBut => name != layer,
            });
            all.push((layer.to_owned(), choice, leak));
        }
    }
    all
}

/// The stimuli under which to try them: the noises, or clean if there is none.
pub fn stimuli(subjects: &Subjects) -> Vec<Stimulus> {
    let noisy: Vec<Stimulus> =
        subjects.stimuli.iter().copied().filter(|&stimulus| stimulus != Stimulus::Clean).collect();
    if noisy.is_empty() { subjects.stimuli.clone() } else { noisy }
}

/// How the reference networks were trained, as words after "trained": those of a study without leak, a single
/// run with its own leak.
pub fn trained(subjects: &Subjects) -> String {
    match subjects.reference.first().map(|subject| subject.trained) {
        Some(tau) if tau.leaks() => format!("with tau {tau}"),
        Some(_) | None => "without leak".to_owned(),
    }
}

/// The table of layers.
pub fn rows(subjects: &Subjects, panel: &Panel) -> Rows<LayerLeakRow> {
    let tau = subjects.most_leak();
    let mut table = Rows::new(
        "Leak layer by layer",
        format!(
            "Weights trained {}, run with time constant {tau} in one hidden layer only, or in all hidden \
             layers but one; the readout does not leak. The gain is relative to the same weights run without \
             leak, on the same samples and input spikes. Intervals (95 %) include the variation over seeds \
             and samples.",
            trained(subjects)
        ),
    );
    let Some(first) = subjects.reference.first() else { return table };
    for stimulus in stimuli(subjects) {
        for (layer, choice, leak) in leaks(first, tau) {
            let outcomes: Vec<(&Outcome, &Outcome)> = subjects
                .reference
                .iter()
                .map(|s| (panel.get(s, &leak, stimulus), panel.get(s, &everywhere(Tau::INFINITE), stimulus)))
                .collect();
            let rows: Vec<Vec<f64>> =
                outcomes.iter().map(|(with, without)| differences(with, without)).collect();
            let Some(contrast) = Contrast::crossed(&rows) else { continue };
            let interval = contrast.interval();
            let of_seeds = |of: fn(&Outcome) -> f64| {
                mean(&outcomes.iter().map(|(with, _)| of(with)).collect::<Vec<_>>()).unwrap_or(0.0)
            };
            table.rows.push(LayerLeakRow {
                tau,
                stimulus,
                layer,
                choice,
                gain: contrast.mean,
                low: interval.map(|i| i.low),
                high: interval.map(|i| i.high),
                spike_rate: of_seeds(|outcome| outcome.spike_rate),
                synops: of_seeds(|outcome| outcome.synops),
                seeds: contrast.pairs as u64,
                images: first.split.len() as u64,
            });
        }
    }
    table
}

fn differences(with: &Outcome, without: &Outcome) -> Vec<f64> {
    let (a, b) = (with.shares(Readout::PLAIN), without.shares(Readout::PLAIN));
    a.iter().zip(&b).map(|(a, b)| a - b).collect()
}
