//! Fig. 2: the coherence of one neuron, on the paper's axis and on a common one, with simulations drawn over
//! the theory.

use super::chart::{self, hint, number_with};
use super::typeset;
use crate::figure::{Figure, Item, Panel, Series};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::tables::CoherenceRow;
use leaklab_record::{Rows, TableError};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The theory's tables by name.
pub type Theory = BTreeMap<String, Rows<CoherenceRow>>;

/// Name of a table, heading of its panel, title of its axis.
const PANELS: [(&str, &str, &str); 3] = [
    ("fig2_own", "Each curve on its own axis", "angular frequency × time constant, ωτ"),
    ("fig2_physical", "The same neurons on one axis", "frequency (cycles per unit of time)"),
    ("fig2_noise_driven", "Input that is mostly noise", "frequency (cycles per unit of time)"),
];

leaklab_record::row! {
    /// One point of the figure.
    pub struct CurveRow in "fig2" {
        /// Panel.
        panel: String [""],
        /// theory or simulation.
        source: String [""],
        /// Neuron.
        curve: String [""],
        /// Frequency, in the unit of the panel's axis.
        frequency: f64 [""],
        /// Coherence, from 0 to 1.
        coherence: f64 [""],
        /// Lower end of the simulation's 95 % interval.
        low: Option<f64> [""],
        /// Upper end of the interval.
        high: Option<f64> [""],
    }
}

/// Reads a folder of theory tables.
pub fn read(folder: &Path) -> Result<Theory, TableError> {
    let mut theory = Theory::new();
    for (panel, ..) in PANELS {
        for name in [panel.to_owned(), simulation(panel)] {
            if let Some(rows) = Rows::read_named(folder, &name)? {
                theory.insert(name, rows);
            }
        }
    }
    Ok(theory)
}

fn simulation(panel: &str) -> String {
    format!("{panel}_simulation")
}

/// The section on the theory of one neuron, from the theory tables of a study or others.
pub fn section(theory: &Theory) -> Section {
    let mut section = Section::new(
        "theory",
        "Theory",
        "One neuron as a filter",
        Html::markup(
            "<p>Coherence is the share of the output's power, at each frequency, that follows the input \
             linearly. The paper's Fig. 2 shows it flat at 1 without leak and falling with leak, and \
             concludes that leak removes high frequencies.</p><p>That picture needs a different axis for \
             each curve: frequency times the neuron's own time constant. On a common axis of physical \
             frequency the neuron without leak falls too, with the same tail; what leak lowers is the \
             plateau. And where the input is mostly noise, a leaky neuron can be the more coherent one.</p>",
        ),
    );
    let found: Vec<_> = PANELS.iter().filter(|(name, ..)| theory.contains_key(*name)).collect();
    if found.is_empty() {
        section.after =
            chart::missing("The theory is", "theory/fig2_own, fig2_physical or fig2_noise_driven table");
        return section;
    }
    let mut data = Rows::<CurveRow>::new("Coherence of one neuron", "Theory and simulation.");
    let mut small_print = Html::new();
    for (name, ..) in &found {
        let curves = &theory[*name];
        let words = [&curves.title, &curves.definition].map(|text| typeset::html(text));
        small_print.add("<p><strong>{}.</strong> {}</p>", &[&words[0], &words[1]]);
        append(&mut data, name, "theory", curves);
        if let Some(simulated) = theory.get(&simulation(name)) {
            append(&mut data, name, "simulation", simulated);
        }
    }
    let curves = chart::distinct(data.rows.iter().map(|row| row.curve.as_str()));
    let items = curves.iter().enumerate().map(|(i, &curve)| Item {
        value: curve.to_owned(),
        label: typeset::plain(curve),
        colour: colour(curve, i),
        shown: true,
    });
    let series = Series { column: CurveRow::curve, items: items.collect() };
    let panels = found.iter().map(|(name, title, axis)| {
        let simulated = theory.contains_key(&simulation(name));
        Panel::new(title, panel(name, axis, &series, simulated)).with_height(240)
    });
    let caption = Html::fill(
        "<p>Lines are the theory. Open circles are simulations; bars are their 95&nbsp;% intervals.</p>{}",
        &[&chart::definition(&small_print)],
    );
    let title = "Fig. 2 · Coherence between input and output spikes";
    section.figures.push(Figure::new("fig2", title, caption, &data, panels.collect()).with_series(series));
    section
}

fn append(data: &mut Rows<CurveRow>, panel: &str, source: &str, rows: &Rows<CoherenceRow>) {
    // A logarithmic axis cannot show 0.
    data.rows.extend(rows.rows.iter().filter(|row| row.frequency > 0.0).map(|row| CurveRow {
        panel: panel.to_owned(),
        source: source.to_owned(),
        curve: row.curve.clone(),
        frequency: row.frequency,
        coherence: row.coherence,
        low: row.low,
        high: row.high,
    }));
}

/// Axis labels at powers of ten only.
const DECADES: &str =
    "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) > 1e-6 ? '' : format(datum.value, '~g')";

fn panel(name: &str, axis: &str, series: &Series, simulated: bool) -> Value {
    use CurveRow as R;
    let source = |name: &str| chart::equal(R::source, name);
    let scale = json!({ "type": "log", "nice": false });
    let ticks = json!({ "labelExpr": DECADES, "tickCount": 5, "labelOverlap": false });
    let y = |field: &str| number_with(field, "coherence (0 to 1)", json!({ "scale": { "domain": [0, 1] } }));
    let mut layers = vec![
        json!({
            "transform": [source("theory")], "mark": { "type": "line" }, "encoding": { "y": y(R::coherence) }
        }),
        json!({
            "transform": [source("theory")],
            "mark": { "type": "point", "filled": true, "size": 90, "opacity": 0 },
            "encoding": { "y": y(R::coherence), "tooltip": [
                chart::who("neuron"), hint(R::frequency, "frequency", ".3~g"),
                hint(R::coherence, "coherence", ".4f")
            ] }
        }),
    ];
    if simulated {
        layers.push(json!({
            "transform": [source("simulation"), chart::valid(R::low)],
            "mark": { "type": "rule", "strokeWidth": 1.5, "opacity": 0.75 },
            "encoding": { "y": y(R::low), "y2": { "field": R::high } }
        }));
        layers.push(json!({
            "transform": [source("simulation")],
            "mark": { "type": "point", "filled": false, "size": 26, "strokeWidth": 1.4, "opacity": 0.9 },
            "encoding": { "y": y(R::coherence), "tooltip": [
                chart::who("simulated"), hint(R::frequency, "frequency", ".3~g"),
                hint(R::coherence, "coherence", ".4f"), hint(R::low, "interval from", ".4f"),
                hint(R::high, "to", ".4f")
            ] }
        }));
    }
    json!({
        "transform": [chart::equal(R::panel, name)],
        "encoding": {
            "x": number_with(R::frequency, axis, json!({ "scale": scale, "axis": ticks })),
            "color": series.colour()
        },
        "layer": layers
    })
}

/// The paper's colours: green without leak; otherwise blue, red and others in order, most leak first.
fn colour(curve: &str, position: usize) -> &'static str {
    let no_leak = curve == "IF" || curve.starts_with("IF ") || curve.starts_with("IF,");
    if no_leak { "@green" } else { ["@blue", "@vermilion", "@brown", "@amber", "@sky"][position % 5] }
}
