//! Spectra of the hidden layers' spikes without noise, for one run of each condition. Filtering would happen
//! there.

use super::chart::{self, hint, number, number_with};
use super::records::Study;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use leaklab_record::{Rows, Stimulus};
use serde_json::json;

leaklab_record::row! {
    /// One bin of a hidden layer's spectrum in one condition.
    pub struct SpectrumRow in "hidden_spectrum" {
        /// Condition.
        condition: String [""],
        /// Hidden layer.
        layer: String [""],
        /// Frequency.
        frequency: f64 ["cycles/step"],
        /// Mean power density.
        power: f64 ["per cycle/step"],
    }
}

/// One panel per layer.
pub fn figure(study: &Study) -> Option<Figure> {
    use SpectrumRow as R;
    let sample = study.sample();
    let mut data = Rows::<R>::new(
        "Spectrum of the hidden layers' spikes",
        format!(
            "One-sided power density of each neuron's spike train, mean over neurons and clean test \
             {sample}s."
        ),
    );
    let tables = study.first_runs(|run| run.tables.hidden_spectrum.as_ref());
    for (condition, table) in &tables {
        let clean = table.rows.iter().filter(|row| row.stimulus == Stimulus::Clean && row.frequency < 0.4999);
        data.rows.extend(clean.map(|row| SpectrumRow {
            condition: condition.name.clone(),
            layer: row.layer.clone(),
            frequency: row.frequency,
            power: row.power,
        }));
    }
    if data.rows.is_empty() {
        return None;
    }
    let conditions: Vec<_> = tables.iter().map(|(condition, _)| *condition).collect();
    let series = chart::series(&conditions);
    let panels = chart::distinct(data.rows.iter().map(|row| row.layer.as_str())).into_iter().map(|layer| {
        let frequency = json!({
            "scale": { "nice": false, "domain": [0, 0.5] }, "axis": { "values": [0, 0.1, 0.2, 0.3, 0.4, 0.5] }
        });
        let mut spec = chart::lines_with_hover(
            number_with(R::frequency, "frequency (cycles/step)", frequency),
            number(R::power, "power density (per cycle/step)"),
            series.colour(),
            json!([
                chart::who("condition"),
                hint(R::frequency, "cycles/step", ".3f"),
                hint(R::power, "power", ".4~g")
            ]),
        );
        spec["transform"] = json!([chart::equal(R::layer, layer)]);
        Panel::new(layer, spec).with_height(190)
    });
    let panels = panels.collect();
    let fall = if study.recorded {
        "The input's own spectrum need not be flat: where a curve falls more with frequency than that of the \
         input, the layers up to this one have filtered."
    } else {
        "Where a curve falls with frequency, the layers up to this one have filtered."
    };
    let caption = Html::fill(
        "<p>Clean test {}s, one run of each condition. {} A curve that lies higher as a whole means more \
         spikes.</p>{}",
        &[&sample, &fall, &chart::unlearned(study)],
    );
    let title = "Spectrum of the hidden layers' spikes";
    Some(Figure::new("hidden-spectrum", title, caption, &data, panels).with_series(series))
}
