//! The comparison's tables: what the paper's Table 1 and figures show, as means over seeds.

use super::Comparison;
use crate::analysis::contrast::Contrast;
use crate::analysis::generalisation::{self, PAPER_FACTOR};
use crate::analysis::statistics::{mean, standard_error};
use crate::analysis::{energy, published};
use leaklab_engine::noise::HIGHEST_SEVERITY;
use leaklab_record::tables::{
    ConditionRow, ContrastRow, CriticalByConditionRow, EqualTrainSseRow, GeneralisationByConditionRow,
    NormByConditionRow, RobustnessByConditionRow, RunRow, Table1Row, TradeoffRow,
};
use leaklab_record::{NoiseKey, Quantity, Role, Rows, Table};

/// All tables except the verdicts.
pub(super) fn all(comparison: &Comparison) -> Vec<Table> {
    vec![
        conditions(comparison).table(),
        runs(comparison).table(),
        table1(comparison).table(),
        robustness(comparison).table(),
        generalisation(comparison).table(),
        equal_train_sse(comparison).table(),
        norms(comparison).table(),
        critical(comparison).table(),
        tradeoff(comparison).table(),
        contrasts(comparison).table(),
    ]
}

/// Names of the conditions that figures show: all except the probes.
fn shown<'a>(comparison: &'a Comparison) -> impl Iterator<Item = &'a str> {
    let groups = comparison.groups().iter().filter(|group| group.row.role != Role::Probe);
    groups.map(|group| group.row.condition.as_str())
}

fn conditions(comparison: &Comparison) -> Rows<ConditionRow> {
    let mut table = Rows::new(
        "The conditions",
        "A run learned if its clean accuracy exceeds chance by at least half of what the best condition's \
         mean does. Conditions in which not every run learned are shown and named, but excluded from claims \
         1 to 6, from the trade-off and from the opening sentence.",
    );
    table.rows.extend(comparison.groups().iter().map(|group| group.row.clone()));
    table
}

fn runs(comparison: &Comparison) -> Rows<RunRow> {
    let mut table = Rows::new("The runs", "Clean test accuracy of every run, and whether it learned.");
    table.rows.extend(comparison.groups().iter().flat_map(|group| group.rows.clone()));
    table
}

fn table1(comparison: &Comparison) -> Rows<Table1Row> {
    let mut table = Rows::new(
        "The paper's Table 1",
        "Mean over seeds and its standard error. Accuracy on clean test samples. SSE averaged over the last \
         epochs, after the last reduction of the learning rate, and 32 times that, which is the scale of the \
         paper's SSE; the paper's training SSE is the running one, and ours in evaluation is given as well. \
         Spikes per neuron and step of hidden conv and FC layers. Synaptic operations of one inference. The \
         paper's values are given only if the data set and the network are the paper's.",
    );
    let config = &comparison.run().config;
    let network = config.network.to_string();
    let rows = [
        (Quantity::Accuracy, 1.0),
        (Quantity::TestSse, 1.0),
        (Quantity::TestSse, PAPER_FACTOR),
        (Quantity::TrainSse, 1.0),
        (Quantity::RunningTrainSse, 1.0),
        (Quantity::RunningTrainSse, PAPER_FACTOR),
        (Quantity::SpikeRate, 1.0),
        (Quantity::Synops, 1.0),
    ];
    for (quantity, factor) in rows {
        for condition in shown(comparison) {
            let values = comparison.values(&quantity, condition);
            let tau = comparison.group(condition).and_then(|group| group.row.tau);
            let paper = published::value(&config.dataset, &network, &quantity, tau);
            table.rows.push(Table1Row {
                quantity: quantity.clone(),
                factor,
                condition: condition.to_owned(),
                mean: mean(&values),
                standard_error: standard_error(&values),
                seeds: values.len() as u64,
                paper: paper.filter(|paper| paper.1 == factor).map(|paper| paper.0),
                unit: quantity.unit(),
            });
        }
    }
    if !published::matches(&config.dataset, &network) {
        table.note(
            "The paper's values are for CIFAR-10 and SVHN with its own networks, so none is given \
                    here.",
        );
    }
    table
}

/// Ends of an interval, limited to a range.
fn ends(estimate: &Contrast, range: (f64, f64)) -> (Option<f64>, Option<f64>) {
    let interval = estimate.interval();
    (interval.map(|i| i.low.max(range.0)), interval.map(|i| i.high.min(range.1)))
}

fn robustness(comparison: &Comparison) -> Rows<RobustnessByConditionRow> {
    let mut table = Rows::new(
        "Accuracy against severity of noise (Fig. 3)",
        "Mean accuracy over seeds at each severity, with a 95 % interval over seeds and test samples, \
         limited to 0..1. Differences between conditions are paired and therefore much more precise: see the \
         table of contrasts.",
    );
    for noise in comparison.noises() {
        for severity in 0..=HIGHEST_SEVERITY {
            let quantity =
                if severity == 0 { Quantity::Accuracy } else { Quantity::AccuracyUnder(noise, severity) };
            for condition in shown(comparison) {
                let Some(estimate) = comparison.estimate(&quantity, condition) else { continue };
                let (low, high) = ends(&estimate, (0.0, 1.0));
                table.rows.push(RobustnessByConditionRow {
                    noise: noise.noise,
                    scenario: noise.scenario,
                    severity: severity as u64,
                    level: level(comparison, noise, severity),
                    condition: condition.to_owned(),
                    mean: estimate.mean,
                    low,
                    high,
                    seeds: estimate.pairs as u64,
                });
            }
        }
    }
    table
}

/// The level of a noise at a severity, from the runs' own tables.
fn level(comparison: &Comparison, noise: NoiseKey, severity: usize) -> f64 {
    let runs = comparison.groups().iter().flat_map(|group| &group.runs);
    let mut rows = runs.flat_map(|run| &run.robustness);
    let same = |row: &&leaklab_record::tables::RobustnessRow| {
        (row.noise, row.scenario, row.severity) == (noise.noise, noise.scenario, severity as u64)
    };
    rows.find(same).map_or(0.0, |row| row.level)
}

fn generalisation(comparison: &Comparison) -> Rows<GeneralisationByConditionRow> {
    let mut table = Rows::new(
        "Test against training error, epoch by epoch (Fig. 5d,e)",
        "Means over seeds of the test and training SSE after each epoch, both in evaluation. A run is \
         omitted at epochs that it lacks or at which its SSE is not finite.",
    );
    for condition in shown(comparison) {
        let runs = &comparison.group(condition).expect("a condition that is shown").runs;
        let last =
            runs.iter().filter_map(|run| run.epochs.last()).map(|epoch| epoch.epoch).max().unwrap_or(0);
        for number in 1..=last {
            let points = runs.iter().filter_map(|run| {
                let epoch = run.epochs.iter().find(|epoch| epoch.epoch == number)?;
                let (train, test) = epoch.train_sse_evaluated.zip(epoch.test_sse)?;
                (train.is_finite() && test.is_finite()).then_some((train, test))
            });
            let (train, test): (Vec<f64>, Vec<f64>) = points.unzip();
            let Some((train_sse, test_sse)) = mean(&train).zip(mean(&test)) else { continue };
            table.rows.push(GeneralisationByConditionRow {
                condition: condition.to_owned(),
                epoch: number,
                train_sse,
                test_sse,
                seeds: train.len() as u64,
            });
        }
    }
    table
}

fn equal_train_sse(comparison: &Comparison) -> Rows<EqualTrainSseRow> {
    let mut table = Rows::new(
        "Test error at equal training error",
        "Test SSE of each run as a function of its training SSE, both in evaluation, interpolated linearly \
         between logarithms. Only the last epochs count, after the last reduction of the learning rate, and \
         only training SSEs that every run has in them. Mean over seeds with a 95 % interval (Student's t).",
    );
    let conditions: Vec<&str> =
        shown(comparison).filter(|name| !comparison.curves(name).is_empty()).collect();
    let curves: Vec<_> = conditions.iter().flat_map(|condition| comparison.curves(condition)).collect();
    let Some(grid) = generalisation::settled_grid(&curves).filter(|_| !curves.is_empty()) else {
        table.note(
            "The training SSEs of the runs' last epochs have no common range, so the runs cannot be compared \
             at equal training SSE.",
        );
        return table;
    };
    for x in grid {
        for condition in &conditions {
            let values: Vec<f64> =
                comparison.curves(condition).iter().map(|curve| curve.at(x).exp()).collect();
            let Some(estimate) = Contrast::of_seeds(&values) else { continue };
            let (low, high) = ends(&estimate, (0.0, f64::MAX));
            table.rows.push(EqualTrainSseRow {
                train_sse: x.exp(),
                condition: (*condition).to_owned(),
                mean: estimate.mean,
                low,
                high,
                seeds: estimate.pairs as u64,
            });
        }
    }
    table
}

fn norms(comparison: &Comparison) -> Rows<NormByConditionRow> {
    let mut table = Rows::new(
        "Weighted input of each layer (Fig. 6)",
        "Time mean of the Euclidean norm over a layer of the weighted input (W O_in)[t], mean over samples; \
         mean over seeds with a 95 % interval (Student's t).",
    );
    for quantity in comparison.quantities() {
        let Quantity::WeightedInputNorm(layer) = quantity else { continue };
        for condition in shown(comparison) {
            let Some(estimate) = comparison.estimate(quantity, condition) else { continue };
            let (low, high) = ends(&estimate, (0.0, f64::MAX));
            table.rows.push(NormByConditionRow {
                layer: layer.clone(),
                condition: condition.to_owned(),
                mean: estimate.mean,
                low,
                high,
                seeds: estimate.pairs as u64,
            });
        }
    }
    table
}

fn critical(comparison: &Comparison) -> Rows<CriticalByConditionRow> {
    let config = &comparison.run().config;
    let network = config.network.to_string();
    let mut table = Rows::new(
        "Critical frequency of the target output (Fig. 5a-c)",
        "Frequency below which 70 % of the power of the target output's input lies, mean over samples, then \
         mean over seeds with a 95 % interval (Student's t); in three readings.",
    );
    for condition in shown(comparison) {
        for quantity in comparison.quantities() {
            let Quantity::CriticalFrequency(reading, stimulus) = quantity else { continue };
            let Some(estimate) = comparison.estimate(quantity, condition) else { continue };
            let (low, high) = ends(&estimate, (0.0, 0.5));
            let tau = comparison.group(condition).and_then(|group| group.row.tau);
            let paper = published::value(&config.dataset, &network, quantity, tau);
            table.rows.push(CriticalByConditionRow {
                condition: condition.to_owned(),
                stimulus: *stimulus,
                reading: *reading,
                mean: estimate.mean,
                low,
                high,
                seeds: estimate.pairs as u64,
                paper: paper.map(|paper| paper.0),
            });
        }
    }
    table
}

fn tradeoff(comparison: &Comparison) -> Rows<TradeoffRow> {
    let noises = comparison.noises();
    let names: Vec<String> = noises.iter().map(|noise| noise.words()).collect();
    let mut table = Rows::new(
        "What leak costs and what it gains",
        format!(
            "Synaptic operations per sample against robustness, which is the mean accuracy over severities 1 \
             to 8 of the noises that the study tests ({}). Half-widths are of 95 % intervals over seeds. A \
             condition is on the Pareto front if no other is at least as good in both and better in one.",
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        ),
    );
    let counting = comparison.groups().iter().filter(|group| group.counts());
    for group in counting {
        let condition = group.row.condition.as_str();
        let synops = comparison.estimate(&Quantity::Synops, condition);
        // First the mean of each run, then that over seeds, so that the spread over seeds is known.
        let of_noise: Vec<Vec<f64>> =
            noises.iter().map(|noise| comparison.values(&Quantity::Robustness(*noise), condition)).collect();
        let complete = !of_noise.is_empty() && of_noise.iter().all(|values| values.len() == group.runs.len());
        let of_run = |i: usize| of_noise.iter().map(|values| values[i]).sum::<f64>() / of_noise.len() as f64;
        let robustness: Vec<f64> =
            if complete { (0..group.runs.len()).map(of_run).collect() } else { Vec::new() };
        let Some((synops, robustness)) = synops.zip(Contrast::of_seeds(&robustness)) else { continue };
        let half = |contrast: Contrast| contrast.interval().map(|i| 0.5 * (i.high - i.low));
        table.rows.push(TradeoffRow {
            condition: condition.to_owned(),
            synops: synops.mean,
            synops_half: half(synops),
            energy: energy::MODELS[0].spiking(synops.mean),
            robustness: robustness.mean,
            robustness_half: half(robustness),
            accuracy: mean(&comparison.values(&Quantity::Accuracy, condition)),
            pareto: false,
        });
    }
    let points: Vec<(f64, f64)> = table.rows.iter().map(|row| (row.synops, row.robustness)).collect();
    for row in &mut table.rows {
        let better = |&(x, y): &(f64, f64)| {
            x <= row.synops && y >= row.robustness && (x < row.synops || y > row.robustness)
        };
        row.pareto = !points.iter().any(better);
    }
    if table.rows.len() < shown(comparison).count() {
        table.note(
            "Conditions that did not learn, or that lack the analyses activity and robustness, are omitted.",
        );
    }
    table
}

fn contrasts(comparison: &Comparison) -> Rows<ContrastRow> {
    let mut table = Rows::new(
        "Contrasts between conditions",
        "Value of a minus value of b, or a over b if the unit is a ratio, in pairs of runs with the same \
         seed: mean, and 95 % interval. The interval includes the variation over seeds and, for shares of \
         samples, over test samples (crossed), each with Student's t for its own degrees of freedom; it is \
         never narrower than either alone. For ratios, errors are those of the logarithm. p values are not \
         corrected for the number of rows.",
    );
    let names: Vec<&str> = shown(comparison).collect();
    for quantity in comparison.quantities() {
        for (i, a) in names.iter().enumerate() {
            for b in &names[i + 1..] {
                let Some(contrast) = comparison.contrast(quantity, a, b) else { continue };
                // The baseline is always `b`: a contrast is a condition's difference from it.
                let (a, b, contrast) = match comparison.baseline().row.condition.as_str() {
                    base if base == *a => match comparison.contrast(quantity, b, a) {
                        Some(reversed) => (b, a, reversed),
                        None => continue,
                    },
                    _ => (a, b, contrast),
                };
                let interval = contrast.interval();
                let finite = |x: f64| Some(x).filter(|x| x.is_finite());
                table.rows.push(ContrastRow {
                    quantity: quantity.clone(),
                    a: (*a).to_owned(),
                    b: (*b).to_owned(),
                    mean: contrast.mean,
                    low: interval.and_then(|i| finite(i.low)),
                    high: interval.and_then(|i| finite(i.high)),
                    p: contrast.worth.map(|worth| worth.p),
                    pairs: contrast.pairs as u64,
                    seed_error: contrast.worth.map(|worth| worth.seed_error),
                    image_error: contrast.worth.and_then(|worth| worth.image_error),
                    unit: quantity.contrast_unit(),
                });
            }
        }
    }
    table
}
