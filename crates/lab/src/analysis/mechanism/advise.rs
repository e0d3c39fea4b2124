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

/// Which shares of the images are used: those of the choosing half, or the others.
fn half(shares: Vec<f64>, chooses: &[bool], choosing: bool) -> Vec<f64> {
    shares.into_iter().zip(chooses).filter(|(_, own)| **own == choosing).map(|(share, _)| share).collect()
}

impl<'a> Way<'a> {
    /// Synaptic operations per image, mean over seeds.
    fn synops(&self) -> Option<f64> {
        mean(&self.outcomes.iter().map(|(_, outcome)| outcome.synops).collect::<Vec<_>>())
    }

    /// This way with every readout, measured on the choosing half.
    fn candidates(
        &'a self,
        readouts: &'a [Readout],
        chooses: &'a [bool],
    ) -> impl Iterator<Item = Candidate<'a>> {
        let synops = self.synops().unwrap_or(0.0);
        readouts.iter().map(move |&readout| {
            let of_seed =
                |(_, outcome): &(u64, &Outcome)| mean(&half(outcome.shares(readout), chooses, true));
            let accuracies: Vec<f64> = self.outcomes.iter().filter_map(of_seed).collect();
            Candidate { way: self, readout, synops, accuracy: mean(&accuracies).unwrap_or(0.0) }
        })
    }

    /// Accuracy with a readout minus that of another way with its readout, on the other half, in pairs of
    /// runs with the same seed.
    fn gain(&self, readout: Readout, over: (&Way, Readout), chooses: &[bool]) -> Option<Contrast> {
        let pair = |(seed, outcome): &(u64, &Outcome)| {
            let (_, without) = over.0.outcomes.iter().find(|(other, _)| other == seed)?;
            let own = half(outcome.shares(readout), chooses, false);
            let without = half(without.shares(over.1), chooses, false);
            Some(own.iter().zip(&without).map(|(a, b)| a - b).collect())
        };
        Contrast::crossed(&self.outcomes.iter().filter_map(pair).collect::<Vec<Vec<f64>>>())
    }
}

/// The most accurate candidate; of equals the cheapest, then the first.
fn best<'a>(candidates: impl Iterator<Item = Candidate<'a>>) -> Option<Candidate<'a>> {
    candidates.reduce(|best, next| {
        let better = next.accuracy > best.accuracy;
        if better || (next.accuracy == best.accuracy && next.synops < best.synops) { next } else { best }
    })
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
    let readouts = readouts(subjects, first.steps());
    let affordable = |way: &&Way| budget.is_none_or(|budget| way.synops().unwrap_or(0.0) <= budget);
    let within: Vec<&Way> = ways.iter().filter(affordable).collect();
    let cheapest = ways.iter().filter_map(Way::synops).fold(f64::INFINITY, f64::min);
    let chosen = best(within.iter().flat_map(|way| way.candidates(&readouts, &chooses)));
    let chosen = chosen.ok_or(MechanismError::Budget { budget: budget.unwrap_or(0.0), cheapest })?;
    let base = ways.iter().find(|way| way.trained == first.trained && !way.hidden.leaks());
    let base = base.ok_or(MechanismError::NoBaseline)?;
    let base_readout = best(base.candidates(&readouts, &chooses)).map(|candidate| candidate.readout);
    let Candidate { way, readout, .. } = chosen;
    let accuracies = way.outcomes.iter().map(|(_, outcome)| half(outcome.shares(readout), &chooses, false));
    let accuracy = Contrast::crossed(&accuracies.collect::<Vec<_>>());
    let gain = way.gain(readout, (base, Readout::PLAIN), &chooses);
    let (Some(accuracy), Some(gain)) = (accuracy, gain) else { return Err(MechanismError::TooFewImages) };
    let over_readout = base_readout.and_then(|own| way.gain(readout, (base, own), &chooses));
    let over_interval = over_readout.as_ref().and_then(Contrast::interval);
    let rates: Vec<f64> = way.outcomes.iter().map(|(_, outcome)| outcome.spike_rate).collect();
    let images = chooses.iter().filter(|&&own| own).count();
    let base_synops = base.synops().unwrap_or(0.0);
    Ok(AdviceRow {
        stimulus,
        budget,
        trained: way.trained,
        hidden: way.hidden,
        readout,
        chosen_accuracy: chosen.accuracy,
        accuracy: accuracy.mean,
        low: accuracy.interval().map(|i| i.low.max(0.0)),
        high: accuracy.interval().map(|i| i.high.min(1.0)),
        gain: gain.mean,
        gain_low: gain.interval().map(|i| i.low.max(-1.0)),
        gain_high: gain.interval().map(|i| i.high.min(1.0)),
        baseline_readout: base_readout,
        gain_over_readout: over_readout.as_ref().map(|gain| gain.mean),
        gain_over_readout_low: over_interval.map(|i| i.low.max(-1.0)),
        gain_over_readout_high: over_interval.map(|i| i.high.min(1.0)),
        synops: chosen.synops,
        synops_ratio: if base_synops > 0.0 { chosen.synops / base_synops } else { 1.0 },
        spike_rate: mean(&rates).unwrap_or(0.0),
        candidates: (within.len() * readouts.len()) as u64,
        seeds: accuracy.pairs as u64,
        images: images.min(chooses.len() - images) as u64,
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
             trained {} and run without leak: read by a plain sum, and with the readout that is best for \
             them, chosen in the same way. `leaklab advise` gives advice for other severities and within \
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

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: Readout = Readout::Window { first: 3, last: 4 };
    /// Images 0, 1 and 2 choose; 3, 4 and 5 measure.
    const CHOOSES: [bool; 6] = [true, true, true, false, false, false];

    fn outcome(plain: [u8; 6], late: [u8; 6], synops: f64) -> Outcome {
        let [plain, late] = [plain, late].map(|answers| answers.map(|answer| answer == 1));
        Outcome::of(&[(Readout::PLAIN, &plain), (LATE, &late)], synops)
    }

    fn way(hidden: Tau, outcomes: &[Outcome; 2]) -> Way<'_> {
        let outcomes = outcomes.iter().enumerate().map(|(seed, own)| (seed as u64, own)).collect();
        Way { trained: Tau::INFINITE, hidden, outcomes }
    }

    #[test]
    fn chosen_on_one_half_and_compared_on_the_other() {
        let leaky = [
            outcome([1, 1, 0, 1, 1, 0], [1, 1, 1, 1, 1, 0], 5.0),
            outcome([1, 1, 0, 1, 1, 0], [1, 1, 1, 1, 1, 1], 7.0),
        ];
        // The plain sum is better on the measuring half, which must not matter for the choice.
        let base = [
            outcome([0, 0, 1, 1, 0, 1], [1, 1, 0, 0, 0, 1], 3.0),
            outcome([0, 0, 1, 1, 0, 1], [1, 1, 0, 0, 1, 0], 3.0),
        ];
        let (leaky, base) = (way(Tau::new(4.0).unwrap(), &leaky), way(Tau::INFINITE, &base));
        let readouts = [Readout::PLAIN, LATE];
        let ways = [&base, &leaky];
        let chosen = best(ways.iter().flat_map(|way| way.candidates(&readouts, &CHOOSES))).unwrap();
        assert_eq!((chosen.way.hidden, chosen.readout), (leaky.hidden, LATE));
        assert_eq!((chosen.accuracy, chosen.synops), (1.0, 6.0));
        let own = best(base.candidates(&readouts, &CHOOSES)).unwrap().readout;
        assert_eq!(own, LATE);
        // On the measuring half, LATE of the leaky way is right in 2 and 3 of 3 images, and the base in 2 and
        // 2 with the plain sum, and in 1 and 1 with its own readout.
        let gain = |over| leaky.gain(LATE, (&base, over), &CHOOSES).unwrap().mean;
        assert!((gain(Readout::PLAIN) - 0.5 / 3.0).abs() < 1e-12);
        assert!((gain(own) - 1.5 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn of_equal_candidates_the_cheapest_is_chosen() {
        let dear = [outcome([1; 6], [0; 6], 9.0), outcome([1; 6], [0; 6], 9.0)];
        let cheap = [outcome([1; 6], [1; 6], 2.0), outcome([1; 6], [1; 6], 2.0)];
        let (dear, cheap) = (way(Tau::new(4.0).unwrap(), &dear), way(Tau::INFINITE, &cheap));
        let readouts = [Readout::PLAIN, LATE];
        let ways = [&dear, &cheap];
        let chosen = best(ways.iter().flat_map(|way| way.candidates(&readouts, &CHOOSES))).unwrap();
        assert_eq!((chosen.synops, chosen.readout), (2.0, Readout::PLAIN), "the first of the cheapest");
    }
}
