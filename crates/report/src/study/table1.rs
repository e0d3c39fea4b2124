//! The paper's Table 1 with our numbers, and the paper's beside them where data set and network are its own.

use super::number;
use super::records::Study;
use super::{chart, records};
use crate::html::Html;
use crate::page::Section;
use crate::palette;
use leaklab_record::{Cell, Table};

/// The section with Table 1.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new("table1", "Table 1", "The trained networks in numbers", Html::new());
    let Some(table) = study.compare.get("table1").filter(|table| !table.rows.is_empty()) else {
        section.after = chart::missing("Table 1 is", "compare/table1 table");
        return section;
    };
    let mut taus = chart::distinct(table, "tau");
    taus.sort_by(|a, b| records::order(a).total_cmp(&records::order(b)));
    let published = table.rows.iter().any(|row| table.cell(row, "paper").number().is_some());
    let head = Html::join(taus.iter().enumerate().map(|(i, tau)| {
        Html::fill(
            "<th class=\"number\"><span class=\"swatch\" data-colour=\"{}\"></span>{}</th>",
            &[&palette::tau(tau, i), &palette::tau_label(tau)],
        )
    }));
    let mut body = Html::new();
    for quantity in chart::distinct(table, "quantity") {
        let cells = Html::join(taus.iter().map(|tau| {
            let row = table.rows.iter().find(|row| {
                table.cell(row, "quantity").text() == Some(&quantity)
                    && table.cell(row, "tau").text() == Some(tau)
            });
            row.map_or_else(
                || Html::markup("<td class=\"number\">–</td>"),
                |row| cell(table, row, &quantity, tau),
            )
        }));
        body.add("<tr><th scope=\"row\">{}</th>{}</tr>\n", &[&label(&quantity), &cells]);
    }
    let note = if published {
        Html::markup("<p>Small print in a cell is the paper's value for the same data set and network.</p>")
    } else {
        Html::new()
    };
    section.after = Html::fill(
        "<div class=\"scroll\"><table class=\"{}\"><thead><tr><th></th>{}</tr></thead><tbody>\n{}</tbody></table></div>\n\
         <div class=\"prose muted small\">{}{}</div>\n",
        &[&chart::stack_class(&taus), &head, &body, &note, &chart::small_print(table)],
    );
    section
}

fn cell(table: &Table, row: &[Cell], quantity: &str, tau: &str) -> Html {
    let percent = matches!(quantity, "accuracy" | "spike_rate");
    let range = |text: &str| Html::fill(" <span class=\"range\">± {}</span>", &[&text]);
    let (mean, error) = match (table.cell(row, "mean").number(), table.cell(row, "standard_error").number()) {
        (Some(mean), Some(error)) if percent => {
            (format!("{:.2}", 100.0 * mean), range(&format!("{:.2} %", 100.0 * error)))
        }
        (Some(mean), Some(error)) => {
            let (mean, error) = number::with_error(mean, error);
            (mean, range(&error))
        }
        (Some(mean), None) => (value(quantity, mean), Html::new()),
        (None, _) => ("–".to_owned(), Html::new()),
    };
    let paper = match table.cell(row, "paper").number() {
        Some(paper) => Html::fill("<span class=\"paper\">paper {}</span>", &[&value(quantity, paper)]),
        None => Html::new(),
    };
    Html::fill(
        "<td class=\"number\" data-label=\"{}\"><span>{}{}{}</span></td>",
        &[&palette::tau_label(tau), &mean, &error, &paper],
    )
}

/// A value of Table 1 as the paper writes it.
pub fn value(quantity: &str, x: f64) -> String {
    match quantity {
        "accuracy" | "spike_rate" => number::percent(x, 2),
        _ => number::plain(x),
    }
}

/// A quantity of Table 1 in words.
pub fn label(quantity: &str) -> String {
    match quantity {
        "accuracy" => "Accuracy, clean",
        "test_sse" => "SSE, test",
        "test_sse_times_32" => "SSE, test × 32 (the paper's scale)",
        "train_sse" => "SSE, training",
        "train_sse_times_32" => "SSE, training × 32 (the paper's scale)",
        "spike_rate" => "Spikes per neuron and step",
        "synops" => "Synaptic operations per image",
        other => other,
    }
    .to_owned()
}
