//! Claim 7: training fails for small tau. It is judged from conditions with strong leak, mainly probes, which
//! are trained only for this claim. Each gradient mode is judged separately, because the effect of a small
//! tau on training depends on it.

use super::super::compare::{Comparison, Group};
use super::super::contrast::MINIMUM_PAIRS;
use super::super::statistics::{Estimate, wilson};
use super::{ABOVE, Side, blank};
use crate::config::InitialScale;
use leaklab_engine::Gradient;
use leaklab_record::tables::ClaimRow;
use leaklab_record::{Case, ClaimId, Role, Unit};

/// A tau below this share of the time steps is small: the paper reports that training diverges below tau = 30
/// at 100 time steps.
pub const SMALL_SHARE: f64 = 0.3;
/// Smallest difference of the shares of failing runs that is of interest: half of the runs.
pub const FAILURE_MARGIN: f64 = 0.5;

/// Whether the leak of a condition is as strong as where the paper reports that training diverges.
fn leaks_strongly(group: &Group) -> bool {
    let steps = group.runs[0].config.time_steps as f64;
    group.uniform_tau().is_some_and(|tau| tau.steps() < SMALL_SHARE * steps)
}

/// Whether the claim is about a condition. Initial weights that compensate for the leak are a separate
/// question: such a condition counts on neither side.
fn is_small(group: &Group) -> bool {
    leaks_strongly(group) && group.runs[0].config.initial == InitialScale::FanIn
}

/// Whether a condition was trained with a gradient mode. Without leak, both modes are the same gradient.
fn has_gradient(group: &Group, mode: Gradient) -> bool {
    group.runs[0].config.gradient == mode || group.uniform_tau().is_some_and(|tau| !tau.leaks())
}

/// Numbers of runs, and of runs that did not learn.
fn count<'a>(groups: impl Iterator<Item = &'a Group<'a>>) -> (u64, u64) {
    let rows = groups.flat_map(|group| &group.rows).filter_map(|row| row.learned);
    rows.fold((0, 0), |(runs, failed), learned| (runs + 1, failed + u64::from(!learned)))
}

/// The rows of claim 7: one for each gradient mode with which a small tau was tried.
pub(super) fn judge(comparison: &Comparison) -> Vec<ClaimRow> {
    let gradient = |group: &Group| group.runs[0].config.gradient;
    let groups = comparison.groups();
    let mut modes: Vec<Gradient> = Vec::new();
    for group in groups.iter().filter(|group| is_small(group)) {
        if !modes.contains(&gradient(group)) {
            modes.push(gradient(group));
        }
    }
    if modes.is_empty() {
        return vec![row(comparison, None, (0, 0), &[])];
    }
    modes
        .into_iter()
        .map(|mode| {
            let small: Vec<&Group> = groups.iter().filter(|g| is_small(g) && gradient(g) == mode).collect();
            let counts = count(small.iter().copied());
            row(comparison, Some(mode), counts, &small)
        })
        .collect()
}

/// The difference of two fractions, each given as (successes, trials), with Newcombe's interval. It follows
/// from their Wilson intervals.
fn difference(first: (f64, u64), second: (f64, u64)) -> Option<Estimate> {
    let (p, q) = wilson(first.0, first.1).zip(wilson(second.0, second.1))?;
    let mean = p.mean - q.mean;
    Some(Estimate {
        mean,
        low: mean - ((p.mean - p.low).powi(2) + (q.high - q.mean).powi(2)).sqrt(),
        high: mean + ((p.high - p.mean).powi(2) + (q.mean - q.low).powi(2)).sqrt(),
    })
}

/// The number of runs with a small tau that would settle the claim if the share of failing runs stayed as it
/// is; `None` if 1000 would not.
fn runs_needed(side: &Side, (failed, small): (u64, u64), (other_failed, other): (u64, u64)) -> Option<u64> {
    const MOST: u64 = 1000;
    let share = failed as f64 / small as f64;
    let settled = |runs: u64| {
        let interval = difference((share * runs as f64, runs), (other_failed as f64, other));
        side.case(interval) != Case::Undecided
    };
    (small + 1..=MOST).find(|&runs| settled(runs))
}

fn row(
    comparison: &Comparison,
    mode: Option<Gradient>,
    (small, failed): (u64, u64),
    conditions: &[&Group],
) -> ClaimRow {
    let others = comparison.groups().iter().filter(|group| {
        let alike = mode.is_none_or(|mode| has_gradient(group, mode));
        alike && !leaks_strongly(group) && group.row.role != Role::Probe
    });
    let (other, other_failed) = count(others);
    let difference = difference((failed as f64, small), (other_failed as f64, other));
    let side =
        Side { reference: 0.0, sign: ABOVE, smallest: FAILURE_MARGIN, words: "half of the runs".into() };
    let known = small >= MINIMUM_PAIRS as u64 && other > 0;
    let case = side.case(difference.filter(|_| known));
    let limit = SMALL_SHARE * comparison.run().config.time_steps as f64;
    let reason = match (small, other) {
        _ if known => format!(
            "{failed} of {small} runs with a small tau did not learn, and {other_failed} of {other} others. \
             {}",
            side.reason(case)
        ),
        (0, _) => format!("This study has no tau below {limit}."),
        (_, 0) => format!("This study has no tau of {limit} or more with this gradient to compare with."),
        _ => format!("A small tau needs at least {MINIMUM_PAIRS} runs."),
    };
    let names: Vec<&str> = conditions.iter().map(|group| group.row.condition.as_str()).collect();
    let part = mode.map_or_else(String::new, |mode| format!("{mode} gradient"));
    let statement = match mode {
        Some(mode) => {
            format!("Training with the {mode} gradient fails for small tau ({}).", names.join(", "))
        }
        None => "Training fails for small tau.".to_owned(),
    };
    let mut row = blank(ClaimId::Divergence, &part, &statement, Unit::Fraction);
    row.paper = "diverges below tau = 30 at 100 steps".into();
    (row.ours, row.low, row.high) =
        (difference.map(|d| d.mean), difference.map(|d| d.low), difference.map(|d| d.high));
    row.smallest = side.smallest;
    (row.case, row.verdict, row.reason) = (case, case.verdict(), reason);
    row.quantity =
        format!("difference of the share of runs that did not learn, tau below {limit} minus others");
    row.seeds = small;
    if known && case == Case::Undecided {
        row.seeds_needed = runs_needed(&side, (failed, small), (other_failed, other));
    }
    row.rule = format!(
        "A run did not learn if its clean accuracy exceeds chance by less than half of what the best \
         condition's mean does. Share of such runs with tau below {SMALL_SHARE} of the time steps minus that \
         of the other conditions with the same gradient (without leak, both gradients are the same), \
         Newcombe's 95 % interval; the smallest effect of interest is {}. Holds: \
         the whole interval lies above 0. Does not hold: it rules out half of the runs. Otherwise, \
         or with fewer than {MINIMUM_PAIRS} such runs: not enough evidence.",
        side.words
    );
    row
}
