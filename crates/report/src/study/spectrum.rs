//! Fig. 4: the spectrum of the input spike trains, clean and noisy. The input does not depend on the
//! condition, so the first run that has the tables represents all.

use super::chart::{self, hint, number, number_with};
use super::number;
use super::records::Study;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::tables::{InputAmplitudeRow, InputSpectrumRow};
use leaklab_record::{Rows, Stimulus};
use serde_json::json;

/// The Nyquist bin is estimated from half as many values as the others, and is not drawn.
const BELOW_NYQUIST: f64 = 0.4999;

leaklab_record::row! {
    /// One bin of the histogram of the images' mean amplitudes.
    pub struct AmplitudeRow in "input_amplitude" {
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// Lower end of the bin.
        from: f64 ["per root (cycle/step)"],
        /// Middle of the bin.
        amplitude: f64 ["per root (cycle/step)"],
        /// Upper end of the bin.
        to: f64 ["per root (cycle/step)"],
        /// Share of images in the bin, divided by the bin's width.
        density: f64 [""],
        /// Normal density with the same mean and variance.
        curve: f64 [""],
    }
}

/// The section on the input's spectrum.
pub fn section(study: &Study) -> Section {
    let expected = Html::markup(if study.recorded {
        "Recordings of an event camera are not encoded: their spectrum depends on what the camera saw, and \
         need not be flat."
    } else {
        "But encoder and noise draw new random numbers at every step, so the <em>expected</em> spectrum is \
         flat with and without noise. Noise can only raise it."
    });
    let mut section = Section::new(
        "input",
        "Input spectrum",
        "What noise does to the input",
        Html::fill(
            "<p>The paper explains robustness by frequency: noise adds high-frequency components to the \
             input spikes, and a leaky neuron, as a low-pass filter, removes them. {}</p>",
            &[&expected],
        ),
    );
    let Some(table) = study.runs.iter().find_map(|run| run.tables.input_spectrum.as_ref()) else {
        let tables = "input_spectrum table in a run's analysis folder";
        section.after = chart::unmeasured(study, "The input's spectrum is", tables);
        return section;
    };
    section.figures.push(spectrum(table));
    let amplitude = study.runs.iter().find_map(|run| run.tables.input_amplitude.as_ref());
    section.figures.extend(amplitude.map(|table| histogram(table, study.sample())));
    section
}

fn spectrum(table: &Rows<InputSpectrumRow>) -> Figure {
    use InputSpectrumRow as R;
    let data = chart::only(table, |row| row.frequency < BELOW_NYQUIST);
    let stimuli = chart::distinct(data.rows.iter().map(|row| row.stimulus));
    let series = chart::stimulus_series(R::stimulus, &stimuli, |_| true);
    let frequency = json!({
        "scale": { "nice": false, "domain": [0, 0.5] }, "axis": { "values": [0, 0.1, 0.2, 0.3, 0.4, 0.5] }
    });
    let spec = chart::lines_with_hover(
        number_with(R::frequency, "frequency (cycles/step)", frequency),
        number_with(R::power, "power density (per cycle/step)", json!({ "scale": { "zero": true } })),
        series.colour(),
        json!([
            chart::who("input"),
            hint(R::frequency, "cycles/step", ".3f"),
            hint(R::power, "power", ".4~g")
        ]),
    );
    let caption = Html::fill(
        "<p>{}</p>{}<p>The bin at the Nyquist frequency, 0.5 cycles per step, is not drawn.</p>",
        &[&flatness(&data, &stimuli), &chart::small_print(table)],
    );
    let title = "Fig. 4 · Spectrum of the input spikes";
    Figure::new("fig4-spectrum", title, caption, &data, vec![Panel::new("", spec)]).with_series(series)
}

/// Whether the measured spectra are flat, in sentences: mean power above half the Nyquist frequency divided
/// by that below. Empty if no spectrum has both.
fn flatness(data: &Rows<InputSpectrumRow>, stimuli: &[Stimulus]) -> String {
    let mut pieces = Vec::new();
    let mut flat = true;
    for &stimulus in stimuli {
        let mean = |above: bool| {
            let half =
                data.rows.iter().filter(|row| row.stimulus == stimulus && (row.frequency > 0.25) == above);
            let powers: Vec<f64> = half.map(|row| row.power).collect();
            powers.iter().sum::<f64>() / powers.len() as f64
        };
        let ratio = mean(true) / mean(false);
        if ratio.is_finite() {
            flat &= (ratio - 1.0).abs() < 0.05;
            pieces.push(format!("{} ({})", number::plain(ratio), stimulus.words()));
        }
    }
    let ending = match (pieces.len(), flat) {
        (0, _) => return String::new(),
        (1, true) => "The spectrum is flat within 5\u{a0}%.",
        (1, false) => "So the spectrum is not flat.",
        (_, true) => "All spectra are flat within 5\u{a0}%: noise is not concentrated at high frequencies.",
        (_, false) => "So not every spectrum is flat here.",
    };
    format!(
        "Mean power in the upper half of the band, divided by that in the lower half: {}. {ending}",
        pieces.join(", ")
    )
}

/// The amplitudes of images or recordings, depending on `sample`.
fn histogram(table: &Rows<InputAmplitudeRow>, sample: &str) -> Figure {
    use AmplitudeRow as R;
    let mut data = Rows::new(&table.title, &table.definition);
    data.rows = with_ends(table);
    let stimuli = chart::distinct(data.rows.iter().map(|row| row.stimulus));
    let series = chart::stimulus_series(R::stimulus, &stimuli, |_| true);
    let title = &format!("mean amplitude of each {sample} (per √(cycle/step))");
    let more = json!({ "scale": { "zero": false }, "axis": { "tickCount": 6 } });
    let height = &format!("density of {sample}s (per unit of amplitude)");
    let spec = json!({
        "encoding": { "color": series.colour() },
        "layer": [
            {
                "transform": [{ "filter": format!("datum.{} > 0", R::density) }],
                "mark": { "type": "rect", "opacity": 0.35 },
                "encoding": {
                    "x": number_with(R::from, title, more), "x2": { "field": R::to },
                    "y": number(R::density, height), "y2": { "datum": 0 },
                    "tooltip": [
                        chart::who("input"), hint(R::amplitude, "amplitude", ".4~g"),
                        hint(R::density, "density", ".3~g"),
                        hint(R::curve, "normal curve", ".3~g")
                    ]
                }
            },
            {
                "mark": { "type": "line", "interpolate": "monotone" },
                "encoding": { "x": number(R::amplitude, title), "y": number(R::curve, height) }
            }
        ]
    });
    let caption = Html::fill(
        "<p>Bars are the measured densities of {}s; lines are normal curves with the same mean and \
         variance.</p>{}",
        &[&sample, &chart::small_print(table)],
    );
    let panels = vec![Panel::new("", spec).with_height(240)];
    let heading = format!("Fig. 4 · Amplitude per {sample}");
    Figure::new("fig4-amplitude", &heading, caption, &data, panels).with_series(series)
}

/// The histogram with the limits of its bins. For each stimulus, all bins have the same width.
fn with_ends(table: &Rows<InputAmplitudeRow>) -> Vec<AmplitudeRow> {
    let width = |stimulus: Stimulus| {
        let own = table.rows.iter().filter(|row| row.stimulus == stimulus);
        let mut middles: Vec<f64> = own.map(|row| row.amplitude).collect();
        middles.sort_by(f64::total_cmp);
        let widths = middles.windows(2).map(|pair| pair[1] - pair[0]).filter(|width| *width > 0.0);
        widths.reduce(f64::min).unwrap_or(0.0)
    };
    let stimuli = chart::distinct(table.rows.iter().map(|row| row.stimulus));
    let widths: Vec<(Stimulus, f64)> = stimuli.into_iter().map(|s| (s, width(s))).collect();
    let rows = table.rows.iter().map(|row| {
        let half = widths.iter().find(|(s, _)| *s == row.stimulus).map_or(0.0, |(_, width)| width / 2.0);
        AmplitudeRow {
            stimulus: row.stimulus,
            from: row.amplitude - half,
            amplitude: row.amplitude,
            to: row.amplitude + half,
            density: row.density,
            curve: row.curve,
        }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spectrum_is_not_called_all() {
        let noisy = Stimulus::at("background/channel".parse().unwrap(), 5);
        let sentences = |stimuli: &[Stimulus], high: f64| {
            let mut data = Rows::new("", "");
            for &stimulus in stimuli {
                let of = |frequency, power| InputSpectrumRow { stimulus, frequency, power };
                data.rows.extend([of(0.1, 1.0), of(0.4, high)]);
            }
            flatness(&data, stimuli)
        };
        assert!(
            sentences(&[Stimulus::Clean], 1.01).ends_with("(clean). The spectrum is flat within 5\u{a0}%.")
        );
        assert!(sentences(&[Stimulus::Clean], 0.5).ends_with("So the spectrum is not flat."));
        assert!(sentences(&[Stimulus::Clean, noisy], 1.01).contains("All spectra are flat"));
        assert_eq!(sentences(&[], 1.0), "");
    }
}
