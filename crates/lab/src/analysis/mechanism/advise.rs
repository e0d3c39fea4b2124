//! Advice: which trained network, run with which leak and read by which readout, is the most robust within a
//! budget.
//!
//! The best of many candidates looks better than it is. The choice is therefore made on one half of the test
//! images, and the accuracy is measured on the other half.

use super::cell::{Outcome, Shown};
use super::layers::trained;
use super::readout::compared;
use super::split;
use super::subject::{Subject, everywhere};
use super::subjects::{Panel, Subjects};
use super::{MechanismError, readout::time_constants};
use crate::analysis::contrast::Contrast;
use crate::analysis::statistics::mean;
use crate::analysis::{AnalysisError, Progress};
use leaklab_engine::Tau;
use leaklab_record::tables::AdviceRow;
use leaklab_record::{Readout, Rows, Stimulus};

/// A way of running trained networks, with the measured outcomes by seed.
pub struct Way<'a> {
    trained: Tau,
    hidden: Tau,
    outcomes: Vec<(u64, &'a Outcome)>,
}

/// A way of running the networks, with a readout.
struct Candidate<'a> {
    way: &'a Way<'a>,
    readout: Readout,
    synops: f64,
    /// Accuracy on the half on which it is chosen.
    accuracy: f64,
}

/// Whether each image is used for the choice: every other one of each class is.
pub fn choosing_half(subject: &Subject) -> Vec<bool> {
    let mut turn = vec![false; subject.network.architecture.classes()];
    (0..subject.split.len())
        .map(|image| {
            let turn = &mut turn[subject.split.label(image)];
            *turn = !*turn;
            *turn
        })
        .collect()
}

/// The readouts to choose from: leaky ones and those that skip early steps, but not the reversed ones, which
/// are controls.
fn readouts(subjects: &Subjects, steps: u64) -> Vec<Readout> {
    let mut all: Vec<Readout> =
        time_constants(&subjects.taus, steps).into_iter().map(Readout::Leaky).collect();
    let windows = compared(&subjects.taus, steps).into_iter();
    all.extend(windows.filter(|readout| matches!(readout, Readout::Window { .. })));
    all
}

/// The best way within a budget of synaptic operations per image, chosen on one half of the images and
/// measured on the other.
pub fn choose(
    subjects: &Subjects,
    ways: &[Way],
    stimulus: Stimulus,
    budget: Option<f64>,
) -> Result<AdviceRow, MechanismError> {
    let first = &subjects.reference[0];
    let chooses = choosing_half(first);
    let half = |shares: Vec<f64>, choosing: bool| -> Vec<f64> {
        shares.into_iter().zip(&chooses).filter(|(_, own)| **own == choosing).map(|(x, _)| x).collect()
    };
    let synops =
        |way: &Way| mean(&way.outcomes.iter().map(|(_, outcome)| outcome.synops).collect::<Vec<_>>());
    let mut candidates: Vec<Candidate> = Vec::new();
    for way in ways {
        let synops = synops(way).unwrap_or(0.0);
        if budget.is_some_and(|budget| synops > budget) {
            continue;
        }
        for readout in readouts(subjects, first.steps()) {
            let of_seed = |(_, outcome): &(u64, &Outcome)| mean(&half(outcome.shares(readout), true));
            let accuracies: Vec<f64> = way.outcomes.iter().filter_map(of_seed).collect();
            let accuracy = mean(&accuracies).unwrap_or(0.0);
            candidates.push(Candidate { way, readout, synops, accuracy });
        }
    }
    // The most accurate; of equals the cheapest, then the first.
    let better = |a: &Candidate, b: &Candidate| {
        a.accuracy > b.accuracy || (a.accuracy == b.accuracy && a.synops < b.synops)
    };
    let best = candidates.iter().reduce(|best, next| if better(next, best) { next } else { best });
    let cheapest = ways.iter().filter_map(&synops).fold(f64::INFINITY, f64::min);
    let best = best.ok_or(MechanismError::Budget { budget: budget.unwrap_or(0.0), cheapest })?;
    let base = ways.iter().find(|way| way.trained == first.trained && !way.hidden.leaks());
    let base = base.ok_or(MechanismError::NoBaseline)?;
    let (mut accuracies, mut gains) = (Vec::new(), Vec::new());
    for (seed, outcome) in &best.way.outcomes {
        let own = half(outcome.shares(best.readout), false);
        if let Some((_, without)) = base.outcomes.iter().find(|(other, _)| other == seed) {
            let without = half(without.shares(Readout::PLAIN), false);
            gains.push(own.iter().zip(&without).map(|(a, b)| a - b).collect());
        }
        accuracies.push(own);
    }
    let (accuracy, gain) = (Contrast::crossed(&accuracies), Contrast::crossed(&gains));
    let (Some(accuracy), Some(gain)) = (accuracy, gain) else { return Err(MechanismError::TooFewImages) };
    let rates: Vec<f64> = best.way.outcomes.iter().map(|(_, outcome)| outcome.spike_rate).collect();
    let chosen = chooses.iter().filter(|&&own| own).count();
    let base_synops = synops(base).unwrap_or(0.0);
    Ok(AdviceRow {
        stimulus,
        budget,
        trained: best.way.trained,
        hidden: best.way.hidden,
        readout: best.readout,
        chosen_accuracy: best.accuracy,
        accuracy: accuracy.mean,
        low: accuracy.interval().map(|i| i.low.max(0.0)),
        high: accuracy.interval().map(|i| i.high.min(1.0)),
        gain: gain.mean,
        gain_low: gain.interval().map(|i| i.low.max(-1.0)),
        gain_high: gain.interval().map(|i| i.high.min(1.0)),
        synops: best.synops,
        synops_ratio: if base_synops > 0.0 { best.synops / base_synops } else { 1.0 },
        spike_rate: mean(&rates).unwrap_or(0.0),
        candidates: candidates.len() as u64,
        seeds: accuracy.pairs as u64,
        images: chosen.min(chooses.len() - chosen) as u64,
    })
}

/// Advice for every noise of the study at the severity that was measured, without a budget.
pub fn rows(subjects: &Subjects, panel: &Panel) -> Rows<AdviceRow> {
    let mut table = Rows::new(
        "The most robust way to run these networks",
        format!(
            "The most accurate of all measured combinations of trained network, leak of the hidden layers \
             and readout, under each noise. It is chosen on every other test sample of each class, and its \
             accuracy is measured on the rest. The gain and the ratio of operations are relative to networks \
             trained {} and run without leak. `leaklab advise` gives advice for other severities and within \
             a budget of synaptic operations.",
            trained(subjects)
        ),
    );
    for &stimulus in subjects.stimuli.iter().filter(|&&stimulus| stimulus != Stimulus::Clean) {
        let ways: Vec<Way> = split::runs(subjects)
            .into_iter()
            .map(|(trained, hidden, members)| {
                let outcome = |s: &&Subject| (s.seed, panel.get(s, &everywhere(hidden), stimulus));
                Way { trained, hidden, outcomes: members.iter().map(outcome).collect() }
            })
            .collect();
        match choose(subjects, &ways, stimulus, None) {
            Ok(row) => table.rows.push(row),
            Err(error) => table.note(format!("{stimulus}: {error}.")),
        }
    }
    table
}

/// Images that [`measure`] shows.
pub fn images(subjects: &Subjects) -> u64 {
    let of = |members: &Vec<&Subject>| members.iter().map(|s| s.split.len() as u64).sum::<u64>();
    let all: u64 = split::runs(subjects).iter().map(|(.., members)| of(members)).sum();
    all * u64::from(subjects.presentations)
}

/// Advice for one stimulus. Stored runs are reused; the others are made now.
pub fn measure(
    subjects: &Subjects,
    stimulus: Stimulus,
    budget: Option<f64>,
    progress: &mut Progress,
) -> Result<AdviceRow, AnalysisError> {
    let mut measured = Vec::new();
    for (trained, hidden, members) in split::runs(subjects) {
        let mut outcomes = Vec::new();
        for subject in members {
            let (leak, shown) = (everywhere(hidden), Shown::Stimulus(stimulus));
            outcomes.push((subject.seed, subject.outcome(&leak, shown, subjects.presentations, progress)?));
        }
        measured.push((trained, hidden, outcomes));
    }
    let ways: Vec<Way> = measured
        .iter()
        .map(|(trained, hidden, outcomes)| Way {
            trained: *trained,
            hidden: *hidden,
            outcomes: outcomes.iter().map(|(seed, outcome)| (*seed, outcome)).collect(),
        })
        .collect();
    Ok(choose(subjects, &ways, stimulus, budget)?)
}
