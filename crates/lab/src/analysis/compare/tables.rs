//! The comparison's tables: what the paper's Table 1 and figures show, over seeds.

use super::RunRecord;
use super::series::{Series, clean_accuracy, each_row, step};
use crate::analysis::generalisation::{self, Curve};
use crate::analysis::statistics::{self, standard_error, stepped_mean_interval};
use crate::analysis::{energy, published};
use leaklab_record::health::Trouble;
use leaklab_record::{Cell, Table, number_text};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn table1(run: &RunRecord, taus: &[String], series: &[Series]) -> Table {
    let mut table = Table::new(
        "table1",
        "The paper's Table 1",
        "Mean over seeds ± standard error. Accuracy on clean test images; SSE averaged over the last epochs of \
         training, and 32 times that, which is the size of the paper's; spikes per neuron and step of hidden conv and \
         FC layers; synaptic operations of one inference. The paper's value stands beside ours only where data set \
         and network are the paper's.",
        &[
            ("quantity", "", "Row of the table."),
            ("tau", "steps", "Membrane time constant."),
            ("mean", "", "Mean over seeds, in `unit`."),
            ("standard_error", "", "Standard error of the mean; empty with one seed."),
            ("seeds", "", "Runs."),
            ("paper", "", "The paper's value."),
            ("unit", "", "Unit of the row."),
        ],
    );
    let rows = [
        "accuracy",
        "test_sse",
        "test_sse_times_32",
        "train_sse",
        "train_sse_times_32",
        "spike_rate",
        "synops",
    ];
    for quantity in rows {
        let Some(s) = series.iter().find(|s| s.quantity == quantity) else {
            table.notes.push(format!("{quantity}: no run has it; run its analysis first."));
            continue;
        };
        for tau in taus {
            let values = s.plain(tau);
            table.push(vec![
                quantity.into(),
                tau.as_str().into(),
                Cell::from(statistics::mean(&values)),
                Cell::from(standard_error(&values)),
                values.len().into(),
                Cell::from(published::value(&run.dataset, &run.network, quantity, tau)),
                s.unit.into(),
            ]);
        }
    }
    if !published::matches(&run.dataset, &run.network) {
        table.notes.push(
            "The paper's values are of CIFAR-10 and SVHN with its own networks, so none stands here.".into(),
        );
    }
    table
}

/// `mean, low, high, seeds` of values over seeds that come in steps and lie in a range.
fn over_seeds(values: &[f64], step: f64, (lowest, highest): (f64, f64)) -> [Cell; 4] {
    let interval = stepped_mean_interval(values, step);
    [
        Cell::from(statistics::mean(values)),
        Cell::from(interval.map(|i| i.low.max(lowest))),
        Cell::from(interval.map(|i| i.high.min(highest))),
        values.len().into(),
    ]
}

pub(super) fn robustness_by_tau(runs: &[&RunRecord], taus: &[String]) -> Table {
    let mut table = Table::new(
        "robustness_by_tau",
        "Accuracy against severity of noise (Fig. 3)",
        "Mean accuracy over seeds at each severity, with a 95 % interval over seeds (Student's t, cut to 0..1; at \
         least the width that rounding to a whole image gives).",
        &[
            ("noise", "", "Kind of noise."),
            ("scenario", "", "Where it enters: pixel (before encoding) or channel (added to the spikes)."),
            ("severity", "", "0 is clean, 8 the strongest."),
            ("level", "", "Strength of the noise at this severity."),
            ("tau", "steps", "Membrane time constant."),
            ("mean", "fraction", "Mean accuracy over seeds."),
            ("low", "fraction", "Lower end of the interval; empty with one seed."),
            ("high", "fraction", "Upper end of the interval."),
            ("seeds", "", "Runs."),
        ],
    );
    type Key = (String, String, i64);
    let mut order: Vec<(Key, Cell)> = Vec::new();
    let mut values: BTreeMap<(Key, String), Vec<f64>> = BTreeMap::new();
    for run in runs {
        each_row(run, "robustness", |table, row| {
            let text = |column| table.cell(row, column).text().map(str::to_owned);
            let severity = table.cell(row, "severity").number()? as i64;
            let key = (text("noise")?, text("scenario")?, severity);
            let accuracy = table.cell(row, "accuracy").number()?;
            if !order.iter().any(|(known, _)| *known == key) {
                order.push((key.clone(), table.cell(row, "level").clone()));
            }
            values.entry((key, number_text(run.tau))).or_default().push(accuracy);
            Some(())
        });
    }
    let step = step(runs, "accuracy");
    for (key, level) in &order {
        for tau in taus {
            let Some(accuracies) = values.get(&(key.clone(), tau.clone())) else { continue };
            let mut row = vec![key.0.as_str().into(), key.1.as_str().into(), Cell::Integer(key.2)];
            row.extend([level.clone(), tau.as_str().into()]);
            row.extend(over_seeds(accuracies, step, (0.0, 1.0)));
            table.push(row);
        }
    }
    table
}

pub(super) fn generalisation_by_tau(runs: &[&RunRecord], taus: &[String]) -> Table {
    let mut table = Table::new(
        "generalisation_by_tau",
        "Test against train error, epoch by epoch (Fig. 5d,e)",
        "Means over seeds of the SSE after each epoch; an epoch that a run lacks or lost to divergence is left out.",
        &[
            ("tau", "steps", "Membrane time constant."),
            ("epoch", "epochs", "Epochs trained."),
            ("train_sse", "SSE", "Mean over seeds."),
            ("test_sse", "SSE", "Mean over seeds."),
            ("seeds", "", "Runs."),
        ],
    );
    for tau in taus {
        let group: Vec<&&RunRecord> = runs.iter().filter(|run| number_text(run.tau) == *tau).collect();
        let last = group.iter().filter_map(|run| run.epochs.last()).map(|e| e.epoch).max().unwrap_or(0);
        for number in 1..=last {
            let points: Vec<(f64, f64)> = group
                .iter()
                .filter_map(|run| run.epochs.iter().find(|e| e.epoch == number))
                .filter_map(|e| e.train_sse.zip(e.test_sse))
                .filter(|(train, test)| train.is_finite() && test.is_finite())
                .collect();
            let (train, test): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
            let Some((train_mean, test_mean)) = statistics::mean(&train).zip(statistics::mean(&test)) else {
                continue;
            };
            let row = [tau.as_str().into(), number.into(), train_mean.into(), test_mean.into()];
            table.push(row.into_iter().chain([train.len().into()]).collect());
        }
    }
    table
}

pub(super) fn equal_train_sse(runs: &[&RunRecord], taus: &[String]) -> Table {
    let mut table = Table::new(
        "equal_train_sse",
        "Test error at equal train error",
        "Test SSE of each run as a function of its train SSE (linear between logarithms), at train SSEs that every run \
         reaches; mean over seeds with a 95 % interval (Student's t).",
        &[
            ("train_sse", "SSE", "Train error at which runs are compared."),
            ("tau", "steps", "Membrane time constant."),
            ("mean", "SSE", "Mean test error over seeds."),
            ("low", "SSE", "Lower end of the interval."),
            ("high", "SSE", "Upper end of the interval."),
            ("seeds", "", "Runs."),
        ],
    );
    let curves: Vec<(String, Curve)> =
        runs.iter().filter_map(|run| Some((number_text(run.tau), Curve::new(&run.epochs)?))).collect();
    let Some(grid) = generalisation::common_grid(curves.iter().map(|(_, curve)| curve)) else {
        table
            .notes
            .push("The runs' train errors have no common range, so there is nothing to compare at.".into());
        return table;
    };
    for x in grid {
        for tau in taus {
            let values: Vec<f64> =
                curves.iter().filter(|(t, _)| t == tau).map(|(_, curve)| curve.at(x).exp()).collect();
            if !values.is_empty() {
                let row = [x.exp().into(), tau.as_str().into()];
                table.push(row.into_iter().chain(over_seeds(&values, 0.0, (0.0, f64::MAX))).collect());
            }
        }
    }
    table
}

pub(super) fn norm_by_tau(taus: &[String], series: &[Series]) -> Table {
    let mut table = Table::new(
        "norm_by_tau",
        "Weighted input of each layer (Fig. 6)",
        "Time mean of the Euclidean norm over a layer of the weighted input (W O_in)[t], mean over images; mean over \
         seeds with a 95 % interval (Student's t).",
        &[
            ("layer", "", "Hidden conv or FC layer."),
            ("tau", "steps", "Membrane time constant."),
            ("mean", "v_th", "Mean over seeds."),
            ("low", "v_th", "Lower end of the interval."),
            ("high", "v_th", "Upper end of the interval."),
            ("seeds", "", "Runs."),
        ],
    );
    for s in series {
        let Some(layer) = s.quantity.strip_prefix("weighted_input_norm ") else { continue };
        for tau in taus {
            let values = s.plain(tau);
            if !values.is_empty() {
                let row = [layer.into(), tau.as_str().into()];
                table.push(row.into_iter().chain(over_seeds(&values, 0.0, (0.0, f64::MAX))).collect());
            }
        }
    }
    table
}

pub(super) fn critical_by_tau(runs: &[&RunRecord], taus: &[String], series: &[Series]) -> Table {
    let run = runs[0];
    let mut table = Table::new(
        "critical_by_tau",
        "Critical frequency of the target output (Fig. 5a-c)",
        "Frequency below which 70 % of the power of the target output's input lies, mean over images, then mean over \
         seeds with a 95 % interval (Student's t).",
        &[
            ("tau", "steps", "Membrane time constant."),
            ("condition", "", "clean, or noise/scenario/severity."),
            ("mean", "cycles/step", "Mean over seeds."),
            ("low", "cycles/step", "Lower end of the interval."),
            ("high", "cycles/step", "Upper end of the interval."),
            ("seeds", "", "Runs."),
            ("paper", "cycles/step", "The paper's value, where data set and network are its own."),
        ],
    );
    for tau in taus {
        for s in series {
            let Some(condition) = s.quantity.strip_prefix("critical_frequency ") else { continue };
            let values = s.plain(tau);
            if condition.ends_with(" minus clean") || values.is_empty() {
                continue;
            }
            let mut row = vec![tau.as_str().into(), condition.into()];
            row.extend(over_seeds(&values, step(runs, &s.quantity), (0.0, 0.5)));
            row.push(Cell::from(published::value(&run.dataset, &run.network, &s.quantity, tau)));
            table.push(row);
        }
    }
    table
}

/// The paper's noises; others are shown but do not enter the summary figure.
const PAPER_SETTINGS: [&str; 4] =
    ["area gaussian/pixel", "area gaussian/channel", "area impulse/pixel", "area impulse/channel"];

pub(super) fn tradeoff(taus: &[String], series: &[Series]) -> Table {
    let mut table = Table::new(
        "tradeoff",
        "What leak costs and what it buys",
        "Synaptic operations per image against robustness: the mean over Gaussian and impulse noise in both scenarios \
         of the area under the accuracy curve relative to clean. A tau is on the Pareto front if no other is at least \
         as good in both and better in one.",
        &[
            ("tau", "steps", "Membrane time constant."),
            ("synops", "operations/image", "Synaptic operations, mean over seeds."),
            ("synops_error", "operations/image", "Standard error of that mean; empty with one seed."),
            ("energy", "J", "Synaptic operations at 0.9 pJ (45 nm CMOS)."),
            ("robustness", "fraction", "Mean relative area under the accuracy curves, mean over seeds."),
            ("robustness_error", "fraction", "Standard error of that mean; empty with one seed."),
            ("accuracy", "fraction", "Clean test accuracy, mean over seeds."),
            ("pareto", "", "1 on the front, 0 if another tau is better in both."),
        ],
    );
    let values = |quantity: &str, tau: &str| -> Vec<(u64, f64)> {
        series.iter().find(|s| s.quantity == quantity).map_or_else(Vec::new, |s| s.of(tau).to_vec())
    };
    let plain = |values: Vec<(u64, f64)>| -> Vec<f64> { values.into_iter().map(|(_, x)| x).collect() };
    // Of each run first, then over seeds, so that the seeds' spread is known.
    let robustness = |tau: &str| -> Vec<f64> {
        let areas: Vec<(u64, f64)> = PAPER_SETTINGS.iter().flat_map(|q| values(q, tau)).collect();
        let seeds: BTreeSet<u64> = areas.iter().map(|&(seed, _)| seed).collect();
        let of = |seed: u64| areas.iter().filter(|a| a.0 == seed).map(|a| a.1).collect::<Vec<_>>();
        seeds.into_iter().filter_map(|seed| statistics::mean(&of(seed))).collect()
    };
    let mut points = Vec::new();
    for tau in taus {
        let (synops, robustness) = (plain(values("synops", tau)), robustness(tau));
        if let Some((x, y)) = statistics::mean(&synops).zip(statistics::mean(&robustness)) {
            points.push((tau, (x, standard_error(&synops)), (y, standard_error(&robustness))));
        }
    }
    for &(tau, (synops, synops_error), (robustness, robustness_error)) in &points {
        let dominated = points
            .iter()
            .any(|&(_, (x, _), (y, _))| x <= synops && y >= robustness && (x < synops || y > robustness));
        table.push(vec![
            tau.as_str().into(),
            synops.into(),
            Cell::from(synops_error),
            energy::MODELS[0].spiking(synops).into(),
            robustness.into(),
            Cell::from(robustness_error),
            Cell::from(statistics::mean(&plain(values("accuracy", tau)))),
            usize::from(!dominated).into(),
        ]);
    }
    if points.len() < taus.len() {
        table.notes.push("A tau without the analyses activity and robustness is left out.".into());
    }
    table
}

pub(super) fn run_table(runs: &[&RunRecord]) -> Table {
    let mut table = Table::new(
        "runs",
        "The runs",
        "A run has learned if the lower end of the 95 % Wilson interval of its test accuracy lies above chance (one over \
         the number of classes) and its loss stayed finite.",
        &[
            ("run", "", "Folder of the run."),
            ("tau", "steps", "Membrane time constant."),
            ("seed", "", "Seed."),
            ("accuracy", "fraction", "Clean test accuracy."),
            ("chance", "fraction", "One over the number of classes."),
            ("learned", "", "1 if the run learned, 0 if not, empty if that is not known."),
            ("reason", "", "Why a run did not learn."),
        ],
    );
    for run in runs {
        let chance = 1.0 / run.classes.max(1) as f64;
        let lost = run
            .notices
            .iter()
            .rev()
            .find(|notice| matches!(notice.kind, Trouble::Diverged | Trouble::NonFinite));
        let (learned, reason) = match (lost, lower_accuracy(run)) {
            (Some(notice), _) => (Some(false), notice.message.clone()),
            (None, Some(low)) if low > chance => (Some(true), String::new()),
            (None, Some(_)) => (Some(false), "its accuracy is not above chance".to_owned()),
            (None, None) => (None, "it was not evaluated".to_owned()),
        };
        table.push(vec![
            run.name.as_str().into(),
            number_text(run.tau).into(),
            run.seed.into(),
            Cell::from(clean_accuracy(run)),
            chance.into(),
            Cell::from(learned.map(usize::from)),
            reason.into(),
        ]);
    }
    table
}

/// Lower end of the clean accuracy's Wilson interval.
fn lower_accuracy(run: &RunRecord) -> Option<f64> {
    let mut low = None;
    each_row(run, "robustness", |table, row| {
        if low.is_none() && table.cell(row, "severity").number() == Some(0.0) {
            low = table.cell(row, "accuracy_low").number();
        }
        Some(())
    });
    // Without the analysis the number of images is not recorded; the accuracy itself must do.
    low.or_else(|| clean_accuracy(run))
}
