//! The runs' values of each quantity, and contrasts between conditions.

use super::conditions::{Group, clean_accuracy, group};
use super::{CompareError, RunRecord};
use crate::analysis::contrast::Contrast;
use crate::analysis::generalisation::{Curve, log_ratio_at_equal_train_sse};
use leaklab_engine::LayerKind;
use leaklab_engine::noise::HIGHEST_SEVERITY;
use leaklab_record::tables::ActivityMeasure;
use leaklab_record::{NoiseKey, Quantity, Reading, Role, Scale, Stimulus};
use std::collections::HashMap;

/// Runs grouped by condition, with their values.
pub struct Comparison<'a> {
    groups: Vec<Group<'a>>,
    /// Quantities that some run has, in the order in which they were found.
    quantities: Vec<Quantity>,
    /// Value by quantity, condition and seed.
    values: HashMap<(Quantity, String, u64), f64>,
    /// Share of presentations in which each image was classified correctly, by stimulus, condition and seed.
    images: HashMap<(Stimulus, String, u64), Vec<f64>>,
    curves: HashMap<(String, u64), Curve>,
}

impl<'a> Comparison<'a> {
    /// Collects the values from the runs' tables.
    pub fn new(runs: &'a [RunRecord], baseline: Option<&str>) -> Result<Self, CompareError> {
        let mut comparison = Comparison {
            groups: group(runs, baseline)?,
            quantities: Vec::new(),
            values: HashMap::new(),
            images: HashMap::new(),
            curves: HashMap::new(),
        };
        for run in runs {
            let key = run.key();
            for (quantity, value) in numbers(run) {
                if !comparison.quantities.contains(&quantity) {
                    comparison.quantities.push(quantity.clone());
                }
                comparison.values.insert((quantity, key.condition.clone(), key.seed), value);
            }
            for (stimulus, scores) in scores(run) {
                comparison.images.insert((stimulus, key.condition.clone(), key.seed), scores);
            }
            if let Some(curve) = Curve::new(&run.epochs, run.config.last_drop()) {
                comparison.curves.insert((key.condition, key.seed), curve);
            }
        }
        if comparison.curves.len() > 1 {
            comparison.quantities.push(Quantity::TestSseAtEqualTrainSse);
        }
        Ok(comparison)
    }

    /// The conditions.
    pub fn groups(&self) -> &[Group<'a>] {
        &self.groups
    }

    /// A condition by name.
    pub fn group(&self, condition: &str) -> Option<&Group<'a>> {
        self.groups.iter().find(|group| group.row.condition == condition)
    }

    /// The condition that others are compared with.
    pub fn baseline(&self) -> &Group<'a> {
        let baseline = self.groups.iter().find(|group| group.row.role == Role::Baseline);
        baseline.unwrap_or(&self.groups[0])
    }

    /// One of the runs: all share data set and network.
    pub fn run(&self) -> &'a RunRecord {
        self.groups[0].runs[0]
    }

    /// The conditions that differ in tau alone and learned, from most to least leak.
    pub fn sweep(&self) -> Vec<&Group<'a>> {
        self.groups.iter().filter(|group| group.counts() && group.row.tau.is_some()).collect()
    }

    /// Quantities that some run has.
    pub fn quantities(&self) -> &[Quantity] {
        &self.quantities
    }

    /// The values of a condition, by seed.
    pub fn values(&self, quantity: &Quantity, condition: &str) -> Vec<f64> {
        let seeds =
            self.group(condition).into_iter().flat_map(|group| &group.runs).map(|run| run.config.seed);
        seeds.filter_map(|seed| self.value(quantity, condition, seed)).collect()
    }

    fn value(&self, quantity: &Quantity, condition: &str, seed: u64) -> Option<f64> {
        self.values.get(&(quantity.clone(), condition.to_owned(), seed)).copied()
    }

    /// Noises that some run was tested with.
    pub fn noises(&self) -> Vec<NoiseKey> {
        let noise = |quantity: &Quantity| {
            if let Quantity::Robustness(noise) = quantity { Some(*noise) } else { None }
        };
        self.quantities.iter().filter_map(noise).collect()
    }

    /// Seeds that both conditions have.
    fn seeds(&self, a: &str, b: &str) -> Vec<u64> {
        let seeds = |condition: &str| -> Vec<u64> {
            self.group(condition)
                .map_or_else(Vec::new, |g| g.runs.iter().map(|run| run.config.seed).collect())
        };
        let other = seeds(b);
        seeds(a).into_iter().filter(|seed| other.contains(seed)).collect()
    }

    /// For each image, the difference in correct answers between two runs, mean over some stimuli.
    fn image_differences(&self, stimuli: &[Stimulus], a: &str, b: &str, seed: u64) -> Option<Vec<f64>> {
        let mut sum: Vec<f64> = Vec::new();
        for &stimulus in stimuli {
            let of = |condition: &str| self.images.get(&(stimulus, condition.to_owned(), seed));
            let (a, b) = (of(a)?, of(b)?);
            if a.len() != b.len() || (!sum.is_empty() && sum.len() != a.len()) {
                return None;
            }
            sum.resize(a.len(), 0.0);
            sum.iter_mut()
                .zip(a.iter().zip(b))
                .for_each(|(sum, (a, b))| *sum += (a - b) / stimuli.len() as f64);
        }
        (!sum.is_empty()).then_some(sum)
    }

    /// The contrast of a quantity between two conditions, `a - b` or `a / b`, depending on the quantity. For
    /// ratios, standard errors are those of the logarithm.
    pub fn contrast(&self, quantity: &Quantity, a: &str, b: &str) -> Option<Contrast> {
        let contrast = self.raw_contrast(quantity, a, b)?;
        match quantity.scale() {
            Scale::Difference => Some(contrast),
            Scale::Ratio => Some(contrast.scaled(f64::exp)),
        }
    }

    fn raw_contrast(&self, quantity: &Quantity, a: &str, b: &str) -> Option<Contrast> {
        let seeds = self.seeds(a, b);
        if let Some(stimuli) = shares_of_images(quantity) {
            // Seeds whose results of single images are missing are omitted. If all are missing, the interval
            // is over seeds alone.
            let rows: Vec<Vec<f64>> =
                seeds.iter().filter_map(|&seed| self.image_differences(&stimuli, a, b, seed)).collect();
            if let Some(contrast) = Contrast::crossed(&rows) {
                return Some(contrast);
            }
        }
        let differences = seeds.into_iter().filter_map(|seed| {
            if *quantity == Quantity::TestSseAtEqualTrainSse {
                let curve = |condition: &str| self.curves.get(&(condition.to_owned(), seed));
                return log_ratio_at_equal_train_sse(curve(a)?, curve(b)?);
            }
            let (a, b) = (self.value(quantity, a, seed)?, self.value(quantity, b, seed)?);
            match quantity.scale() {
                Scale::Difference => Some(a - b),
                // A run whose value is 0 has no ratio.
                Scale::Ratio => (a > 0.0 && b > 0.0).then(|| a.ln() - b.ln()),
            }
        });
        Contrast::of_seeds(&differences.collect::<Vec<_>>())
    }

    /// The mean of a quantity over the seeds of a condition, with its interval: over seeds, and over images
    /// where it is a share of them.
    pub fn estimate(&self, quantity: &Quantity, condition: &str) -> Option<Contrast> {
        let group = self.group(condition)?;
        if let Some(stimuli) = shares_of_images(quantity) {
            let of =
                |seed: u64, stimulus: &Stimulus| self.images.get(&(*stimulus, condition.to_owned(), seed));
            let rows: Vec<Vec<f64>> = group
                .runs
                .iter()
                .filter_map(|run| {
                    let each: Option<Vec<&Vec<f64>>> =
                        stimuli.iter().map(|stimulus| of(run.config.seed, stimulus)).collect();
                    let each = each?;
                    let images = each.first()?.len();
                    let mean =
                        |i: usize| each.iter().map(|scores| scores[i]).sum::<f64>() / each.len() as f64;
                    each.iter().all(|scores| scores.len() == images).then(|| (0..images).map(mean).collect())
                })
                .collect();
            if let Some(estimate) = Contrast::crossed(&rows) {
                return Some(estimate);
            }
        }
        Contrast::of_seeds(&self.values(quantity, condition))
    }

    /// Number of seeds for which both conditions have a curve of test SSE against training SSE.
    pub fn pairs_of_curves(&self, a: &str, b: &str) -> usize {
        let has = |condition: &str, seed: u64| self.curves.contains_key(&(condition.to_owned(), seed));
        self.seeds(a, b).into_iter().filter(|&seed| has(a, seed) && has(b, seed)).count()
    }

    /// The curves of test SSE against training SSE of a condition's runs.
    pub(super) fn curves(&self, condition: &str) -> Vec<&Curve> {
        let runs = self.group(condition).into_iter().flat_map(|group| &group.runs);
        runs.filter_map(|run| self.curves.get(&(condition.to_owned(), run.config.seed))).collect()
    }
}

/// The stimuli over which a quantity is the mean share of correct images; `None` for other quantities.
fn shares_of_images(quantity: &Quantity) -> Option<Vec<Stimulus>> {
    match quantity {
        Quantity::Accuracy => Some(vec![Stimulus::Clean]),
        Quantity::AccuracyUnder(noise, severity) => Some(vec![Stimulus::at(*noise, *severity)]),
        Quantity::Robustness(noise) => {
            Some((1..=HIGHEST_SEVERITY).map(|severity| Stimulus::at(*noise, severity)).collect())
        }
        Quantity::RelativeRobustness(_)
        | Quantity::TestSse
        | Quantity::TrainSse
        | Quantity::RunningTrainSse
        | Quantity::SseGap
        | Quantity::TestSseAtEqualTrainSse
        | Quantity::SpikeRate
        | Quantity::Synops
        | Quantity::WeightedInputNorm(_)
        | Quantity::CriticalFrequency(..)
        | Quantity::CriticalRise(_)
        | Quantity::ZeroFrequencyShare(_) => None,
    }
}

/// Share of presentations in which each image was classified correctly, by stimulus.
fn scores(run: &RunRecord) -> Vec<(Stimulus, Vec<f64>)> {
    let mut found: Vec<(Stimulus, Vec<f64>, f64)> = Vec::new();
    for row in &run.correctness {
        let index = found.iter().position(|(stimulus, ..)| *stimulus == row.stimulus).unwrap_or_else(|| {
            found.push((row.stimulus, vec![0.0; row.correct.len()], 0.0));
            found.len() - 1
        });
        let (_, sums, count) = &mut found[index];
        if sums.len() == row.correct.len() {
            sums.iter_mut().zip(row.correct.iter()).for_each(|(sum, bit)| *sum += f64::from(u8::from(bit)));
            *count += 1.0;
        }
    }
    let mean = |(stimulus, sums, count): (Stimulus, Vec<f64>, f64)| {
        (stimulus, sums.into_iter().map(|sum| sum / count).collect())
    };
    found.into_iter().map(mean).collect()
}

/// Every quantity that a run's tables contain, with its value.
fn numbers(run: &RunRecord) -> Vec<(Quantity, f64)> {
    let mut found = Vec::new();
    let mut add = |quantity: Quantity, value: Option<f64>| found.extend(value.map(|value| (quantity, value)));
    add(Quantity::Accuracy, clean_accuracy(run));
    if let Some(row) = run.generalisation_summary.first() {
        add(Quantity::TestSse, row.test_sse);
        add(Quantity::TrainSse, row.train_sse);
        add(Quantity::RunningTrainSse, row.running_train_sse);
        add(Quantity::SseGap, row.test_sse.zip(row.train_sse).map(|(test, train)| test - train));
    }
    for row in &run.activity_summary {
        match row.quantity {
            ActivityMeasure::SpikeRate => add(Quantity::SpikeRate, Some(row.value)),
            ActivityMeasure::Synops => add(Quantity::Synops, Some(row.value)),
            ActivityMeasure::EffectiveAcs
            | ActivityMeasure::EffectiveMacs
            | ActivityMeasure::EffectiveNeuronOps
            | ActivityMeasure::DenseNeuronOps
            | ActivityMeasure::DenseMacs
            | ActivityMeasure::DenseSynops
            | ActivityMeasure::ActivationSparsity
            | ActivityMeasure::Footprint => {}
        }
    }
    for row in &run.activity {
        match row.kind {
            LayerKind::Conv | LayerKind::Full => {
                add(Quantity::WeightedInputNorm(row.layer.clone()), row.weighted_input_norm);
            }
            LayerKind::Pool | LayerKind::Output => {}
        }
    }
    for row in &run.robustness_summary {
        let noise = NoiseKey { noise: row.noise, scenario: row.scenario };
        add(Quantity::Robustness(noise), Some(row.robustness));
        add(Quantity::RelativeRobustness(noise), row.relative);
    }
    for row in run.robustness.iter().filter(|row| row.severity > 0) {
        let noise = NoiseKey { noise: row.noise, scenario: row.scenario };
        add(Quantity::AccuracyUnder(noise, row.severity as usize), Some(row.accuracy));
    }
    let critical = |reading: Reading, stimulus: Stimulus| {
        let row = run.critical_summary.iter().find(|row| row.reading == reading && row.stimulus == stimulus);
        row.and_then(|row| row.mean)
    };
    for row in &run.critical_summary {
        add(Quantity::CriticalFrequency(row.reading, row.stimulus), row.mean);
        add(Quantity::ZeroFrequencyShare(row.stimulus), row.zero_share);
        if row.reading == Reading::Defined && row.stimulus != Stimulus::Clean {
            let clean = critical(Reading::Defined, Stimulus::Clean);
            add(
                Quantity::CriticalRise(row.stimulus),
                row.mean.zip(clean).map(|(noisy, clean)| noisy - clean),
            );
        }
    }
    found
}
