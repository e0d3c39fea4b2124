//! The gain of leak under Gaussian noises that are equally hard and differ in colour, for each place where
//! leak acts.
//!
//! A low-pass filter helps against noise that changes from step to step, and cannot help against noise that
//! is constant in time. If leak in the hidden layers filters, its gain is largest for blue and white noise
//! and vanishes for frozen noise. The control runs without leak: if it shows the same pattern, the pattern is
//! no evidence of filtering.

use super::cell::{CellKey, Shown};
use super::layers::trained;
use super::readout::{CONTROL, skip};
use super::subject::{PART, Subject, everywhere};
use super::subjects::Subjects;
use crate::analysis::contrast::Contrast;
use crate::analysis::statistics::mean;
use crate::analysis::{AnalysisError, Progress};
use leaklab_engine::Tau;
use leaklab_engine::noise::{Colour, CorrelationTime};
use leaklab_record::tables::ColourRow;
use leaklab_record::{Place, Readout, Rows, Stimulus};

/// Correlation times that are tried in addition to white, frozen and blue noise, in steps.
const CORRELATION_TIMES: [f32; 4] = [1.0, 3.0, 10.0, 30.0];
/// Range of the standard deviations in the bisection, as powers of two.
const RANGE: [f64; 2] = [-4.0, 5.0];
/// Number of standard deviations that the bisection tries: the last step is 7 % of an octave.
const TRIALS: usize = 7;
/// Largest deviation from the target accuracy without a note.
const OFF: f64 = 0.05;

/// The colours, from the fastest noise to the slowest.
pub fn colours() -> Vec<Colour> {
    let correlated = CORRELATION_TIMES.iter().filter_map(|&steps| CorrelationTime::new(steps));
    let mut all = vec![Colour::Blue, Colour::White];
    all.extend(correlated.map(Colour::Correlated));
    all.push(Colour::Frozen);
    all
}

/// Images that [`measure`] shows to the networks of one seed, which has `images` test images.
pub fn images_of(images: u64, trained_with_leak: bool) -> u64 {
    let colours = colours().len() as u64;
    let runs = if trained_with_leak { 3 } else { 2 };
    images.min(PART as u64) * (1 + colours * TRIALS as u64) + runs * colours * images
}

/// Images that [`measure`] shows.
pub fn images(subjects: &Subjects) -> u64 {
    let pairs = subjects.pairs(subjects.most_leak());
    let of = |s: &Subject| {
        let paired = pairs.iter().any(|(without, _)| without.seed == s.seed);
        images_of(s.split.len() as u64, paired && subjects.trained_with_leak())
    };
    subjects.reference.iter().map(of).sum()
}

/// The gain of leak under one colour.
pub struct Coloured {
    /// The colour.
    pub colour: Colour,
    /// Standard deviation of the noise.
    pub sigma: f32,
    /// Accuracy of the reference networks run without leak, on the small part of the images and on all of
    /// them.
    pub baseline: [f64; 2],
    /// Gain of every image, `[seed][image]`, by place.
    pub gains: Vec<(Place, Vec<Vec<f64>>)>,
}

impl Coloured {
    /// The gains in one place.
    pub fn gains(&self, place: Place) -> Option<&Vec<Vec<f64>>> {
        self.gains.iter().find(|(own, _)| *own == place).map(|(_, gains)| gains)
    }
}

/// Accuracy of the reference networks run without leak on the small part of the images, mean over seeds.
fn baseline(subjects: &Subjects, shown: Shown, progress: &mut Progress) -> Result<f64, AnalysisError> {
    let key = CellKey { hidden: everywhere(Tau::INFINITE), shown, presentation: 1, part: true };
    let cells = subjects.reference.iter().map(|subject| subject.cell(&key, progress));
    let accuracies: Result<Vec<f64>, AnalysisError> =
        cells.map(|cell| Ok(cell?.accuracy(Readout::PLAIN))).collect();
    Ok(mean(&accuracies?).unwrap_or(0.0))
}

/// Of the standard deviations that a bisection tries, the one at which accuracy is nearest to `target`; and
/// that accuracy.
fn match_sigma(
    subjects: &Subjects,
    colour: Colour,
    target: f64,
    progress: &mut Progress,
) -> Result<(f32, f64), AnalysisError> {
    let [mut low, mut high] = RANGE;
    let mut best: Option<(f32, f64)> = None;
    for _ in 0..TRIALS {
        let middle = 0.5 * (low + high);
        let sigma = middle.exp2() as f32;
        let accuracy = baseline(subjects, Shown::Coloured(colour, sigma), progress)?;
        if best.is_none_or(|(_, known)| (accuracy - target).abs() < (known - target).abs()) {
            best = Some((sigma, accuracy));
        }
        if accuracy > target { low = middle } else { high = middle }
    }
    Ok(best.unwrap_or((1.0, 0.0)))
}

/// Finds the standard deviation of each colour and measures the gain of leak under it. Also returns the
/// target accuracy.
pub fn measure(subjects: &Subjects, progress: &mut Progress) -> Result<(Vec<Coloured>, f64), AnalysisError> {
    let classes = subjects.reference.first().map_or(1, |s| s.network.architecture.classes());
    let clean = baseline(subjects, Shown::Stimulus(Stimulus::Clean), progress)?;
    let target = 0.5 * (clean + 1.0 / classes.max(1) as f64);
    let tau = subjects.most_leak();
    let mut all = Vec::new();
    for colour in colours() {
        let (sigma, reached) = match_sigma(subjects, colour, target, progress)?;
        let shown = Shown::Coloured(colour, sigma);
        let mut gains: Vec<(Place, Vec<Vec<f64>>)> = Place::ALL.map(|place| (place, Vec::new())).into();
        let mut accuracies = Vec::new();
        for (without, with) in subjects.pairs(tau) {
            let none = without.outcome(&everywhere(Tau::INFINITE), shown, 1, progress)?;
            let hidden = without.outcome(&everywhere(tau), shown, 1, progress)?;
            let trained = match subjects.trained_with_leak() {
                true => Some(with.outcome(&everywhere(tau), shown, 1, progress)?),
                false => None,
            };
            let base = none.shares(Readout::PLAIN);
            accuracies.extend(mean(&base));
            let control = skip(CONTROL, without.steps());
            for (place, gains) in &mut gains {
                let with = match place {
                    Place::Hidden => Some(hidden.shares(Readout::PLAIN)),
                    Place::Readout => Some(none.shares(Readout::Leaky(tau))),
                    Place::Both => Some(hidden.shares(Readout::Leaky(tau))),
                    Place::All => trained.as_ref().map(|trained| trained.shares(Readout::Leaky(tau))),
                    Place::Control => Some(none.shares(control)),
                };
                gains.extend(with.map(|with| with.iter().zip(&base).map(|(a, b)| a - b).collect()));
            }
        }
        gains.retain(|(_, gains)| !gains.is_empty());
        let baseline = [reached, mean(&accuracies).unwrap_or(0.0)];
        all.push(Coloured { colour, sigma, baseline, gains });
    }
    Ok((all, target))
}

/// The table of colours for recordings: empty, because they are not encoded.
pub fn left_out() -> Rows<ColourRow> {
    let definition =
        "Empty: coloured noise is added to pixels before they are encoded, and recordings are not encoded.";
    Rows::new("Gain under equally hard noises of different colour", definition)
}

/// The table of colours.
pub fn rows(subjects: &Subjects, coloured: &[Coloured], target: f64) -> Rows<ColourRow> {
    let tau = subjects.most_leak();
    let images = subjects.reference.first().map_or(0, |subject| subject.split.len());
    let mut table = Rows::new(
        "Gain under equally hard noises of different colour",
        format!(
            "Gaussian noise on pixels, of different colours. Its standard deviation is chosen by bisection \
             ({TRIALS} trials on at most {PART} images, all seeds) so that the baseline, which is trained {} \
             and run without leak, loses half of its excess over chance (accuracy {target:.3}). The gain is \
             relative to the baseline: that of time constant {tau} in the hidden layers alone, in the \
             readout alone, in both, and, if networks were trained with it, everywhere; and that of the \
             control, which is the baseline with a readout that skips the first {CONTROL} % of steps. On \
             {images} images, each shown once; intervals (95 %) include the variation over seeds and images.",
            trained(subjects)
        ),
    );
    for row in coloured {
        if (row.baseline[0] - target).abs() > OFF {
            table.note(format!(
                "{}: no standard deviation that was tried comes near this accuracy; the nearest, {:.3}, \
                 gives {:.3}.",
                row.colour, row.sigma, row.baseline[0]
            ));
        }
        for (place, gains) in &row.gains {
            let Some(contrast) = Contrast::crossed(gains) else { continue };
            let interval = contrast.interval();
            table.rows.push(ColourRow {
                colour: row.colour,
                sigma: f64::from(row.sigma),
                tau,
                place: *place,
                baseline: row.baseline[1],
                gain: contrast.mean,
                low: interval.map(|i| i.low),
                high: interval.map(|i| i.high),
                seeds: contrast.pairs as u64,
                images: images as u64,
            });
        }
    }
    table
}
