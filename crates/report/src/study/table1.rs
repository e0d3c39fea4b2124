//! The paper's Table 1 with our numbers, and those of the paper if data set and network are the same.

use super::chart::{self, capital};
use super::condition::Condition;
use super::number;
use super::records::Study;
use crate::html::Html;
use crate::page::Section;
use leaklab_record::tables::Table1Row;
use leaklab_record::{Quantity, Unit};

/// The section with Table 1.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new("table1", "Table 1", "The trained networks in numbers", Html::new());
    let Some(table) = &study.compare.table1 else {
        section.after = chart::missing("Table 1 is", "compare/table1 table");
        return section;
    };
    let conditions = chart::present(study.shown(), table.rows.iter().map(|row| row.condition.as_str()));
    let mut body = Html::new();
    for (quantity, factor) in chart::distinct(table.rows.iter().map(|row| (&row.quantity, row.factor))) {
        let own = table.rows.iter().filter(|row| row.quantity == *quantity && row.factor == factor);
        let largest = own.filter_map(|row| Some((row.mean? * factor).abs())).fold(0.0, f64::max);
        let exponent = number::exponent(largest);
        let cells = Html::join(conditions.iter().map(|condition| {
            let row = table.rows.iter().find(|row| {
                row.quantity == *quantity && row.factor == factor && row.condition == condition.name
            });
            cell(condition, row, exponent)
        }));
        body.add("<tr><th scope=\"row\">{}</th>{}</tr>\n", &[&label(quantity, factor), &cells]);
    }
    let paper = if table.rows.iter().any(|row| row.paper.is_some()) {
        Html::markup("<p>Small print in a cell is the paper's value for the same data set and network.</p>")
    } else {
        Html::new()
    };
    section.after = Html::fill(
        "<div class=\"scroll\"><table \
         class=\"{}\"><thead><tr><th></th>{}</tr></thead><tbody>\n{}</tbody></table></div>\n<div \
         class=\"prose muted small\"><p>The value after ± is the standard error over seeds, as in the paper; \
         brackets and bars elsewhere on this page are 95&nbsp;% intervals.</p>{}{}{}</div>\n",
        &[
            &chart::stack_class(conditions.len()),
            &chart::head(&conditions),
            &body,
            &paper,
            &chart::unlearned(study),
            &chart::small_print(table),
        ],
    );
    section
}

/// A cell. All cells of a row have the same power of ten.
fn cell(condition: &Condition, row: Option<&Table1Row>, exponent: i32) -> Html {
    let value = row.and_then(|row| Some((row, row.mean?))).map_or_else(
        || Html::markup("–"),
        |(row, mean)| {
            let (mean, error) = (mean * row.factor, row.standard_error.map(|error| error * row.factor));
            Html::fill("{}{}", &[&with_error(row.unit, mean, error, exponent), &published(row)])
        },
    );
    let class = if condition.failed() { "number muted" } else { "number" };
    Html::fill(
        "<td class=\"{}\" data-label=\"{}\"><span>{}</span></td>",
        &[&class, &condition.label(), &value],
    )
}

fn with_error(unit: Unit, mean: f64, error: Option<f64>, exponent: i32) -> Html {
    let Some(error) = error else { return Html::text(&value(unit, mean)) };
    if unit == Unit::Fraction {
        let [mean, error] = [mean, error].map(|x| format!("{:.2}", 100.0 * x));
        return Html::fill("{} <span class=\"range\">± {}&nbsp;%</span>", &[&mean, &error]);
    }
    let number::WithError { mean, error, power } = number::with_error(mean, error, exponent);
    let both = Html::fill("{} <span class=\"range\">± {}</span>", &[&mean, &error]);
    if power.is_empty() {
        both
    } else {
        Html::fill("<span class=\"powered\">({})</span>{}", &[&both, &power])
    }
}

fn published(row: &Table1Row) -> Html {
    match row.paper {
        Some(paper) => Html::fill("<span class=\"paper\">paper {}</span>", &[&value(row.unit, paper)]),
        None => Html::new(),
    }
}

/// A value of Table 1 as the paper writes it.
fn value(unit: Unit, x: f64) -> String {
    if unit == Unit::Fraction { number::percent(x, 2) } else { number::plain(x) }
}

/// A row of Table 1 in words.
fn label(quantity: &Quantity, factor: f64) -> String {
    let words = capital(&quantity.words());
    if factor == 1.0 { words } else { format!("{words}, × {} (the paper's scale)", number::short(factor)) }
}
