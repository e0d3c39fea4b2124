//! Why: where the gain under noise comes from. Leak acts in training, in the running hidden layers and in the
//! readout; the section shows what each contributes, in sentences that the lab made by rule, statements
//! judged like claims, and a few figures.

pub mod advice;
mod cells;
mod noise;
mod parts;
mod time;

use super::chart::{self, hint, number_with};
use super::records::Study;
use super::{claims, typeset};
use crate::figure::{Item, Series};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::tables::WhyRow;
use leaklab_record::{Row, Rows, Stimulus, Tau, Topic};
use serde_json::{Value, json};

/// The section on the cause; nothing where the study did not ask for it.
pub fn section(study: &Study) -> Option<Section> {
    let why = &study.compare.why;
    let sentences = why.sentences.as_ref()?;
    let mut section = Section::new(
        "why",
        "Why",
        "Where the gain comes from",
        Html::markup(
            "<p>The paper explains robustness by neurons that filter their input. But leak acts in three \
             places, and each can be switched alone: in <strong>training</strong>, which finds other weights; in \
             the <strong>hidden layers</strong> while the network runs; and in the <strong>readout</strong>, \
             which discounts early steps. The gain of each is its mean over all orders of switching the three \
             on (Shapley value), so the parts add up to the whole.</p>",
        ),
    );
    section.figures.extend(why.split.as_ref().map(parts::gain));
    section.figures.extend(why.cells.as_ref().and_then(cells::figure));
    section.figures.extend(why.price.as_ref().map(parts::price));
    section.figures.extend(why.colours.as_ref().map(noise::colours));
    section.figures.extend(why.response.as_ref().map(noise::response));
    section.figures.extend(why.time.as_ref().map(time::figure));
    section.figures.extend(why.layers.as_ref().map(parts::layers));
    let words = |row: &WhyRow| typeset::html(&row.sentence.replace(" %", "\u{a0}%"));
    let (first, rest): (Vec<&WhyRow>, Vec<&WhyRow>) =
        sentences.rows.iter().partition(|row| row.topic == Topic::Explanation);
    for row in first {
        section.text.add("<p><strong>In short.</strong> {}</p>", &[&words(row)]);
    }
    if !rest.is_empty() {
        let items = Html::join(rest.iter().map(|row| Html::fill("<li>{}</li>\n", &[&words(row)])));
        let count =
            if rest.len() == 1 { "a sentence".to_owned() } else { format!("{} sentences", rest.len()) };
        section.after.add(
            "<details class=\"more\"><summary>The same in {}, with every interval</summary>\n\
             <ul class=\"prose\">\n{}</ul></details>\n",
            &[&count, &items],
        );
    }
    if let Some(table) = &why.claims {
        let groups = claims::groups(&table.rows, &claims::WHY);
        section.after.push(&claims::list(&groups, |_| Html::new()));
    }
    section.after.add("<div class=\"prose muted small\">{}</div>\n", &[&chart::notes(&sentences.notes)]);
    Some(section)
}

/// One series for each time constant.
fn taus(column: &'static str, taus: impl Iterator<Item = Tau>) -> Series {
    let mut found: Vec<Tau> = chart::distinct(taus);
    found.sort();
    let looks = crate::palette::looks(found.iter().map(|&tau| (Some(tau), true)));
    let items = found.iter().zip(looks).map(|(tau, look)| Item {
        value: tau.to_string(),
        label: if tau.leaks() { format!("τ = {tau}") } else { "no leak".to_owned() },
        colour: look.colour,
        shown: true,
    });
    Series { column, items: items.collect() }
}

/// Whiskers and points of a change along one axis, whose properties and scale are given.
fn points(
    along: &str,
    [mean, low, high]: [&str; 3],
    title: &str,
    (axis, scale): (&Value, &Value),
    tooltip: Value,
) -> [Value; 3] {
    let channel = |field: &str| number_with(field, title, json!({ "axis": axis, "scale": scale }));
    let other = if along == "x" { "y" } else { "x" };
    let offset = format!("{other}Offset");
    [
        json!({
            "data": { "values": [{ "none": 0 }] },
            "mark": { "type": "rule", "color": "@rule", "strokeWidth": 1.5 },
            "encoding": { along: channel("none"), other: null, offset: null, "color": null }
        }),
        json!({
            "transform": [chart::valid(low)],
            "mark": { "type": "rule", "strokeWidth": 2 },
            "encoding": { along: channel(low), format!("{along}2"): { "field": high } }
        }),
        json!({
            "mark": { "type": "point", "filled": true, "size": 80, "opacity": 1 },
            "encoding": { along: channel(mean), "tooltip": tooltip }
        }),
    ]
}

/// A stimulus as a panel's title.
fn title(stimulus: Stimulus) -> String {
    chart::capital(&stimulus.words())
}

/// The stimuli of some rows, clean last.
fn stimuli(rows: impl Iterator<Item = Stimulus>) -> Vec<Stimulus> {
    let mut found = chart::distinct(rows);
    found.sort_by_key(|stimulus| *stimulus == Stimulus::Clean);
    found
}

/// Interval and mean in a tooltip.
fn told(mean: &str, low: &str, high: &str, seeds: &str) -> Vec<Value> {
    vec![
        hint(mean, "gain", "+.1%"),
        hint(low, "interval from", "+.1%"),
        hint(high, "to", "+.1%"),
        hint(seeds, "seeds", "d"),
    ]
}

fn caption<R: Row>(text: &'static str, table: &Rows<R>) -> Html {
    Html::fill("<p>{}</p>{}", &[&text.replace(" %", "\u{a0}%"), &chart::small_print(table)])
}
