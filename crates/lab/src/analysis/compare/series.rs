//! Single numbers of runs, gathered from their tables by quantity.

use super::RunRecord;
use leaklab_engine::noise::HIGHEST_SEVERITY;
use leaklab_record::{Cell, Table, number_text};

/// One number per run, for all runs that have it.
pub(super) struct Series {
    pub quantity: String,
    pub unit: &'static str,
    /// Compared by ratio too, because it has no natural zero difference.
    pub ratio: bool,
    /// `(tau, [(seed, value)])`, from most to least leak.
    pub values: Vec<(String, Vec<(u64, f64)>)>,
}

impl Series {
    pub fn of(&self, tau: &str) -> &[(u64, f64)] {
        self.values.iter().find(|(t, _)| t == tau).map_or(&[], |(_, values)| values)
    }

    pub fn plain(&self, tau: &str) -> Vec<f64> {
        self.of(tau).iter().map(|&(_, x)| x).collect()
    }
}

/// Every single number that the runs' tables hold, by quantity.
pub(super) fn gather(runs: &[&RunRecord], taus: &[String]) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for run in runs {
        let tau = number_text(run.tau);
        for (quantity, unit, ratio, value) in scalars(run) {
            let index = series.iter().position(|s| s.quantity == quantity).unwrap_or_else(|| {
                let values = taus.iter().map(|tau| (tau.clone(), Vec::new())).collect();
                series.push(Series { quantity, unit, ratio, values });
                series.len() - 1
            });
            let group = series[index].values.iter_mut().find(|(t, _)| *t == tau);
            group.expect("every run's tau is listed").1.push((run.seed, value));
        }
    }
    series
}

/// `(quantity, unit, compared by ratio, value)` of one run.
fn scalars(run: &RunRecord) -> Vec<(String, &'static str, bool, f64)> {
    let mut found = Vec::new();
    if let Some(accuracy) = clean_accuracy(run) {
        found.push(("accuracy".to_owned(), "fraction", false, accuracy));
    }
    each_row(run, "generalisation_summary", |table, row| {
        let (quantity, value) = (table.cell(row, "quantity").text()?, table.cell(row, "value").number()?);
        if quantity.contains("_sse_last") {
            found.push((quantity.replace("_last", ""), "SSE", true, value));
        }
        Some(())
    });
    each_row(run, "activity_summary", |table, row| {
        let (quantity, value) = (table.cell(row, "quantity").text()?, table.cell(row, "value").number()?);
        let unit = match quantity {
            "spike_rate" => "fraction",
            "synops" => "operations/image",
            _ => return None,
        };
        found.push((quantity.to_owned(), unit, true, value));
        Some(())
    });
    let mut norms = Vec::new();
    each_row(run, "activity", |table, row| {
        let (layer, norm) =
            (table.cell(row, "layer").text()?, table.cell(row, "weighted_input_norm").number()?);
        if matches!(table.cell(row, "kind").text(), Some("conv" | "full")) {
            found.push((format!("weighted_input_norm {layer}"), "v_th", true, norm));
            norms.push(norm);
        }
        Some(())
    });
    if !norms.is_empty() && norms.iter().all(|&norm| norm > 0.0) {
        let geometric = (norms.iter().map(|norm| norm.ln()).sum::<f64>() / norms.len() as f64).exp();
        found.push(("weighted_input_norm".to_owned(), "v_th", true, geometric));
    }
    each_row(run, "robustness_summary", |table, row| {
        let (noise, scenario) = (table.cell(row, "noise").text()?, table.cell(row, "scenario").text()?);
        let area = table.cell(row, "area").number()?;
        found.push((format!("area {noise}/{scenario}"), "fraction of clean accuracy", false, area));
        Some(())
    });
    each_row(run, "critical_frequency_summary", |table, row| {
        let (condition, mean) = (table.cell(row, "condition").text()?, table.cell(row, "mean").number()?);
        found.push((format!("critical_frequency {condition}"), "cycles/step", false, mean));
        Some(())
    });
    let critical = |condition: &str, found: &[(String, &'static str, bool, f64)]| {
        found.iter().find(|f| f.0 == format!("critical_frequency {condition}")).map(|f| f.3)
    };
    if let Some(clean) = critical("clean", &found) {
        let rises: Vec<_> = found
            .iter()
            .filter(|f| f.0.starts_with("critical_frequency ") && f.0 != "critical_frequency clean")
            .map(|f| (format!("{} minus clean", f.0), "cycles/step", false, f.3 - clean))
            .collect();
        found.extend(rises);
    }
    found
}

pub(super) fn each_row<'a>(
    run: &'a RunRecord,
    name: &str,
    mut visit: impl FnMut(&'a Table, &'a [Cell]) -> Option<()>,
) {
    if let Some(table) = run.tables.get(name) {
        table.rows.iter().for_each(|row| {
            visit(table, row);
        });
    }
}

/// Test accuracy without noise: severity 0 of the robustness table, else the last evaluated epoch.
pub(super) fn clean_accuracy(run: &RunRecord) -> Option<f64> {
    let mut accuracy = None;
    each_row(run, "robustness", |table, row| {
        if accuracy.is_none() && table.cell(row, "severity").number() == Some(0.0) {
            accuracy = table.cell(row, "accuracy").number();
        }
        Some(())
    });
    accuracy.or_else(|| run.epochs.iter().rev().find_map(|epoch| epoch.test_accuracy))
}

/// The step in which a quantity comes, where it is a count over few images: an accuracy moves by one image, a mean critical
/// frequency by one bin of one image. 0 where that is not known, or too fine to matter.
pub(super) fn step(runs: &[&RunRecord], quantity: &str) -> f64 {
    let coarsest = |table: &str, column: &str| {
        let mut least: Option<f64> = None;
        for run in runs {
            each_row(run, table, |table, row| {
                let value = table.cell(row, column).number().filter(|&x| x > 0.0)?;
                least = Some(least.map_or(value, |known| known.min(value)));
                Some(())
            });
        }
        least
    };
    let step = match quantity.split(' ').next() {
        Some("accuracy") => coarsest("robustness", "images").map(f64::recip),
        // The mean over severities of accuracies.
        Some("area") => {
            coarsest("robustness", "images").map(|images| (images * (HIGHEST_SEVERITY + 1) as f64).recip())
        }
        Some("critical_frequency") => coarsest("critical_frequency", "frequency")
            .zip(coarsest("critical_frequency_summary", "images"))
            .map(|(bin, images)| bin / images),
        _ => None,
    };
    step.unwrap_or(0.0)
}
