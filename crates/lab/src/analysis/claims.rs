//! The paper's seven claims, each judged by a stated rule from the comparison's tables and nothing else.
//!
//! A verdict is a function of intervals: a difference that could be chance is "not enough evidence", never
//! "holds", and a claim is refuted only by an interval that excludes it. The rule stands beside each verdict.

use super::published;
use super::statistics::{Estimate, wilson};
use leaklab_record::{Cell, Table};

/// What the evidence says of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The interval lies where the claim says.
    Holds,
    /// The interval excludes the claim.
    DoesNotHold,
    /// Too few seeds, or an interval that allows both.
    NotEnoughEvidence,
}

impl Verdict {
    /// The words used in tables.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::NotEnoughEvidence => "not enough evidence",
        }
    }
}

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
struct Contrast {
    mean: f64,
    interval: Option<Estimate>,
    seeds: usize,
}

impl Evidence<'_> {
    fn contrast(&self, table: &Table, quantity: &str, tau_a: &str, tau_b: &str) -> Option<Contrast> {
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
    fn quantities(table: &Table, prefix: &str) -> Vec<String> {
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

    fn published(&self, quantity: &str, percent: bool) -> Option<String> {
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

/// One row of the claims table.
struct Claim {
    claim: String,
    statement: String,
    paper: String,
    quantity: String,
    unit: &'static str,
    estimate: (Option<f64>, Option<f64>, Option<f64>),
    seeds: usize,
    verdict: Verdict,
    rule: String,
}

/// Judges a claim that a quantity lies on one side of `reference`, `sign` telling which.
fn side(contrast: Option<Contrast>, reference: f64, sign: f64, margin: f64) -> Verdict {
    let Some(interval) = contrast.and_then(|c| c.interval) else { return Verdict::NotEnoughEvidence };
    // Both ends, measured in the claimed direction.
    let ends = [sign * (interval.low - reference), sign * (interval.high - reference)];
    let (worst, best) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    if worst > 0.0 {
        Verdict::Holds
    } else if best < margin {
        Verdict::DoesNotHold
    } else {
        Verdict::NotEnoughEvidence
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
    /// 0 for differences, 1 for ratios.
    reference: f64,
    /// +1 if the quantity should grow with leak.
    sign: f64,
    margin: f64,
}

fn trend(evidence: &Evidence, trend: Trend) -> Claim {
    let (most, least) = (evidence.taus.first(), evidence.taus.last());
    let extremes = most.zip(least).filter(|_| evidence.taus.len() > 1);
    let contrast = extremes.and_then(|(a, b)| evidence.contrast(trend.table, trend.quantity, a, b));
    let mut verdict = side(contrast, trend.reference, trend.sign, trend.margin);
    let contrary = evidence.taus.windows(2).find(|pair| {
        let neighbour = evidence.contrast(trend.table, trend.quantity, &pair[0], &pair[1]);
        side(neighbour, trend.reference, -trend.sign, 0.0) == Verdict::Holds
    });
    let kind = if trend.reference == 0.0 { "difference" } else { "ratio" };
    let (a, b) = extremes.map_or(("most leak", "least leak"), |(a, b)| (a.as_str(), b.as_str()));
    let joint = if trend.reference == 0.0 { "minus" } else { "over" };
    let beyond = if trend.sign > 0.0 { "above" } else { "below" };
    let mut rule = format!(
        "Paired {kind} tau {a} {joint} tau {b} by seed, 95 % interval. Holds: the interval lies {beyond} {} and no \
         neighbouring pair of tau goes the other way. Does not hold: an effect of {} in the claimed direction is \
         excluded, or a neighbouring pair goes the other way. Otherwise, or with fewer than {MINIMUM_SEEDS} \
         seeds: not enough evidence.",
        trend.reference, trend.margin
    );
    if let (Verdict::Holds, Some(pair)) = (verdict, contrary) {
        verdict = Verdict::DoesNotHold;
        rule.push_str(&format!(" Here tau {} against {} goes the other way.", pair[0], pair[1]));
    }
    let quantity = format!("{kind} of {}, tau {a} {joint} {b}", trend.quantity);
    Claim {
        claim: trend.claim,
        statement: trend.statement,
        paper: trend.paper,
        quantity,
        unit: trend.unit,
        estimate: numbers(contrast),
        seeds: contrast.map_or(0, |c| c.seeds),
        verdict,
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
    let verdicts: Vec<Verdict> = pairs
        .iter()
        .map(|(_, _, contrast)| match contrast.and_then(|c| c.interval) {
            Some(i) if i.low > -ACCURACY_MARGIN && i.high < ACCURACY_MARGIN => Verdict::Holds,
            Some(i) if i.low > ACCURACY_MARGIN || i.high < -ACCURACY_MARGIN => Verdict::DoesNotHold,
            _ => Verdict::NotEnoughEvidence,
        })
        .collect();
    let verdict = if verdicts.contains(&Verdict::DoesNotHold) {
        Verdict::DoesNotHold
    } else if verdicts.is_empty() || verdicts.contains(&Verdict::NotEnoughEvidence) {
        Verdict::NotEnoughEvidence
    } else {
        Verdict::Holds
    };
    // The pair shown is the one that decides: the widest departure from equality.
    let reach = |c: &Option<Contrast>| {
        c.map_or(-1.0, |c| c.interval.map_or(c.mean.abs(), |i| i.low.abs().max(i.high.abs())))
    };
    let widest = pairs.iter().max_by(|x, y| reach(&x.2).total_cmp(&reach(&y.2)));
    let contrast = widest.and_then(|pair| pair.2);
    Claim {
        claim: "1".into(),
        statement: "Baseline accuracy is the same with and without leak.".into(),
        paper: evidence
            .published("accuracy", true)
            .unwrap_or_else(|| "almost the same under all leaks".into()),
        quantity: widest.map_or_else(
            || "difference of accuracy".into(),
            |(a, b, _)| format!("difference of accuracy, tau {a} minus {b}"),
        ),
        unit: "fraction",
        estimate: numbers(contrast),
        seeds: contrast.map_or(0, |c| c.seeds),
        verdict,
        rule: format!(
            "Paired difference by seed for every pair of tau, 95 % interval; the widest is shown. Holds: every \
             interval lies within {ACCURACY_MARGIN} (one percentage point) of 0. Does not hold: one lies wholly \
             outside. Otherwise, or with fewer than {MINIMUM_SEEDS} seeds: not enough evidence."
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
        verdict: side(Some(contrast), 0.0, 1.0, FREQUENCY_MARGIN),
        rule: format!(
            "Paired difference noisy minus clean by seed, 95 % interval. Holds: it lies above 0. Does not hold: a \
             rise of {FREQUENCY_MARGIN} is excluded. Otherwise, or with fewer than {MINIMUM_SEEDS} seeds: not \
             enough evidence."
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
    let verdict = match difference {
        Some(d) if small >= MINIMUM_SEEDS as u64 && d.low > 0.0 => Verdict::Holds,
        _ if small >= MINIMUM_SEEDS as u64 && failed == 0 => Verdict::DoesNotHold,
        _ => Verdict::NotEnoughEvidence,
    };
    let mut rule = format!(
        "A run did not learn if its test accuracy is not above chance (lower end of its 95 % Wilson interval). \
         Share of such runs with tau below {SMALL_TAU}, minus the share of the others, 95 % interval (Newcombe). \
         Holds: it lies above 0. Does not hold: at least {MINIMUM_SEEDS} runs with tau below {SMALL_TAU}, and all \
         learned. Otherwise: not enough evidence."
    );
    if small == 0 {
        rule.push_str(&format!(" This study has no tau below {SMALL_TAU}."));
    }
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
        verdict,
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
                reference: 0.0,
                sign: 1.0,
                margin: ACCURACY_MARGIN,
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
                    reference: 1.0,
                    sign,
                    margin: RATIO_MARGIN,
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
        -1.0,
    ));
    claims.push(ratio(
        "3 equal train_sse",
        "Test SSE at equal train SSE is lower with leak.",
        "lower with leak (Fig. 5d,e)",
        "test_sse_at_equal_train_sse",
        None,
        -1.0,
    ));
    let spikes = evidence.published("spike_rate", true);
    claims.push(ratio(
        "4 spike_rate",
        "More leak, more spikes.",
        "more with leak",
        "spike_rate",
        spikes,
        1.0,
    ));
    let synops = evidence.published("synops", false);
    claims.push(ratio(
        "4 synops",
        "More leak, more synaptic operations.",
        "more with leak",
        "synops",
        synops,
        1.0,
    ));
    claims.push(ratio(
        "5",
        "Hidden layers receive a larger weighted input with more leak.",
        "larger in every layer (Fig. 6)",
        "weighted_input_norm",
        None,
        1.0,
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
                reference: 0.0,
                sign: -1.0,
                margin: FREQUENCY_MARGIN,
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
            ("verdict", "", "holds, does not hold, or not enough evidence."),
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
            claim.verdict.text().into(),
            claim.rule.as_str().into(),
            claim.quantity.as_str().into(),
            claim.unit.into(),
            claim.seeds.into(),
        ]);
    }
    table
}
