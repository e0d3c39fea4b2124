//! One image on its way through the networks: spikes and membrane potentials, one panel per tau.

use super::chart::{self, hint, number_with};
use super::records::{Run, Study};
use crate::figure::{Figure, Panel};
use crate::html::Html;
use crate::page::Section;
use crate::palette;
use leaklab_record::{Cell, Table};
use serde_json::json;
use std::collections::BTreeSet;

/// More neurons than this of a layer would not be told apart.
const NEURONS_PER_LAYER: usize = 48;
/// More potentials than this would not be told apart.
const TRACES_PER_PANEL: usize = 4;

/// The section with the example image.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new(
        "example",
        "One image",
        "One image on its way through the network",
        Html::markup(
            "<p>The same test image, the same input spikes, shown to one trained network of each membrane time constant. \
             A dot is a spike.</p>",
        ),
    );
    let runs = study.first_of_each_tau();
    match raster(&runs) {
        Some(figure) => section.figures.push(figure),
        None => section.after.push(&chart::missing(
            "Spikes of an example image are",
            "raster table in a run's analysis folder",
        )),
    }
    if let Some(figure) = membrane(&runs, study) {
        section.figures.push(figure);
    }
    section
}

fn raster(runs: &[&Run]) -> Option<Figure> {
    let mut data = Table::new(
        "raster",
        "Spikes of one image",
        "Spikes of one test image; of each layer, neurons spread evenly over it.",
        &[
            ("tau", "steps", "Membrane time constant."),
            ("layer", "", "Layer."),
            ("neuron", "", "Neuron in its layer."),
            ("step", "steps", "Time step."),
            ("row", "", "Row in the picture, layers from top to bottom."),
        ],
    );
    // Layers and neurons are the same in every panel, so that rows can be compared.
    let mut layers: Vec<(String, BTreeSet<i64>)> = Vec::new();
    for table in runs.iter().filter_map(|run| run.tables.get("raster")) {
        for row in &table.rows {
            let (Some(layer), Some(neuron)) =
                (table.cell(row, "layer").text(), table.cell(row, "neuron").number())
            else {
                continue;
            };
            let position = layers.iter().position(|(name, _)| name == layer).unwrap_or_else(|| {
                layers.push((layer.to_owned(), BTreeSet::new()));
                layers.len() - 1
            });
            layers[position].1.insert(neuron as i64);
        }
    }
    let mut first_row = 0;
    let mut rows: Vec<(String, Vec<i64>, usize)> = Vec::new();
    for (layer, neurons) in layers {
        let neurons: Vec<i64> = neurons.into_iter().collect();
        let count = neurons.len().min(NEURONS_PER_LAYER);
        let kept: Vec<i64> = (0..count).map(|i| neurons[i * neurons.len() / count]).collect();
        rows.push((layer, kept, first_row));
        first_row += count + 3;
    }
    for run in runs {
        let Some(table) = run.tables.get("raster") else { continue };
        for row in &table.rows {
            let (Some(layer), Some(neuron)) =
                (table.cell(row, "layer").text(), table.cell(row, "neuron").number())
            else {
                continue;
            };
            let Some((_, neurons, first)) = rows.iter().find(|(name, ..)| name == layer) else { continue };
            let Ok(place) = neurons.binary_search(&(neuron as i64)) else { continue };
            data.push(vec![
                run.tau.as_str().into(),
                layer.into(),
                Cell::Integer(neuron as i64),
                table.cell(row, "step").clone(),
                (first + place).into(),
            ]);
        }
    }
    if data.rows.is_empty() {
        return None;
    }
    let names: Vec<String> = rows.iter().map(|(name, ..)| name.clone()).collect();
    let series = chart::word_series("layer", &names, str::to_owned);
    let panels = chart::taus(&data).into_iter().map(|tau| {
        let spec = json!({
            "transform": [{ "filter": { "field": "tau", "equal": tau } }],
            "mark": { "type": "point", "shape": "circle", "filled": true, "size": 9, "opacity": 0.9 },
            "encoding": {
                "x": number_with("step", "time step", json!({ "scale": { "nice": false, "zero": true } })),
                "y": number_with("row", "neurons, layer under layer", json!({ "scale": { "reverse": true, "domain": [0, first_row], "nice": false }, "axis": { "labels": false, "grid": false } })),
                "color": series.colour(),
                "tooltip": [hint("layer", "layer", ""), hint("neuron", "neuron", "d"), hint("step", "step", "d")]
            }
        });
        Panel::new(&palette::tau_label(&tau), spec).with_height(360)
    });
    let panels = panels.collect();
    Some(Figure {
        id: "raster".to_owned(),
        title: "Spikes, layer by layer".to_owned(),
        caption: Html::fill(
            "<p>Up to {} neurons of each layer, spread evenly over those that fired; the same neurons in every panel.</p>",
            &[&NEURONS_PER_LAYER],
        ),
        data,
        series: Some(series),
        panels,
    })
}

fn membrane(runs: &[&Run], study: &Study) -> Option<Figure> {
    let mut data = Table::new(
        "membrane",
        "Membrane potentials of one image",
        "Membrane potential of example neurons at every step.",
        &[
            ("tau", "steps", "Membrane time constant."),
            ("neuron", "", "Layer and neuron."),
            ("step", "steps", "Time step."),
            ("potential", "", "Membrane potential."),
        ],
    );
    // One neuron of each of the last layers: the first that every run recorded.
    let mut chosen: Vec<(String, i64)> = Vec::new();
    for table in runs.iter().filter_map(|run| run.tables.get("membrane")) {
        for row in &table.rows {
            let (Some(layer), Some(neuron)) =
                (table.cell(row, "layer").text(), table.cell(row, "neuron").number())
            else {
                continue;
            };
            if !chosen.iter().any(|(name, _)| name == layer) {
                chosen.push((layer.to_owned(), neuron as i64));
            }
        }
    }
    let skip = chosen.len().saturating_sub(TRACES_PER_PANEL);
    let chosen = chosen.split_off(skip);
    for run in runs {
        let Some(table) = run.tables.get("membrane") else { continue };
        for row in &table.rows {
            let (Some(layer), Some(neuron)) =
                (table.cell(row, "layer").text(), table.cell(row, "neuron").number())
            else {
                continue;
            };
            if chosen.iter().any(|(name, n)| name == layer && *n == neuron as i64) {
                data.push(vec![
                    run.tau.as_str().into(),
                    format!("{layer}, neuron {neuron}").into(),
                    table.cell(row, "step").clone(),
                    table.cell(row, "potential").clone(),
                ]);
            }
        }
    }
    if data.rows.is_empty() {
        return None;
    }
    let threshold =
        study.settings.settings.get("v_th").and_then(|v| v.as_float().or(v.as_integer().map(|n| n as f64)));
    let series = chart::word_series("neuron", &chart::distinct(&data, "neuron"), str::to_owned);
    let potentials = data.rows.iter().filter_map(|row| data.cell(row, "potential").number());
    let (low, high) =
        potentials.chain(threshold).fold((0f64, 0f64), |(low, high), u| (low.min(u), high.max(u)));
    let y = number_with("potential", "membrane potential", json!({ "scale": { "domain": [low, high] } }));
    let panels = chart::taus(&data).into_iter().map(|tau| {
        let mut layers = vec![
            json!({ "mark": { "type": "line", "strokeWidth": 1.6 }, "encoding": { "y": y } }),
            json!({
                "mark": { "type": "point", "filled": true, "size": 50, "opacity": 0 },
                "encoding": { "y": y, "tooltip": [hint("neuron", "neuron", ""), hint("step", "step", "d"), hint("potential", "potential", ".3f")] }
            }),
        ];
        if let Some(threshold) = threshold {
            layers.push(json!({
                "data": { "values": [{ "threshold": threshold }] },
                "mark": { "type": "rule", "strokeDash": [4, 4], "color": "@rule" },
                "encoding": { "y": { "field": "threshold", "type": "quantitative" }, "color": { "value": "@rule" }, "x": null }
            }));
        }
        let spec = json!({
            "transform": [{ "filter": { "field": "tau", "equal": tau } }],
            "encoding": { "x": number_with("step", "time step", json!({ "scale": { "nice": false } })), "color": series.colour() },
            "layer": layers
        });
        Panel::new(&palette::tau_label(&tau), spec).with_height(230)
    });
    let panels = panels.collect();
    Some(Figure {
        id: "membrane".to_owned(),
        title: "Membrane potentials".to_owned(),
        caption: Html::markup(
            "<p>One neuron of each of the last layers. With leak a potential sinks back between inputs; without, it keeps what it \
             has. Dashed: the threshold; a neuron that crosses it fires and starts again from 0.</p>",
        ),
        data,
        series: Some(series),
        panels,
    })
}
