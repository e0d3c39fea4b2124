//! The paper's seven claims, each judged by a stated rule from the comparison's tables and nothing else.
//!
//! A verdict is a function of intervals: a difference that could be chance is "not enough evidence", never
//! "holds", and a claim is refuted only by an interval that leaves no room for an effect of interest. The rule stands
//! beside each verdict, with a sentence that says which of its cases this is.

mod evidence;
mod verdict;

pub use evidence::Evidence;
pub use verdict::{Case, Verdict};

use super::published;
use super::statistics::{Estimate, wilson};
use evidence::Contrast;
use leaklab_record::{Cell, Table};
use verdict::Side;

/// Fewest seeds from which an interval can be made.
pub const MINIMUM_SEEDS: usize = 2;
/// Largest difference of accuracy that still counts as equal: one percentage point.
pub const ACCURACY_MARGIN: f64 = 0.01;
/// Smallest effect worth claiming, as a fraction, for quantities compared by their ratio.
pub const RATIO_MARGIN: f64 = 0.02;
/// Smallest shift of a critical frequency worth claiming: half a bin at 100 time steps.
pub const FREQUENCY_MARGIN: f64 = 0.005;
/// The paper sees training diverge below this tau.
pub const SMALL_TAU: f64 = 30.0;
/// Smallest excess of failing runs worth claiming: half of them.
pub const FAILURE_MARGIN: f64 = 0.5;

const ABOVE: f64 = 1.0;
const BELOW: f64 = -1.0;

/// A difference of accuracies, or of areas under their curves, that should be positive.
const GAIN: Side =
    Side { reference: 0.0, sign: ABOVE, smallest: ACCURACY_MARGIN, words: "one percentage point" };

/// A ratio on one side of 1.
const fn ratio_side(sign: f64) -> Side {
    Side { reference: 1.0, sign, smallest: RATIO_MARGIN, words: "2 %" }
}

/// A shift of a frequency.
const fn shift(sign: f64) -> Side {
    Side { reference: 0.0, sign, smallest: FREQUENCY_MARGIN, words: "0.005 cycles/step" }
}

/// One row of the claims table.
struct Claim {
    claim: String,
    statement: String,
    paper: String,
    quantity: String,
    unit: &'static str,
    estimate: (Option<f64>, Option<f64>, Option<f64>),
    seeds: usize,
    /// Smallest effect of interest, in `unit`.
    smallest: f64,
    case: Case,
    reason: String,
    rule: String,
}

/// Why there is no interval, or else the sentence of the case.
fn reason(side: &Side, case: Case, contrast: Option<Contrast>) -> String {
    match (case, contrast) {
        (Case::NoInterval, None) => "No pair of runs has measured it.".into(),
        (Case::NoInterval, Some(c)) if c.seeds < MINIMUM_SEEDS => {
            format!("An interval needs at least {MINIMUM_SEEDS} pairs of runs.")
        }
        _ => side.reason(case),
    }
}

fn numbers(contrast: Option<Contrast>) -> (Option<f64>, Option<f64>, Option<f64>) {
    let interval = contrast.and_then(|c| c.interval);
    (contrast.map(|c| c.mean), interval.map(|i| i.low), interval.map(|i| i.high))
}

/// A claim about more leak: the pair with most and least leak decides, neighbouring pairs may veto.
struct Trend<'a> {
    claim: String,
    statement: String,
    paper: String,
    table: &'a Table,
    quantity: &'a str,
    unit: &'static str,
    side: Side,
}

fn trend(evidence: &Evidence, trend: Trend) -> Claim {
    let side = &trend.side;
    let (most, least) = (evidence.taus.first(), evidence.taus.last());
    let extremes = most.zip(least).filter(|_| evidence.taus.len() > 1);
    let contrast = extremes.and_then(|(a, b)| evidence.contrast(trend.table, trend.quantity, a, b));
    let mut case = side.case(contrast.and_then(|c| c.interval));
    let mut reason = reason(side, case, contrast);
    let contrary = evidence.taus.windows(2).find(|pair| {
        let step = evidence.contrast(trend.table, trend.quantity, &pair[0], &pair[1]);
        side.contradicts(step.and_then(|c| c.interval))
    });
    if let (true, Some(pair)) = (case.verdict() != Verdict::DoesNotHold, contrary) {
        case = Case::NotSteady;
        reason = format!(
            "Between tau {} and {} it goes the other way, by more than {}.",
            pair[0], pair[1], side.words
        );
    }
    let (kind, joint) = if side.reference == 0.0 { ("difference", "minus") } else { ("ratio", "over") };
    let (a, b) = extremes.map_or(("most leak", "least leak"), |(a, b)| (a.as_str(), b.as_str()));
    let rule = format!(
        "Paired {kind} tau {a} {joint} tau {b} by seed, 95 % interval; the smallest effect of interest is {}. Holds: \
         the whole interval lies {}. Does not hold: otherwise, if the interval leaves no room for an effect of interest \
         in the claimed direction; or if between two neighbouring tau the whole interval lies on the other side by \
         such an effect. Not enough evidence: the interval includes both no effect and one of interest, or there are \
         fewer than {MINIMUM_SEEDS} seeds.",
        side.words,
        side.place()
    );
    Claim {
        claim: trend.claim,
        statement: trend.statement,
        paper: trend.paper,
        quantity: format!("{kind} of {}, tau {a} {joint} {b}", trend.quantity),
        unit: trend.unit,
        estimate: numbers(contrast),
        seeds: contrast.map_or(0, |c| c.seeds),
        smallest: side.smallest,
        case,
        reason,
        rule,
    }
}

fn equal_accuracy(evidence: &Evidence) -> Claim {
    let mut pairs = Vec::new();
    for (i, a) in evidence.taus.iter().enumerate() {
        for b in &evidence.taus[i + 1..] {
            pairs.push((a, b, evidence.contrast(evidence.differences, "accuracy", a, b)));
        }
    }
    let case_of = |contrast: &Option<Contrast>| match contrast.and_then(|c| c.interval) {
        Some(i) if i.low > -ACCURACY_MARGIN && i.high < ACCURACY_MARGIN => Case::AsClaimed,
        Some(i) if i.low > ACCURACY_MARGIN || i.high < -ACCURACY_MARGIN => Case::Different,
        Some(_) => Case::Undecided,
        None => Case::NoInterval,
    };
    let cases: Vec<Case> = pairs.iter().map(|pair| case_of(&pair.2)).collect();
    // One pair that differs refutes equality; one that is not known leaves it open.
    let order = [Case::Different, Case::NoInterval, Case::Undecided, Case::AsClaimed];
    let case = order.into_iter().find(|case| cases.contains(case)).unwrap_or(Case::NoInterval);
    // The pair shown is one that decides: of those, the widest departure from equality.
    let reach = |c: &Option<Contrast>| {
        c.map_or(-1.0, |c| c.interval.map_or(c.mean.abs(), |i| i.low.abs().max(i.high.abs())))
    };
    let decides = pairs.iter().filter(|pair| case_of(&pair.2) == case);
    let shown = decides.max_by(|x, y| reach(&x.2).total_cmp(&reach(&y.2)));
    let contrast = shown.and_then(|pair| pair.2);
    let words = GAIN.words;
    let reason = match case {
        Case::AsClaimed => format!("Every interval lies within {words} of 0."),
        Case::Different => format!("The whole interval lies more than {words} away from 0."),
        Case::Undecided => format!("The interval includes differences of less and of more than {words}."),
        case => reason(&GAIN, case, contrast),
    };
    Claim {
        claim: "1".into(),
        statement: "Baseline accuracy is the same with and without leak.".into(),
        paper: evidence
            .published("accuracy", true)
            .unwrap_or_else(|| "almost the same under all leaks".into()),
        quantity: shown.map_or_else(
            || "difference of accuracy".into(),
            |(a, b, _)| format!("difference of accuracy, tau {a} minus {b}"),
        ),
        unit: "fraction",
        estimate: numbers(contrast),
        seeds: contrast.map_or(0, |c| c.seeds),
        smallest: ACCURACY_MARGIN,
        case,
        reason,
        rule: format!(
            "Paired difference by seed for every pair of tau, 95 % interval; of the pairs that decide, the widest is shown. \
             Holds: every interval lies within {words} of 0. Does not hold: one lies wholly outside. Otherwise, or with \
             fewer than {MINIMUM_SEEDS} seeds: not enough evidence."
        ),
    }
}

/// The conditions of claim 6: clean, and Gaussian noise on the pixels as in the paper's Fig. 4, or whatever noise the runs
/// were tested with if not that.
fn critical_conditions(evidence: &Evidence) -> Vec<String> {
    let conditions: Vec<String> = Evidence::quantities(evidence.differences, "critical_frequency ")
        .iter()
        .filter_map(|quantity| quantity.strip_prefix("critical_frequency "))
        .filter(|condition| !condition.ends_with(" minus clean"))
        .map(str::to_owned)
        .collect();
    let noisy = conditions.iter().find(|condition| condition.starts_with("gaussian/pixel/"));
    let noisy = noisy.or_else(|| conditions.iter().find(|condition| *condition != "clean"));
    conditions
        .iter()
        .filter(|condition| *condition == "clean" || Some(*condition) == noisy)
        .cloned()
        .collect()
}

/// Noise that shifts the critical frequency, for each tau.
fn rises_with_noise(evidence: &Evidence, quantity: &str, tau: &str) -> Option<Claim> {
    let contrast = evidence.contrast(evidence.differences, quantity, tau, tau)?;
    let condition = quantity.split_whitespace().nth(1).unwrap_or_default();
    let paper = |c: &str| {
        let quantity = format!("critical_frequency {c}");
        published::value(evidence.dataset, evidence.network, &quantity, tau)
    };
    let side = shift(ABOVE);
    let case = side.case(contrast.interval);
    Some(Claim {
        claim: format!("6 {condition} tau {tau}"),
        statement: format!("At tau {tau}, the critical frequency rises with noise ({condition})."),
        paper: match (paper("clean"), paper("gaussian/pixel/5")) {
            (Some(clean), Some(noisy)) => format!("{clean} clean, {noisy} at severity 5"),
            _ => "rises for every tau".into(),
        },
        quantity: format!("difference of critical_frequency, {condition} minus clean, tau {tau}"),
        unit: "cycles/step",
        estimate: numbers(Some(contrast)),
        seeds: contrast.seeds,
        smallest: side.smallest,
        case,
        reason: reason(&side, case, Some(contrast)),
        rule: format!(
            "Paired difference noisy minus clean by seed, 95 % interval; the smallest effect of interest is {}. Holds: \
             the whole interval lies {}. Does not hold: otherwise, if the interval leaves no room for a rise of interest. \
             Not enough evidence: the interval includes both no effect and one of interest, or there are fewer than \
             {MINIMUM_SEEDS} seeds.",
            side.words,
            side.place()
        ),
    })
}

fn diverges(evidence: &Evidence) -> Claim {
    let table = evidence.runs;
    // [small tau, other tau] -> (runs, of which did not learn)
    let mut counts = [(0u64, 0u64); 2];
    for row in &table.rows {
        let tau = table.cell(row, "tau").text().and_then(|tau| tau.parse::<f64>().ok());
        let learned = table.cell(row, "learned").number();
        if let (Some(tau), Some(learned)) = (tau, learned) {
            let group = &mut counts[usize::from(tau >= SMALL_TAU)];
            group.0 += 1;
            group.1 += u64::from(learned == 0.0);
        }
    }
    let [(small, failed), (other, other_failed)] = counts;
    // Newcombe's interval of a difference of two fractions, from their Wilson intervals.
    let difference = wilson(failed, small).zip(wilson(other_failed, other)).map(|(p, q)| Estimate {
        mean: p.mean - q.mean,
        low: p.mean - q.mean - ((p.mean - p.low).powi(2) + (q.high - q.mean).powi(2)).sqrt(),
        high: p.mean - q.mean + ((p.high - p.mean).powi(2) + (q.mean - q.low).powi(2)).sqrt(),
    });
    let side = Side { reference: 0.0, sign: ABOVE, smallest: FAILURE_MARGIN, words: "half of the runs" };
    let known = small >= MINIMUM_SEEDS as u64 && other > 0;
    let case = side.case(difference.filter(|_| known));
    let reason = match (small, other) {
        _ if known => side.reason(case),
        (0, _) => format!("This study has no tau below {SMALL_TAU}."),
        (_, 0) => format!("This study has no tau of {SMALL_TAU} or more to compare with."),
        _ => format!("An interval needs at least {MINIMUM_SEEDS} runs with tau below {SMALL_TAU}."),
    };
    let rule = format!(
        "A run did not learn if its test accuracy is not above chance (lower end of its 95 % Wilson interval) or its loss \
         diverged. Share of such runs with tau below {SMALL_TAU}, minus the share of the others, 95 % interval \
         (Newcombe); the smallest effect of interest is {}. Holds: the whole interval lies {}. Does not hold: otherwise, \
         if the interval leaves no room for an effect of interest. Otherwise, or with fewer than {MINIMUM_SEEDS} runs \
         below {SMALL_TAU}: not enough evidence.",
        side.words,
        side.place()
    );
    Claim {
        claim: "7".into(),
        statement: format!("Training diverges where tau is too small (below {SMALL_TAU} steps)."),
        paper: "diverges below tau = 30".into(),
        quantity: format!(
            "difference of the share of runs that did not learn, tau below {SMALL_TAU} minus others"
        ),
        unit: "fraction",
        estimate: (difference.map(|d| d.mean), difference.map(|d| d.low), difference.map(|d| d.high)),
        seeds: small as usize,
        smallest: side.smallest,
        case,
        reason,
        rule,
    }
}

/// Judges all claims: the `claims` table.
pub fn judge(evidence: &Evidence) -> Table {
    let mut claims = vec![equal_accuracy(evidence)];
    for quantity in Evidence::quantities(evidence.differences, "area ") {
        let setting = quantity.trim_start_matches("area ").to_owned();
        claims.push(trend(
            evidence,
            Trend {
                claim: format!("2 {setting}"),
                statement: format!("Under noise ({setting}), accuracy falls less with more leak."),
                paper: match setting.split('/').next() {
                    Some("gaussian" | "impulse") => "falls less with more leak".into(),
                    _ => "not measured".into(),
                },
                table: evidence.differences,
                quantity: &quantity,
                unit: "fraction of clean accuracy",
                side: GAIN,
            },
        ));
    }
    let ratio =
        |claim: &str, statement: &str, words: &str, quantity: &str, paper: Option<String>, sign: f64| {
            trend(
                evidence,
                Trend {
                    claim: claim.into(),
                    statement: statement.into(),
                    paper: paper.unwrap_or_else(|| words.into()),
                    table: evidence.ratios,
                    quantity,
                    unit: "ratio",
                    side: ratio_side(sign),
                },
            )
        };
    let sse = evidence.published("test_sse_times_32", false);
    claims.push(ratio(
        "3 test_sse",
        "Test SSE is lower with leak.",
        "lower with leak",
        "test_sse",
        sse,
        BELOW,
    ));
    claims.push(ratio(
        "3 equal train_sse",
        "Test SSE at equal train SSE is lower with leak.",
        "lower with leak (Fig. 5d,e)",
        "test_sse_at_equal_train_sse",
        None,
        BELOW,
    ));
    let spikes = evidence.published("spike_rate", true);
    claims.push(ratio(
        "4 spike_rate",
        "More leak, more spikes.",
        "more with leak",
        "spike_rate",
        spikes,
        ABOVE,
    ));
    let synops = evidence.published("synops", false);
    claims.push(ratio(
        "4 synops",
        "More leak, more synaptic operations.",
        "more with leak",
        "synops",
        synops,
        ABOVE,
    ));
    claims.push(ratio(
        "5",
        "Hidden layers receive a larger weighted input with more leak.",
        "larger in every layer (Fig. 6)",
        "weighted_input_norm",
        None,
        ABOVE,
    ));
    for condition in critical_conditions(evidence) {
        let quantity = format!("critical_frequency {condition}");
        claims.push(trend(
            evidence,
            Trend {
                claim: format!("6 leak {condition}"),
                statement: format!(
                    "The critical frequency of the target output falls with leak ({condition})."
                ),
                paper: evidence.published(&quantity, false).unwrap_or_else(|| "falls with leak".into()),
                table: evidence.differences,
                quantity: &quantity,
                unit: "cycles/step",
                side: shift(BELOW),
            },
        ));
        let rise = format!("{quantity} minus clean");
        claims.extend(evidence.taus.iter().filter_map(|tau| rises_with_noise(evidence, &rise, tau)));
    }
    claims.push(diverges(evidence));
    table(&claims)
}

fn table(claims: &[Claim]) -> Table {
    let mut table = Table::new(
        "claims",
        "The paper's claims",
        "Each claim of the paper judged by the rule beside it, from intervals over seeds for this data set, network \
         and test set. Runs of one seed share initial weights, image order and input spikes, so tau are compared in \
         pairs by seed.",
        &[
            ("claim", "", "Number of the claim, and its part."),
            ("statement", "", "What is claimed."),
            ("paper", "", "What the paper found; numbers only where data set and network are the paper's."),
            ("ours", "", "Our figure, as `quantity` says, in `unit`."),
            ("low", "", "Lower end of its 95 % interval; empty with too few seeds."),
            ("high", "", "Upper end of its 95 % interval."),
            ("smallest", "", "Smallest effect of interest, in `unit`."),
            ("verdict", "", "holds, does not hold, or not enough evidence."),
            ("case", "", "Which case of the rule this is."),
            ("reason", "", "The same as a sentence."),
            ("rule", "", "How the verdict follows from the figure."),
            ("quantity", "", "What `ours` is."),
            ("unit", "", "Unit of `ours`."),
            ("seeds", "", "Pairs of runs behind the figure (runs with small tau for claim 7)."),
        ],
    );
    for claim in claims {
        let (mean, low, high) = claim.estimate;
        table.push(vec![
            claim.claim.as_str().into(),
            claim.statement.as_str().into(),
            claim.paper.as_str().into(),
            Cell::from(mean),
            Cell::from(low),
            Cell::from(high),
            claim.smallest.into(),
            claim.case.verdict().text().into(),
            claim.case.text().into(),
            claim.reason.as_str().into(),
            claim.rule.as_str().into(),
            claim.quantity.as_str().into(),
            claim.unit.into(),
            claim.seeds.into(),
        ]);
    }
    table
}
