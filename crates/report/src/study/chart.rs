//! Pieces of Vega-Lite that several figures share.

use super::records::order;
use crate::figure::{Item, Series};
use crate::html::Html;
use crate::palette;
use leaklab_record::{Cell, Table};
use serde_json::{Value, json};

/// The distinct words of a column, in order of appearance.
pub fn distinct(table: &Table, column: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for row in &table.rows {
        if let Some(text) = table.cell(row, column).text()
            && !found.iter().any(|t| t == text)
        {
            found.push(text.to_owned());
        }
    }
    found
}

/// The membrane time constants of a table, most leak first.
pub fn taus(table: &Table) -> Vec<String> {
    let mut taus = distinct(table, "tau");
    taus.sort_by(|a, b| order(a).total_cmp(&order(b)));
    taus
}

/// One series per membrane time constant.
pub fn tau_series(taus: &[String]) -> Series {
    let items = taus.iter().enumerate().map(|(i, tau)| Item {
        value: tau.clone(),
        label: palette::tau_label(tau),
        colour: palette::tau(tau, i).to_owned(),
        shown: true,
    });
    Series { column: "tau".to_owned(), items: items.collect() }
}

/// Series of any column, in the palette's order.
pub fn word_series(column: &str, values: &[String], label: impl Fn(&str) -> String) -> Series {
    const ORDER: [&str; 7] = ["@slate", "@amber", "@purple", "@sky", "@brown", "@blue", "@green"];
    let items = values.iter().enumerate().map(|(i, value)| Item {
        value: value.clone(),
        label: label(value),
        colour: ORDER[i % ORDER.len()].to_owned(),
        shown: true,
    });
    Series { column: column.to_owned(), items: items.collect() }
}

/// The shape channel of membrane time constants, a second sign beside the colour.
pub fn tau_shape(taus: &[String]) -> Value {
    let range: Vec<&str> = taus.iter().enumerate().map(|(i, tau)| palette::shape(tau, i)).collect();
    json!({ "field": "tau", "type": "nominal", "legend": null, "scale": { "domain": taus, "range": range } })
}

/// A quantitative channel.
pub fn number(field: &str, title: &str) -> Value {
    json!({ "field": field, "type": "quantitative", "title": title })
}

/// A quantitative channel with further properties.
pub fn number_with(field: &str, title: &str, more: Value) -> Value {
    let mut channel = number(field, title);
    if let (Value::Object(channel), Value::Object(more)) = (&mut channel, more) {
        channel.extend(more);
    }
    channel
}

/// A line of a tooltip.
pub fn hint(field: &str, title: &str, format: &str) -> Value {
    if format.is_empty() {
        json!({ "field": field, "type": "nominal", "title": title })
    } else {
        json!({ "field": field, "type": "quantitative", "title": title, "format": format })
    }
}

/// Lines that tell their values where the pointer is nearest: the line, and a point that shows when met.
pub fn lines_with_hover(x: Value, y: Value, colour: Value, tooltip: Value) -> Value {
    json!({
        "encoding": { "x": x, "y": y, "color": colour },
        "layer": [
            { "mark": { "type": "line" } },
            {
                "params": [{ "name": "near", "select": { "type": "point", "on": "pointermove", "nearest": true, "clear": "pointerout" } }],
                "mark": { "type": "point", "filled": true, "size": 64 },
                "encoding": {
                    "opacity": { "condition": { "param": "near", "empty": false, "value": 1 }, "value": 0 },
                    "tooltip": tooltip
                }
            }
        ]
    })
}

/// Cells of a row by column name.
pub fn cells(table: &Table, row: &[Cell], columns: &[&str]) -> Vec<Cell> {
    columns.iter().map(|column| table.cell(row, column).clone()).collect()
}

/// Where a table is missing, what the reader may expect.
pub fn missing(what: &'static str, tables: &'static str) -> Html {
    Html::fill(
        "<div class=\"notice missing\"><p>{} not there yet: the study has no {}.</p></div>\n",
        &[&what, &tables],
    )
}

/// A table's definition and notes as small print.
pub fn small_print(table: &Table) -> Html {
    let mut out = Html::new();
    if !table.definition.is_empty() {
        out.add("<p>{}</p>", &[&table.definition]);
    }
    out.push(&notes(table));
    out
}

/// A table's notes as small print.
pub fn notes(table: &Table) -> Html {
    let mut out = Html::new();
    for note in &table.notes {
        out.add("<p>{}</p>", &[note]);
    }
    out
}

/// Class of a table with a column per tau: where there are many, an interval stands below its value.
pub fn stack_class(taus: &[String]) -> &'static str {
    if taus.len() > 4 { "stack tall" } else { "stack" }
}

/// A table's heading above it: on a narrow screen its head is not shown.
pub fn table_heading(text: &str) -> Html {
    Html::fill("<h3 class=\"table-heading\">{}</h3>\n", &[&text])
}

/// A condition in words: `gaussian/pixel/5` is `Gaussian noise on pixels, severity 5`.
pub fn condition_label(condition: &str) -> String {
    let parts: Vec<&str> = condition.split('/').collect();
    match parts[..] {
        [noise, scenario, severity] => {
            format!("{} noise {}, severity {severity}", capital(noise), place_label(scenario))
        }
        _ => condition.to_owned(),
    }
}

/// A noise within a sentence: `gaussian/pixel` is `Gaussian on pixels`.
pub fn noise_label(noise: &str) -> String {
    let Some((noise, scenario)) = noise.split_once('/') else { return noise.to_owned() };
    let noise = if noise == "gaussian" { "Gaussian" } else { noise };
    format!("{noise} {}", place_label(scenario))
}

fn place_label(scenario: &str) -> &str {
    match scenario {
        "pixel" => "on pixels",
        "channel" => "on spikes",
        other => other,
    }
}

/// A word with a capital.
pub fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// A scenario in words.
pub fn scenario_label(scenario: &str) -> &str {
    match scenario {
        "pixel" => "scenario 1 (pixel)",
        "channel" => "scenario 2 (channel)",
        other => other,
    }
}
