//! The gain and the price of leak, split into training, hidden layers and readout; and all cells from which
//! they are computed.

use super::cell::Outcome;
use super::layers::trained;
use super::readout::time_constants;
use super::shapley::{Combinations, sixfold};
use super::subject::{Subject, everywhere};
use super::subjects::{Panel, Subjects};
use crate::analysis::contrast::Contrast;
use crate::analysis::statistics::mean;
use leaklab_engine::Tau;
use leaklab_record::tables::{CellRow, PriceRow, SplitRow};
use leaklab_record::{Part, PriceMeasure, Readout, Rows, Stimulus};

/// The gain under one stimulus, in parts.
pub struct Split {
    /// The leak.
    pub tau: Tau,
    /// The stimulus.
    pub stimulus: Stimulus,
    /// The parts, in the order of [`Part::ALL`]; training is omitted for a single run, which has no other
    /// training to compare with.
    pub parts: Vec<(Part, Contrast)>,
    /// Test images.
    pub images: u64,
}

impl Split {
    /// The contrast of a part.
    pub fn part(&self, part: Part) -> Option<&Contrast> {
        self.parts.iter().find(|(own, _)| *own == part).map(|(_, contrast)| contrast)
    }
}

/// Which factors are switched on in combination `i`: weights trained with leak, leak in the hidden layers,
/// leak in the readout.
fn factors(i: usize) -> [bool; 3] {
    [0, 1, 2].map(|factor| i >> factor & 1 == 1)
}

/// The run of the hidden layers that combination `i` needs.
fn outcome<'a>(
    panel: &'a Panel,
    (without, with): (&Subject, &Subject),
    tau: Tau,
    stimulus: Stimulus,
    i: usize,
) -> &'a Outcome {
    let [trained, hidden, _] = factors(i);
    let leak = everywhere(if hidden { tau } else { Tau::INFINITE });
    panel.get(if trained { with } else { without }, &leak, stimulus)
}

/// For every image, six times each part of the gain, counted in presentations, in the order training, hidden
/// layers, readout. These are whole numbers that sum to six times the gain.
pub fn sixths(panel: &Panel, pair: (&Subject, &Subject), tau: Tau, stimulus: Stimulus) -> Vec<[i64; 3]> {
    let counts: Combinations<Vec<i64>> = std::array::from_fn(|i| {
        let [.., readout] = factors(i);
        let readout = Readout::Leaky(if readout { tau } else { Tau::INFINITE });
        outcome(panel, pair, tau, stimulus, i).counts(readout)
    });
    (0..pair.0.split.len()).map(|image| sixfold(&std::array::from_fn(|i| counts[i][image]))).collect()
}

/// The gain of every tau under every stimulus.
pub fn splits(subjects: &Subjects, panel: &Panel) -> Vec<Split> {
    let mut all = Vec::new();
    for &tau in &subjects.taus {
        for &stimulus in &subjects.stimuli {
            let pairs = subjects.pairs(tau);
            let sixths: Vec<Vec<[i64; 3]>> =
                pairs.iter().map(|&pair| sixths(panel, pair, tau, stimulus)).collect();
            let share = |number: i64| number as f64 / (6 * i64::from(subjects.presentations)) as f64;
            let part = |part: Part| {
                let of = |parts: &[i64; 3]| match part {
                    Part::Total => parts.iter().sum::<i64>(),
                    Part::Training => parts[0],
                    Part::Hidden => parts[1],
                    Part::Readout => parts[2],
                };
                let rows: Vec<Vec<f64>> =
                    sixths.iter().map(|images| images.iter().map(|p| share(of(p))).collect()).collect();
                Contrast::crossed(&rows).map(|contrast| (part, contrast))
            };
            let wanted =
                Part::ALL.into_iter().filter(|&p| p != Part::Training || subjects.trained_with_leak());
            let images = pairs.first().map_or(0, |pair| pair.0.split.len() as u64);
            all.push(Split { tau, stimulus, parts: wanted.filter_map(part).collect(), images });
        }
    }
    all
}

/// The table of gains.
pub fn gains(subjects: &Subjects, splits: &[Split]) -> Rows<SplitRow> {
    let gain = match subjects.trained_with_leak() {
        true => "A(tau, tau, tau) - A(inf, inf, inf)".to_owned(),
        false => format!("A(w, tau, tau) - A(w, inf, inf) of weights trained {}", trained(subjects)),
    };
    let mut table = Rows::new(
        "Where the gain comes from: training, hidden layers, readout",
        format!(
            "A(w, h, r): accuracy of weights trained with time constant w, run with h in all hidden layers \
             and r in the readout, on the same samples and input spikes. The gain {gain} is split by the \
             Shapley value: the change that switching each place to leak causes, mean over all orders in \
             which the places can be switched one after the other (six for three places). The parts sum to \
             the total. Intervals (95 %) include the variation over seeds and samples."
        ),
    );
    for split in splits {
        for (part, contrast) in &split.parts {
            let interval = contrast.interval();
            table.rows.push(SplitRow {
                tau: split.tau,
                stimulus: split.stimulus,
                part: *part,
                mean: contrast.mean,
                low: interval.map(|i| i.low),
                high: interval.map(|i| i.high),
                p: contrast.worth.map(|worth| worth.p),
                seeds: contrast.pairs as u64,
                images: split.images,
                presentations: u64::from(subjects.presentations),
            });
        }
    }
    table
}

/// The table of prices: spikes and operations, split in the same way.
pub fn prices(subjects: &Subjects, panel: &Panel) -> Rows<PriceRow> {
    let mut table = Rows::new(
        "Where the price comes from",
        format!(
            "Spikes per neuron and step of the hidden conv and FC layers, and synaptic operations per \
             sample, of the same cells and split in the same way as the gain. The baseline is trained {} and \
             run without leak. The readout costs nothing. Intervals (95 %) are over seeds.",
            trained(subjects)
        ),
    );
    for &tau in &subjects.taus {
        for &stimulus in &subjects.stimuli {
            for measure in PriceMeasure::ALL {
                let of = |outcome: &Outcome| match measure {
                    PriceMeasure::SpikeRate => outcome.spike_rate,
                    PriceMeasure::Synops => outcome.synops,
                };
                let values: Vec<Combinations<f64>> = subjects
                    .pairs(tau)
                    .into_iter()
                    .map(|pair| std::array::from_fn(|i| of(outcome(panel, pair, tau, stimulus, i))))
                    .collect();
                let baseline = mean(&values.iter().map(|value| value[0]).collect::<Vec<_>>()).unwrap_or(0.0);
                for part in Part::ALL {
                    if part == Part::Training && !subjects.trained_with_leak() {
                        continue;
                    }
                    let change = |value: &Combinations<f64>| match part {
                        Part::Total => value[7] - value[0],
                        Part::Training => sixfold(value)[0] / 6.0,
                        Part::Hidden => sixfold(value)[1] / 6.0,
                        Part::Readout => sixfold(value)[2] / 6.0,
                    };
                    let changes: Vec<f64> = values.iter().map(change).collect();
                    let Some(contrast) = Contrast::of_seeds(&changes) else { continue };
                    let interval = contrast.interval();
                    table.rows.push(PriceRow {
                        tau,
                        stimulus,
                        measure,
                        part,
                        mean: contrast.mean,
                        low: interval.map(|i| i.low),
                        high: interval.map(|i| i.high),
                        baseline,
                        seeds: contrast.pairs as u64,
                    });
                }
            }
        }
    }
    table
}

/// The table of cells: every way of running the networks that was measured, with every leaky readout.
pub fn cells(subjects: &Subjects, panel: &Panel) -> Rows<CellRow> {
    let mut table = Rows::new(
        "Trained with one leak, run with another",
        "Accuracy, spikes and operations of weights trained with one time constant, run with another in all \
         hidden layers and with a third in the readout, on the same samples and input spikes. All readouts \
         come from one run of the hidden layers. Intervals (95 %) include the variation over seeds and \
         samples.",
    );
    for (trained, hidden, members) in runs(subjects) {
        let Some(first) = members.first() else { continue };
        for readout in time_constants(&subjects.taus, first.steps()).into_iter().map(Readout::Leaky) {
            for &stimulus in &subjects.stimuli {
                let outcomes: Vec<&Outcome> =
                    members.iter().map(|s| panel.get(s, &everywhere(hidden), stimulus)).collect();
                let shares: Vec<Vec<f64>> = outcomes.iter().map(|outcome| outcome.shares(readout)).collect();
                let Some(contrast) = Contrast::crossed(&shares) else { continue };
                let interval = contrast.interval();
                let of_seeds = |of: fn(&Outcome) -> f64| {
                    mean(&outcomes.iter().map(|outcome| of(outcome)).collect::<Vec<_>>()).unwrap_or(0.0)
                };
                table.rows.push(CellRow {
                    trained,
                    hidden,
                    readout,
                    stimulus,
                    accuracy: contrast.mean,
                    low: interval.map(|i| i.low.max(0.0)),
                    high: interval.map(|i| i.high.min(1.0)),
                    spike_rate: of_seeds(|outcome| outcome.spike_rate),
                    synops: of_seeds(|outcome| outcome.synops),
                    seeds: members.len() as u64,
                    images: first.split.len() as u64,
                    presentations: u64::from(subjects.presentations),
                });
            }
        }
    }
    table
}

/// Every combination of training and hidden leak that is measured, with its networks.
pub fn runs(subjects: &Subjects) -> Vec<(Tau, Tau, Vec<&Subject>)> {
    let mut all = Vec::new();
    let trained = subjects.reference.first().map_or(Tau::INFINITE, |subject| subject.trained);
    for hidden in subjects.taus.iter().copied().chain([Tau::INFINITE]) {
        all.push((trained, hidden, subjects.reference.iter().collect()));
    }
    for (tau, members) in &subjects.leaky {
        for hidden in [*tau, Tau::INFINITE] {
            all.push((*tau, hidden, members.iter().collect()));
        }
    }
    all
}
