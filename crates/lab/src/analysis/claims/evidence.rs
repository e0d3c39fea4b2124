//! What the claims are judged by: contrasts between tau, looked up in the comparison's tables.

use super::super::published;
use super::super::statistics::Estimate;
use super::MINIMUM_SEEDS;
use leaklab_record::Table;

/// What the claims are judged by.
pub struct Evidence<'a> {
    /// Data set of the runs.
    pub dataset: &'a str,
    /// Network of the runs.
    pub network: &'a str,
    /// The tau that were compared, from most to least leak, as tables write them.
    pub taus: &'a [String],
    /// Table `differences`.
    pub differences: &'a Table,
    /// Table `ratios`.
    pub ratios: &'a Table,
    /// Table `runs`.
    pub runs: &'a Table,
}

/// A contrast between two tau: its value and interval as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Contrast {
    pub mean: f64,
    pub interval: Option<Estimate>,
    pub seeds: usize,
}

impl Evidence<'_> {
    /// A contrast of a quantity, read from a table.
    pub(super) fn contrast(
        &self,
        table: &Table,
        quantity: &str,
        tau_a: &str,
        tau_b: &str,
    ) -> Option<Contrast> {
        let row = table.rows.iter().find(|row| {
            let text = |column| table.cell(row, column).text();
            text("quantity") == Some(quantity) && text("tau_a") == Some(tau_a) && text("tau_b") == Some(tau_b)
        })?;
        let number = |column| table.cell(row, column).number();
        let mean = number("mean")?;
        let seeds = number("seeds")? as usize;
        let interval = match (number("low"), number("high")) {
            (Some(low), Some(high)) if seeds >= MINIMUM_SEEDS => Some(Estimate { mean, low, high }),
            _ => None,
        };
        Some(Contrast { mean, interval, seeds })
    }

    /// Quantities in a table that start with `prefix`, in order of appearance.
    pub(super) fn quantities(table: &Table, prefix: &str) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for row in &table.rows {
            if let Some(quantity) = table.cell(row, "quantity").text()
                && quantity.starts_with(prefix)
                && !found.iter().any(|q| q == quantity)
            {
                found.push(quantity.to_owned());
            }
        }
        found
    }

    /// The paper's three values as one phrase.
    pub(super) fn published(&self, quantity: &str, percent: bool) -> Option<String> {
        let values: Option<Vec<String>> = published::TAUS
            .iter()
            .map(|tau| {
                let value = published::value(self.dataset, self.network, quantity, tau)?;
                Some(if percent { format!("{:.2} %", 100.0 * value) } else { format!("{value}") })
            })
            .collect();
        values.map(|values| format!("{} (tau 30 / 100 / inf)", values.join(" / ")))
    }
}
