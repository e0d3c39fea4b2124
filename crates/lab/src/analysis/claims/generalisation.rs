//! Claim 3: generalisation, in four parts. Both errors falling is a better fit; only a smaller gap between
//! them, or a lower test SSE at equal training SSE, is better generalisation.

use super::super::compare::Comparison;
use super::super::contrast::MINIMUM_PAIRS;
use super::super::statistics::mean;
use super::trend::{Trend, extremes, trend};
use super::{BELOW, RATIO_MARGIN, Side, published_values, ratio};
use leaklab_record::tables::ClaimRow;
use leaklab_record::{Case, ClaimId, Quantity, Verdict};

/// Judges the four parts.
pub(super) fn judge(comparison: &Comparison) -> Vec<ClaimRow> {
    let ratio_of = |part: &str, statement: &str, paper: String, quantity: Quantity| {
        trend(
            comparison,
            Trend {
                claim: ClaimId::Generalisation,
                part: part.into(),
                statement: statement.into(),
                paper,
                quantity,
                side: ratio(BELOW),
            },
        )
    };
    let sse = published_values(comparison, &Quantity::TestSse).map(|values| format!("{values}, in its unit"));
    let mut rows = vec![
        ratio_of(
            "test SSE",
            "Test SSE is lower with leak.",
            sse.unwrap_or_else(|| "lower with leak".into()),
            Quantity::TestSse,
        ),
        ratio_of(
            "training SSE",
            "Training SSE in evaluation is lower with leak: the network fits better. (Both errors falling is \
             a better fit, not better generalisation.)",
            "lower with leak (as training runs)".into(),
            Quantity::TrainSse,
        ),
        trend(
            comparison,
            Trend {
                claim: ClaimId::Generalisation,
                part: "gap".into(),
                statement: "The gap, test SSE minus training SSE, is smaller with leak.".into(),
                paper: "not measured".into(),
                quantity: Quantity::SseGap,
                side: gap(comparison),
            },
        ),
        ratio_of(
            "equal training SSE",
            "Test SSE at equal training SSE is lower with leak.",
            "lower with leak (Fig. 5d,e)".into(),
            Quantity::TestSseAtEqualTrainSse,
        ),
    ];
    let [_, fit, gap, equal] = &mut rows[..] else { return rows };
    if gap.verdict == Verdict::Holds && fit.case == Case::Opposite {
        gap.reason += " But training SSE is higher with leak: a network that fits less well has a smaller \
                       gap in any case, so this is not better generalisation.";
    }
    if equal.case == Case::NoInterval
        && let Some(reason) = without_equal_sse(comparison)
    {
        equal.reason = reason;
    }
    rows
}

/// The claim that the gap between test and training SSE is smaller. The smallest gap of interest is a share of
/// the baseline's test SSE or, if the baseline did not learn, of that of the condition with the least leak
/// that did: the test SSE of a network that did not learn is of another size.
fn gap(comparison: &Comparison) -> Side {
    let baseline = comparison.baseline();
    let swept = comparison.sweep().into_iter().rev();
    let learned = std::iter::once(baseline).filter(|group| group.counts()).chain(swept);
    let measured = learned.map(|group| group.row.condition.as_str()).find_map(|condition| {
        let sse = mean(&comparison.values(&Quantity::TestSse, condition))?;
        Some((condition, RATIO_MARGIN * sse))
    });
    let (smallest, words) = match measured {
        Some((condition, smallest)) if condition == baseline.row.condition => {
            (smallest, format!("2 % of the baseline's test SSE ({smallest:.4})"))
        }
        Some((condition, smallest)) => {
            (smallest, format!("2 % of the test SSE of {condition} ({smallest:.4})"))
        }
        // Then there is no gap to be judged either.
        None => (0.0, "2 % of the baseline's test SSE".to_owned()),
    };
    Side { reference: 0.0, sign: BELOW, smallest, words }
}

/// Why test SSE at equal training SSE has no interval, if runs were measured and their curves are the cause.
fn without_equal_sse(comparison: &Comparison) -> Option<String> {
    let (a, b) = extremes(comparison)?;
    let measured = comparison.contrast(&Quantity::TrainSse, a, b)?.pairs;
    let overlapping = comparison.contrast(&Quantity::TestSseAtEqualTrainSse, a, b).map_or(0, |c| c.pairs);
    match (comparison.pairs_of_curves(a, b), overlapping) {
        (0, _) => {
            Some("In no pair of runs do both have two last epochs with different training SSEs.".into())
        }
        (_, 0) => Some("In no pair of runs do the training SSEs of the last epochs overlap.".into()),
        (_, pairs) if pairs < MINIMUM_PAIRS && pairs < measured => Some(format!(
            "The training SSEs of the last epochs overlap in {pairs} of {measured} pairs of runs, and an \
             interval needs at least {MINIMUM_PAIRS}."
        )),
        _ => None,
    }
}
