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
    if let Some(table) = runs.iter().find_map(|run| run.tables.get("example_image")) {
        section.text.push(&picture(table));
    }
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

/// The image itself, pixel by pixel.
fn picture(table: &Table) -> Html {
    let number = |row: &[Cell], column| table.cell(row, column).number().unwrap_or(0.0).max(0.0) as usize;
    let size = |column| table.rows.iter().map(|row| number(row, column) + 1).max().unwrap_or(0);
    let (channels, height, width) = (size("channel"), size("row"), size("column"));
    let mut pixels = vec![[0usize; 3]; height * width];
    for row in &table.rows {
        let pixel = &mut pixels[number(row, "row") * width + number(row, "column")];
        let (channel, value) = (number(row, "channel"), number(row, "pixel").min(255));
        if channels < 3 {
            *pixel = [value; 3];
        } else if channel < 3 {
            pixel[channel] = value;
        }
    }
    let squares = Html::join(pixels.iter().enumerate().map(|(i, [r, g, b])| {
        Html::fill(
            "<rect x=\"{}\" y=\"{}\" width=\"1.02\" height=\"1.02\" fill=\"rgb({} {} {})\"/>",
            &[&(i % width), &(i / width), r, g, b],
        )
    }));
    Html::fill(
        "<div class=\"picture\"><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"The image\">{}</svg><p>{}</p></div>",
        &[&width, &height, &squares, &table.definition],
    )
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
            ("layer", "", "Layer."),
            ("neuron", "", "Neuron in its layer."),
            ("step", "steps", "Time step."),
            ("potential", "", "Membrane potential."),
        ],
    );
    for run in runs {
        let Some(table) = run.tables.get("membrane") else { continue };
        // Of each layer, the neuron that ends highest: of the output layer, that is the class the network names.
        let mut chosen: Vec<(&str, f64, f64)> = Vec::new();
        for row in &table.rows {
            let number = |column| table.cell(row, column).number();
            let (Some(layer), Some(neuron), Some(potential)) =
                (table.cell(row, "layer").text(), number("neuron"), number("potential"))
            else {
                continue;
            };
            let last = number("step")
                == table.rows.iter().filter_map(|r| table.cell(r, "step").number()).reduce(f64::max);
            match chosen.iter_mut().find(|(name, ..)| *name == layer) {
                Some(found) if last && potential > found.2 => *found = (layer, neuron, potential),
                Some(_) => {}
                None => chosen.push((layer, neuron, f64::NEG_INFINITY)),
            }
        }
        let chosen = &chosen[chosen.len().saturating_sub(TRACES_PER_PANEL)..];
        for row in &table.rows {
            let (Some(layer), Some(neuron)) =
                (table.cell(row, "layer").text(), table.cell(row, "neuron").number())
            else {
                continue;
            };
            if chosen.iter().any(|(name, n, _)| *name == layer && *n == neuron) {
                data.push(vec![
                    run.tau.as_str().into(),
                    layer.into(),
                    Cell::Integer(neuron as i64),
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
    let layers = chart::distinct(&data, "layer");
    let series = chart::word_series("layer", &layers, str::to_owned);
    let output = layers.last().map_or("", String::as_str);
    // The output adds up over all steps: on one scale with it, the others would be flat.
    let panel = |tau: &str, of_output: bool| {
        let inside = |row: &&Vec<Cell>| (data.cell(row, "layer").text() == Some(output)) == of_output;
        let threshold = threshold.filter(|_| !of_output);
        let potentials =
            data.rows.iter().filter(inside).filter_map(|row| data.cell(row, "potential").number());
        let (low, high) =
            potentials.chain(threshold).fold((0f64, 0f64), |(low, high), u| (low.min(u), high.max(u)));
        let y = number_with("potential", "membrane potential", json!({ "scale": { "domain": [low, high] } }));
        let mut marks = vec![
            json!({ "mark": { "type": "line", "strokeWidth": 1.6 }, "encoding": { "y": y } }),
            json!({
                "mark": { "type": "point", "filled": true, "size": 50, "opacity": 0 },
                "encoding": { "y": y, "tooltip": [hint("layer", "layer", ""), hint("neuron", "neuron", "d"), hint("step", "step", "d"), hint("potential", "potential", ".3f")] }
            }),
        ];
        if let Some(threshold) = threshold {
            marks.push(json!({
                "data": { "values": [{ "threshold": threshold }] },
                "mark": { "type": "rule", "strokeDash": [4, 4], "color": "@rule" },
                "encoding": { "y": { "field": "threshold", "type": "quantitative" }, "color": { "value": "@rule" }, "x": null }
            }));
        }
        let layer = json!({ "field": "layer", "equal": output });
        let layer = if of_output { layer } else { json!({ "not": layer }) };
        let spec = json!({
            "transform": [{ "filter": { "field": "tau", "equal": tau } }, { "filter": layer }],
            "encoding": { "x": number_with("step", "time step", json!({ "scale": { "nice": false } })), "color": series.colour() },
            "layer": marks
        });
        let title = palette::tau_label(tau);
        let title = if of_output { format!("Output, {title}") } else { title };
        Panel::new(&title, spec).with_height(if of_output { 150 } else { 210 })
    };
    let taus = chart::taus(&data);
    let hidden = taus.iter().filter(|_| layers.len() > 1).map(|tau| panel(tau, false));
    let panels = hidden.chain(taus.iter().map(|tau| panel(tau, true)));
    let panels = panels.collect();
    Some(Figure {
        id: "membrane".to_owned(),
        title: "Membrane potentials".to_owned(),
        caption: Html::markup(
            "<p>One neuron of each of the last layers. A potential is drawn after the step's input and before the threshold is \
             applied: above the dashed line the neuron fires and starts again from 0, below it a leaky neuron forgets a \
             little. The output, of the class that the network names, never fires; it adds up.</p>",
        ),
        data,
        series: Some(series),
        panels,
    })
}
