//! Fig. 2: the coherence of one neuron, on the paper's axis and on a common one, with simulations over the theory.

use super::chart::{self, hint, number_with};
use super::records::Tables;
use crate::figure::{Figure, Item, Panel, Series};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::{Cell, Table};
use serde_json::json;

/// Name of the table, heading of its panel, words for its axis.
const PANELS: [(&str, &str, &str); 3] = [
    ("fig2_own", "Each curve on its own axis", "frequency × time constant, ωτ"),
    ("fig2_physical", "The same neurons on one axis", "frequency (cycles/unit time)"),
    ("fig2_noise_driven", "Input that is mostly noise", "frequency (cycles/unit time)"),
];

/// The section on the theory of one neuron. For any folder of theory tables, a study's or another.
pub fn section(theory: &Tables) -> Section {
    let mut section = Section::new(
        "theory",
        "Theory",
        "One neuron as a filter",
        Html::markup(
            "<p>Coherence is the share of the output's power, at each frequency, that follows the input linearly. The paper's \
             Fig. 2 shows it flat at 1 without leak and falling with leak, and concludes that leak removes high frequencies.</p>\
             <p>That picture needs a different axis for each curve: frequency times the neuron's own time constant. On a \
             common axis of physical frequency the neuron without leak falls too, with the same tail; what leak lowers is the \
             plateau. And where the input is mostly noise, a leaky neuron can be the more coherent one.</p>",
        ),
    );
    let found: Vec<_> = PANELS.iter().filter(|(name, ..)| theory.contains_key(*name)).collect();
    if found.is_empty() {
        section.after =
            chart::missing("The theory is", "theory/fig2_own, fig2_physical or fig2_noise_driven table");
        return section;
    }
    let mut data = Table::new(
        "fig2",
        "Coherence of one neuron",
        "Theory and simulation.",
        &[
            ("panel", "", "Which panel."),
            ("source", "", "theory or simulation."),
            ("curve", "", "Neuron."),
            ("frequency", "", "Frequency, in the unit of the panel's axis."),
            ("coherence", "", "From 0 to 1."),
            ("low", "", "Lower end of the simulation's interval."),
            ("high", "", "Upper end of the simulation's interval."),
        ],
    );
    let mut small_print = Html::new();
    for (name, ..) in &found {
        let theory_table = &theory[*name];
        small_print.add("<p><strong>{}.</strong> {}</p>", &[&theory_table.title, &theory_table.definition]);
        append(&mut data, name, "theory", theory_table);
        if let Some(simulation) = theory.get(&format!("{name}_simulation")) {
            append(&mut data, name, "simulation", simulation);
        }
    }
    let curves = chart::distinct(&data, "curve");
    let items = curves.iter().enumerate().map(|(i, curve)| Item {
        value: curve.clone(),
        label: curve.clone(),
        colour: colour(curve, i).to_owned(),
        shown: true,
    });
    let series = Series { column: "curve".to_owned(), items: items.collect() };
    let panels = found.iter().map(|(name, title, axis)| {
        let spec = json!({
            "transform": [{ "filter": { "field": "panel", "equal": name } }, { "filter": "datum.frequency > 0" }],
            "encoding": {
                "x": number_with("frequency", axis, json!({ "scale": { "type": "log", "nice": false }, "axis": { "format": "~g", "tickCount": 5, "labelOverlap": "greedy" } })),
                "color": series.colour()
            },
            "layer": [
                {
                    "transform": [{ "filter": "datum.source == 'theory'" }],
                    "mark": { "type": "line" },
                    "encoding": { "y": number_with("coherence", "coherence", json!({ "scale": { "domain": [0, 1] } })) }
                },
                {
                    "transform": [{ "filter": "datum.source == 'theory'" }],
                    "mark": { "type": "point", "filled": true, "size": 90, "opacity": 0 },
                    "encoding": {
                        "y": { "field": "coherence", "type": "quantitative" },
                        "tooltip": [hint("curve", "neuron", ""), hint("frequency", "frequency", ".3~g"), hint("coherence", "coherence", ".4f")]
                    }
                },
                {
                    "transform": [{ "filter": "datum.source == 'simulation' && isValid(datum.low)" }],
                    "mark": { "type": "rule", "strokeWidth": 1.5, "opacity": 0.75 },
                    "encoding": { "y": { "field": "low", "type": "quantitative" }, "y2": { "field": "high" } }
                },
                {
                    "transform": [{ "filter": "datum.source == 'simulation'" }],
                    "mark": { "type": "point", "filled": false, "size": 26, "strokeWidth": 1.4, "opacity": 0.9 },
                    "encoding": {
                        "y": { "field": "coherence", "type": "quantitative" },
                        "tooltip": [hint("curve", "simulated", ""), hint("frequency", "frequency", ".3~g"), hint("coherence", "coherence", ".4f"), hint("low", "interval from", ".4f"), hint("high", "to", ".4f")]
                    }
                }
            ]
        });
        Panel::new(title, spec).with_height(240)
    });
    let panels = panels.collect();
    section.figures.push(Figure {
        id: "fig2".to_owned(),
        title: "Fig. 2 · Coherence between input and output spikes".to_owned(),
        caption: Html::fill("<p>Lines are the theory, open circles with bars simulations with their confidence intervals.</p>{}", &[&small_print]),
        data,
        series: Some(series),
        panels,
    });
    section
}

fn append(data: &mut Table, panel: &str, source: &str, table: &Table) {
    for row in &table.rows {
        let mut cells: Vec<Cell> = vec![panel.into(), source.into()];
        cells.extend(chart::cells(table, row, &["curve", "frequency", "coherence", "low", "high"]));
        data.push(cells);
    }
}

/// The paper's colours: green without leak; else blue, red and others by order, most leak first.
fn colour(curve: &str, position: usize) -> &'static str {
    let no_leak = curve == "IF" || curve.starts_with("IF ") || curve.starts_with("IF,");
    if no_leak { "@green" } else { ["@blue", "@vermilion", "@purple", "@amber", "@sky"][position % 5] }
}
