//! Spectra of the input, of hidden layers and of the target output (Figs. 4 and 5a-c).
//!
//! Encoder and noise are independent from step to step, so the expected input spectrum is flat, clean or
//! noisy, and noise only raises it. Any decrease with frequency deeper in the network is an effect of the
//! network; the spectra of the hidden layers show where.

use super::pass::SpectrumPass;
use super::periodogram::{self, Periodogram};
use super::statistics::{mean, mean_interval};
use super::stimulus::{PassKey, SPECTRUM_SEVERITY, has_spectrum};
use super::{AnalysisError, Analyst, Progress};
use leaklab_record::tables::{
    CriticalRow, CriticalSummaryRow, HiddenSpectrumRow, InputAmplitudeRow, InputSpectrumRow,
};
use leaklab_record::{NoiseKey, Reading, Rows, Stimulus, Table};

/// Bins of a stimulus's amplitude histogram.
const AMPLITUDE_BINS: usize = 24;
/// Smallest range of the histogram on either side of the mean, in standard deviations.
const CURVE_DEVIATIONS: f64 = 3.5;

/// Clean, and the noises of the run that [`has_spectrum`] accepts, at the paper's severity.
pub(super) fn stimuli(noises: &[NoiseKey]) -> Vec<Stimulus> {
    let noisy = noises.iter().map(|&noise| Stimulus::at(noise, SPECTRUM_SEVERITY));
    std::iter::once(Stimulus::Clean).chain(noisy.filter(|&stimulus| has_spectrum(stimulus))).collect()
}

/// The tables `input_spectrum`, `input_amplitude`, `critical_frequency`, `critical_frequency_summary` and
/// `hidden_spectrum`.
pub(super) fn tables(analyst: &Analyst, progress: &mut Progress) -> Result<Vec<Table>, AnalysisError> {
    let mut passes = Vec::new();
    for stimulus in stimuli(&analyst.run.config.noise) {
        let pass = analyst.pass(PassKey::first(stimulus), progress)?;
        passes.push((stimulus, pass.spectrum.expect("these stimuli measure spectra")));
    }
    let steps = analyst.run.config.time_steps;
    let plan = Periodogram::new(steps);
    let images = analyst.dataset.test.len();
    let layers: Vec<&str> =
        analyst.run.network.architecture.hidden().iter().map(|l| l.name.as_str()).collect();
    Ok(vec![
        input_spectrum(&passes, &plan, images, analyst.presentation.recorded).table(),
        input_amplitude(&passes, images).table(),
        critical_histogram(&passes, &plan, steps).table(),
        critical_summary(&passes, steps).table(),
        hidden_spectrum(&passes, &plan, &layers, images).table(),
    ])
}

type Passes = [(Stimulus, SpectrumPass)];

fn input_spectrum(
    passes: &Passes,
    plan: &Periodogram,
    images: usize,
    recorded: bool,
) -> Rows<InputSpectrumRow> {
    let expected = match recorded {
        false => {
            "Encoder and noise are independent from step to step: the expected spectrum is flat, clean or \
             noisy."
        }
        true => {
            "Recordings are not encoded: their spectrum is that of what the camera saw, and need not be flat."
        }
    };
    let mut table = Rows::new(
        "Spectrum of the input spike trains (Fig. 4)",
        format!(
            "One-sided power density of each pixel's input train (mean removed, no window; over all bins it \
             adds up to T times the variance), mean over pixels and {images} test samples. The Nyquist bin \
             is not doubled and therefore half as high. {expected}"
        ),
    );
    for (stimulus, pass) in passes {
        for (bin, &power) in pass.input_power.iter().enumerate() {
            table.rows.push(InputSpectrumRow { stimulus: *stimulus, frequency: plan.frequency(bin), power });
        }
        if let Some((slope, error)) = flatness(&pass.input_power) {
            table.note(format!(
                "{}: the ratio of the power in the upper half of the band to that in the lower half is \
                 {slope:.4}, with standard error {error:.4} (from the scatter of the bins); for a flat \
                 spectrum it is 1.",
                stimulus.words()
            ));
        }
    }
    table
}

/// Power of the upper half of the band over that of the lower half, without the Nyquist bin, and the ratio's
/// standard error.
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

fn input_amplitude(passes: &Passes, images: usize) -> Rows<InputAmplitudeRow> {
    let mut table = Rows::new(
        "Amplitude of the input spectrum, sample by sample (Fig. 4)",
        format!(
            "Histogram over {images} test samples of the mean amplitude (square root of the one-sided power \
             density, mean over pixels and frequencies), as a density, and the normal density with the same \
             mean and variance."
        ),
    );
    for (stimulus, pass) in passes {
        let values = &pass.input_amplitude;
        let centre = mean(values).unwrap_or(0.0);
        let variance = values.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / values.len().max(1) as f64;
        if variance.is_nan() || variance <= 0.0 {
            table.note(format!(
                "{stimulus}: the amplitudes of the samples do not differ, so there is no \
                               histogram."
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
            let amplitude = low + (bin as f64 + 0.5) * width;
            let normal = (-(amplitude - centre).powi(2) / (2.0 * variance)).exp();
            table.rows.push(InputAmplitudeRow {
                stimulus: *stimulus,
                amplitude,
                density: count as f64 / (values.len() as f64 * width),
                curve: normal / (2.0 * std::f64::consts::PI * variance).sqrt(),
            });
        }
    }
    table
}

const CRITICAL: &str = "Signal: the weighted input (W_L O)[t] of the output neuron of the labelled class, \
                        mean removed, no window, one-sided power. Critical frequency: the lowest k/T at \
                        which the cumulative power reaches 70 % of the total, per sample. Samples whose \
                        signal is constant have none and are omitted.";

fn critical_histogram(passes: &Passes, plan: &Periodogram, steps: usize) -> Rows<CriticalRow> {
    let mut table = Rows::new("Critical frequency of the target output: distribution (Fig. 5a-c)", CRITICAL);
    let [defined, ..] = Reading::ALL;
    for (stimulus, pass) in passes {
        let mut counts = vec![0u64; plan.bins()];
        for frequency in pass.critical[defined as usize].iter().flatten() {
            let bin = (frequency * steps as f64).round() as usize;
            if let Some(count) = bin.checked_sub(1).and_then(|bin| counts.get_mut(bin)) {
                *count += 1;
            }
        }
        for (bin, &images) in counts.iter().enumerate() {
            table.rows.push(CriticalRow { stimulus: *stimulus, frequency: plan.frequency(bin), images });
        }
    }
    table
}

fn critical_summary(passes: &Passes, steps: usize) -> Rows<CriticalSummaryRow> {
    let mut table = Rows::new(
        "Critical frequency of the target output: mean, by three readings",
        format!(
            "{CRITICAL} Mean over samples with a 95 % interval (Student's t over samples). Settled: the \
             first 20 % of steps are omitted. Shuffled: each spike train of the last hidden layer is \
             shuffled in time, which preserves the spike counts and weights and removes all temporal \
             structure. Zero share: the share of the signal's power at frequency 0, before the mean is \
             removed."
        ),
    );
    for (stimulus, pass) in passes {
        for reading in Reading::ALL {
            let all = &pass.critical[reading as usize];
            let values: Vec<f64> = all.iter().flatten().copied().collect();
            let interval = mean_interval(&values);
            let length = if reading == Reading::Settled { steps - steps / 5 } else { steps };
            let shares: Vec<f64> = pass.zero_share.iter().flatten().copied().collect();
            table.rows.push(CriticalSummaryRow {
                stimulus: *stimulus,
                reading,
                mean: mean(&values),
                low: interval.map(|i| i.low),
                high: interval.map(|i| i.high),
                images: values.len() as u64,
                left_out: (all.len() - values.len()) as u64,
                white_noise: periodogram::white_noise(length).map(|(mean, _)| mean),
                zero_share: if reading == Reading::Defined { mean(&shares) } else { None },
            });
            if values.is_empty() {
                table.note(format!("{stimulus}: the target output's input is constant for every sample."));
            }
        }
    }
    table
}

fn hidden_spectrum(
    passes: &Passes,
    plan: &Periodogram,
    layers: &[&str],
    images: usize,
) -> Rows<HiddenSpectrumRow> {
    let mut table = Rows::new(
        "Spectrum of the hidden layers' spike trains",
        format!(
            "One-sided power density of each neuron's spike train (mean removed, no window), mean over the \
             layer's neurons and {images} test samples. Where it falls with frequency, the layers up to this \
             one have filtered."
        ),
    );
    for (stimulus, pass) in passes {
        for (layer, power) in layers.iter().zip(&pass.hidden_power) {
            table.rows.extend(power.iter().enumerate().map(|(bin, &power)| HiddenSpectrumRow {
                stimulus: *stimulus,
                layer: (*layer).to_owned(),
                frequency: plan.frequency(bin),
                power,
            }));
        }
    }
    table
}
