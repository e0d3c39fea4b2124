//! The opening sentence, chosen by cases. It states no more than the verdicts do, and names the pair of tau
//! that it compares.

use super::super::compare::{Comparison, Group};
use super::super::contrast::{Contrast, holm};
use super::overdriven::overdriven;
use super::{SIGNIFICANT, noises_with, trend};
use leaklab_engine::Tau;
use leaklab_engine::noise::HIGHEST_SEVERITY;
use leaklab_record::noun::list;
use leaklab_record::tables::{AnswerCase, AnswerRow, ClaimRow};
use leaklab_record::{Case, ClaimId, NoiseKey, Quantity, Role, Rows, Verdict};

/// Highest severity that does not count as strong noise.
const STRONG: usize = 4;

/// The answer to "does leak make a spiking network robust?".
pub fn answer(comparison: &Comparison, claims: &[ClaimRow]) -> Rows<AnswerRow> {
    let mut table = Rows::new(
        "The answer",
        "Derived from the verdicts of claim 2 by fixed rules. A dose-response relation is stated only if the \
         claim holds between the extremes and every pair of neighbouring tau agrees in sign.",
    );
    let (case, sentence) = choose(comparison, claims);
    let between = match case {
        // These sentences cover the conditions in between already, or there are none to compare.
        AnswerCase::DoseResponse | AnswerCase::NothingLearned | AnswerCase::NotMeasured => String::new(),
        AnswerCase::OnlyStrongNoise if dose_response(comparison, claims) => String::new(),
        AnswerCase::OnlyStrongNoise
        | AnswerCase::NoEffect
        | AnswerCase::BelowInterest
        | AnswerCase::OnlyExtremes
        | AnswerCase::NotSteady
        | AnswerCase::Against
        | AnswerCase::Mixed
        | AnswerCase::Undecided => between_the_extremes(comparison),
    };
    let others = outside_the_sweep(comparison);
    let excluded: Vec<String> = comparison
        .groups()
        .iter()
        .filter(|group| group.row.role != Role::Probe && group.row.learned == Some(false))
        .map(|group| label(group.row.tau, &group.row.condition))
        .collect();
    let excluded = match excluded.len() {
        0 => String::new(),
        _ => format!(" Excluded because not every run learned: {}.", excluded.join(", ")),
    };
    let groups = comparison.groups().iter().filter(|group| group.counts());
    let outgrown: Vec<String> = groups
        .filter(|group| overdriven(comparison, &group.row.condition).is_some())
        .map(|group| label(group.row.tau, &group.row.condition))
        .collect();
    let outgrown = match outgrown.len() {
        0 => String::new(),
        _ => format!(
            " With {}, training drove the weights far beyond the threshold (see the notes below the claims).",
            list(&outgrown)
        ),
    };
    let sentence = format!("{sentence}{between}{others}{excluded}{outgrown}");
    table.rows.push(AnswerRow { case, sentence });
    table
}

/// The name of a condition within a sentence.
fn label(tau: Option<Tau>, name: &str) -> String {
    match tau {
        Some(tau) if tau.leaks() => format!("tau {tau}"),
        Some(_) => "no leak".to_owned(),
        None => name.to_owned(),
    }
}

fn choose(comparison: &Comparison, claims: &[ClaimRow]) -> (AnswerCase, String) {
    let rows: Vec<&ClaimRow> = claims.iter().filter(|row| row.claim == ClaimId::Robustness).collect();
    let Some((a, b)) = trend::extremes(comparison) else {
        let reason = match comparison.groups().iter().filter(|group| group.row.role != Role::Probe).count() {
            1 => "it has only one condition",
            _ => "fewer than two conditions that differ in tau alone have learned",
        };
        return (AnswerCase::NothingLearned, format!("This study has no answer: {reason}."));
    };
    let name =
        |condition: &str| label(comparison.group(condition).and_then(|group| group.row.tau), condition);
    let (most, least) = (name(a), name(b));
    if rows.is_empty() || rows.iter().all(|row| row.case == Case::NoInterval) {
        return (
            AnswerCase::NotMeasured,
            "This study has no answer yet: accuracy under noise was not measured in at least two pairs of \
             runs."
                .to_owned(),
        );
    }
    let n = rows.len();
    let kinds = match n {
        1 => "the one kind of noise tested".to_owned(),
        n => format!("all {n} kinds of noise tested"),
    };
    let all = |accept: &dyn Fn(&ClaimRow) -> bool| rows.iter().all(|row| accept(row));
    let range = points(&rows);
    if all(&|row| row.verdict == Verdict::Holds) {
        if all(&|row| row.case == Case::Small) {
            let sentence = format!(
                "Hardly: under {kinds}, {most} is more accurate than {least}, but by less than one \
                 percentage point ({range})."
            );
            return (AnswerCase::BelowInterest, sentence);
        }
        let noises = noises_with(claims, |_| true);
        let only_strong = noises.iter().all(|&noise| weak_severities_show_nothing(comparison, noise, a, b));
        let where_ = if only_strong {
            format!(", though no severity from 1 to {STRONG} shows it by itself")
        } else {
            String::new()
        };
        if dose_response(comparison, claims) {
            let sentence = format!(
                "Yes: the more leak, the more accurate the network stays under {kinds}{where_}; {most} gains \
                 {range} over {least}."
            );
            return (
                if only_strong { AnswerCase::OnlyStrongNoise } else { AnswerCase::DoseResponse },
                sentence,
            );
        }
        let sentence = format!(
            "Yes, between the extremes: under {kinds}, {most} is more accurate than {least}{where_}, by \
             {range}."
        );
        return (if only_strong { AnswerCase::OnlyStrongNoise } else { AnswerCase::OnlyExtremes }, sentence);
    }
    if all(&significantly_opposite) {
        let sentence =
            format!("No, the opposite: under {kinds}, {most} is less accurate than {least}, by {range}.");
        return (AnswerCase::Against, sentence);
    }
    if all(&|row| row.case == Case::NotSteady) {
        let changes = signed_points(&rows);
        let sentence = format!(
            "Not steadily: under {kinds}, there are two neighbouring tau of which the one with more leak is \
             less accurate ({most} compared with {least}: {changes})."
        );
        return (AnswerCase::NotSteady, sentence);
    }
    if all(&|row| row.verdict == Verdict::DoesNotHold && row.case != Case::NotSteady) {
        let sentence = format!(
            "No: under {kinds}, {most} is not more accurate than {least} by one percentage point or more."
        );
        return (AnswerCase::NoEffect, sentence);
    }
    if all(&|row| row.verdict == Verdict::NotEnoughEvidence) {
        let sentence = format!(
            "This study cannot tell whether {most} is more accurate than {least}: under {kinds}, the \
             intervals are too wide."
        );
        return (AnswerCase::Undecided, sentence);
    }
    (AnswerCase::Mixed, mixed(claims, &most, &least))
}

/// Whether the opposite of a claim is significant after the correction over all noises.
fn significantly_opposite(row: &ClaimRow) -> bool {
    row.case == Case::Opposite && row.p.is_some_and(|p| p <= SIGNIFICANT)
}

/// What the conditions between most and least leak gain or lose compared with the least, where this is
/// significant after Holm's correction over all of them and all noises. The effect of leak need not be
/// monotonic.
fn between_the_extremes(comparison: &Comparison) -> String {
    let sweep = comparison.sweep();
    let [_, middle @ .., least] = &sweep[..] else { return String::new() };
    significant_differences(comparison, middle, least, "In between")
}

/// The same for conditions that differ from the baseline in more than a uniform tau.
fn outside_the_sweep(comparison: &Comparison) -> String {
    let groups = comparison.groups().iter();
    let others: Vec<&Group> = groups
        .filter(|group| group.counts() && group.row.role == Role::Compared && group.row.tau.is_none())
        .collect();
    // A comparison with networks that did not learn would mean nothing.
    let baseline = comparison.baseline();
    if !baseline.counts() {
        return String::new();
    }
    significant_differences(comparison, &others, baseline, "In addition")
}

/// Sentences that name the noises under which conditions are significantly more or less accurate than
/// another.
fn significant_differences(
    comparison: &Comparison,
    groups: &[&Group],
    than: &Group,
    opening: &str,
) -> String {
    let noises = comparison.noises();
    let contrast = |condition: &str, noise: NoiseKey| {
        comparison.contrast(&Quantity::Robustness(noise), condition, &than.row.condition)
    };
    let pairs = groups.iter().flat_map(|group| noises.iter().map(move |&noise| (group, noise)));
    let found: Vec<_> = pairs
        .filter_map(|(group, noise)| {
            let contrast = contrast(&group.row.condition, noise)?;
            Some((group, noise, contrast.mean, contrast.worth?.p))
        })
        .collect();
    let corrected = holm(&found.iter().map(|row| row.3).collect::<Vec<_>>());
    let mut text = String::new();
    for group in groups {
        let part = |word: &str, sign: f64| {
            let significant: Vec<(NoiseKey, f64)> = found
                .iter()
                .zip(&corrected)
                .filter(|(row, p)| {
                    row.0.row.condition == group.row.condition && **p <= SIGNIFICANT && sign * row.2 > 0.0
                })
                .map(|(row, _)| (row.1, row.2))
                .collect();
            let names: Vec<String> = significant.iter().map(|(noise, _)| noise.words()).collect();
            let which = match (significant.len(), noises.len()) {
                (0, _) => return None,
                (1, 1) => "the one kind of noise tested".to_owned(),
                (n, all) if n == all => format!("all {n} kinds of noise"),
                (n, all) => format!("{n} of {all} kinds of noise ({})", list(&names)),
            };
            let size = range(significant.iter().map(|(_, mean)| *mean));
            Some(format!("{word} accurate under {which}, by {size}"))
        };
        let parts: Vec<String> = [part("more", 1.0), part("less", -1.0)].into_iter().flatten().collect();
        if !parts.is_empty() {
            text.push_str(&format!(
                " {opening}, {} compared with {} is {}.",
                label(group.row.tau, &group.row.condition),
                label(than.row.tau, &than.row.condition),
                parts.join(", and ")
            ));
        }
    }
    text
}

/// The effects as one phrase in percentage points, without their sign.
fn points(rows: &[&ClaimRow]) -> String {
    range(rows.iter().filter_map(|row| row.ours))
}

/// The effects as one phrase in percentage points, with their sign.
fn signed_points(rows: &[&ClaimRow]) -> String {
    let text = |x: f64| format!("{:+.1}", 100.0 * x).replace('-', "−");
    let effects = || rows.iter().filter_map(|row| row.ours);
    let low = text(effects().fold(f64::INFINITY, f64::min));
    let high = text(effects().fold(f64::NEG_INFINITY, f64::max));
    if low == high { format!("{low} points") } else { format!("{low} to {high} points") }
}

/// Differences as one phrase in percentage points, without their sign.
fn range(differences: impl Iterator<Item = f64>) -> String {
    let sizes: Vec<f64> = differences.map(|x| 100.0 * x.abs()).collect();
    let low = sizes.iter().copied().fold(f64::INFINITY, f64::min);
    let high = sizes.iter().copied().fold(0.0, f64::max);
    if format!("{low:.1}") == format!("{high:.1}") {
        format!("{high:.1} points")
    } else {
        format!("{low:.1} to {high:.1} points")
    }
}

fn mixed(claims: &[ClaimRow], most: &str, least: &str) -> String {
    let noises = |accept: &dyn Fn(&ClaimRow) -> bool| -> Vec<String> {
        noises_with(claims, accept).iter().map(|noise| noise.words()).collect()
    };
    let fails = |row: &ClaimRow| row.verdict == Verdict::DoesNotHold;
    let steady = |row: &ClaimRow| row.case != Case::NotSteady;
    let gains = noises(&|row| row.verdict == Verdict::Holds);
    let opening = if gains.is_empty() { "Not shown" } else { "In part" };
    let pieces = [
        ("it is more accurate under", gains),
        ("it is less accurate under", noises(&significantly_opposite)),
        ("accuracy does not change steadily with leak under", noises(&|row| fails(row) && !steady(row))),
        (
            "a gain of one percentage point is ruled out under",
            noises(&|row| fails(row) && steady(row) && !significantly_opposite(row)),
        ),
        ("there is not enough evidence for", noises(&|row| row.verdict == Verdict::NotEnoughEvidence)),
    ];
    let pieces = pieces.iter().filter(|(_, noises)| !noises.is_empty());
    let pieces: Vec<String> = pieces.map(|(words, noises)| format!("{words} {}", list(noises))).collect();
    format!("{opening}, for {most} compared with {least}: {}.", pieces.join("; "))
}

/// Whether no single severity up to [`STRONG`] shows a gain, but a stronger one does.
fn weak_severities_show_nothing(comparison: &Comparison, noise: NoiseKey, a: &str, b: &str) -> bool {
    let gains = |severity: usize| {
        let contrast = comparison.contrast(&Quantity::AccuracyUnder(noise, severity), a, b);
        contrast.as_ref().and_then(Contrast::interval).is_some_and(|interval| interval.low > 0.0)
    };
    !(1..=STRONG).any(gains) && (STRONG + 1..=HIGHEST_SEVERITY).any(gains)
}

/// Whether there are at least three tau, and the condition with more leak is more accurate in every pair of
/// neighbouring ones, under every noise.
fn dose_response(comparison: &Comparison, claims: &[ClaimRow]) -> bool {
    let sweep = comparison.sweep();
    let rises = |noise: NoiseKey| {
        sweep.windows(2).all(|pair| {
            let [a, b] = [&pair[0].row.condition, &pair[1].row.condition];
            comparison.contrast(&Quantity::Robustness(noise), a, b).is_some_and(|step| step.mean > 0.0)
        })
    };
    sweep.len() > 2 && noises_with(claims, |_| true).into_iter().all(rises)
}
