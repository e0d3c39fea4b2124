//! Fig. 4: the spectrum of the input spike trains, clean and noisy. The input does not depend on tau, so the first
//! run that has the tables stands for all.

use super::chart::{self, hint, number, number_with};
use super::number;
use super::records::Study;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::{Cell, Column, Table};
use serde_json::json;

/// The section on the input's spectrum.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new(
        "input",
        "Input spectrum",
        "What noise does to the input",
        Html::markup(
            "<p>The paper explains robustness by frequency: noise adds high-frequency components to the input spikes, \
             and a leaky neuron, being a low-pass filter, keeps them out. But encoder and noise draw afresh at every \
             step, so the <em>expected</em> spectrum is flat with and without noise; noise can only raise it.</p>",
        ),
    );
    let spectrum =
        study.runs.iter().find_map(|run| run.tables.get("input_spectrum").filter(|t| !t.rows.is_empty()));
    let amplitude =
        study.runs.iter().find_map(|run| run.tables.get("input_amplitude").filter(|t| !t.rows.is_empty()));
    let Some(spectrum) = spectrum else {
        section.after =
            chart::missing("The input's spectrum is", "input_spectrum table in a run's analysis folder");
        return section;
    };
    let conditions = chart::distinct(spectrum, "condition");
    let series = chart::word_series("condition", &conditions, chart::condition_label);
    let tooltip = json!([
        hint("condition", "input", ""),
        hint("frequency", "cycles/step", ".3f"),
        hint("power", "power", ".4~g")
    ]);
    let mut spec = chart::lines_with_hover(
        number_with(
            "frequency",
            "frequency (cycles per step)",
            json!({ "scale": { "nice": false, "domain": [0, 0.5] }, "axis": { "tickCount": 6 } }),
        ),
        number_with("power", "power density", json!({ "scale": { "zero": true } })),
        series.colour(),
        tooltip,
    );
    spec["transform"] = json!([{ "filter": "datum.frequency < 0.4999" }]);
    section.figures.push(
        Figure::new(
            "fig4-spectrum",
            "Fig. 4 · Spectrum of the input spikes",
            Html::fill(
                "<p>{}</p><p>{} The Nyquist bin, 0.5, is not drawn.</p>",
                &[&flatness(spectrum, &conditions), &spectrum.definition],
            ),
            spectrum.clone(),
            spec,
        )
        .with_series(series.clone()),
    );
    if let Some(table) = amplitude {
        let data = with_bins(table);
        let spec = json!({
            "encoding": { "color": series.colour() },
            "layer": [
                {
                    "transform": [{ "filter": "datum.density > 0" }],
                    "mark": { "type": "rect", "opacity": 0.35 },
                    "encoding": {
                        "x": number_with("from", "mean amplitude of an image", json!({ "scale": { "zero": false }, "axis": { "tickCount": 6 } })),
                        "x2": { "field": "to" },
                        "y": number("density", "density of images"),
                        "y2": { "datum": 0 },
                        "tooltip": [hint("condition", "input", ""), hint("amplitude", "amplitude", ".4~g"), hint("density", "density", ".3~g"), hint("curve", "normal curve", ".3~g")]
                    }
                },
                { "mark": { "type": "line", "interpolate": "monotone" }, "encoding": { "x": number("amplitude", ""), "y": number("curve", "density of images") } }
            ]
        });
        let mut figure = Figure::new(
            "fig4-amplitude",
            "Fig. 4 · Amplitude per image",
            Html::fill(
                "<p>Bars count images, lines are the distribution curves fitted to them.</p>{}",
                &[&chart::small_print(table)],
            ),
            data,
            spec,
        )
        .with_series(series);
        figure.panels = figure.panels.into_iter().map(|panel: Panel| panel.with_height(240)).collect();
        section.figures.push(figure);
    }
    section
}

/// The histogram with the ends of its bins, whose centres it has.
fn with_bins(table: &Table) -> Table {
    let mut out = table.clone();
    for (name, description) in [("from", "Lower end of the bin."), ("to", "Upper end of the bin.")] {
        out.columns.push(Column { name: name.into(), unit: String::new(), description: description.into() });
    }
    let centre = |row: &[Cell]| table.cell(row, "amplitude").number();
    for row in &mut out.rows {
        let condition = table.cell(row, "condition").clone();
        let own = table.rows.iter().filter(|other| *table.cell(other, "condition") == condition);
        let mut centres: Vec<f64> = own.filter_map(|other| centre(other)).collect();
        centres.sort_by(f64::total_cmp);
        let width = centres.windows(2).map(|pair| pair[1] - pair[0]).filter(|w| *w > 0.0).reduce(f64::min);
        let ends = centre(row).zip(width).map(|(c, w)| (c - w / 2.0, c + w / 2.0));
        row.extend([Cell::from(ends.map(|e| e.0)), Cell::from(ends.map(|e| e.1))]);
    }
    out
}

/// Whether the measured spectra are flat, in a sentence: mean power above against below half the Nyquist frequency.
fn flatness(table: &Table, conditions: &[String]) -> String {
    let mut pieces = Vec::new();
    let mut flat = true;
    for condition in conditions {
        let mean = |above: bool| {
            let powers: Vec<f64> = table
                .rows
                .iter()
                .filter(|row| table.cell(row, "condition").text() == Some(condition))
                .filter(|row| {
                    let frequency = table.cell(row, "frequency").number().unwrap_or(0.0);
                    frequency < 0.4999 && (frequency > 0.25) == above
                })
                .filter_map(|row| table.cell(row, "power").number())
                .collect();
            powers.iter().sum::<f64>() / powers.len() as f64
        };
        let ratio = mean(true) / mean(false);
        if ratio.is_finite() {
            flat &= (ratio - 1.0).abs() < 0.05;
            pieces.push(format!("{} ({})", number::plain(ratio), chart::condition_label(condition)));
        }
    }
    let ending = if flat {
        "All are flat within 5 %: the picture of noise that sits at high frequencies is not what we find."
    } else {
        "So the spectrum is not flat here."
    };
    format!(
        "Mean power in the upper half of the band, over that in the lower half: {}. {ending}",
        pieces.join(", ")
    )
}
