//! The first figure: the gain in accuracy under each noise, compared with the baseline. It is about leak:
//! conditions that differ from the baseline in other settings as well are omitted, and the caption names
//! them.

use super::chart::{self, hint, number_with};
use super::condition::Condition;
use super::number;
use super::records::Study;
use super::typeset;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use leaklab_record::{ClaimId, NoiseKey, Quantity, Rows};
use serde_json::{Value, json};

leaklab_record::row! {
    /// Gain of a condition under one noise.
    pub struct GainRow in "gain" {
        /// Noise and where it enters.
        noise: NoiseKey [""],
        /// Condition.
        condition: String [""],
        /// Mean accuracy over severities 1 to 8, minus that of the baseline, mean over pairs of runs.
        gain: f64 ["fraction"],
        /// Lower end of its 95 % interval; empty with one pair.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Number of pairs of runs with the same seed.
        pairs: u64 [""],
    }
}

/// Accuracy under noise minus that of the baseline, for each noise.
pub fn figure(study: &Study) -> Option<Figure> {
    let baseline = study.learned_baseline()?;
    let compared = study.learned().into_iter().filter(|condition| condition.name != baseline.name);
    let (leaky, others): (Vec<_>, Vec<_>) =
        compared.partition(|condition| condition.beyond_leak().is_empty());
    let data = gains(study, baseline, &leaky);
    let conditions = chart::present(leaky, data.rows.iter().map(|row| row.condition.as_str()));
    if conditions.is_empty() {
        return None;
    }
    let noises = chart::distinct(data.rows.iter().map(|row| row.noise));
    let series = chart::series(&conditions);
    let smallest = smallest(study);
    let title = format!("accuracy minus that of {} (percentage points)", baseline.title());
    let spec = json!({
        "encoding": {
            "y": {
                "field": GainRow::noise, "type": "nominal", "sort": null, "title": null,
                "axis": {
                    "labelExpr": names(&noises), "labelOffset": -6, "domain": false, "ticks": false,
                    "grid": false
                },
                "scale": { "paddingInner": 0.25, "paddingOuter": 0.15 }
            },
            "yOffset": { "field": GainRow::condition, "type": "nominal", "sort": series.values() },
            "color": series.colour()
        },
        "layer": layers(&title, &conditions, smallest)
    });
    let height = noises.len() * (18 + 13 * conditions.len());
    let panel = Panel::new("", spec).with_height((height as u32).max(110));
    let heading = format!("Accuracy under noise, compared with {}", baseline.title());
    let caption = caption(baseline, smallest, &others);
    Some(Figure::new("gain", &heading, caption, &data, vec![panel]).with_series(series))
}

/// The gains of some conditions under every noise.
fn gains(study: &Study, baseline: &Condition, conditions: &[&Condition]) -> Rows<GainRow> {
    let mut data =
        Rows::new("Gain under noise", "Mean accuracy over severities 1 to 8, minus the baseline's.");
    let contrasts = study.compare.contrasts.iter().flat_map(|table| &table.rows);
    let noises =
        chart::distinct(contrasts.filter_map(|row| {
            if let Quantity::Robustness(noise) = row.quantity { Some(noise) } else { None }
        }));
    for noise in noises {
        for condition in conditions {
            let quantity = Quantity::Robustness(noise);
            if let Some(row) = study.compare.contrast(&quantity, &condition.name, &baseline.name) {
                let (gain, low, high, pairs) = (row.mean, row.low, row.high, row.pairs);
                let condition = condition.name.clone();
                data.rows.push(GainRow { noise, condition, gain, low, high, pairs });
            }
        }
    }
    data
}

/// The smallest effect of interest, if robustness was judged.
fn smallest(study: &Study) -> Option<f64> {
    let claims = study.compare.claims.as_ref()?;
    claims.rows.iter().find(|row| row.claim == ClaimId::Robustness).map(|row| row.smallest)
}

/// The labels of the noises, in two lines.
fn names(noises: &[NoiseKey]) -> String {
    chart::words(noises.iter().map(|noise| {
        let words = chart::capital(&noise.words());
        let lines = match words.split_once(" on ") {
            Some((noise, place)) => vec![noise.to_owned(), format!("on {place}")],
            None => vec![words],
        };
        (noise.to_string(), json!(lines))
    }))
}

/// The band of effects that are too small, the line of no effect, the intervals and the gains.
fn layers(title: &str, conditions: &[&Condition], smallest: Option<f64>) -> Vec<Value> {
    let x = |field: &str| number_with(field, title, json!({ "axis": chart::points_axis() }));
    let band = smallest.map(|smallest| {
        json!({
            "data": { "values": [{ "from": -smallest, "to": smallest }] },
            "mark": { "type": "rect", "color": "@band" },
            "encoding": { "x": x("from"), "x2": { "field": "to" }, "y": null, "yOffset": null, "color": null }
        })
    });
    let marks = [
        json!({
            "data": { "values": [{ "none": 0 }] },
            "mark": { "type": "rule", "color": "@rule", "strokeWidth": 1.5 },
            "encoding": { "x": x("none"), "y": null, "yOffset": null, "color": null }
        }),
        json!({
            "transform": [chart::valid(GainRow::low)],
            "mark": { "type": "rule", "strokeWidth": 2 },
            "encoding": { "x": x(GainRow::low), "x2": { "field": GainRow::high } }
        }),
        json!({
            "mark": { "type": "point", "filled": true, "size": 80, "opacity": 1 },
            "encoding": { "x": x(GainRow::gain), "shape": chart::shape(conditions), "tooltip": [
                chart::who("condition"), hint(GainRow::gain, "gain", "+.1%"),
                hint(GainRow::low, "interval from", "+.1%"),
                hint(GainRow::high, "to", "+.1%"), hint(GainRow::pairs, "pairs of runs", "d")
            ] }
        }),
    ];
    band.into_iter().chain(marks).collect()
}

/// What is drawn, and which conditions are not.
fn caption(baseline: &Condition, smallest: Option<f64>, others: &[&Condition]) -> Html {
    let band = smallest.map_or_else(Html::new, |smallest| {
        let points = number::short(100.0 * smallest);
        let unit = if points == "1" { "percentage point" } else { "percentage points" };
        Html::fill(
            " Within the shaded band, ±{} {}, a difference is too small to be of interest.",
            &[&points, &unit],
        )
    });
    let omitted = Html::join(others.iter().map(|condition| {
        Html::fill(
            "<p><strong>{}</strong> is not shown, because it differs in more than leak: {}.</p>",
            &[&condition.title(), &typeset::html(&chart::phrase(&condition.beyond_leak()))],
        )
    }));
    Html::fill(
        "<p>Mean accuracy over severities 1 to 8, minus that of {} with the same seed. A condition to the \
         right of the line is more robust. Bars are 95&nbsp;% intervals, here and in every figure.{}</p>{}",
        &[&baseline.title(), &band, &omitted],
    )
}
