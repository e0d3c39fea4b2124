//! Pieces of Vega-Lite and of captions that several figures share.

use super::condition::Condition;
use super::records::Study;
use super::typeset;
use crate::figure::{Item, LABEL, Series};
use crate::html::Html;
use crate::palette;
use leaklab_record::tables::ConditionRow;
use leaklab_record::{Rows, Stimulus};
use serde_json::{Value, json};

/// The column of the condition, in every table by condition.
pub const CONDITION: &str = ConditionRow::condition;

/// Each value once, in order of appearance.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// The rows that `keep` accepts, with the table's title, definition and notes.
pub fn only<R: Clone>(rows: &Rows<R>, keep: impl Fn(&R) -> bool) -> Rows<R> {
    let chosen = rows.rows.iter().filter(|row| keep(row)).cloned().collect();
    let (title, definition, notes) = (rows.title.clone(), rows.definition.clone(), rows.notes.clone());
    Rows { title, definition, notes, origin: rows.origin.clone(), rows: chosen }
}

/// The conditions of a list that occur among some names.
pub fn present<'a, 's>(
    conditions: Vec<&'a Condition>,
    names: impl Iterator<Item = &'s str>,
) -> Vec<&'a Condition> {
    let names = distinct(names);
    conditions.into_iter().filter(|condition| names.contains(&condition.name.as_str())).collect()
}

/// One series per condition.
pub fn series(conditions: &[&Condition]) -> Series {
    let items = conditions.iter().map(|condition| Item {
        value: condition.name.clone(),
        label: condition.label(),
        colour: condition.look.colour,
        shown: true,
    });
    Series { column: CONDITION, items: items.collect() }
}

/// The shape channel of conditions, which distinguishes them in addition to colour.
pub fn shape(conditions: &[&Condition]) -> Value {
    let names: Vec<&str> = conditions.iter().map(|condition| condition.name.as_str()).collect();
    let range: Vec<&str> = conditions.iter().map(|condition| condition.look.shape).collect();
    let scale = json!({ "domain": names, "range": range });
    json!({ "field": CONDITION, "type": "nominal", "legend": null, "scale": scale })
}

/// One series for each stimulus; those that `shown` accepts are switched on.
pub fn stimulus_series(
    column: &'static str,
    stimuli: &[Stimulus],
    shown: impl Fn(Stimulus) -> bool,
) -> Series {
    let items = stimuli.iter().enumerate().map(|(i, &stimulus)| Item {
        value: stimulus.to_string(),
        label: capital(&stimulus.words()),
        colour: palette::stimulus(i),
        shown: shown(stimulus),
    });
    Series { column, items: items.collect() }
}

/// One series for each of `layers`, in the colours that they have among all layers of the network.
pub fn layer_series(column: &'static str, layers: &[&str], all: &[String]) -> Series {
    let items = layers.iter().map(|&layer| Item {
        value: layer.to_owned(),
        label: layer.to_owned(),
        colour: palette::layer(all.iter().position(|name| name == layer).unwrap_or(all.len())),
        shown: true,
    });
    Series { column, items: items.collect() }
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

/// One scale for all panels of a figure. It includes every value and 0, so that no panel magnifies a small
/// effect.
pub fn common_scale(values: impl Iterator<Item = f64>) -> Value {
    let (low, high) = values.fold((0.0, 0.0), |(low, high): (f64, f64), x| (low.min(x), high.max(x)));
    if low == high { json!({}) } else { json!({ "domain": [low, high], "nice": true }) }
}

/// The axis of a difference of accuracies, in percentage points.
pub fn points_axis() -> Value {
    json!({ "labelExpr": "datum.value == 0 ? '0' : format(100 * datum.value, '+~g')", "tickCount": 5 })
}

/// An expression for the labels of an axis: the words for each value, line by line.
pub fn words(pairs: impl IntoIterator<Item = (String, Value)>) -> String {
    format!("{}[datum.value]", Value::Object(pairs.into_iter().collect()))
}

/// A name as an axis label, in lines that are short enough for a narrow screen.
pub fn short_lines(name: &str) -> Value {
    const LONGEST: usize = 14;
    let mut lines: Vec<String> = Vec::new();
    for word in name.split_whitespace() {
        let letters: Vec<char> = word.chars().collect();
        for piece in letters.chunks(LONGEST) {
            let piece: String = piece.iter().collect();
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + piece.chars().count() <= LONGEST => {
                    *line += &format!(" {piece}");
                }
                Some(_) | None => lines.push(piece),
            }
        }
    }
    json!(lines)
}

/// A filter on one value of a field.
pub fn equal(field: &str, value: &str) -> Value {
    json!({ "filter": { "field": field, "equal": value } })
}

/// A filter on rows that have a value.
pub fn valid(field: &str) -> Value {
    json!({ "filter": format!("isValid(datum.{field})") })
}

/// A line of a tooltip.
pub fn hint(field: &str, title: &str, format: &str) -> Value {
    if format.is_empty() {
        json!({ "field": field, "type": "nominal", "title": title })
    } else {
        json!({ "field": field, "type": "quantitative", "title": title, "format": format })
    }
}

/// The line of a tooltip that names the series.
pub fn who(title: &str) -> Value {
    hint(LABEL, title, "")
}

/// Lines with a tooltip: a point appears on the line at the value nearest to the pointer.
pub fn lines_with_hover(x: Value, y: Value, colour: Value, tooltip: Value) -> Value {
    json!({
        "encoding": { "x": x, "y": y, "color": colour },
        "layer": [
            { "mark": { "type": "line" } },
            {
                "params": [{ "name": "near", "select": {
                    "type": "point", "on": "pointermove", "nearest": true, "clear": "pointerout"
                } }],
                "mark": { "type": "point", "filled": true, "size": 64 },
                "encoding": {
                    "opacity": { "condition": { "param": "near", "empty": false, "value": 1 }, "value": 0 },
                    "tooltip": tooltip
                }
            }
        ]
    })
}

/// A notice that something is not available because a table is missing.
pub fn missing(what: &'static str, tables: &'static str) -> Html {
    notice(&format!("{what} not available yet: the study has no {tables}."))
}

/// Like [`missing`], for what an analysis of a run measures: the page of a single run gives the command.
pub fn unmeasured(study: &Study, what: &'static str, tables: &'static str) -> Html {
    if study.single {
        return Html::markup(
            "<div class=\"notice missing\"><p>Not measured yet: run <code>leaklab analyse RUN all</code>, \
             then <code>leaklab report RUN</code>.</p></div>\n",
        );
    }
    missing(what, tables)
}

/// A notice that explains why there is nothing to show.
pub fn notice(text: &str) -> Html {
    Html::fill("<div class=\"notice missing\"><p>{}</p></div>\n", &[&text])
}

/// Names as a phrase: `a`, `a and b`, `a, b and c`.
pub fn phrase(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A table's definition and notes, collapsed.
pub fn small_print<R>(rows: &Rows<R>) -> Html {
    let mut out = Html::new();
    if !rows.definition.is_empty() {
        out.add("<p>{}</p>", &[&typeset::html(&rows.definition)]);
    }
    out.push(&notes(&rows.notes));
    definition(&out)
}

/// A collapsed text; empty if the text is empty.
pub fn definition(text: &Html) -> Html {
    if text.is_empty() {
        return Html::new();
    }
    Html::fill("<details class=\"definition\"><summary>Definition</summary>{}</details>", &[text])
}

/// A table's notes as paragraphs.
pub fn notes(notes: &[String]) -> Html {
    Html::join(notes.iter().map(|note| Html::fill("<p>{}</p>", &[&typeset::html(note)])))
}

/// A sentence for a caption that names what is drawn in grey, and why.
pub fn unlearned(study: &Study) -> Html {
    failures(study, ", in grey,")
}

/// Like [`unlearned`], for a figure in which colour does not stand for the condition.
pub fn unlearned_panels(study: &Study) -> Html {
    failures(study, "")
}

fn failures(study: &Study, how: &'static str) -> Html {
    Html::join(study.shown().into_iter().filter(|condition| condition.failed()).map(|condition| {
        Html::fill(
            "<p><strong>{}</strong>{} did not learn and is not judged: {}</p>",
            &[&condition.title(), &how, &reason(condition)],
        )
    }))
}

/// Why a condition counts as not learned, as a complete sentence.
pub fn reason(condition: &Condition) -> Html {
    let text = condition.reason.trim_end_matches('.');
    let text = if text.is_empty() { "its accuracy stayed near chance" } else { text };
    Html::fill("{}.", &[&typeset::html(text)])
}

/// Class of a table with a column per condition. If there are many, an interval is placed below its value.
pub fn stack_class(columns: usize) -> &'static str {
    if columns > 4 { "stack tall" } else { "stack" }
}

/// Header cells, one per condition.
pub fn head(conditions: &[&Condition]) -> Html {
    Html::join(conditions.iter().map(|condition| {
        let label = condition.label();
        let class = if label.chars().count() > 14 { "number long" } else { "number" };
        Html::fill(
            "<th class=\"{}\"><span class=\"swatch\" data-colour=\"{}\"></span>{}</th>",
            &[&class, &condition.look.colour, &label],
        )
    }))
}

/// A heading above a table, because a narrow screen does not show the table's header.
pub fn table_heading(text: &str) -> Html {
    Html::fill("<h3 class=\"table-heading\">{}</h3>\n", &[&text])
}

/// A word with a capital first letter.
pub fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
