//! How the population rate of each hidden layer follows a modulation of its input.
//!
//! The probability of an input spike is `|x| (1 + a cos(2 pi f t)) / (1 + a)`, the same for all pixels. A
//! second presentation with the same random numbers has the same mean probability and no modulation. The
//! difference of the two removes the layer's response to the onset, and most of the randomness.

use super::layers::trained;
use super::subject::{Subject, everywhere};
use super::subjects::Subjects;
use super::susceptibility::relative_gain;
use crate::analysis::contrast::Contrast;
use crate::analysis::statistics::mean;
use crate::analysis::{AnalysisError, Progress};
use crate::data::present::Scratch;
use crate::evaluate::EVALUATION_EPOCH;
use leaklab_engine::encode::Encoder;
use leaklab_engine::philox::{Purpose, Stream};
use leaklab_engine::{Input, Layer, LayerKind, Spikes, Tau};
use leaklab_record::Rows;
use leaklab_record::tables::ResponseRow;
use std::f64::consts::TAU as TURN;

/// Depth of the modulation.
const DEPTH: f64 = 0.5;
/// Number of images that are shown.
const IMAGES: usize = 100;

/// Frequencies of the modulation, in cycles per presentation: about an octave apart, up to half the steps.
fn cycles(steps: u64) -> Vec<u64> {
    let mut all: Vec<u64> =
        std::iter::successors(Some(1), |k| Some(2 * k)).take_while(|k| 2 * k < steps).collect();
    // The highest frequency has two steps per cycle, if the number of steps is even.
    all.extend((steps >= 2).then_some(steps / 2));
    all.dedup();
    all
}

fn leaks(subjects: &Subjects) -> [Tau; 2] {
    [subjects.most_leak(), Tau::INFINITE]
}

/// Images that [`rows`] shows to one network, which has `images` test images.
pub fn images_of(images: u64, steps: u64) -> u64 {
    images.min(IMAGES as u64) * (1 + cycles(steps).len() as u64) * 2
}

/// Images that [`rows`] shows.
pub fn images(subjects: &Subjects) -> u64 {
    subjects.reference.iter().map(|s| images_of(s.part.len() as u64, s.steps())).sum()
}

/// Probability of an input spike relative to the pixel's value at a step counted from 0; `cycles` 0 is no
/// modulation.
fn modulation(cycles: u64, step: usize, steps: u64) -> f64 {
    let swing = if cycles == 0 { 0.0 } else { (TURN * (cycles * step as u64) as f64 / steps as f64).cos() };
    (1.0 + DEPTH * swing) / (1.0 + DEPTH)
}

/// Shows an image with a modulated probability, from the same uniform random numbers as the encoder's.
fn show(subject: &Subject, image: usize, cycles: u64, input: &mut Input) {
    let (presentation, split) = (&subject.presentation, &subject.part);
    let mut scratch = Scratch::default();
    let pixels = presentation.pixels(split, image, EVALUATION_EPOCH, &mut scratch);
    let stream = Stream::new(presentation.seed, Purpose::Encode, EVALUATION_EPOCH, split.sample(image));
    let steps = presentation.encoding.time_steps;
    let mut values = Vec::with_capacity(steps * pixels.len());
    for step in 0..steps {
        let factor = modulation(cycles, step, steps as u64) as f32;
        for (neuron, x) in pixels.iter().enumerate() {
            let x = factor * x;
            let threshold = stream.uniform(step as u32, neuron as u32);
            let fires = match presentation.encoding.encoder {
                Encoder::Signed => x.abs() > threshold,
                Encoder::Unsigned => x > threshold,
            };
            values.push(if fires { x.signum() } else { 0.0 });
        }
    }
    *input = Input::from_values(presentation.shape, steps, &values);
}

/// Spikes of a layer at every step.
fn by_step(spikes: &Spikes) -> Vec<u64> {
    let mut counts = vec![0; spikes.steps()];
    let words = spikes.words_per_step();
    for (i, word) in spikes.words().iter().enumerate() {
        counts[i / words % spikes.steps()] += u64::from(word.count_ones());
    }
    counts
}

/// Spikes of every hidden layer at every step, over all images, `[layer][step]`.
fn counts(
    subject: &Subject,
    hidden: Tau,
    cycles: u64,
    progress: &mut Progress,
) -> Result<Vec<Vec<u64>>, AnalysisError> {
    let layers = subject.network.architecture.hidden().len();
    let images = IMAGES.min(subject.part.len());
    let what = format!("response to {cycles} cycles");
    let file = format!("response_{hidden}_{cycles}.json");
    let depends = format!("{DEPTH} {images} {hidden} {cycles} {}", subject.part_digest());
    let fits = |sums: &Vec<Vec<u64>>| {
        let hidden = subject.network.architecture.hidden();
        let within = |(steps, layer): (&Vec<u64>, &Layer)| {
            let most = (layer.output.neurons() * images) as u64;
            steps.len() as u64 == subject.steps() && steps.iter().all(|&spikes| spikes <= most)
        };
        sums.len() == hidden.len() && sums.iter().zip(hidden).all(within)
    };
    let (sums, stored) = subject.load_or_make(&file, &depends, fits, || {
        let mut sums = vec![vec![0; subject.steps() as usize]; layers];
        subject.run(
            &everywhere(hidden),
            images,
            |i, input| show(subject, i, cycles, input),
            |_, trace| (0..layers).map(|layer| by_step(trace.spikes(layer))).collect::<Vec<_>>(),
            |image| {
                for (sum, one) in sums.iter_mut().zip(image) {
                    sum.iter_mut().zip(one).for_each(|(sum, n): (&mut u64, u64)| *sum += n);
                }
            },
            &what,
            progress,
        )?;
        Ok(sums)
    })?;
    if stored {
        progress.advance(&what, images as u64)?;
    }
    Ok(sums)
}

/// Amplitude of the component of a signal with `cycles` cycles in its length.
fn amplitude(signal: &[f64], cycles: u64) -> f64 {
    let n = signal.len() as f64;
    let (mut re, mut im) = (0.0, 0.0);
    for (step, x) in signal.iter().enumerate() {
        let angle = TURN * (cycles * step as u64) as f64 / n;
        re += x * angle.cos();
        im += x * angle.sin();
    }
    // At two steps per cycle, positive and negative frequencies coincide.
    let scale = if 2 * cycles == signal.len() as u64 { 1.0 } else { 2.0 };
    scale * re.hypot(im) / n
}

/// Root mean square of a layer's weights, in units of the threshold.
fn jump(subject: &Subject, layer: &str) -> f64 {
    let weights = subject.network.tensor(layer).unwrap_or_default();
    let squares: Vec<f64> = weights.iter().map(|&w| f64::from(w).powi(2)).collect();
    mean(&squares).unwrap_or(0.0).sqrt() / f64::from(subject.network.v_th())
}

/// The table of responses for recordings: empty, because they are not encoded.
pub fn left_out() -> Rows<ResponseRow> {
    let definition = "Empty: the encoder's spike probability is modulated, and recordings are not encoded.";
    Rows::new("Response of each hidden layer to a modulated input", definition)
}

/// The table of responses.
pub fn rows(subjects: &Subjects, progress: &mut Progress) -> Result<Rows<ResponseRow>, AnalysisError> {
    let images = subjects.reference.first().map_or(0, |s| IMAGES.min(s.part.len()));
    let mut table = Rows::new(
        "Response of each hidden layer to a modulated input",
        format!(
            "Weights trained {}, run with one time constant in all hidden layers. The probability of an \
             input spike is modulated, |x| (1 + a cos(2 pi f t)) / (1 + a) with a = {DEPTH}. Gain: the \
             relative modulation of the layer's population rate at the same frequency, divided by a; the \
             rate without modulation, from the same random numbers, is subtracted first. {images} images; \
             intervals (95 %) are over seeds. Theory: a chain with one neuron for each layer up to this one, \
             with the layer's time constant and rate, driven by Poisson spikes of the layer's \
             root-mean-square weight; pools are taken to have no effect.",
            trained(subjects)
        ),
    );
    let Some(first) = subjects.reference.first() else { return Ok(table) };
    for hidden in leaks(subjects) {
        let mut still = Vec::new();
        for subject in &subjects.reference {
            still.push(counts(subject, hidden, 0, progress)?);
        }
        for cycles in cycles(first.steps()) {
            let mut moved = Vec::new();
            for subject in &subjects.reference {
                moved.push(counts(subject, hidden, cycles, progress)?);
            }
            let frequency = cycles as f64 / first.steps() as f64;
            let mut theory = vec![Some(1.0); subjects.reference.len()];
            for (i, layer) in first.network.architecture.hidden().iter().enumerate() {
                let sites = (layer.output.neurons() * images) as f64;
                let (mut gains, mut rates) = (Vec::new(), Vec::new());
                for (still, moved) in still.iter().zip(&moved) {
                    let total = still[i].iter().sum::<u64>() as f64 / still[i].len() as f64;
                    rates.push(total / sites);
                    if total > 0.0 {
                        let change: Vec<f64> =
                            moved[i].iter().zip(&still[i]).map(|(&a, &b)| a as f64 - b as f64).collect();
                        gains.push(amplitude(&change, cycles) / (total * DEPTH));
                    }
                }
                let Some(contrast) = Contrast::of_seeds(&gains) else {
                    table.note(format!("{} is silent with tau {hidden}.", layer.name));
                    continue;
                };
                if layer.kind != LayerKind::Pool {
                    for ((theory, subject), &rate) in theory.iter_mut().zip(&subjects.reference).zip(&rates) {
                        let own = relative_gain(hidden, rate, jump(subject, &layer.name), frequency);
                        *theory = theory.zip(own).map(|(before, own)| before * own);
                    }
                }
                let interval = contrast.interval();
                table.rows.push(ResponseRow {
                    hidden,
                    layer: layer.name.clone(),
                    frequency,
                    gain: contrast.mean,
                    theory: theory.iter().copied().collect::<Option<Vec<f64>>>().and_then(|all| mean(&all)),
                    low: interval.map(|i| i.low.max(0.0)),
                    high: interval.map(|i| i.high),
                    rate: mean(&rates).unwrap_or(0.0),
                    seeds: contrast.pairs as u64,
                    images: images as u64,
                });
            }
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_and_amplitudes() {
        assert_eq!(cycles(30), [1, 2, 4, 8, 15]);
        assert_eq!(cycles(8), [1, 2, 4]);
        assert_eq!(cycles(1), [0; 0]);
        for cycles in [1, 3, 8] {
            let signal: Vec<f64> =
                (0..16).map(|t| 5.0 + 0.7 * (TURN * cycles as f64 * f64::from(t) / 16.0).cos()).collect();
            assert!((amplitude(&signal, cycles) - 0.7).abs() < 1e-12, "{cycles}");
        }
        // The mean over a presentation is that without modulation.
        let mean = (0..30).map(|step| modulation(4, step, 30)).sum::<f64>() / 30.0;
        assert!((mean - modulation(0, 0, 30)).abs() < 1e-12);
        assert!((0..30).all(|step| (0.0..=1.0).contains(&modulation(15, step, 30))));
    }
}
