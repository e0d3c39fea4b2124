//! Why: where the gain under noise comes from. Leak acts in training, in the running hidden layers and in the
//! readout; the section shows what each contributes, in sentences that the lab made by rule, statements
//! judged like claims, and a few figures.

use super::chart::{self, hint, number_with};
use super::records::Study;
use super::{claims, typeset};
use crate::figure::{Figure, Item, Panel, Series};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::tables::{ColourRow, LayerLeakRow, SplitRow, TimeRow};
use leaklab_record::{Row, Rows, Stimulus, Tau, TimeWindow};
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
    section.figures.extend(split(why.split.as_ref()));
    section.figures.extend(colours(why.colours.as_ref()));
    section.figures.extend(time(why.time.as_ref()));
    section.figures.extend(layers(why.layers.as_ref()));
    let items =
        Html::join(sentences.rows.iter().map(|row| {
            Html::fill("<li>{}</li>\n", &[&typeset::html(&row.sentence.replace(" %", "\u{a0}%"))])
        }));
    section.after.add("<ul class=\"prose\">\n{}</ul>\n", &[&items]);
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

/// Whiskers and points of a value in percentage points along one axis.
fn points(along: &str, mean: &str, low: &str, high: &str, title: &str, tooltip: Value) -> [Value; 3] {
    let channel = |field: &str| number_with(field, title, json!({ "axis": chart::points_axis() }));
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
    Html::fill("<p>{}</p>{}", &[&text, &chart::small_print(table)])
}

fn split(table: Option<&Rows<SplitRow>>) -> Option<Figure> {
    use SplitRow as R;
    let table = table?;
    let series = taus(R::tau, table.rows.iter().map(|row| row.tau));
    let names = [
        ("total", "all together"),
        ("readout", "readout"),
        ("hidden", "hidden layers"),
        ("training", "training"),
    ];
    let labels = chart::words(names.iter().map(|(part, words)| ((*part).to_owned(), json!([words]))));
    let order: Vec<&str> = names.iter().map(|(part, _)| *part).collect();
    let panels = stimuli(table.rows.iter().map(|row| row.stimulus)).into_iter().map(|stimulus| {
        let mut tooltip = vec![chart::who("leak"), hint(R::part, "part", "")];
        tooltip.extend(told(R::mean, R::low, R::high, R::seeds));
        let spec = json!({
            "transform": [chart::equal(R::stimulus, &stimulus.to_string())],
            "encoding": {
                "y": {
                    "field": R::part, "type": "nominal", "sort": order, "title": null,
                    "axis": { "labelExpr": labels, "domain": false, "ticks": false, "grid": false }
                },
                "yOffset": { "field": R::tau, "type": "nominal", "sort": series.values() },
                "color": series.colour()
            },
            "layer": points("x", R::mean, R::low, R::high, "gain in accuracy (percentage points)", tooltip.into())
        });
        Panel::new(&title(stimulus), spec).with_height(170)
    });
    let panels = panels.collect();
    let text = "What leak gains, all together and by the place where it acts. The three parts add up to the whole. Bars are \
                95 % intervals over seeds and test images.";
    Some(
        Figure::new("why-split", "The gain, split by where leak acts", caption(text, table), table, panels)
            .with_series(series)
            .with_columns(2),
    )
}

fn colours(table: Option<&Rows<ColourRow>>) -> Option<Figure> {
    use ColourRow as R;
    let table = table?;
    let colours: Vec<String> = chart::distinct(table.rows.iter().map(|row| row.colour.to_string()));
    let places = [
        ("hidden", "leak in the hidden layers", "@layer4"),
        ("readout", "leak in the readout", "@noise3"),
        ("control", "no leak, first steps skipped (control)", "@clean"),
    ];
    let items = places.iter().map(|&(value, label, colour)| Item {
        value: value.to_owned(),
        label: label.to_owned(),
        colour,
        shown: true,
    });
    let series = Series { column: R::place, items: items.collect() };
    let shown = |row: &ColourRow| places.iter().any(|place| place.0 == row.place.to_string());
    let data = chart::only(table, shown);
    let mut taus = chart::distinct(data.rows.iter().map(|row| row.tau));
    taus.sort();
    let panels = taus.into_iter().map(|tau| {
        let mut tooltip = vec![chart::who("leak"), hint(R::colour, "colour", ""), hint(R::sigma, "sigma", ".3~g")];
        tooltip.extend(told(R::gain, R::low, R::high, R::seeds));
        let spec = json!({
            "transform": [chart::equal(R::tau, &tau.to_string())],
            "encoding": {
                "x": {
                    "field": R::colour, "type": "nominal", "sort": colours, "title": "colour of the noise (correlation time in steps)",
                    "axis": { "labelAngle": 0, "labelOverlap": true }
                },
                "xOffset": { "field": R::place, "type": "nominal", "sort": series.values() },
                "color": series.colour()
            },
            "layer": points("y", R::gain, R::low, R::high, "gain in accuracy (points)", tooltip.into())
        });
        Panel::new(&format!("τ = {tau}"), spec).with_height(220)
    });
    let panels = panels.collect();
    let text = "Equally hard Gaussian noises of different colour. A filter in the hidden layers should help most against fast \
                noise (blue, white) and not at all against frozen noise. The control has no leak anywhere; its readout \
                skips the first 20 % of steps.";
    Some(
        Figure::new(
            "why-colours",
            "The gain against the colour of the noise",
            caption(text, table),
            &data,
            panels,
        )
        .with_series(series)
        .with_columns(2),
    )
}

fn time(table: Option<&Rows<TimeRow>>) -> Option<Figure> {
    use TimeRow as R;
    let table = table?;
    let data = chart::only(table, |row| row.window == TimeWindow::UpTo);
    let series = taus(R::tau, data.rows.iter().map(|row| row.tau));
    let panels = stimuli(data.rows.iter().map(|row| row.stimulus)).into_iter().map(|stimulus| {
        let mut spec = chart::lines_with_hover(
            number_with(R::last, "steps that count", json!({ "scale": { "nice": false } })),
            number_with(
                R::accuracy,
                "accuracy",
                json!({ "axis": { "format": ".0%" }, "scale": { "domain": [0, 1] } }),
            ),
            series.colour(),
            json!([
                chart::who("leak"),
                hint(R::last, "up to step", "d"),
                hint(R::accuracy, "accuracy", ".1%")
            ]),
        );
        spec["transform"] = json!([chart::equal(R::stimulus, &stimulus.to_string())]);
        Panel::new(&title(stimulus), spec).with_height(190)
    });
    let panels = panels.collect();
    let text = "Accuracy from the steps up to a moment, read by their plain sum.";
    Some(
        Figure::new("why-time", "Accuracy as time goes on", caption(text, table), &data, panels)
            .with_series(series)
            .with_columns(2),
    )
}

fn layers(table: Option<&Rows<LayerLeakRow>>) -> Option<Figure> {
    use LayerLeakRow as R;
    let table = table?;
    let series = taus(R::tau, table.rows.iter().map(|row| row.tau));
    let noisy = stimuli(table.rows.iter().map(|row| row.stimulus)).into_iter();
    let panels = noisy.filter(|stimulus| *stimulus != Stimulus::Clean).map(|stimulus| {
        let mut tooltip = vec![chart::who("leak"), hint(R::layer, "layer", "")];
        tooltip.extend(told(R::gain, R::low, R::high, R::seeds));
        let spec = json!({
            "transform": [chart::equal(R::stimulus, &stimulus.to_string()), chart::equal(R::choice, "only")],
            "encoding": {
                "x": { "field": R::layer, "type": "nominal", "sort": null, "title": null, "axis": { "labelAngle": 0 } },
                "xOffset": { "field": R::tau, "type": "nominal", "sort": series.values() },
                "color": series.colour()
            },
            "layer": points("y", R::gain, R::low, R::high, "gain in accuracy (points)", tooltip.into())
        });
        Panel::new(&title(stimulus), spec).with_height(190)
    });
    let panels = panels.collect();
    let text =
        "Weights trained without leak, run with leak in one hidden layer only and none in the readout.";
    Some(
        Figure::new("why-layers", "Leak in one hidden layer alone", caption(text, table), table, panels)
            .with_series(series)
            .with_columns(2),
    )
}
