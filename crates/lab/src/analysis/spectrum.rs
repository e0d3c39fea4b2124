//! Spectra of the input, of hidden layers and of the target output (Figs. 4 and 5a-c).
//!
//! Encoder and noise draw afresh at every step, so the expected input spectrum is flat, clean or noisy, and noise
//! only raises it. Whatever falls off with frequency deeper in the network is the network's own doing: the hidden
//! layers' spectra show where.

use super::condition::{Condition, SPECTRUM_SEVERITY};
use super::pass::SpectrumPass;
use super::periodogram::{self, Periodogram};
use super::statistics::{mean, mean_interval};
use super::{AnalysisError, Analyst, Progress};
use leaklab_engine::noise::{Noise, Scenario};
use leaklab_record::{Cell, Table};

/// Bins of a condition's amplitude histogram.
const AMPLITUDE_BINS: usize = 24;
/// Standard deviations on either side of the mean that the histogram shows at least.
const CURVE_DEVIATIONS: f64 = 3.5;

/// Clean, and the paper's noises at its severity as far as the run tests them.
pub(super) fn conditions(noises: &[(Noise, Scenario)]) -> Vec<Condition> {
    let noisy = noises.iter().map(|&(noise, scenario)| Condition::new(noise, scenario, SPECTRUM_SEVERITY));
    std::iter::once(Condition::CLEAN).chain(noisy.filter(|condition| condition.has_spectrum())).collect()
}

/// The tables `input_spectrum`, `input_amplitude`, `critical_frequency`, `critical_frequency_summary` and
/// `hidden_spectrum`.
pub(super) fn tables(analyst: &Analyst, progress: &mut Progress) -> Result<Vec<Table>, AnalysisError> {
    let mut passes = Vec::new();
    for condition in conditions(&analyst.run.config.noise) {
        let pass = analyst.pass(condition, progress)?;
        passes.push((condition.to_string(), pass.spectrum.expect("these conditions measure spectra")));
    }
    let steps = analyst.run.config.time_steps;
    let plan = Periodogram::new(steps);
    let images = analyst.dataset.test.len();
    let layers: Vec<&str> =
        analyst.run.network.architecture.hidden().iter().map(|l| l.name.as_str()).collect();
    Ok(vec![
        input_spectrum(&passes, &plan, images),
        input_amplitude(&passes, images),
        critical_histogram(&passes, &plan, steps),
        critical_summary(&passes, steps),
        hidden_spectrum(&passes, &plan, &layers, images),
    ])
}

type Passes = [(String, SpectrumPass)];

const CONDITION: (&str, &str, &str) = ("condition", "", "clean, or noise/scenario/severity.");
const FREQUENCY: (&str, &str, &str) = ("frequency", "cycles/step", "Multiples of 1/T up to 0.5 (Nyquist).");

fn input_spectrum(passes: &Passes, plan: &Periodogram, images: usize) -> Table {
    let mut table = Table::new(
        "input_spectrum",
        "Spectrum of the input spike trains (Fig. 4)",
        &format!(
            "One-sided power density of each pixel's input train (mean removed, no window; over all bins it adds up to T \
             times the variance), mean over pixels and {images} test images. The Nyquist bin is not doubled and so half as \
             high. Encoder and noise are independent from step to step: the expected spectrum is flat, clean or noisy."
        ),
        &[CONDITION, FREQUENCY, ("power", "per cycle/step", "Mean power density.")],
    );
    for (condition, pass) in passes {
        for (bin, &power) in pass.input_power.iter().enumerate() {
            table.push(vec![condition.as_str().into(), plan.frequency(bin).into(), power.into()]);
        }
        if let Some((slope, error)) = flatness(&pass.input_power) {
            table.notes.push(format!(
                "{condition}: upper over lower half of the band {slope:.4} (standard error {error:.4} from the scatter of \
                 the bins; 1 is flat)."
            ));
        }
    }
    table
}

/// Power of the upper half of the band over that of the lower half, without the Nyquist bin, and the ratio's standard error.
fn flatness(power: &[f64]) -> Option<(f64, f64)> {
    let band = &power[..power.len().saturating_sub(1)];
    let half = band.len() / 2;
    if half < 2 {
        return None;
    }
    let (low, high) = (&band[..half], &band[band.len() - half..]);
    let (a, b) = (mean(low)?, mean(high)?);
    let error = |values: &[f64], mean: f64| Some(super::statistics::standard_error(values)? / mean);
    if a <= 0.0 || b <= 0.0 {
        return None;
    }
    Some((b / a, b / a * error(low, a)?.hypot(error(high, b)?)))
}

fn input_amplitude(passes: &Passes, images: usize) -> Table {
    let mut table = Table::new(
        "input_amplitude",
        "Amplitude of the input spectrum, image by image (Fig. 4)",
        &format!(
            "Histogram over {images} test images of the mean amplitude (square root of the one-sided power density, mean over \
             pixels and frequencies), as a density, and the normal density with the same mean and variance."
        ),
        &[
            CONDITION,
            ("amplitude", "per root (cycle/step)", "Middle of the histogram's bin."),
            ("density", "", "Share of images in the bin over its width."),
            ("curve", "", "Normal density."),
        ],
    );
    for (condition, pass) in passes {
        let values = &pass.input_amplitude;
        let centre = mean(values).unwrap_or(0.0);
        let variance = values.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / values.len().max(1) as f64;
        if variance.is_nan() || variance <= 0.0 {
            table.notes.push(format!(
                "{condition}: the images' amplitudes do not differ, so there is no histogram."
            ));
            continue;
        }
        // Wide enough for the whole curve and all images.
        let reach = CURVE_DEVIATIONS * variance.sqrt();
        let low = values.iter().copied().fold(centre - reach, f64::min);
        let high = values.iter().copied().fold(centre + reach, f64::max);
        let width = (high - low) / AMPLITUDE_BINS as f64;
        let mut counts = [0u64; AMPLITUDE_BINS];
        for x in values {
            counts[(((x - low) / width) as usize).min(AMPLITUDE_BINS - 1)] += 1;
        }
        for (bin, &count) in counts.iter().enumerate() {
            let x = low + (bin as f64 + 0.5) * width;
            let normal = (-(x - centre).powi(2) / (2.0 * variance)).exp();
            table.push(vec![
                condition.as_str().into(),
                x.into(),
                (count as f64 / (values.len() as f64 * width)).into(),
                (normal / (2.0 * std::f64::consts::PI * variance).sqrt()).into(),
            ]);
        }
    }
    table
}

const CRITICAL: &str = "Signal: the weighted input (W_L O)[t] of the output neuron of the labelled class, mean removed, no \
    window, one-sided power. Critical frequency: the lowest k/T at which the cumulative power reaches 70 % of the total, per \
    image. Images whose signal is constant have none and are left out.";

fn critical_histogram(passes: &Passes, plan: &Periodogram, steps: usize) -> Table {
    let mut table = Table::new(
        "critical_frequency",
        "Critical frequency of the target output: distribution (Fig. 5a-c)",
        CRITICAL,
        &[CONDITION, FREQUENCY, ("images", "", "Test images with this critical frequency.")],
    );
    for (condition, pass) in passes {
        let mut counts = vec![0u64; plan.bins()];
        for frequency in pass.critical.iter().flatten() {
            counts[(frequency * steps as f64).round() as usize - 1] += 1;
        }
        for (bin, &count) in counts.iter().enumerate() {
            table.push(vec![condition.as_str().into(), plan.frequency(bin).into(), count.into()]);
        }
    }
    table
}

fn critical_summary(passes: &Passes, steps: usize) -> Table {
    let white = periodogram::white_noise(steps).map(|(mean, _)| mean);
    let mut table = Table::new(
        "critical_frequency_summary",
        "Critical frequency of the target output: mean",
        &format!("{CRITICAL} Mean over images with a 95 % interval (Student's t over images)."),
        &[
            CONDITION,
            ("mean", "cycles/step", "Mean over images; empty if every signal is constant."),
            ("low", "cycles/step", "Lower end of the interval."),
            ("high", "cycles/step", "Upper end of the interval."),
            ("images", "", "Images in the mean."),
            ("left_out", "", "Images whose signal is constant."),
            (
                "white_noise",
                "cycles/step",
                "Expected for white noise of the same length: nothing is filtered.",
            ),
        ],
    );
    for (condition, pass) in passes {
        let values: Vec<f64> = pass.critical.iter().flatten().copied().collect();
        let interval = mean_interval(&values);
        table.push(vec![
            condition.as_str().into(),
            Cell::from(mean(&values)),
            Cell::from(interval.map(|i| i.low)),
            Cell::from(interval.map(|i| i.high)),
            values.len().into(),
            (pass.critical.len() - values.len()).into(),
            Cell::from(white),
        ]);
        if values.is_empty() {
            table.notes.push(format!("{condition}: the target output's input is constant for every image."));
        }
    }
    table
}

fn hidden_spectrum(passes: &Passes, plan: &Periodogram, layers: &[&str], images: usize) -> Table {
    let mut table = Table::new(
        "hidden_spectrum",
        "Spectrum of the hidden layers' spike trains",
        &format!(
            "One-sided power density of each neuron's spike train (mean removed, no window), mean over the layer's neurons and \
             {images} test images. Where it falls with frequency, the layers up to there have filtered."
        ),
        &[
            CONDITION,
            ("layer", "", "Hidden layer, pools included."),
            FREQUENCY,
            ("power", "per cycle/step", "Mean power density."),
        ],
    );
    for (condition, pass) in passes {
        for (layer, power) in layers.iter().zip(&pass.hidden_power) {
            for (bin, &power) in power.iter().enumerate() {
                table.push(vec![
                    condition.as_str().into(),
                    (*layer).into(),
                    plan.frequency(bin).into(),
                    power.into(),
                ]);
            }
        }
    }
    table
}
