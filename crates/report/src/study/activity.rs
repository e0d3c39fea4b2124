//! Fig. 6 and beyond: what each layer receives and how much it fires.

use super::chart::{self, hint, number_with};
use super::records::Study;
use crate::figure::Figure;
use crate::html::Html;
use crate::page::Section;
use leaklab_record::Table;
use serde_json::{Value, json};

/// The section on activity.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new(
        "activity",
        "Activity",
        "How hard each layer is driven",
        Html::markup(
            "<p>The paper's explanation of the price: given the same input, a leaky neuron fires less, and training makes up \
             for it with larger weights and more spikes. The norm of the weighted input shows how hard a layer is \
             driven, the spike rate how it answers.</p>",
        ),
    );
    match study.compare.get("norm_by_tau").filter(|table| !table.rows.is_empty()) {
        Some(table) => {
            let taus = chart::taus(table);
            let bars = bars(&taus, "mean", "weighted input norm", "", Some(("low", "high")), ".4~g");
            section.figures.push(
                Figure::new(
                    "fig6",
                    "Fig. 6 · Norm of the weighted input, layer by layer",
                    Html::fill("<p>Whiskers are 95 % intervals.</p>{}", &[&chart::small_print(table)]),
                    table.clone(),
                    bars,
                )
                .with_series(chart::tau_series(&taus)),
            );
        }
        None => {
            section.after.push(&chart::missing("The weighted input norm is", "compare/norm_by_tau table"))
        }
    }
    if let Some(table) = rates(study) {
        let taus = chart::taus(&table);
        section.figures.push(
            Figure::new(
                "spike-rates",
                "Spikes per neuron and step, layer by layer",
                Html::fill(
                    "<p>A layer near 0 % is dead, one near 100 % saturated.</p>{}",
                    &[&chart::small_print(&table)],
                ),
                table,
                bars(&taus, "spike_rate", "spike rate", ".1~%", None, ".3%"),
            )
            .with_series(chart::tau_series(&taus)),
        );
    }
    section
}

/// Bars by layer, side by side for each tau.
fn bars(
    taus: &[String],
    field: &str,
    title: &str,
    axis: &str,
    whiskers: Option<(&str, &str)>,
    format: &str,
) -> Value {
    let offset = json!({ "field": "tau", "type": "nominal", "sort": taus });
    let axis = if axis.is_empty() { json!({}) } else { json!({ "format": axis }) };
    let mut tooltip = vec![hint("layer", "layer", ""), hint("tau", "τ", ""), hint(field, title, format)];
    if let Some((low, high)) = whiskers {
        tooltip.extend([hint(low, "interval from", format), hint(high, "to", format)]);
    }
    let mut layers = vec![json!({
        "mark": { "type": "bar", "cornerRadiusEnd": 2 },
        "encoding": { "y": number_with(field, title, json!({ "axis": axis })), "color": chart::tau_series(taus).colour(), "tooltip": tooltip }
    })];
    if let Some((low, high)) = whiskers {
        layers.push(json!({
            "transform": [{ "filter": format!("isValid(datum.{low})") }],
            "mark": { "type": "rule", "strokeWidth": 1.5 },
            "encoding": { "y": number_with(low, title, json!({})), "y2": { "field": high }, "color": { "value": "@ink" } }
        }));
    }
    json!({
        "encoding": {
            "x": { "field": "layer", "type": "nominal", "title": null, "sort": null, "axis": { "labelAngle": 0, "labelOverlap": true }, "scale": { "paddingInner": 0.3 } },
            "xOffset": offset
        },
        "layer": layers
    })
}

/// Spike rates of the runs' layers, averaged over seeds.
fn rates(study: &Study) -> Option<Table> {
    let mut out: Option<Table> = None;
    let mut sums: Vec<(String, String, String, f64, usize)> = Vec::new();
    for run in &study.runs {
        let Some(table) = run.tables.get("activity") else { continue };
        out.get_or_insert_with(|| {
            Table::new(
                "spike_rates",
                "Spike rate by layer",
                "Spikes / (neurons * steps) on test images, averaged over seeds.",
                &[
                    ("layer", "", "Layer."),
                    ("kind", "", "conv, pool or full."),
                    ("tau", "steps", "Membrane time constant."),
                    ("spike_rate", "fraction", "Mean over seeds."),
                    ("seeds", "", "Runs."),
                ],
            )
        });
        for row in &table.rows {
            let text = |column| table.cell(row, column).text().unwrap_or_default().to_owned();
            let Some(rate) = table.cell(row, "spike_rate").number() else { continue };
            let (layer, kind) = (text("layer"), text("kind"));
            match sums.iter_mut().find(|s| s.0 == layer && s.2 == run.tau) {
                Some(sum) => {
                    sum.3 += rate;
                    sum.4 += 1;
                }
                None => sums.push((layer, kind, run.tau.clone(), rate, 1)),
            }
        }
    }
    let mut table = out?;
    for (layer, kind, tau, sum, seeds) in sums {
        table.push(vec![layer.into(), kind.into(), tau.into(), (sum / seeds as f64).into(), seeds.into()]);
    }
    (!table.rows.is_empty()).then_some(table)
}
