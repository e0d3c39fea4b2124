//! The paper's seven claims. Each is judged by a stated rule, from the comparison alone.
//!
//! A verdict is a function of intervals. A difference that may be chance is "not enough evidence", never
//! "holds", and a claim is refuted only by an interval that rules out an effect of interest. Each
//! row contains the rule and a sentence that states which case of the rule applies. Claims about "more leak"
//! use the conditions that differ only in tau and in which every run learned.

mod answer;
mod critical;
mod divergence;
mod generalisation;
mod overdriven;
mod side;
mod trend;

pub use answer::answer;
pub use side::Side;

use super::compare::Comparison;
use super::contrast::{Contrast, MINIMUM_PAIRS, holm};
use super::published;
use leaklab_record::tables::{AnswerRow, ClaimRow, ConditionRow};
use leaklab_record::{Case, ClaimId, NoiseKey, PAPER_NOISES, Quantity, Role, Rows, Unit, Verdict, text};
use trend::{Trend, trend};

/// Largest difference of accuracy that still counts as equal, and the smallest that is of interest: one
/// percentage point.
pub const ACCURACY_MARGIN: f64 = 0.01;
/// Smallest effect of interest, as a fraction, for quantities that are compared by their ratio.
pub const RATIO_MARGIN: f64 = 0.02;
/// Smallest shift of a critical frequency that is of interest: half a bin at 100 time steps.
pub const FREQUENCY_MARGIN: f64 = 0.005;
/// Largest p value at which an effect holds.
pub const SIGNIFICANT: f64 = 0.05;

const ABOVE: f64 = 1.0;
const BELOW: f64 = -1.0;

/// The claim that a difference of accuracies is positive.
pub(super) fn gain() -> Side {
    Side { reference: 0.0, sign: ABOVE, smallest: ACCURACY_MARGIN, words: "one percentage point".into() }
}

/// The claim that a ratio lies on one side of 1.
fn ratio(sign: f64) -> Side {
    Side { reference: 1.0, sign, smallest: RATIO_MARGIN, words: "2 %".into() }
}

/// The claim that a frequency shifts in one direction.
fn shift(sign: f64) -> Side {
    Side { reference: 0.0, sign, smallest: FREQUENCY_MARGIN, words: "0.005 cycles/step".into() }
}

/// The reason why there is no interval, or the sentence of the case.
pub(super) fn reason(side: &Side, case: Case, contrast: Option<&Contrast>) -> String {
    match (case, contrast) {
        (Case::NoInterval, None) => "No pair of runs that learned has measured it.".into(),
        (Case::NoInterval, Some(c)) if c.pairs < MINIMUM_PAIRS => {
            format!("An interval needs at least {MINIMUM_PAIRS} pairs of runs.")
        }
        (Case::NoInterval, Some(_)) => {
            "All pairs of runs have the same difference, so there is no interval.".into()
        }
        (
            Case::AsClaimed
            | Case::Small
            | Case::Opposite
            | Case::NoEffect
            | Case::NotSteady
            | Case::Different
            | Case::Corrected
            | Case::Undecided,
            _,
        ) => side.reason(case),
    }
}

/// Fills in a claim's numbers from a contrast.
pub(super) fn with_contrast(mut row: ClaimRow, contrast: Option<&Contrast>) -> ClaimRow {
    let interval = contrast.and_then(Contrast::interval);
    let finite = |x: f64| Some(x).filter(|x| x.is_finite());
    row.ours = contrast.and_then(|c| finite(c.mean));
    row.low = interval.and_then(|i| finite(i.low));
    row.high = interval.and_then(|i| finite(i.high));
    row.p = contrast.and_then(|c| c.worth).map(|worth| worth.p);
    row.seeds = contrast.map_or(0, |c| c.pairs as u64);
    row
}

/// A row with nothing measured yet.
pub(super) fn blank(claim: ClaimId, part: &str, statement: &str, unit: Unit) -> ClaimRow {
    ClaimRow {
        claim,
        part: part.to_owned(),
        noise: None,
        statement: statement.to_owned(),
        paper: String::new(),
        ours: None,
        low: None,
        high: None,
        p: None,
        smallest: 0.0,
        verdict: Verdict::NotEnoughEvidence,
        case: Case::NoInterval,
        reason: String::new(),
        rule: String::new(),
        quantity: String::new(),
        unit,
        seeds: 0,
        seeds_needed: None,
    }
}

/// The paper's three values as one phrase.
fn published_values(comparison: &Comparison, quantity: &Quantity) -> Option<String> {
    let config = &comparison.run().config;
    let values: Option<Vec<String>> = published::taus()
        .iter()
        .map(|&tau| {
            let (value, _) =
                published::value(&config.dataset, &config.network.to_string(), quantity, Some(tau))?;
            Some(match quantity.unit() {
                Unit::Fraction => format!("{:.2} %", 100.0 * value),
                Unit::Operations => text::scientific(value),
                Unit::Sse | Unit::Threshold | Unit::Frequency | Unit::Ratio => format!("{value}"),
            })
        })
        .collect();
    values.map(|values| format!("{} (tau 30 / 100 / inf)", values.join(" / ")))
}

/// Judges all claims and derives the answer from them.
pub fn judge(comparison: &Comparison) -> (Rows<ClaimRow>, Rows<AnswerRow>) {
    let mut table = Rows::new(
        "The paper's claims",
        "Each claim of the paper is judged by the rule in its row, from paired contrasts between conditions \
         that differ only in tau and in which every run learned, for this data set, network and test set. \
         Runs of one seed share initial weights, sample order and input spikes. Robustness is the mean \
         accuracy over severities 1 to 8, in absolute points. Intervals include the variation over seeds and \
         test samples. If several noises are tested, an effect holds only if it does so after Holm's \
         correction.",
    );
    table.rows.push(equal_accuracy(comparison));
    table.rows.extend(robustness(comparison));
    table.rows.extend(generalisation::judge(comparison));
    table.rows.extend(price(comparison));
    table.rows.extend(weighted_input(comparison));
    table.rows.extend(critical::judge(comparison));
    table.rows.extend(divergence::judge(comparison));
    let failed = |row: &ConditionRow| row.role != Role::Probe && row.learned == Some(false);
    for group in comparison.groups().iter().filter(|group| failed(&group.row)) {
        table.note(format!(
            "Condition {} is excluded from claims 1 to 6: {}.",
            group.row.condition, group.row.reason
        ));
    }
    for note in overdriven::notes(comparison) {
        table.note(note);
    }
    if let Some(note) = critical::note(comparison) {
        table.note(note);
    }
    let answer = answer(comparison, &table.rows);
    (table, answer)
}

fn equal_accuracy(comparison: &Comparison) -> ClaimRow {
    let sweep = comparison.sweep();
    let mut pairs = Vec::new();
    for (i, a) in sweep.iter().enumerate() {
        for b in &sweep[i + 1..] {
            let (a, b) = (a.row.condition.as_str(), b.row.condition.as_str());
            pairs.push((a, b, comparison.contrast(&Quantity::Accuracy, a, b)));
        }
    }
    let case_of = |contrast: &Option<Contrast>| match contrast.as_ref().and_then(Contrast::interval) {
        Some(i) if i.low > -ACCURACY_MARGIN && i.high < ACCURACY_MARGIN => Case::AsClaimed,
        Some(i) if i.low > ACCURACY_MARGIN || i.high < -ACCURACY_MARGIN => Case::Different,
        Some(_) => Case::Undecided,
        None => Case::NoInterval,
    };
    let cases: Vec<Case> = pairs.iter().map(|pair| case_of(&pair.2)).collect();
    // One pair that differs refutes equality; one that is undecided leaves it open.
    let order = [Case::Different, Case::NoInterval, Case::Undecided, Case::AsClaimed];
    let case = order.into_iter().find(|case| cases.contains(case)).unwrap_or(Case::NoInterval);
    // The row shows a pair that decides the verdict: of these, the one farthest from equality.
    let reach = |c: &Option<Contrast>| {
        c.as_ref().map_or(-1.0, |c| c.interval().map_or(c.mean.abs(), |i| i.low.abs().max(i.high.abs())))
    };
    let decides = pairs.iter().filter(|pair| case_of(&pair.2) == case);
    let shown = decides.max_by(|x, y| reach(&x.2).total_cmp(&reach(&y.2)));
    let contrast = shown.and_then(|pair| pair.2);
    let side = gain();
    let words = &side.words;
    let reason = match case {
        Case::AsClaimed => format!("Every interval lies within {words} of 0."),
        Case::Different => format!("The whole interval lies more than {words} away from 0."),
        Case::Undecided => format!("The interval includes differences of less and of more than {words}."),
        Case::NoInterval
        | Case::Small
        | Case::Opposite
        | Case::NoEffect
        | Case::NotSteady
        | Case::Corrected => reason(&side, case, contrast.as_ref()),
    };
    let statement = "Baseline accuracy is the same with and without leak.";
    let mut row =
        with_contrast(blank(ClaimId::EqualAccuracy, "", statement, Unit::Fraction), contrast.as_ref());
    row.paper = published_values(comparison, &Quantity::Accuracy)
        .unwrap_or_else(|| "almost the same under all leaks".into());
    row.smallest = ACCURACY_MARGIN;
    (row.case, row.verdict, row.reason) = (case, case.verdict(), reason);
    row.quantity = shown.map_or_else(
        || "difference of accuracy".into(),
        |(a, b, _)| format!("difference of test accuracy without noise, {a} minus {b}"),
    );
    if case == Case::Undecided {
        row.seeds_needed = contrast.and_then(|c| c.pairs_needed_for_equality(ACCURACY_MARGIN));
    }
    let samples = if comparison.run().config.has_events() { "recordings" } else { "images" };
    row.rule = format!(
        "Paired difference by seed for every pair of tau, 95 % interval over seeds and test {samples}; of \
         the pairs that decide, the widest is shown. Holds: every interval lies within {words} of 0. Does \
         not hold: one lies wholly outside. Otherwise, or with fewer than {MINIMUM_PAIRS} seeds: not enough \
         evidence."
    );
    row
}

fn robustness(comparison: &Comparison) -> Vec<ClaimRow> {
    let noises = comparison.noises();
    let mut rows: Vec<ClaimRow> = noises
        .iter()
        .map(|&noise| {
            let mut row = trend(
                comparison,
                Trend {
                    claim: ClaimId::Robustness,
                    part: noise.to_string(),
                    statement: format!(
                        "Under {}, accuracy is higher with more leak (mean of severities 1 to 8).",
                        noise.words()
                    ),
                    paper: match PAPER_NOISES.contains(&noise) {
                        true => "falls less with more leak".into(),
                        false => "not measured".into(),
                    },
                    quantity: Quantity::Robustness(noise),
                    side: gain(),
                },
            );
            row.noise = Some(noise);
            row
        })
        .collect();
    correct_family(&mut rows);
    for (row, &noise) in rows.iter_mut().zip(&noises).filter(|(row, _)| row.case == Case::Corrected) {
        row.seeds_needed = trend::extremes(comparison)
            .and_then(|(a, b)| comparison.contrast(&Quantity::Robustness(noise), a, b))
            .and_then(|contrast| contrast.pairs_needed(ACCURACY_MARGIN.max(contrast.mean.abs())));
    }
    rows
}

/// Applies Holm's correction to a family of several noises: a gain that is no longer significant does not
/// hold.
pub(super) fn correct_family(rows: &mut [ClaimRow]) {
    let family: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].p.is_some()).collect();
    let corrected = holm(&family.iter().filter_map(|&i| rows[i].p).collect::<Vec<_>>());
    for (&i, p) in family.iter().zip(corrected) {
        let row = &mut rows[i];
        row.p = Some(p);
        if row.verdict == Verdict::Holds && p > SIGNIFICANT {
            row.case = Case::Corrected;
            (row.verdict, row.reason) = (row.case.verdict(), gain().reason(row.case));
        }
    }
}

fn price(comparison: &Comparison) -> Vec<ClaimRow> {
    [
        (Quantity::SpikeRate, "More leak, more spikes."),
        (Quantity::Synops, "More leak, more synaptic operations."),
    ]
    .into_iter()
    .map(|(quantity, statement)| {
        let paper = published_values(comparison, &quantity).unwrap_or_else(|| "more with leak".into());
        let part = quantity.to_string();
        let (claim, statement) = (ClaimId::Price, statement.to_owned());
        trend(comparison, Trend { claim, part, statement, paper, quantity, side: ratio(ABOVE) })
    })
    .collect()
}

/// The paper's claim is about every layer, so every layer is judged.
fn weighted_input(comparison: &Comparison) -> Vec<ClaimRow> {
    let layers = comparison.quantities().iter().filter(|q| matches!(q, Quantity::WeightedInputNorm(_)));
    layers
        .map(|quantity| {
            let Quantity::WeightedInputNorm(layer) = quantity else { unreachable!("filtered above") };
            trend(
                comparison,
                Trend {
                    claim: ClaimId::WeightedInput,
                    part: layer.clone(),
                    statement: format!("Layer {layer} receives a larger weighted input with more leak."),
                    paper: "larger in every layer (Fig. 6)".into(),
                    quantity: quantity.clone(),
                    side: ratio(ABOVE),
                },
            )
        })
        .collect()
}

/// The noises of claim 2 whose rows are accepted.
fn noises_with(rows: &[ClaimRow], accept: impl Fn(&ClaimRow) -> bool) -> Vec<NoiseKey> {
    let claim = rows.iter().filter(|row| row.claim == ClaimId::Robustness && accept(row));
    claim.filter_map(|row| row.noise).collect()
}
