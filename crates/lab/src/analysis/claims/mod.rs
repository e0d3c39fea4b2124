//! The paper's seven claims. Each is judged by a stated rule, from the comparison alone.
//!
//! A verdict is a function of intervals. A difference that may be chance is "not enough evidence", never
//! "holds", and a claim is refuted only by an interval that rules out an effect of interest. Each
//! row contains the rule and a sentence that states which case of the rule applies. Claims about "more leak"
//! use the conditions that differ only in tau and in which every run learned.

mod answer;
mod divergence;
mod overdriven;
mod side;
mod trend;

pub use answer::answer;
pub use side::Side;

use super::compare::Comparison;
use super::contrast::{Contrast, MINIMUM_PAIRS, holm};
use super::published;
use super::statistics::Estimate;
use super::stimulus::SPECTRUM_SEVERITY;
use leaklab_record::tables::{AnswerRow, ClaimRow, ConditionRow};
use leaklab_record::{
    Case, ClaimId, NoiseKey, PAPER_NOISES, Quantity, Reading, Role, Rows, Stimulus, Unit, Verdict, text,
};
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
    table.rows.extend(generalisation(comparison));
    table.rows.extend(price(comparison));
    table.rows.extend(weighted_input(comparison));
    table.rows.extend(critical_frequency(comparison));
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
    if let Some(note) = reading_note(comparison) {
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

fn generalisation(comparison: &Comparison) -> Vec<ClaimRow> {
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
        let sse = super::statistics::mean(&comparison.values(&Quantity::TestSse, condition))?;
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
    let (a, b) = trend::extremes(comparison)?;
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

/// The stimuli of claim 6: clean, and Gaussian noise on the pixels as in the paper's Fig. 4, or, if the runs
/// were not tested with it, the first noise that they were tested with.
fn critical_stimuli(comparison: &Comparison) -> Vec<Stimulus> {
    let found: Vec<Stimulus> = comparison
        .quantities()
        .iter()
        .filter_map(|quantity| {
            let Quantity::CriticalFrequency(Reading::Defined, stimulus) = quantity else { return None };
            Some(*stimulus)
        })
        .collect();
    let paper = Stimulus::at(PAPER_NOISES[0], SPECTRUM_SEVERITY);
    let noisy = found.iter().find(|&&s| s == paper).or_else(|| found.iter().find(|&&s| s != Stimulus::Clean));
    found.iter().copied().filter(|s| *s == Stimulus::Clean || Some(s) == noisy).collect()
}

fn critical_frequency(comparison: &Comparison) -> Vec<ClaimRow> {
    let mut rows = Vec::new();
    for stimulus in critical_stimuli(comparison) {
        for reading in Reading::ALL {
            let quantity = Quantity::CriticalFrequency(reading, stimulus);
            let paper = match reading {
                Reading::Defined => {
                    published_values(comparison, &quantity).unwrap_or_else(|| "falls with leak".into())
                }
                Reading::Settled | Reading::Shuffled => "not measured".into(),
            };
            rows.push(trend(
                comparison,
                Trend {
                    claim: ClaimId::CriticalFrequency,
                    part: format!("leak, {stimulus}, {reading}"),
                    statement: format!(
                        "The critical frequency of the target output, {}, falls with leak ({}).",
                        reading.words(),
                        stimulus.words()
                    ),
                    paper,
                    quantity,
                    side: shift(BELOW),
                },
            ));
        }
        if stimulus != Stimulus::Clean {
            let names = comparison.sweep().into_iter().map(|group| group.row.condition.as_str());
            rows.extend(names.filter_map(|condition| rises_with_noise(comparison, stimulus, condition)));
        }
    }
    rows
}

/// Judges whether noise raises the critical frequency of a condition.
fn rises_with_noise(comparison: &Comparison, stimulus: Stimulus, condition: &str) -> Option<ClaimRow> {
    let contrast = comparison.estimate(&Quantity::CriticalRise(stimulus), condition)?;
    let config = &comparison.run().config;
    let tau = comparison.group(condition).and_then(|group| group.row.tau);
    let paper = |stimulus: Stimulus| {
        let quantity = Quantity::CriticalFrequency(Reading::Defined, stimulus);
        published::value(&config.dataset, &config.network.to_string(), &quantity, tau).map(|value| value.0)
    };
    let side = shift(ABOVE);
    let case = side.case(contrast.interval());
    let part = format!("noise, {stimulus}, {condition}");
    let statement =
        format!("With {condition}, the critical frequency rises with noise ({}).", stimulus.words());
    let mut row =
        with_contrast(blank(ClaimId::CriticalFrequency, &part, &statement, Unit::Frequency), Some(&contrast));
    row.noise = if let Stimulus::Noisy(noise, _) = stimulus { Some(noise) } else { None };
    row.paper = match (paper(Stimulus::Clean), paper(stimulus)) {
        (Some(clean), Some(noisy)) => format!("{clean} clean, {noisy} at severity {SPECTRUM_SEVERITY}"),
        _ => "rises for every tau".into(),
    };
    row.smallest = side.smallest;
    (row.case, row.verdict) = (case, case.verdict());
    row.reason = reason(&side, case, Some(&contrast));
    if case == Case::Undecided {
        row.seeds_needed = contrast.pairs_needed(side.smallest);
    }
    row.quantity = format!("{}, {condition}", Quantity::CriticalRise(stimulus).words());
    row.rule = format!(
        "Paired difference noisy minus clean by seed, 95 % interval; the smallest effect of interest is {}. \
         Holds: the whole interval lies {}. Does not hold: otherwise, if the interval rules out a \
         rise of interest. Not enough evidence: the interval includes both no effect and one of interest, or \
         there are fewer than {MINIMUM_PAIRS} seeds.",
        side.words,
        side.place()
    );
    Some(row)
}

/// A note on what shifts the critical frequency, from its three readings.
fn reading_note(comparison: &Comparison) -> Option<String> {
    let (a, b) = trend::extremes(comparison)?;
    let of = |reading: Reading| {
        let quantity = Quantity::CriticalFrequency(reading, Stimulus::Clean);
        let contrast = comparison.contrast(&quantity, a, b)?;
        Some((contrast.mean, contrast.interval()?))
    };
    let [defined, settled, shuffled] = Reading::ALL.map(of);
    let ((defined, interval), (settled, later), (shuffled, surrogate)) = (defined?, settled?, shuffled?);
    let share = Quantity::ZeroFrequencyShare(Stimulus::Clean);
    let share = comparison.contrast(&share, a, b).map_or(String::new(), |contrast| {
        format!(" The share of power at frequency 0 differs by {:+.1} points.", 100.0 * contrast.mean)
    });
    let towards = |x: f64| x * defined.signum();
    // The smallest and the largest value that an interval allows, in the direction of the effect.
    let range = |of: Estimate| {
        let ends = [towards(of.low), towards(of.high)];
        (ends[0].min(ends[1]), ends[0].max(ends[1]))
    };
    let half = 0.5 * defined.abs();
    let cause = if interval.low <= 0.0 && interval.high >= 0.0 {
        "That may be chance, so no cause is named."
    } else if range(later).1 < 0.0 {
        "Its sign depends on the reading, so it does not show filtering."
    } else if range(surrogate).0 >= half {
        "Most of it is also present in shuffled spike trains, which have no temporal structure: it comes \
         from spike counts and weights, not from filtering in time."
    } else if range(surrogate).1 < half {
        "Less than half of it is present in shuffled spike trains, so most of it comes from the order of \
         spikes in time."
    } else {
        "How much of it is present in shuffled spike trains is not known well enough to name a cause."
    };
    Some(format!(
        "Claim 6, {a} compared with {b}, clean: the critical frequency differs by {defined:+.4} cycles/step \
         as defined, {settled:+.4} without the first 20 % of steps, {shuffled:+.4} for shuffled spike \
         trains. {cause}{share}"
    ))
}

/// The noises of claim 2 whose rows are accepted.
fn noises_with(rows: &[ClaimRow], accept: impl Fn(&ClaimRow) -> bool) -> Vec<NoiseKey> {
    let claim = rows.iter().filter(|row| row.claim == ClaimId::Robustness && accept(row));
    claim.filter_map(|row| row.noise).collect()
}
