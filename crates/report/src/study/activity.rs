//! Fig. 6: the weighted input and the spike rate of each layer.

use super::chart::{self, hint, number_with};
use super::condition::Condition;
use super::records::Study;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::tables::NormByConditionRow;
use leaklab_record::{LayerKind, Rows};
use serde_json::{Value, json};

leaklab_record::row! {
    /// Spike rate of one layer in one condition.
    pub struct RateRow in "spike_rates" {
        /// Layer.
        layer: String [""],
        /// conv, pool or full.
        kind: LayerKind [""],
        /// Condition.
        condition: String [""],
        /// Spikes / (neurons * steps), mean over seeds.
        spike_rate: f64 ["fraction"],
        /// Number of runs.
        seeds: u64 [""],
    }
}

/// The section on activity.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new(
        "activity",
        "Activity",
        "How hard each layer is driven",
        Html::markup(
            "<p>The paper explains the price of leak like this: given the same input, a leaky neuron fires \
             less, and training compensates with larger weights and more spikes. The norm of the weighted \
             input shows how hard a layer is driven; the spike rate shows how it responds.</p>",
        ),
    );
    match norms(study) {
        Some(figure) => section.figures.push(figure),
        None if study.single => {}
        None => section
            .after
            .push(&chart::missing("The weighted-input norm is", "compare/norm_by_condition table")),
    }
    match rates(study) {
        Some(figure) => section.figures.push(figure),
        None if study.single => {
            section.after.push(&chart::unmeasured(study, "Spike rates are", "activity table"))
        }
        None => {}
    }
    section
}

fn norms(study: &Study) -> Option<Figure> {
    use NormByConditionRow as R;
    let table = study.compare.norm.as_ref()?;
    let conditions = chart::present(study.shown(), table.rows.iter().map(|row| row.condition.as_str()));
    let data = chart::only(table, |row| conditions.iter().any(|condition| condition.name == row.condition));
    let title = "weighted-input norm (units of the threshold)";
    let y = |field: &str| number_with(field, title, json!({}));
    let tooltip = json!([
        hint(R::layer, "layer", ""),
        chart::who("condition"),
        hint(R::mean, "norm", ".4~g"),
        hint(R::low, "interval from", ".4~g"),
        hint(R::high, "to", ".4~g")
    ]);
    let mut spec = bars(R::layer, &conditions, y(R::mean), tooltip);
    if let Some(layers) = spec["layer"].as_array_mut() {
        layers.push(json!({
            "transform": [chart::valid(R::low)],
            "mark": { "type": "rule", "strokeWidth": 1.5 },
            "encoding": { "y": y(R::low), "y2": { "field": R::high }, "color": { "value": "@ink" } }
        }));
    }
    let caption = Html::fill(
        "<p>The norm of the weighted input that a layer's neurons receive in one step, mean over steps and \
         {}s. Bars are 95&nbsp;% intervals over seeds.</p>{}{}",
        &[&study.sample(), &chart::unlearned(study), &chart::small_print(table)],
    );
    let title = "Fig. 6 · Norm of the weighted input, layer by layer";
    let panels = vec![Panel::new("", spec)];
    Some(Figure::new("fig6", title, caption, &data, panels).with_series(chart::series(&conditions)))
}

/// Bars by layer, with the conditions side by side.
fn bars(layer: &str, conditions: &[&Condition], y: Value, tooltip: Value) -> Value {
    let series = chart::series(conditions);
    json!({
        "encoding": {
            "x": {
                "field": layer, "type": "nominal", "title": "layer", "sort": null,
                "axis": { "labelAngle": 0, "labelOverlap": true }, "scale": { "paddingInner": 0.3 }
            },
            "xOffset": { "field": chart::CONDITION, "type": "nominal", "sort": series.values() }
        },
        "layer": [{
            "mark": { "type": "bar", "cornerRadiusEnd": 2 },
            "encoding": { "y": y, "color": series.colour(), "tooltip": tooltip }
        }]
    })
}

/// Spike rates of the runs' layers, averaged over seeds.
fn rates(study: &Study) -> Option<Figure> {
    let definition = format!("Spikes / (neurons * steps) on test {}s, mean over seeds.", study.sample());
    let mut data = Rows::<RateRow>::new("Spike rate by layer", definition);
    for condition in study.shown() {
        for run in study.runs.iter().filter(|run| run.condition == condition.name) {
            for row in run.tables.activity.iter().flat_map(|rows| &rows.rows) {
                let Some(spike_rate) = row.spike_rate else { continue };
                let same = |r: &&mut RateRow| r.layer == row.layer && r.condition == condition.name;
                match data.rows.iter_mut().find(same) {
                    Some(sum) => {
                        sum.spike_rate += spike_rate;
                        sum.seeds += 1;
                    }
                    None => data.rows.push(RateRow {
                        layer: row.layer.clone(),
                        kind: row.kind,
                        condition: condition.name.clone(),
                        spike_rate,
                        seeds: 1,
                    }),
                }
            }
        }
    }
    data.rows.iter_mut().for_each(|row| row.spike_rate /= row.seeds as f64);
    let conditions = chart::present(study.shown(), data.rows.iter().map(|row| row.condition.as_str()));
    if conditions.is_empty() {
        return None;
    }
    let y = number_with(
        RateRow::spike_rate,
        "spikes per neuron and step",
        json!({ "axis": { "format": ".1~%" } }),
    );
    let tooltip = json!([
        hint(RateRow::layer, "layer", ""),
        chart::who("condition"),
        hint(RateRow::spike_rate, "spike rate", ".3%"),
        hint(RateRow::seeds, "seeds", "d")
    ]);
    let caption = Html::fill(
        "<p>A layer near 0&nbsp;% is silent, and one near 100&nbsp;% is saturated. {}</p>{}",
        &[&data.definition.replace('*', "×"), &chart::unlearned(study)],
    );
    let panels = vec![Panel::new("", bars(RateRow::layer, &conditions, y, tooltip))];
    let title = "Spikes per neuron and step, layer by layer";
    Some(Figure::new("spike-rates", title, caption, &data, panels).with_series(chart::series(&conditions)))
}
