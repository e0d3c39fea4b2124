//! Statements W1 to W4 on what causes robustness, judged like the paper's claims.

use super::colours::Coloured;
use super::split::Split;
use super::subjects::Subjects;
use crate::analysis::claims::{ACCURACY_MARGIN, blank, correct_family, gain, reason, with_contrast};
use crate::analysis::contrast::{Contrast, MINIMUM_PAIRS};
use leaklab_engine::noise::Colour;
use leaklab_record::tables::ClaimRow;
use leaklab_record::{Case, ClaimId, Part, Place, Rows, Stimulus, Unit, Verdict};

/// Judges the statements for the strongest leak of the study.
pub fn judge(subjects: &Subjects, splits: &[Split], coloured: &[Coloured]) -> Rows<ClaimRow> {
    let tau = subjects.most_leak();
    let mut table = Rows::new(
        "What causes robustness: statements W1 to W4",
        format!(
            "Each statement is judged by the rule in its row, for time constant {tau} compared with no leak, \
             from contrasts on the same samples and input spikes. Intervals (95 %) are over seeds and \
             samples; the smallest effect of interest is one percentage point. The paper explains robustness \
             by low-pass filtering in the neurons; this explanation consists of W1 and W4."
        ),
    );
    for (claim, part) in [
        (ClaimId::FromHidden, Part::Hidden),
        (ClaimId::FromTraining, Part::Training),
        (ClaimId::FromReadout, Part::Readout),
    ] {
        table.rows.extend(from_part(claim, part, splits.iter().filter(|split| split.tau == tau)));
    }
    table.rows.extend(slow_noise(coloured));
    table
}

/// Judges for each noise whether a part of the gain is positive, with Holm's correction over the noises.
fn from_part<'a>(claim: ClaimId, part: Part, splits: impl Iterator<Item = &'a Split>) -> Vec<ClaimRow> {
    let (mut rows, mut contrasts) = (Vec::new(), Vec::new());
    for split in splits {
        let Stimulus::Noisy(noise, severity) = split.stimulus else { continue };
        let Some(contrast) = split.part(part) else { continue };
        let words = noise.words();
        let statement = match part {
            Part::Hidden => {
                format!("Under {words}, leak in the hidden layers adds accuracy while the network runs.")
            }
            Part::Training => format!("Under {words}, training with leak adds accuracy."),
            Part::Readout => format!("Under {words}, leak in the readout adds accuracy."),
            Part::Total => format!("Under {words}, leak adds accuracy."),
        };
        let quantity = format!(
            "part of the gain of tau {} under {words} (severity {severity}) that comes from {}",
            split.tau,
            part.words()
        );
        let mut row = judged(claim, &noise.to_string(), &statement, contrast);
        row.noise = Some(noise);
        row.quantity = quantity;
        row.rule = format!(
            "Shapley value of this place, mean over seeds and samples; the smallest effect of interest is \
             {}. Holds: the whole 95 % interval lies above 0, by Holm's correction over the noises. Does not \
             hold: otherwise, if the interval rules out an effect of interest. Not enough evidence: \
             the interval includes both no effect and one of interest, or there are fewer than \
             {MINIMUM_PAIRS} seeds.",
            gain().words
        );
        rows.push(row);
        contrasts.push(contrast);
    }
    correct_family(&mut rows);
    for (row, contrast) in rows.iter_mut().zip(contrasts).filter(|(row, _)| row.case == Case::Corrected) {
        row.seeds_needed = contrast.pairs_needed(ACCURACY_MARGIN.max(contrast.mean.abs()));
    }
    rows
}

/// A row for a difference of accuracies that is claimed to be positive.
fn judged(claim: ClaimId, part: &str, statement: &str, contrast: &Contrast) -> ClaimRow {
    let side = gain();
    let mut row = with_contrast(blank(claim, part, statement, Unit::Fraction), Some(contrast));
    let case = side.case(contrast.interval());
    row.paper = match claim {
        ClaimId::FromHidden | ClaimId::SlowNoise => {
            "implied by its explanation, low-pass filtering in the neurons"
        }
        ClaimId::EqualAccuracy
        | ClaimId::Robustness
        | ClaimId::Generalisation
        | ClaimId::Price
        | ClaimId::WeightedInput
        | ClaimId::CriticalFrequency
        | ClaimId::Divergence
        | ClaimId::FromTraining
        | ClaimId::FromReadout => "not considered",
    }
    .to_owned();
    row.smallest = side.smallest;
    (row.case, row.verdict) = (case, case.verdict());
    row.reason = reason(&side, case, Some(contrast));
    if case == Case::Undecided {
        row.seeds_needed = contrast.pairs_needed(ACCURACY_MARGIN);
    }
    row
}

/// W4: the overall verdict, then its three parts.
fn slow_noise(coloured: &[Coloured]) -> Vec<ClaimRow> {
    let of = |colour: Colour, place: Place| {
        coloured.iter().find(|row| row.colour == colour).and_then(|row| row.gains(place))
    };
    let (Some(white), Some(frozen), Some(white_control), Some(frozen_control)) = (
        of(Colour::White, Place::Hidden),
        of(Colour::Frozen, Place::Hidden),
        of(Colour::White, Place::Control),
        of(Colour::Frozen, Place::Control),
    ) else {
        return Vec::new();
    };
    let fall = minus(white, frozen);
    let beyond = minus(&fall, &minus(white_control, frozen_control));
    let parts = [
        (
            "white noise",
            "Under white noise, leak in the hidden layers alone gains.",
            "gain of hidden leak under white noise",
            white.clone(),
        ),
        (
            "fall",
            "The gain of leak in the hidden layers is smaller under frozen noise than under white noise that \
             is as hard.",
            "gain of hidden leak under white noise minus that under frozen noise",
            fall,
        ),
        (
            "beyond the control",
            "It falls by more than the gain of the control, a network without leak whose readout skips its \
             first steps.",
            "fall of the gain of hidden leak from white to frozen noise, minus that of the control",
            beyond,
        ),
    ];
    let mut rows: Vec<ClaimRow> = Vec::new();
    for (part, statement, quantity, differences) in parts {
        let Some(contrast) = Contrast::crossed(&differences) else { return Vec::new() };
        let mut row = judged(ClaimId::SlowNoise, part, statement, &contrast);
        row.quantity = quantity.to_owned();
        row.rule = format!(
            "Mean over seeds and images; the smallest effect of interest is {}. Holds: the whole 95 % \
             interval lies above 0. Does not hold: otherwise, if the interval rules out an effect \
             of interest. Otherwise not enough evidence.",
            gain().words
        );
        rows.push(row);
    }
    // All three must hold, so the weakest of them decides, and "holds" needs no correction for several tests.
    // "Does not hold" is less strict: one of three refuted parts suffices.
    let order = [Verdict::DoesNotHold, Verdict::NotEnoughEvidence, Verdict::Holds];
    let deciding = order.iter().find_map(|verdict| rows.iter().find(|row| row.verdict == *verdict));
    let Some(deciding) = deciding else { return Vec::new() };
    let whole = ClaimRow {
        part: String::new(),
        statement:
            "The gain of leak in the hidden layers vanishes as noise becomes slow, more than in the control."
                .to_owned(),
        rule: "Holds if all three parts hold; does not hold if one of them does not; otherwise not enough \
               evidence. The figure is that of the part that decides."
            .to_owned(),
        reason: format!(
            "The verdict is that of the part \u{2018}{}\u{2019}. {}",
            deciding.part, deciding.reason
        ),
        ..deciding.clone()
    };
    rows.insert(0, whole);
    rows
}

fn minus(a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    a.iter().zip(b).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a - b).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::claims::SIGNIFICANT;
    use leaklab_engine::Tau;
    use leaklab_record::PAPER_NOISES;

    /// Differences of correct answers, `[seed][image]`, with a given mean; seeds lie alternately `spread`
    /// above and below it.
    fn differences(mean: f64, spread: f64) -> Vec<Vec<f64>> {
        let sign = |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        (0..8)
            .map(|seed| (0..400).map(|image| mean + spread * sign(seed) + 0.02 * sign(image)).collect())
            .collect()
    }

    fn splits(means: [(f64, f64); 4]) -> Vec<Split> {
        let tau = Tau::new(30.0).unwrap();
        let split = |(i, (mean, spread)): (usize, (f64, f64))| {
            let contrast = Contrast::crossed(&differences(mean, spread)).unwrap();
            let parts = vec![(Part::Hidden, contrast)];
            Split { tau, stimulus: Stimulus::at(PAPER_NOISES[i], 5), parts, images: 400 }
        };
        means.into_iter().enumerate().map(split).collect()
    }

    #[test]
    fn parts_are_judged_noise_by_noise() {
        let splits = splits([(0.05, 0.005), (-0.05, 0.005), (0.0, 0.002), (0.01, 0.03)]);
        let rows = from_part(ClaimId::FromHidden, Part::Hidden, splits.iter());
        let cases: Vec<Case> = rows.iter().map(|row| row.case).collect();
        assert_eq!(cases, [Case::AsClaimed, Case::Opposite, Case::NoEffect, Case::Undecided]);
        assert!(rows.iter().all(|row| row.claim == ClaimId::FromHidden && row.noise.is_some()));
        assert!(rows[3].seeds_needed.is_some_and(|seeds| seeds > 8));
        assert!(from_part(ClaimId::FromTraining, Part::Training, splits.iter()).is_empty());
    }

    #[test]
    fn several_noises_are_a_family() {
        // A noise that would just pass alone does not pass among four.
        let alone = splits([(0.02, 0.0187), (0.0, 0.02), (0.0, 0.02), (0.0, 0.02)]);
        let p = alone[0].part(Part::Hidden).unwrap().worth.unwrap().p;
        assert!(
            p < SIGNIFICANT && 4.0 * p > SIGNIFICANT,
            "the first noise must pass alone and fail among four: {p}"
        );
        let rows = from_part(ClaimId::FromHidden, Part::Hidden, alone.iter());
        assert_eq!((rows[0].case, rows[0].p), (Case::Corrected, Some(4.0 * p)));
        let one = from_part(ClaimId::FromHidden, Part::Hidden, alone.iter().take(1));
        assert_eq!(one[0].verdict, Verdict::Holds);
    }

    #[test]
    fn slow_noise_needs_all_three_parts() {
        let coloured = |colour: Colour, hidden: f64, control: f64| Coloured {
            colour,
            sigma: 1.0,
            baseline: [0.5, 0.5],
            gains: vec![
                (Place::Hidden, differences(hidden, 0.003)),
                (Place::Control, differences(control, 0.003)),
            ],
        };
        let verdict = |white: (f64, f64), frozen: (f64, f64)| {
            let rows = slow_noise(&[
                coloured(Colour::White, white.0, white.1),
                coloured(Colour::Frozen, frozen.0, frozen.1),
            ]);
            assert_eq!(rows.len(), 4);
            (rows[0].verdict, rows[0].reason.clone())
        };
        // A filter: gains under white noise, nothing under frozen noise; the control does neither.
        assert_eq!(verdict((0.05, 0.0), (0.0, 0.0)).0, Verdict::Holds);
        // The control does the same.
        let (refuted, reason) = verdict((0.05, 0.05), (0.0, 0.0));
        assert!(refuted == Verdict::DoesNotHold && reason.contains("beyond the control"), "{reason}");
        // It does not fall.
        let (refuted, reason) = verdict((0.05, 0.05), (0.05, 0.1));
        assert!(refuted == Verdict::DoesNotHold && reason.contains("fall"), "{reason}");
        // There is no gain to begin with.
        let (refuted, reason) = verdict((-0.05, 0.0), (-0.1, 0.0));
        assert!(refuted == Verdict::DoesNotHold && reason.contains("white noise"), "{reason}");
        assert!(slow_noise(&[coloured(Colour::White, 0.1, 0.0)]).is_empty());
    }
}
