//! One image or recording on its way through the networks: its picture, and its spikes by condition.

use super::chart::{self, hint, number_with};
use super::membrane;
use super::records::Study;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::Rows;
use leaklab_record::tables::{ImageRow, RasterRow};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Neurons that are drawn of each layer; more could not be distinguished.
const NEURONS_PER_LAYER: usize = 24;
/// Empty rows between two layers.
const GAP: usize = 3;

leaklab_record::row! {
    /// One spike in one condition.
    pub struct SpikeRow in "raster" {
        /// Condition.
        condition: String [""],
        /// Layer.
        layer: String [""],
        /// Neuron in its layer.
        neuron: u64 [""],
        /// Time step, counted from 1.
        step: u64 ["steps"],
        /// 1 for a positive spike, 0 for a negative spike (input only).
        positive: bool [""],
        /// Row in the picture, layers from top to bottom.
        row: u64 [""],
    }
}

/// The section with the example image.
pub fn section(study: &Study) -> Section {
    let sample = study.sample();
    let encoded = if study.recorded { "" } else { ", encoded in the same input spikes," };
    let mut section = Section::new(
        "example",
        &format!("One {sample}"),
        &format!("One {sample} on its way through the network"),
        Html::fill(
            "<p>The same test {}{} is shown to one trained network of each condition.</p>",
            &[&sample, &encoded],
        ),
    );
    if let Some(image) = study.runs.iter().find_map(|run| run.tables.image.as_ref()) {
        section.text.push(&picture(image, study.recorded));
    }
    match raster(study) {
        Some(figure) => section.figures.push(figure),
        None => {
            let (what, tables) = ("Spikes of an example are", "raster table in a run's analysis folder");
            section.after.push(&chart::unmeasured(study, what, tables));
        }
    }
    section.figures.extend(membrane::figure(study));
    section
}

/// All layers of the network in the example's tables, in order, so that neighbouring figures give them the
/// same colours.
pub fn layers(study: &Study) -> Vec<String> {
    let spikes = study.runs.iter().filter_map(|run| run.tables.raster.as_ref());
    let potentials = study.runs.iter().filter_map(|run| run.tables.membrane.as_ref());
    let names = spikes.flat_map(|rows| rows.rows.iter().map(|row| &row.layer));
    chart::distinct(names.chain(potentials.flat_map(|rows| rows.rows.iter().map(|row| &row.layer))))
        .into_iter()
        .cloned()
        .collect()
}

/// The image itself, pixel by pixel; for a recording, the spikes of both polarities together.
fn picture(image: &Rows<ImageRow>, recorded: bool) -> Html {
    let size = |get: fn(&ImageRow) -> u64| image.rows.iter().map(get).max().map_or(0, |n| n as usize + 1);
    let (channels, height, width) = (size(|row| row.channel), size(|row| row.row), size(|row| row.column));
    let mut pixels = vec![[0usize; 3]; height * width];
    for row in &image.rows {
        let pixel = &mut pixels[row.row as usize * width + row.column as usize];
        let (channel, value) = (row.channel as usize, row.pixel.min(255) as usize);
        if recorded {
            *pixel = [pixel[0] + value; 3];
        } else if channels < 3 {
            *pixel = [value; 3];
        } else if channel < 3 {
            pixel[channel] = value;
        }
    }
    let mut name = "The image";
    let mut brightness = "";
    if recorded {
        // Counts are small: on the scale of an image they would be black.
        let most = pixels.iter().map(|pixel| pixel[0]).max().unwrap_or(0).max(1);
        pixels.iter_mut().for_each(|pixel| *pixel = [255 * pixel[0] / most; 3]);
        name = "Spikes of the recording";
        brightness = " The more spikes a pixel has, in all polarities together, the brighter it is.";
    }
    let squares = Html::join(pixels.iter().enumerate().map(|(i, [r, g, b])| {
        Html::fill(
            "<rect x=\"{}\" y=\"{}\" width=\"1.02\" height=\"1.02\" fill=\"rgb({} {} {})\"/>",
            &[&(i % width), &(i / width), r, g, b],
        )
    }));
    Html::fill(
        "<div class=\"picture\"><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{}</svg>\
         <p>{}{}</p></div>",
        &[&width, &height, &name, &squares, &image.definition, &brightness],
    )
}

/// The neurons of a layer in the picture, and the row of the first of them.
struct Block {
    layer: String,
    neurons: Vec<u64>,
    first: usize,
}

/// Layers and neurons are the same in every panel, so that rows can be compared.
fn blocks(tables: &[&Rows<RasterRow>]) -> Vec<Block> {
    let mut found: Vec<(&str, BTreeSet<u64>)> = Vec::new();
    for row in tables.iter().flat_map(|table| &table.rows) {
        match found.iter_mut().find(|(layer, _)| *layer == row.layer) {
            Some((_, neurons)) => drop(neurons.insert(row.neuron)),
            None => found.push((&row.layer, BTreeSet::from([row.neuron]))),
        }
    }
    let mut first = 0;
    let blocks = found.into_iter().map(|(layer, neurons)| {
        let neurons: Vec<u64> = neurons.into_iter().collect();
        let count = neurons.len().min(NEURONS_PER_LAYER);
        let chosen = (0..count).map(|i| neurons[i * neurons.len() / count]).collect();
        let block = Block { layer: layer.to_owned(), neurons: chosen, first };
        first += count + GAP;
        block
    });
    blocks.collect()
}

fn raster(study: &Study) -> Option<Figure> {
    use SpikeRow as R;
    let tables = study.first_runs(|run| run.tables.raster.as_ref());
    let blocks = blocks(&tables.iter().map(|(_, table)| *table).collect::<Vec<_>>());
    let end = blocks.last().map(|block| block.first + block.neurons.len())?;
    let sample = study.sample();
    let mut data = Rows::<R>::new(
        format!("Spikes of one {sample}"),
        format!("Spikes of one test {sample}; for each layer, neurons spread evenly over those that fired."),
    );
    for (condition, table) in &tables {
        for row in &table.rows {
            let Some(block) = blocks.iter().find(|block| block.layer == row.layer) else { continue };
            let Ok(place) = block.neurons.binary_search(&row.neuron) else { continue };
            data.rows.push(SpikeRow {
                condition: condition.name.clone(),
                layer: row.layer.clone(),
                neuron: row.neuron,
                step: row.step,
                positive: row.positive,
                row: (block.first + place) as u64,
            });
        }
    }
    let names: Vec<&str> = blocks.iter().map(|block| block.layer.as_str()).collect();
    let series = chart::layer_series(R::layer, &names, &layers(study));
    let middle = |block: &Block| (2 * block.first + block.neurons.len()) as f64 / 2.0 - 0.5;
    let ticks: Vec<f64> = blocks.iter().map(middle).collect();
    let labels =
        chart::words(blocks.iter().zip(&ticks).map(|(block, tick)| (tick.to_string(), json!(block.layer))));
    let last = data.rows.iter().map(|row| row.step).max().unwrap_or(1);
    let panels = tables.iter().map(|(condition, _)| {
        let mut colour = series.colour();
        colour["condition"] = json!({ "test": format!("datum.{} == 0", R::positive), "value": "@negative" });
        let x = json!({
            "scale": { "nice": false, "domain": [0, last + 1] }, "axis": { "tickMinStep": 1, "tickCount": 6 }
        });
        let y = json!({
            "scale": { "reverse": true, "domain": [-1, end], "nice": false },
            "axis": { "values": ticks, "labelExpr": labels, "grid": false, "ticks": true }
        });
        let spec: Value = json!({
            "transform": [chart::equal(R::condition, &condition.name)],
            "mark": { "type": "tick", "orient": "vertical", "size": 3, "thickness": 1.6, "opacity": 1 },
            "encoding": {
                "x": number_with(R::step, "time step", x),
                "y": number_with(R::row, "", y),
                "color": colour,
                "tooltip": [
                    hint(R::layer, "layer", ""), hint(R::neuron, "neuron", "d"), hint(R::step, "step", "d"),
                    hint(R::positive, "positive (1) or negative (0)", "d")
                ]
            }
        });
        Panel::new(&condition.label(), spec).with_height(380)
    });
    let panels = panels.collect();
    let negative = if data.rows.iter().any(|row| !row.positive) {
        Html::markup(" An input spike is negative (red) where the pixel is darker than the image's mean.")
    } else {
        Html::new()
    };
    let caption = Html::fill(
        "<p>Each tick is a spike.{} Each layer is represented by up to {} neurons, spread evenly over those \
         that fired; they are the same in every panel.</p>{}",
        &[&negative, &NEURONS_PER_LAYER, &chart::unlearned_panels(study)],
    );
    Some(Figure::new("raster", "Spikes, layer by layer", caption, &data, panels).with_series(series))
}
