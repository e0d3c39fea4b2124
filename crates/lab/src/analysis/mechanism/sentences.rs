//! Sentences that state what the tables show, made by fixed rules from the tables alone, so that they can be
//! made again without measuring anything.

use super::readout::{CONTROL, skip};
use leaklab_engine::Tau;
use leaklab_engine::noise::Colour;
use leaklab_record::tables::{
    ClaimRow, ColourRow, LayerLeakRow, PriceRow, ResponseRow, SplitRow, WHY_CLAIMS, WhyRow, WindowRow,
};
use leaklab_record::{
    ClaimId, LayerChoice, NoiseKey, Part, Place, PriceMeasure, Readout, Row, Rows, Stimulus, TableError,
    Topic, Verdict,
};
use std::path::Path;

/// The tables from which the sentences are made.
pub struct Evidence {
    /// How the networks of which layers and readouts are changed were trained, as words after "trained".
    pub trained: String,
    /// The gains, in parts.
    pub gains: Vec<SplitRow>,
    /// The prices, in parts.
    pub prices: Vec<PriceRow>,
    /// Leak layer by layer.
    pub layers: Vec<LayerLeakRow>,
    /// Readouts of networks run without leak in their hidden layers.
    pub windows: Vec<WindowRow>,
    /// Colours of noise.
    pub colours: Vec<ColourRow>,
    /// How hidden layers follow a modulated input.
    pub responses: Vec<ResponseRow>,
    /// Statements W1 to W4.
    pub claims: Vec<ClaimRow>,
}

impl Evidence {
    /// The strongest leak.
    fn most_leak(&self) -> Option<Tau> {
        self.gains.iter().map(|row| row.tau).min_by(|a, b| a.steps().total_cmp(&b.steps()))
    }

    /// The noises, each at the severity at which it was measured.
    fn noises(&self) -> Vec<(NoiseKey, Stimulus)> {
        let mut found = Vec::new();
        for row in &self.gains {
            if let Stimulus::Noisy(noise, _) = row.stimulus
                && !found.contains(&(noise, row.stimulus))
            {
                found.push((noise, row.stimulus));
            }
        }
        found
    }
}

/// Makes the sentences of a study again from the tables in the folder `from`, and writes them to `to`. Does
/// nothing if the folder has no such tables.
pub fn renew(from: &Path, to: &Path) -> Result<Option<Rows<WhyRow>>, TableError> {
    fn read<R: Row>(folder: &Path) -> Result<Vec<R>, TableError> {
        Ok(Rows::read(folder)?.map_or_else(Vec::new, |table: Rows<R>| table.rows))
    }
    let Some(old) = Rows::<WhyRow>::read(from)? else { return Ok(None) };
    let mut table = rows(&Evidence {
        trained: "without leak".to_owned(),
        gains: read(from)?,
        prices: read(from)?,
        layers: read(from)?,
        windows: read(from)?,
        colours: read(from)?,
        responses: read(from)?,
        claims: Rows::read_named(from, WHY_CLAIMS)?.map_or_else(Vec::new, |table| table.rows),
    });
    table.notes = old.notes;
    table.write(to)?;
    Ok(Some(table))
}

/// The table of sentences.
pub fn rows(evidence: &Evidence) -> Rows<WhyRow> {
    let mut table = Rows::new(
        "Why: in sentences",
        "Made by fixed rules from the other tables. Points are percentage points of accuracy; brackets \
         contain 95 % intervals over seeds and test samples.",
    );
    table.rows.extend(explanation(&evidence.claims));
    table.rows.extend(evidence.gains.iter().filter_map(|total| of_gain(total, &evidence.gains)));
    let Some(tau) = evidence.most_leak() else { return table };
    table.rows.extend(of_price(evidence, tau));
    for (noise, stimulus) in evidence.noises() {
        table.rows.extend(of_window(evidence, tau, noise, stimulus));
        table.rows.extend(of_layers(&evidence.layers, noise, stimulus));
    }
    table.rows.extend(of_colour(evidence, tau));
    table.rows.extend(of_response(&evidence.responses, tau));
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

/// The same with a plus sign before a gain.
fn signed_points(mean: f64, low: Option<f64>, high: Option<f64>) -> String {
    let plus = if 100.0 * mean >= 0.05 { "+" } else { "" };
    format!("{plus}{}", points(mean, low, high))
}

/// "Tau 30 gains 4.2 [0.7, 7.8] points under ...: +8.5 by training, +5.9 by the readout, -10.2 by the hidden
/// layers." `total` is the row of the whole gain, and `None` is returned for any other.
pub fn of_gain(total: &SplitRow, gains: &[SplitRow]) -> Option<WhyRow> {
    let (Stimulus::Noisy(noise, severity), Part::Total) = (total.stimulus, total.part) else { return None };
    let tau = total.tau;
    let sure = total.low.zip(total.high).is_some_and(|(low, high)| low > 0.0 || high < 0.0);
    let mut parts: Vec<&SplitRow> = gains
        .iter()
        .filter(|row| (row.tau, row.stimulus) == (tau, total.stimulus) && row.part != Part::Total)
        .collect();
    parts.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    let phrases: Vec<String> = parts
        .iter()
        .map(|row| format!("{} by {}", signed_points(row.mean, row.low, row.high), row.part.words()))
        .collect();
    let place = format!("under {} (severity {severity})", noise.words());
    let opening = match (total.mean >= 0.0, sure) {
        (true, true) => {
            format!("Tau {tau} gains {} points {place}", points(total.mean, total.low, total.high))
        }
        (false, true) => {
            let lost = points(-total.mean, total.high.map(|x| -x), total.low.map(|x| -x));
            format!("Tau {tau} loses {lost} points {place}")
        }
        (_, false) => {
            let change = signed_points(total.mean, total.low, total.high);
            format!("Tau {tau} changes accuracy {place} by {change} points, which may be chance")
        }
    };
    let sentence = format!("{opening}: {}.", phrases.join(", "));
    Some(WhyRow { topic: Topic::Gain, noise: Some(noise), tau: Some(tau), sentence })
}

/// The price of the strongest leak without noise.
fn of_price(evidence: &Evidence, tau: Tau) -> Vec<WhyRow> {
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
fn of_window(evidence: &Evidence, tau: Tau, noise: NoiseKey, stimulus: Stimulus) -> Option<WhyRow> {
    let lasts = evidence.windows.iter().filter_map(|row| match row.readout {
        Readout::Window { last, .. } => Some(last),
        Readout::Leaky(_) | Readout::Reversed(_) => None,
    });
    let steps = lasts.max()?;
    let of = |readout: Readout| {
        let row = evidence.windows.iter().find(|row| row.stimulus == stimulus && row.readout == readout)?;
        Some(points(row.gain, row.low, row.high))
    };
    let sentence = format!(
        "In networks trained {} and run without leak in the hidden layers, a readout that skips its first \
         {CONTROL} % of steps changes accuracy under {} by {} points; a leaky readout (tau {tau}) changes it \
         by {}, and one that leaks backward in time by {}.",
        evidence.trained,
        noise.words(),
        of(skip(CONTROL, steps))?,
        of(Readout::Leaky(tau))?,
        of(Readout::Reversed(tau))?
    );
    Some(WhyRow { topic: Topic::Window, noise: Some(noise), tau: Some(tau), sentence })
}

/// The hidden layer in which leak alone has the largest effect, and what leak in all others does.
pub fn of_layers(layers: &[LayerLeakRow], noise: NoiseKey, stimulus: Stimulus) -> Option<WhyRow> {
    let with = |choice: LayerChoice| {
        layers.iter().filter(move |row| row.stimulus == stimulus && row.choice == choice)
    };
    let count = with(LayerChoice::Only).count();
    if count < 2 {
        return None;
    }
    let most = with(LayerChoice::Only).max_by(|a, b| a.gain.abs().total_cmp(&b.gain.abs()))?;
    let others =
        with(LayerChoice::AllBut).find(|row| row.layer == most.layer).map_or_else(String::new, |row| {
            format!("; leak in all others changes it by {}", signed_points(row.gain, row.low, row.high))
        });
    let sentence = format!(
        "Of {count} hidden layers, leak in {} alone changes accuracy under {} most: by {} points{others}.",
        most.layer,
        noise.words(),
        signed_points(most.gain, most.low, most.high)
    );
    Some(WhyRow { topic: Topic::Layers, noise: Some(noise), tau: Some(most.tau), sentence })
}

/// White noise compared with frozen noise, for leak in the hidden layers and for the control.
fn of_colour(evidence: &Evidence, tau: Tau) -> Option<WhyRow> {
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
    Some(WhyRow { topic: Topic::Colour, noise: None, tau: Some(tau), sentence })
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
    let theory = |slow: &ResponseRow, fast: &ResponseRow| {
        let ends = slow.theory.zip(fast.theory).filter(|(slow, _)| *slow > 0.0);
        ends.map(|(slow, fast)| format!("{:.0} %", 100.0 * fast / slow))
    };
    let predicted =
        theory(slow, fast).zip(theory(slow_none, fast_none)).map_or_else(String::new, |(a, b)| {
            format!("; the theory of one neuron predicts {a} with leak, and {b} without")
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
         the hidden layers adds accuracy while the network runs (W1), and this gain vanishes as noise \
         becomes slow, more than in a control without leak (W4). Here, W1 {first}, and W4 {}: {conclusion} \
         for these networks and images.",
        words(slow)
    );
    Some(WhyRow { topic: Topic::Explanation, noise: None, tau: None, sentence })
}
