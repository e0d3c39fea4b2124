//! Sentences that state what the tables show, made by fixed rules.

use super::layers::trained;
use super::readout::{CONTROL, skip};
use super::split::Split;
use super::subjects::Subjects;
use crate::analysis::contrast::Contrast;
use crate::analysis::statistics::Estimate;
use leaklab_engine::Tau;
use leaklab_engine::noise::Colour;
use leaklab_record::tables::{ClaimRow, ColourRow, LayerLeakRow, PriceRow, ResponseRow, WhyRow, WindowRow};
use leaklab_record::{
    ClaimId, LayerChoice, NoiseKey, Part, Place, PriceMeasure, Readout, Rows, Stimulus, Topic, Verdict,
};

/// The tables from which the sentences are made.
pub struct Evidence<'a> {
    /// The networks.
    pub subjects: &'a Subjects,
    /// The gains, in parts.
    pub splits: &'a [Split],
    /// The prices, in parts.
    pub prices: &'a [PriceRow],
    /// Leak layer by layer.
    pub layers: &'a [LayerLeakRow],
    /// Readouts of networks run without leak in their hidden layers.
    pub windows: &'a [WindowRow],
    /// Colours of noise.
    pub colours: &'a [ColourRow],
    /// How hidden layers follow a modulated input.
    pub responses: &'a [ResponseRow],
    /// Statements W1 to W4.
    pub claims: &'a [ClaimRow],
}

/// The table of sentences.
pub fn rows(evidence: &Evidence) -> Rows<WhyRow> {
    let mut table = Rows::new(
        "Why: in sentences",
        "Made by fixed rules from the other tables. Points are percentage points of accuracy; brackets \
         contain 95 % intervals over seeds and test samples.",
    );
    table.rows.extend(explanation(evidence.claims));
    table.rows.extend(evidence.splits.iter().filter_map(of_gain));
    table.rows.extend(of_price(evidence));
    let noises = evidence.subjects.stimuli.iter().filter_map(|&stimulus| match stimulus {
        Stimulus::Noisy(noise, _) => Some((noise, stimulus)),
        Stimulus::Clean => None,
    });
    for (noise, stimulus) in noises {
        table.rows.extend(of_window(evidence, noise, stimulus));
        table.rows.extend(of_layers(evidence, noise, stimulus));
    }
    table.rows.extend(of_colour(evidence));
    table.rows.extend(of_response(evidence.responses, evidence.subjects.most_leak()));
    table
}

/// A difference of accuracies in points, with its interval.
fn points(mean: f64, low: Option<f64>, high: Option<f64>) -> String {
    // No minus before a zero.
    let plain = |x: f64| format!("{:.1}", 100.0 * x).replace("-0.0", "0.0").replace('-', "\u{2212}");
    match low.zip(high) {
        Some((low, high)) => format!("{} [{}, {}]", plain(mean), plain(low), plain(high)),
        None => plain(mean),
    }
}

/// A difference of accuracies in points, as a gain or, with `sign` -1, as a loss.
fn of_contrast(contrast: &Contrast, sign: f64) -> String {
    let ends = contrast.interval().map(|i| if sign < 0.0 { (-i.high, -i.low) } else { (i.low, i.high) });
    points(sign * contrast.mean, ends.map(|ends| ends.0), ends.map(|ends| ends.1))
}

/// "Of the 5.7 points that tau 30 gains under ..., 3.9 come from the readout, ...". For a loss, all numbers
/// are points lost.
pub fn of_gain(split: &Split) -> Option<WhyRow> {
    let Stimulus::Noisy(noise, severity) = split.stimulus else { return None };
    let total = split.part(Part::Total)?;
    let sure = total.interval().is_some_and(|i: Estimate| i.low > 0.0 || i.high < 0.0);
    let sign = if sure && total.mean < 0.0 { -1.0 } else { 1.0 };
    let mut parts: Vec<(Part, &Contrast)> =
        split.parts.iter().filter(|(part, _)| *part != Part::Total).map(|(part, c)| (*part, c)).collect();
    parts.sort_by(|a, b| (sign * b.1.mean).total_cmp(&(sign * a.1.mean)));
    let phrases: Vec<String> = parts
        .iter()
        .enumerate()
        .map(|(i, (part, contrast))| {
            let come = if i == 0 { " come" } else { "" };
            format!("{}{come} from {}", of_contrast(contrast, sign), part.words())
        })
        .collect();
    let (tau, place) = (split.tau, format!("under {} (severity {severity})", noise.words()));
    let change = of_contrast(total, sign);
    let opening = match (total.mean >= 0.0, sure) {
        (true, true) => format!("Of the {change} points that tau {tau} gains {place}, "),
        (true, false) => format!("Tau {tau} gains {change} points {place}, which may be chance: "),
        (false, true) => format!("Of the {change} points that tau {tau} loses {place}, "),
        (false, false) => {
            format!("Tau {tau} changes accuracy {place} by {change} points, which may be chance: ")
        }
    };
    let sentence = format!("{opening}{}.", phrases.join(", "));
    Some(WhyRow { topic: Topic::Gain, noise: Some(noise), tau: Some(tau), sentence })
}

/// The price of the strongest leak without noise.
fn of_price(evidence: &Evidence) -> Vec<WhyRow> {
    let tau = evidence.subjects.most_leak();
    let mut rows = Vec::new();
    for measure in PriceMeasure::ALL {
        let of = |part: Part| {
            let row = evidence.prices.iter().find(|row| {
                (row.tau, row.stimulus, row.measure, row.part) == (tau, Stimulus::Clean, measure, part)
            });
            row.filter(|row| row.baseline > 0.0).map(|row| {
                // Small changes have a decimal, so that an interval next to 0 does not seem to include it.
                let percent = |x: f64| {
                    let percent = 100.0 * x / row.baseline;
                    let percent = if percent.abs() < 0.05 { 0.0 } else { percent }; // not "-0.0"
                    let digits = if percent.abs() < 10.0 { 1 } else { 0 };
                    format!("{percent:+.digits$} %").replace('-', "\u{2212}")
                };
                match row.low.zip(row.high) {
                    Some((low, high)) => {
                        format!("{} [{}, {}]", percent(row.mean), percent(low), percent(high))
                    }
                    None => percent(row.mean),
                }
            })
        };
        let Some(total) = of(Part::Total) else { continue };
        let parts = [Part::Training, Part::Hidden].into_iter();
        let phrases: Vec<String> =
            parts.filter_map(|part| of(part).map(|x| format!("{x} from {}", part.words()))).collect();
        let sentence = format!(
            "Without noise, tau {tau} changes the number of {} by {total}: {}; the readout costs nothing.",
            measure.words(),
            phrases.join(", ")
        );
        rows.push(WhyRow { topic: Topic::Price, noise: None, tau: Some(tau), sentence });
    }
    rows
}

/// The effect of a readout that skips its first steps, compared with that of a leaky one.
fn of_window(evidence: &Evidence, noise: NoiseKey, stimulus: Stimulus) -> Option<WhyRow> {
    let tau = evidence.subjects.most_leak();
    let steps = evidence.subjects.reference.first()?.steps();
    let of = |readout: Readout| {
        let row = evidence.windows.iter().find(|row| row.stimulus == stimulus && row.readout == readout)?;
        Some(points(row.gain, row.low, row.high))
    };
    let sentence = format!(
        "In networks trained {} and run without leak in the hidden layers, a readout that skips its first \
         {CONTROL} % of steps changes accuracy under {} by {} points; a leaky readout (tau {tau}) changes it \
         by {}, and one that leaks backward in time by {}.",
        trained(evidence.subjects),
        noise.words(),
        of(skip(CONTROL, steps))?,
        of(Readout::Leaky(tau))?,
        of(Readout::Reversed(tau))?
    );
    Some(WhyRow { topic: Topic::Window, noise: Some(noise), tau: Some(tau), sentence })
}

/// The hidden layer in which leak alone has the largest effect.
fn of_layers(evidence: &Evidence, noise: NoiseKey, stimulus: Stimulus) -> Option<WhyRow> {
    let alone: Vec<&LayerLeakRow> = evidence
        .layers
        .iter()
        .filter(|row| row.stimulus == stimulus && row.choice == LayerChoice::Only)
        .collect();
    if alone.len() < 2 {
        return None;
    }
    let most = alone.iter().max_by(|a, b| a.gain.abs().total_cmp(&b.gain.abs()))?;
    let sentence = format!(
        "Of {} hidden layers, leak in {} alone changes accuracy under {} most: by {} points.",
        alone.len(),
        most.layer,
        noise.words(),
        points(most.gain, most.low, most.high)
    );
    Some(WhyRow { topic: Topic::Layers, noise: Some(noise), tau: Some(most.tau), sentence })
}

/// White noise compared with frozen noise, for leak in the hidden layers and for the control.
fn of_colour(evidence: &Evidence) -> Option<WhyRow> {
    let of = |colour: Colour, place: Place| {
        let row = evidence.colours.iter().find(|row| row.colour == colour && row.place == place)?;
        Some(points(row.gain, row.low, row.high))
    };
    let sentence = format!(
        "Leak in the hidden layers alone changes accuracy by {} points under white noise, and by {} under \
         frozen noise that is equally hard. The control, run without leak and with a readout that skips its \
         first steps, changes it by {} and {}.",
        of(Colour::White, Place::Hidden)?,
        of(Colour::Frozen, Place::Hidden)?,
        of(Colour::White, Place::Control)?,
        of(Colour::Frozen, Place::Control)?
    );
    Some(WhyRow { topic: Topic::Colour, noise: None, tau: Some(evidence.subjects.most_leak()), sentence })
}

/// How the deepest hidden layer follows the slowest and the fastest modulation, with the strongest leak and
/// without leak. A layer that is silent in one of these cases has no rows for it.
pub fn of_response(responses: &[ResponseRow], tau: Tau) -> Option<WhyRow> {
    let layer = &responses.last()?.layer;
    let own = || responses.iter().filter(|row| row.layer == *layer);
    let row = |sentence| Some(WhyRow { topic: Topic::Response, noise: None, tau: Some(tau), sentence });
    let silent = |hidden: Tau| own().all(|row| row.hidden != hidden);
    for (hidden, words) in [(tau, format!("With tau {tau}")), (Tau::INFINITE, "Without leak".to_owned())] {
        if silent(hidden) {
            return row(format!(
                "{words} in the hidden layers, {layer} is silent, so how it follows an input that is \
                 modulated in time cannot be compared."
            ));
        }
    }
    let ends = |tau: Tau| {
        let of_tau = || own().filter(move |row| row.hidden == tau);
        let by_frequency = |a: &&ResponseRow, b: &&ResponseRow| a.frequency.total_cmp(&b.frequency);
        Some((of_tau().min_by(by_frequency)?, of_tau().max_by(by_frequency)?))
    };
    let ((slow, fast), (slow_none, fast_none)) = (ends(tau)?, ends(Tau::INFINITE)?);
    if slow.frequency == fast.frequency {
        return None;
    }
    let passed = |slow: &ResponseRow, fast: &ResponseRow| {
        (slow.gain > 0.0).then(|| format!("{:.0} %", 100.0 * fast.gain / slow.gain))
    };
    let theory = slow.theory.zip(fast.theory).filter(|(slow, _)| *slow > 0.0);
    let predicted = theory.map_or_else(String::new, |(slow, fast)| {
        format!("; the theory of one neuron predicts {:.0} % with leak", 100.0 * fast / slow)
    });
    row(format!(
        "Measured directly, with an input that is modulated in time: the response of {layer} to the fastest \
         modulation ({} cycles/step) is {} of that to the slowest ({}) with tau {tau} in the hidden layers, \
         and {} without leak{predicted}.",
        thousandths(fast.frequency),
        passed(slow, fast)?,
        thousandths(slow.frequency),
        passed(slow_none, fast_none)?,
    ))
}

/// A frequency, rounded for a sentence.
fn thousandths(frequency: f64) -> f64 {
    (1000.0 * frequency).round() / 1000.0
}

/// Whether the paper's explanation, W1 and W4, stands.
pub fn explanation(claims: &[ClaimRow]) -> Option<WhyRow> {
    let hidden: Vec<Verdict> =
        claims.iter().filter(|row| row.claim == ClaimId::FromHidden).map(|row| row.verdict).collect();
    let slow = claims.iter().find(|row| row.claim == ClaimId::SlowNoise && row.part.is_empty())?.verdict;
    if hidden.is_empty() {
        return None;
    }
    let count = |verdict: Verdict| hidden.iter().filter(|&&own| own == verdict).count();
    let (holds, refuted, all) = (count(Verdict::Holds), count(Verdict::DoesNotHold), hidden.len());
    let conclusion = if slow == Verdict::Holds && holds == all {
        "the explanation stands"
    } else if slow == Verdict::DoesNotHold || (refuted > 0 && holds == 0) {
        "the explanation does not stand"
    } else {
        "that is not settled"
    };
    let words = |verdict: Verdict| match verdict {
        Verdict::Holds => "holds",
        Verdict::DoesNotHold => "does not hold",
        Verdict::NotEnoughEvidence => "is undecided",
    };
    let first = match hidden[..] {
        [one] => words(one).to_owned(),
        _ => format!("holds for {holds} of {all} noises and does not hold for {refuted}"),
    };
    let sentence = format!(
        "The paper explains robustness by low-pass filtering in the neurons. If so, leak in \
         the hidden layers adds accuracy while the network runs (W1), and this gain vanishes as noise becomes \
         slow, more than in a control without leak (W4). Here, W1 {first}, and W4 {}: {conclusion} for these networks and \
         images.",
        words(slow)
    );
    Some(WhyRow { topic: Topic::Explanation, noise: None, tau: None, sentence })
}
