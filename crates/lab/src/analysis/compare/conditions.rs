//! The conditions of a comparison: which runs belong to each, how it differs from the baseline, and whether
//! it learned.

use super::{CompareError, RunRecord};
use crate::analysis::statistics::{mean, wilson};
use crate::config::{Group as KeyGroup, KEYS, RunConfig};
use leaklab_engine::Tau;
use leaklab_record::health::{Notice, Trouble};
use leaklab_record::noun::Differs;
use leaklab_record::tables::{ConditionRow, RunRow};
use leaklab_record::{Role, Stimulus};
use std::cmp::Reverse;

/// Runs of one condition.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// Its row in the table of conditions.
    pub row: ConditionRow,
    /// Its runs, by seed.
    pub runs: Vec<&'a RunRecord>,
    /// Their rows in the table of runs.
    pub rows: Vec<RunRow>,
}

impl Group<'_> {
    /// Whether it counts in claims 1 to 6: it is not a probe, and none of its runs failed to learn.
    pub fn counts(&self) -> bool {
        self.row.role != Role::Probe && self.row.learned != Some(false)
    }

    /// The time constant of its hidden layers and readout, if all have the same.
    pub fn uniform_tau(&self) -> Option<Tau> {
        self.runs.first().and_then(|run| run.config.leak.as_uniform())
    }
}

/// Clean test accuracy of a run: that of the robustness analysis, or else of the last evaluated epoch.
pub(super) fn clean_accuracy(run: &RunRecord) -> Option<f64> {
    let clean: Vec<f64> = run
        .correctness
        .iter()
        .filter(|row| row.stimulus == Stimulus::Clean && !row.correct.is_empty())
        .map(|row| row.correct.count() as f64 / row.correct.len() as f64)
        .collect();
    mean(&clean).or_else(|| run.epochs.iter().rev().find_map(|epoch| epoch.test_accuracy))
}

/// Groups runs by condition. Conditions that differ from the baseline only in tau come first, from most to
/// least leak; then the others, then the probes.
pub(super) fn group<'a>(
    runs: &'a [RunRecord],
    baseline: Option<&str>,
) -> Result<Vec<Group<'a>>, CompareError> {
    let mut groups: Vec<(String, Vec<&RunRecord>)> = Vec::new();
    for run in runs {
        let name = run.config.condition_name();
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(run),
            None => groups.push((name, vec![run])),
        }
    }
    groups.iter_mut().for_each(|(_, members)| members.sort_by_key(|run| run.config.seed));
    let base = match baseline {
        Some(name) => groups.iter().position(|(known, _)| known == name).ok_or_else(|| {
            let known: Vec<&str> = groups.iter().map(|(name, _)| name.as_str()).collect();
            CompareError::NoBaseline { name: name.to_owned(), known: known.join(", ") }
        })?,
        None => {
            let conditions: Vec<_> =
                groups.iter().map(|(name, runs)| (name.as_str(), &runs[0].config)).collect();
            default_baseline(&conditions)
        }
    };
    let reference = &groups[base].1[0].config.clone();
    let mut found: Vec<Group> = groups
        .into_iter()
        .enumerate()
        .map(|(i, (condition, runs))| {
            let config = &runs[0].config;
            let differs = differences(config, reference);
            let alone = differs.iter().all(|(key, _)| key == "tau");
            let role = match (config.probe, i == base) {
                (true, _) => Role::Probe,
                (false, true) => Role::Baseline,
                (false, false) => Role::Compared,
            };
            let row = ConditionRow {
                condition,
                tau: config.leak.as_uniform().filter(|_| alone),
                role,
                differs: Differs(differs),
                runs: runs.len() as u64,
                learned: None,
                reason: String::new(),
            };
            Group { row, runs, rows: Vec::new() }
        })
        .collect();
    // The sort is stable: conditions without a uniform tau stay in the order in which they were given.
    found.sort_by_key(|group| {
        (group.row.role == Role::Probe, group.row.tau.is_none(), group.row.tau.unwrap_or(Tau::INFINITE))
    });
    judge_learning(&mut found);
    Ok(found)
}

/// Index of the condition that the others are compared with if none is named: of those with the least leak
/// that are not probes, the one from which most others differ in `tau` alone; of equals, the first by name.
pub(crate) fn default_baseline(conditions: &[(&str, &RunConfig)]) -> usize {
    let all: Vec<usize> = (0..conditions.len()).collect();
    let real: Vec<usize> = all.iter().copied().filter(|&i| !conditions[i].1.probe).collect();
    let leak = |i: usize| conditions[i].1.leak.as_uniform();
    let least: Vec<usize> = match real.iter().filter_map(|&i| leak(i)).max() {
        Some(least) => real.iter().copied().filter(|&i| leak(i) == Some(least)).collect(),
        None => Vec::new(),
    };
    let candidates = [least, real, all].into_iter().find(|some| !some.is_empty()).unwrap_or_default();
    let swept = |i: usize| {
        let alone =
            |other: &RunConfig| differences(other, conditions[i].1).iter().all(|(key, _)| key == "tau");
        conditions.iter().filter(|(_, other)| !other.probe && alone(other)).count()
    };
    candidates.into_iter().max_by_key(|&i| (swept(i), Reverse(conditions[i].0))).unwrap_or(0)
}

/// The settings in which a run differs from a reference, as key and own value. The seed and settings that
/// change no result do not count.
pub(super) fn differences(config: &RunConfig, reference: &RunConfig) -> Vec<(String, String)> {
    let counted = KEYS.iter().filter(|key| {
        matches!(key.group, KeyGroup::Data | KeyGroup::Network | KeyGroup::Training)
            && !["seed", "data_dir", "evaluate_every", "evaluate_train_images"].contains(&key.name)
    });
    counted
        .filter_map(|key| {
            let (ours, theirs) = (key.text(config), key.text(reference));
            (ours != theirs).then(|| (key.name.to_owned(), ours.unwrap_or_else(|| "none".to_owned())))
        })
        .collect()
}

/// A run learned if its clean accuracy exceeds chance by at least half of what the best condition's mean
/// does, unless its training did not reach the end or its output is constant; a condition learned if all its
/// runs did. If not even the best condition is above chance, no run learned.
fn judge_learning(groups: &mut [Group]) {
    let Some(first) = groups.first().and_then(|group| group.runs.first()) else { return };
    let chance = 1.0 / first.config.network.classes().max(1) as f64;
    let accuracies =
        |group: &Group| -> Vec<f64> { group.runs.iter().filter_map(|run| clean_accuracy(run)).collect() };
    let best = groups.iter().filter_map(|group| mean(&accuracies(group))).reduce(f64::max);
    let mut measured = groups.iter().flat_map(|group| &group.runs).flat_map(|run| &run.correctness);
    let images = measured.next().map_or(0, |row| row.correct.len() as u64);
    let above_chance = best.is_some_and(|best| {
        wilson(best * images as f64, images).map_or(best > chance, |interval| interval.low > chance)
    });
    // Why a run did not learn; `None` if it did.
    let fault = |run: &RunRecord, accuracy: f64, best: f64| {
        if let Some(reason) = ended_early(run).or_else(|| constant_output(run)) {
            Some(reason)
        } else if !above_chance {
            Some(format!(
                "not even the best condition's accuracy of {:.1} % is above chance ({:.1} %)",
                100.0 * best,
                100.0 * chance
            ))
        } else if accuracy - chance < 0.5 * (best - chance) {
            Some(diverged(run).map_or_else(
                || {
                    format!(
                        "its accuracy of {:.1} % is less than half as far above chance ({:.1} %) as the \
                         best condition's {:.1} %",
                        100.0 * accuracy,
                        100.0 * chance,
                        100.0 * best
                    )
                },
                |notice| notice.message.clone(),
            ))
        } else {
            None
        }
    };
    for group in groups {
        for run in &group.runs {
            let accuracy = clean_accuracy(run);
            let (learned, reason) = match (accuracy, best) {
                (Some(accuracy), Some(best)) => {
                    let fault = fault(run, accuracy, best);
                    (Some(fault.is_none()), fault.unwrap_or_default())
                }
                _ => match diverged(run) {
                    Some(notice) => (Some(false), notice.message.clone()),
                    None => (None, "it was not evaluated".to_owned()),
                },
            };
            group.rows.push(RunRow {
                run: run.name.clone(),
                condition: group.row.condition.clone(),
                seed: run.config.seed,
                accuracy,
                chance,
                learned,
                reason,
            });
        }
        let failed: Vec<&RunRow> = group.rows.iter().filter(|row| row.learned == Some(false)).collect();
        group.row.learned = match failed[..] {
            [] if group.rows.iter().all(|row| row.learned == Some(true)) => Some(true),
            [] => None,
            _ => Some(false),
        };
        if let Some(first) = failed.first() {
            group.row.reason = format!(
                "{} of {} runs did not learn: seed {}: {}",
                failed.len(),
                group.rows.len(),
                first.seed,
                first.reason
            );
        }
    }
}

/// The last notice that training has diverged.
fn diverged(run: &RunRecord) -> Option<&Notice> {
    run.notices.iter().rev().find(|notice| matches!(notice.kind, Trouble::Diverged | Trouble::NonFinite))
}

/// The reason, if training diverged before its last epoch. The accuracy of such a run is that of an earlier
/// epoch.
fn ended_early(run: &RunRecord) -> Option<String> {
    let reached = run.epochs.last().map_or(0, |epoch| epoch.epoch);
    let notice = diverged(run).filter(|_| reached < run.config.epochs)?;
    Some(format!("epoch {} of {}: {}", notice.epoch, run.config.epochs, notice.message))
}

/// The reason, if the last hidden layer never fires: every image then has the same output. If one class has
/// most of the images, such a network can be far above chance.
fn constant_output(run: &RunRecord) -> Option<String> {
    let measured = run.epochs.iter().rev().find(|epoch| !epoch.layers.is_empty())?;
    let last = measured.layers.iter().rfind(|layer| layer.spike_rate.is_some())?;
    let silent = last.spike_rate == Some(0.0);
    silent.then(|| format!("{} never fires, so every image has the same output", last.name))
}
