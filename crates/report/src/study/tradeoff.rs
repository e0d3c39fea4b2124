//! The knob the paper speaks of: what leak buys against what it costs, one point per tau.

use super::chart::{self, hint, number_with};
use super::number;
use super::records::Study;
use crate::figure::Figure;
use crate::html::Html;
use crate::page::Section;
use crate::palette;
use leaklab_record::Table;
use serde_json::json;

/// The section on the trade-off.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new(
        "tradeoff",
        "Trade-off",
        "Leak as a knob: robustness against work",
        Html::markup(
            "<p>Up is more robust, left is cheaper. A membrane time constant on the Pareto front (dashed) is not beaten \
             in both by any other: which one to take depends on what an operation costs you.</p>",
        ),
    );
    let Some(table) = study.compare.get("tradeoff").filter(|table| !table.rows.is_empty()) else {
        section.after = chart::missing("The trade-off is", "compare/tradeoff table");
        return section;
    };
    let taus = chart::taus(table);
    let series = chart::tau_series(&taus);
    let labels = json!({ "calculate": "datum.tau == 'inf' ? 'no leak' : 'τ = ' + datum.tau", "as": "label" });
    let x = number_with(
        "synops",
        "synaptic operations per image",
        json!({ "scale": { "zero": false, "padding": 58 }, "axis": { "format": "~s", "tickCount": 5 } }),
    );
    let y = number_with(
        "robustness",
        "robustness",
        json!({ "scale": { "zero": false, "padding": 28 }, "axis": { "format": ".1~%", "tickCount": 6 } }),
    );
    let tooltip = json!([
        hint("tau", "τ", ""),
        hint("robustness", "robustness", ".1%"),
        hint("synops", "synaptic operations", ".4~s"),
        hint("energy", "joule per image (45 nm)", ".3~s"),
        hint("accuracy", "clean accuracy", ".1%"),
        hint("pareto", "on the front", "d")
    ]);
    // Standard errors, where there is more than one seed.
    let error = |field: &str, along: &str| {
        let end = |sign: &str| json!({ "calculate": format!("datum.{field} {sign} datum.{field}_error"), "as": format!("{field}{sign}") });
        json!({
            "transform": [{ "filter": format!("isValid(datum.{field}_error)") }, end("-"), end("+")],
            "mark": { "type": "rule", "strokeWidth": 1.5, "opacity": 0.8 },
            "encoding": {
                along: { "field": format!("{field}-"), "type": "quantitative" },
                format!("{along}2"): { "field": format!("{field}+") },
                "color": series.colour()
            }
        })
    };
    let mut spec = json!({
        "transform": [labels],
        "encoding": { "x": x, "y": y },
        "layer": [
            error("synops", "x"),
            error("robustness", "y"),
            {
                "transform": [{ "filter": "datum.pareto == 1" }],
                "mark": { "type": "line", "strokeDash": [5, 4], "color": "@rule", "strokeWidth": 1.5 },
                "encoding": { "order": { "field": "synops" } }
            },
            { "mark": { "type": "point", "filled": true, "size": 190, "opacity": 1 }, "encoding": { "color": series.colour(), "shape": chart::tau_shape(&taus), "tooltip": tooltip } }
        ]
    });
    if labels_fit(table)
        && let Some(layers) = spec["layer"].as_array_mut()
    {
        layers.push(json!({
            "mark": { "type": "text", "align": "left", "dx": 11, "dy": -12, "fontWeight": 600, "fontSize": 12 },
            "encoding": { "text": { "field": "label" }, "color": { "value": "@ink" } }
        }));
    }
    section.figures.push(
        Figure::new(
            "tradeoff-figure",
            "Robustness against synaptic operations",
            Html::fill("<p>Bars are standard errors over seeds.</p>{}", &[&chart::small_print(table)]),
            table.clone(),
            spec,
        )
        .with_series(series),
    );
    section.after = energy(study);
    section
}

/// Whether names beside the points would stay clear of each other, on a narrow screen too; the buttons name them anyway.
fn labels_fit(table: &Table) -> bool {
    let column = |name: &str| -> Vec<f64> {
        table.rows.iter().map(|row| table.cell(row, name).number().unwrap_or(0.0)).collect()
    };
    // The axes span the bars too.
    let span = |values: &[f64], errors: &[f64]| {
        let ends = values.iter().zip(errors).flat_map(|(x, error)| [x - error, x + error]);
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        high - low
    };
    let (x, y) = (column("synops"), column("robustness"));
    let (width, height) = (span(&x, &column("synops_error")), span(&y, &column("robustness_error")));
    (0..x.len())
        .all(|i| (0..i).all(|j| (x[i] - x[j]).abs() > 0.55 * width || (y[i] - y[j]).abs() > 0.12 * height))
}

/// Energy per image by hardware model, mean over seeds.
fn energy(study: &Study) -> Html {
    let taus = study.taus();
    // (model, operation, picojoule) -> sums and counts per tau, then the dense network's energy.
    type Row = (String, String, f64, Vec<(f64, usize)>, Option<f64>);
    let mut rows: Vec<Row> = Vec::new();
    for run in &study.runs {
        let Some(table) = run.tables.get("energy") else { continue };
        let Some(column) = taus.iter().position(|tau| *tau == run.tau) else { continue };
        for row in &table.rows {
            let text = |name| table.cell(row, name).text().unwrap_or_default().to_owned();
            let value = |name| table.cell(row, name).number();
            let (model, operation) = (text("model"), text("operation"));
            let Some(spiking) = value("spiking") else { continue };
            let found = rows.iter().position(|r| r.0 == model && r.1 == operation).unwrap_or_else(|| {
                let each = vec![(0.0, 0); taus.len()];
                rows.push((
                    model,
                    operation,
                    value("energy_per_operation").unwrap_or(0.0),
                    each,
                    value("dense"),
                ));
                rows.len() - 1
            });
            let sum = &mut rows[found].3[column];
            *sum = (sum.0 + spiking, sum.1 + 1);
        }
    }
    if rows.is_empty() {
        return Html::new();
    }
    let head = Html::join(
        taus.iter().map(|tau| Html::fill("<th class=\"number\">{}</th>", &[&palette::tau_label(tau)])),
    );
    let mut body = Html::new();
    for (model, operation, cost, sums, dense) in &rows {
        let cells = Html::join(sums.iter().zip(&taus).map(|(&(sum, count), tau)| {
            let text = if count == 0 { "–".to_owned() } else { joule(sum / count as f64) };
            Html::fill("<td class=\"number\" data-label=\"{}\">{}</td>", &[&palette::tau_label(tau), &text])
        }));
        body.add(
            "<tr><th scope=\"row\">{}<span class=\"range\"><br>{}, {} pJ</span></th>{}<td class=\"number\" data-label=\"Dense network, one pass\">{}</td></tr>\n",
            &[model, operation, &number::short(*cost), &cells, &dense.map_or_else(|| "–".to_owned(), joule)],
        );
    }
    Html::fill(
        "{}<div class=\"scroll\"><table class=\"stack\"><thead><tr>\
         <th>Model</th>{}<th class=\"number\">Dense network, one pass</th></tr></thead><tbody>\n{}</tbody></table></div>\n\
         <p class=\"muted small prose\">Operations times a published energy per operation, and nothing else: no memory, no static power. \
         Compare within a row.</p>\n",
        &[&chart::table_heading("Energy of one inference, by hardware model"), &head, &body],
    )
}

fn joule(x: f64) -> String {
    let (scale, unit) = match x {
        x if x >= 1e-3 => (1e3, "mJ"),
        x if x >= 1e-6 => (1e6, "µJ"),
        _ => (1e9, "nJ"),
    };
    format!("{} {unit}", number::short(x * scale))
}
