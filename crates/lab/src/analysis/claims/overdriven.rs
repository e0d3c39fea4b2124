//! Conditions whose weights have outgrown the threshold. Their verdicts depend on the recipe of training more
//! than others do, so the answer and a note name them.

use super::super::compare::Comparison;
use crate::health::{OVERDRIVEN, drive};
use leaklab_record::Quantity;

/// The most overdriven hidden layer of a condition, with its mean drive (see [`OVERDRIVEN`]).
pub(super) fn overdriven<'a>(comparison: &'a Comparison, condition: &str) -> Option<(&'a str, f64)> {
    let config = &comparison.group(condition)?.runs[0].config;
    let layers = config.network.hidden().iter().filter_map(|layer| {
        let norm = comparison.estimate(&Quantity::WeightedInputNorm(layer.name.clone()), condition)?;
        Some((layer.name.as_str(), drive(layer, norm.mean, f64::from(config.v_th))))
    });
    layers.filter(|(_, ratio)| *ratio > OVERDRIVEN).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// A note on each such condition that counts in claims 1 to 6.
pub(super) fn notes(comparison: &Comparison) -> Vec<String> {
    let conditions = comparison.groups().iter().filter(|group| group.counts());
    let note = |condition: &str| {
        let (layer, ratio) = overdriven(comparison, condition)?;
        Some(format!(
            "Condition {condition}: weights have outgrown the threshold. In {layer}, a neuron's weighted \
             input in one step is {ratio:.0} times the threshold, so neurons fire whenever their potential \
             is positive. {} may give other verdicts.",
            match comparison.group(condition).is_some_and(|group| group.runs[0].config.leak.readout().leaks())
            {
                true =>
                    "Training without leak in the readout (setting readout_tau), or another learning rate,",
                false => "Another learning rate or weight decay",
            }
        ))
    };
    conditions.filter_map(|group| note(&group.row.condition)).collect()
}
