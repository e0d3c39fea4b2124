//! Membrane potentials of a few neurons for the example image, with their spikes and resets.

use super::chart::{self, hint, number_with};
use super::condition::Condition;
use super::example;
use super::records::Study;
use crate::figure::{Figure, Panel, Series};
use crate::html::Html;
use leaklab_record::Rows;
use leaklab_record::tables::MembraneRow;
use serde_json::{Value, json};

/// Hidden neurons in one panel; more potentials could not be distinguished.
const HIDDEN_PER_PANEL: usize = 2;

leaklab_record::row! {
    /// One neuron's potential at one step in one condition. If it fires, there are two rows: before and after
    /// the reset.
    pub struct PotentialRow in "membrane" {
        /// Condition.
        condition: String [""],
        /// Layer.
        layer: String [""],
        /// Neuron in its layer.
        neuron: u64 [""],
        /// Time step, counted from 1.
        step: u64 ["steps"],
        /// Membrane potential.
        potential: f64 ["units of weight"],
        /// 1 if the neuron fires.
        fired: bool [""],
        /// Drawing order.
        order: u64 [""],
    }
}

/// A neuron that is drawn.
#[derive(Clone, PartialEq)]
struct Neuron<'a> {
    layer: &'a str,
    neuron: u64,
}

/// Hidden neurons above, the output below, one panel per condition.
pub fn figure(study: &Study) -> Option<Figure> {
    let tables = study.first_runs(|run| run.tables.membrane.as_ref());
    let mut data = Rows::<PotentialRow>::new(
        format!("Membrane potentials of one {}", study.sample()),
        "Membrane potential of example neurons after each step's input; after a spike, also the reset to 0.",
    );
    let mut hidden = Vec::new();
    let mut outputs = Vec::new();
    for (condition, table) in &tables {
        let mut chosen = chosen(table);
        let Some(output) = chosen.pop() else { continue };
        let chosen = chosen.split_off(chosen.len().saturating_sub(HIDDEN_PER_PANEL));
        for neuron in chosen.iter().chain([&output]) {
            trace(&mut data, condition, table, neuron);
        }
        if !chosen.is_empty() {
            hidden.push((*condition, chosen));
        }
        outputs.push((*condition, vec![output]));
    }
    if data.rows.is_empty() {
        return None;
    }
    let threshold =
        study.settings.settings.get("v_th").and_then(|v| v.as_float().or(v.as_integer().map(|n| n as f64)));
    let all = example::layers(study);
    let drawn = chart::distinct(data.rows.iter().map(|row| row.layer.as_str()));
    let series = chart::layer_series(PotentialRow::layer, &drawn, &all);
    let mut panels = Vec::new();
    // The output sums up all steps: on the same scale, the other potentials would look flat.
    for (groups, threshold, height) in [(&hidden, threshold, 210), (&outputs, None, 150)] {
        for (condition, neurons) in groups {
            let spec = panel(&data, condition, neurons, groups, threshold, &series);
            let names: Vec<String> =
                neurons.iter().map(|n| format!("{} neuron {}", n.layer, n.neuron)).collect();
            let title = format!("{}: {}", condition.label(), names.join(", "));
            panels.push(Panel::new(&title, spec).with_height(height));
        }
    }
    let columns = if outputs.len().is_multiple_of(3) { 3 } else { outputs.len().min(2) };
    let caption = Html::markup(
        "<p>The potential U of one neuron in each of the last layers, in units of the weights, after the \
         step's input and before the threshold is applied. Above the threshold (dashed line), a hidden \
         neuron fires (triangle) and is reset to 0 (vertical line); below it, a leaky neuron loses a part of \
         its potential at every step. The output neuron is that of the class which the network predicts. It \
         never fires: its potential is the network's answer.</p>",
    );
    let figure = Figure::new("membrane", "Membrane potentials", caption, &data, panels);
    Some(figure.with_columns(columns).with_series(series))
}

/// For each layer, the neuron with the highest final potential. In the output layer this is the predicted
/// class.
fn chosen(table: &Rows<MembraneRow>) -> Vec<Neuron<'_>> {
    let last = table.rows.iter().map(|row| row.step).max().unwrap_or(0);
    let mut found: Vec<&MembraneRow> = Vec::new();
    for row in table.rows.iter().filter(|row| row.step == last) {
        match found.iter_mut().find(|known| known.layer == row.layer) {
            Some(known) if row.potential > known.potential => *known = row,
            Some(_) => {}
            None => found.push(row),
        }
    }
    found.into_iter().map(|row| Neuron { layer: &row.layer, neuron: row.neuron }).collect()
}

/// Adds a neuron's potential, with a second point at 0 where it is reset.
fn trace(data: &mut Rows<PotentialRow>, condition: &Condition, table: &Rows<MembraneRow>, neuron: &Neuron) {
    let own = table.rows.iter().filter(|row| row.layer == neuron.layer && row.neuron == neuron.neuron);
    for row in own {
        let mut point = |potential: f64, fired: bool| {
            let order = data.rows.len() as u64;
            data.rows.push(PotentialRow {
                condition: condition.name.clone(),
                layer: row.layer.clone(),
                neuron: row.neuron,
                step: row.step,
                potential,
                fired,
                order,
            });
        };
        point(row.potential, row.fired);
        if row.fired {
            point(0.0, false);
        }
    }
}

fn panel(
    data: &Rows<PotentialRow>,
    condition: &Condition,
    neurons: &[Neuron],
    groups: &[(&Condition, Vec<Neuron>)],
    threshold: Option<f64>,
    series: &Series,
) -> Value {
    use PotentialRow as R;
    // Panels of one kind share a scale, so that conditions can be compared.
    let inside = |row: &&R| {
        groups.iter().any(|(c, of)| c.name == row.condition && of.iter().any(|n| n.layer == row.layer))
    };
    let potentials = data.rows.iter().filter(inside).map(|row| row.potential).chain(threshold);
    let (low, high) = potentials.fold((0f64, 0f64), |(low, high), u| (low.min(u), high.max(u)));
    let y = |field: &str| {
        number_with(
            field,
            "potential U (units of weight)",
            json!({ "scale": { "domain": [low, 1.04 * high] } }),
        )
    };
    let mut layers = vec![
        json!({
            "mark": { "type": "line", "strokeWidth": 1.6 },
            "encoding": { "y": y(R::potential), "order": { "field": R::order } }
        }),
        json!({
            "mark": { "type": "point", "filled": true, "size": 50, "opacity": 0 },
            "encoding": { "y": y(R::potential), "tooltip": [
                hint(R::layer, "layer", ""), hint(R::neuron, "neuron", "d"), hint(R::step, "step", "d"),
                hint(R::potential, "potential", ".3f"), hint(R::fired, "fires (1: yes)", "d")
            ] }
        }),
    ];
    let fired = data.rows.iter().filter(inside).any(|row| row.fired && row.condition == condition.name);
    if fired {
        layers.push(json!({
            "transform": [{ "filter": format!("datum.{} == 1", R::fired) }],
            "mark": { "type": "point", "shape": "triangle-up", "filled": true, "size": 44, "opacity": 1 },
            "encoding": { "y": y(R::potential) }
        }));
    }
    if let Some(threshold) = threshold {
        layers.push(json!({
            "data": { "values": [{ "threshold": threshold }] },
            "mark": { "type": "rule", "strokeDash": [4, 4] },
            "encoding": { "y": y("threshold"), "color": { "value": "@rule" }, "x": null }
        }));
    }
    let of: Vec<&str> = neurons.iter().map(|neuron| neuron.layer).collect();
    let x =
        json!({ "scale": { "nice": false, "zero": false }, "axis": { "tickMinStep": 1, "tickCount": 6 } });
    json!({
        "transform": [
            chart::equal(R::condition, &condition.name), { "filter": { "field": R::layer, "oneOf": of } }
        ],
        "encoding": { "x": number_with(R::step, "time step", x), "color": series.colour() },
        "layer": layers
    })
}
