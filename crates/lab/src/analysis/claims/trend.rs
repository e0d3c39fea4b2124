//! Claims about more leak. The pair with most and least leak decides, unless a pair of neighbouring tau
//! contradicts the claim.

use super::super::compare::Comparison;
use super::super::contrast::{Contrast, MINIMUM_PAIRS};
use super::{Side, blank, reason, with_contrast};
use leaklab_record::tables::ClaimRow;
use leaklab_record::{Case, ClaimId, Quantity, Scale, Verdict};

/// A claim about more leak.
pub(super) struct Trend {
    pub claim: ClaimId,
    pub part: String,
    pub statement: String,
    pub paper: String,
    pub quantity: Quantity,
    pub side: Side,
}

/// The conditions with most and least leak, if there are at least two conditions.
pub(super) fn extremes<'a>(comparison: &'a Comparison) -> Option<(&'a str, &'a str)> {
    let sweep = comparison.sweep();
    let name = |i: usize| comparison.group(&sweep[i].row.condition).map(|group| group.row.condition.as_str());
    if sweep.len() > 1 { name(0).zip(name(sweep.len() - 1)) } else { None }
}

pub(super) fn trend(comparison: &Comparison, trend: Trend) -> ClaimRow {
    let Trend { claim, part, statement, paper, quantity, side } = trend;
    let extremes = extremes(comparison);
    let contrast = extremes.and_then(|(a, b)| comparison.contrast(&quantity, a, b));
    let mut case = side.case(contrast.as_ref().and_then(Contrast::interval));
    let mut reason = reason(&side, case, contrast.as_ref());
    let sweep = comparison.sweep();
    let contrary = sweep.windows(2).find_map(|pair| {
        let step = comparison.contrast(&quantity, &pair[0].row.condition, &pair[1].row.condition)?;
        let interval = step.interval().filter(|interval| side.contradicts(Some(*interval)))?;
        Some((pair, interval))
    });
    if let (true, Some((pair, step))) = (case.verdict() != Verdict::DoesNotHold, contrary) {
        case = Case::NotSteady;
        let (times, digits, unit) = quantity.contrast_unit().in_text();
        let [mean, low, high] = [step.mean, step.low, step.high]
            .map(|value| format!("{:.digits$}", times * value).replace('-', "\u{2212}"));
        reason = format!(
            "Between {} and {} it goes the other way, by more than {}: {mean} [{low}, {high}]{unit}.",
            pair[0].row.condition, pair[1].row.condition, side.words
        );
    }
    let (kind, joint) = match quantity.scale() {
        Scale::Difference => ("difference", "minus"),
        Scale::Ratio => ("ratio", "over"),
    };
    let (a, b) = extremes.unwrap_or(("most leak", "least leak"));
    let mut row = with_contrast(blank(claim, &part, &statement, quantity.contrast_unit()), contrast.as_ref());
    row.paper = paper;
    row.smallest = side.smallest;
    (row.case, row.verdict, row.reason) = (case, case.verdict(), reason);
    row.quantity = format!("{kind} of {}, {a} {joint} {b}", quantity.words());
    if case == Case::Undecided {
        // On the scale of the differences, which is logarithmic for ratios.
        let smallest = match quantity.scale() {
            Scale::Difference => side.smallest,
            Scale::Ratio => side.smallest.ln_1p(),
        };
        row.seeds_needed = contrast.and_then(|contrast| contrast.pairs_needed(smallest));
    }
    row.rule = format!(
        "Paired {kind} {a} {joint} {b} by seed, 95 % interval; the smallest effect of interest is {}. Holds: \
         the whole interval lies {}. Does not hold: otherwise, if the interval rules out an effect \
         of interest in the claimed direction; or if between two neighbouring tau the whole interval lies on \
         the other side by such an effect. Not enough evidence: the interval includes both no effect and one \
         of interest, or there are fewer than {MINIMUM_PAIRS} seeds.",
        side.words,
        side.place()
    );
    row
}
