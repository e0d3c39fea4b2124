//! The first screen: the answer in plain words, taken from the comparison; the figure that shows it; and what
//! was found for each claim.

use super::chart::{self, hint, number_with};
use super::claims;
use super::number;
use super::records::Study;
use super::typeset;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::{ClaimId, NoiseKey, Quantity, Rows, noun};
use serde_json::json;

/// The sentence below the heading.
pub fn lead(study: &Study) -> Html {
    if study.single {
        let of = study.conditions.first().map(|condition| condition.title()).unwrap_or_default();
        return Html::fill(
            "<p class=\"first\">This is the page of a single run ({}, seed {}). It shows what this network \
             does; to judge the effect of leak, run a study with several conditions and seeds.</p>",
            &[&of, &study.runs.first().map(|run| run.seed).unwrap_or(0).to_string()],
        );
    }
    let mut out = Html::new();
    match study.compare.answer.as_ref().and_then(|answer| answer.rows.first()) {
        Some(answer) => out.add("<p class=\"first\">{}</p>", &[&typeset::html(&answer.sentence)]),
        None if study.planned == 0 => out.push(&Html::markup(
            "<p class=\"first\">This study has only begun, so there is no answer yet: no run is trained.</p>",
        )),
        None => out.add(
            "<p class=\"first\">This study is not finished, so there is no answer yet: {}. The results so \
             far are below.</p>",
            &[&study.progress()],
        ),
    }
    if study.compare.answer.is_some() && study.trained() < study.planned {
        out.add("<div class=\"notice missing\"><p>Preliminary: {}.</p></div>", &[&study.progress()]);
    }
    if let Some(problem) = study.comparison_problem() {
        out.add("<div class=\"notice missing\"><p>{}</p></div>", &[&problem]);
    }
    out
}

/// The rest of the first screen.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new("answer", "Answer", "", Html::new());
    let Some(claims) = &study.compare.claims else {
        section.after = chart::missing("The answer is", "compare/claims table");
        return section;
    };
    section.figures.extend(gains(study));
    let failed: Vec<String> =
        study.shown().iter().filter(|c| c.failed()).map(|condition| condition.title()).collect();
    section.after.push(&claims::findings(&claims::groups(&claims.rows, &claims::PAPER)));
    if !failed.is_empty() {
        section.after.add(
            "<p class=\"muted small prose\">Excluded from the answer, from claims 1 to 6 and from the \
             trade-off, because not every network learned: {}. {} in claim 7 only.</p>",
            &[&failed.join(", "), &if failed.len() == 1 { "It counts" } else { "They count" }],
        );
    }
    section.after.add(
        "<p class=\"muted small prose\">This applies only to the data set {} and the network \
         <code>{}</code>. {}The sentences follow from the <a href=\"#claims\">claims</a> by fixed rules. \
         “Not decided” means that the evidence allows both answers.</p>\n",
        &[&study.setting("dataset"), &study.setting("network"), &proportion(study).unwrap_or_default()],
    );
    section
}

/// The time constants in proportion to the number of time steps, beside those of the paper: 0.3 and 1.
fn proportion(study: &Study) -> Option<String> {
    let steps = study.setting("time_steps");
    let count: f64 = steps.parse().ok()?;
    // Where other settings differ as well, so may the number of steps.
    let taus: Option<Vec<_>> = study.shown().into_iter().map(|condition| condition.tau).collect();
    let two_digits = |x: f64| {
        let unit = 10f64.powi(x.log10().floor() as i32 - 1);
        number::short((x / unit).round() * unit)
    };
    let leaky = taus?.into_iter().filter(|tau| tau.leaks());
    let shares: Vec<String> = leaky.map(|tau| two_digits(tau.steps() / count)).collect();
    let (ours, paper) = (noun::list(&shares), "30 and 100 with 100 steps");
    let compared = match shares[..] {
        [] => return None,
        _ if ours == "0.3 and 1" && steps == "100" => ", as in the paper".to_owned(),
        _ if ours == "0.3 and 1" => format!(", as in the paper ({paper})"),
        _ => format!("; in the paper it is 0.3 and 1 times that number ({paper})"),
    };
    Some(format!("The time constant τ is {ours} times the number of time steps ({steps}){compared}. "))
}

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
fn gains(study: &Study) -> Option<Figure> {
    let (baseline, contrasts) = (study.learned_baseline()?, study.compare.contrasts.as_ref()?);
    let conditions: Vec<_> =
        study.learned().into_iter().filter(|condition| condition.name != baseline.name).collect();
    let noises =
        chart::distinct(contrasts.rows.iter().filter_map(|row| {
            if let Quantity::Robustness(noise) = row.quantity { Some(noise) } else { None }
        }));
    let mut data =
        Rows::new("Gain under noise", "Mean accuracy over severities 1 to 8, minus the baseline's.");
    for &noise in &noises {
        for condition in &conditions {
            let quantity = Quantity::Robustness(noise);
            if let Some(row) = study.compare.contrast(&quantity, &condition.name, &baseline.name) {
                let (gain, low, high, pairs) = (row.mean, row.low, row.high, row.pairs);
                let condition = condition.name.clone();
                data.rows.push(GainRow { noise, condition, gain, low, high, pairs });
            }
        }
    }
    let conditions = chart::present(conditions, data.rows.iter().map(|row| row.condition.as_str()));
    if conditions.is_empty() {
        return None;
    }
    let smallest = study.compare.claims.as_ref().and_then(|claims| {
        claims.rows.iter().find(|row| row.claim == ClaimId::Robustness).map(|row| row.smallest)
    });
    let series = chart::series(&conditions);
    let names = chart::words(noises.iter().map(|noise| {
        let words = chart::capital(&noise.words());
        let lines: Vec<&str> = words.split_inclusive(" on ").collect();
        let lines = match lines[..] {
            [noise, place] => vec![noise.trim_end_matches(" on ").to_owned(), format!("on {place}")],
            _ => vec![words.clone()],
        };
        (noise.to_string(), json!(lines))
    }));
    let title = format!("accuracy minus that of {} (percentage points)", baseline.title());
    let x = |field: &str| number_with(field, &title, json!({ "axis": chart::points_axis() }));
    let mut layers = Vec::new();
    if let Some(smallest) = smallest {
        layers.push(json!({
            "data": { "values": [{ "from": -smallest, "to": smallest }] },
            "mark": { "type": "rect", "color": "@band" },
            "encoding": { "x": x("from"), "x2": { "field": "to" }, "y": null, "yOffset": null, "color": null }
        }));
    }
    layers.extend([
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
            "encoding": { "x": x(GainRow::gain), "shape": chart::shape(&conditions), "tooltip": [
                chart::who("condition"), hint(GainRow::gain, "gain", "+.1%"),
                hint(GainRow::low, "interval from", "+.1%"),
                hint(GainRow::high, "to", "+.1%"), hint(GainRow::pairs, "pairs of runs", "d")
            ] }
        }),
    ]);
    let spec = json!({
        "encoding": {
            "y": {
                "field": GainRow::noise, "type": "nominal", "sort": null, "title": null,
                "axis": {
                    "labelExpr": names, "labelOffset": -6, "domain": false, "ticks": false, "grid": false
                },
                "scale": { "paddingInner": 0.25, "paddingOuter": 0.15 }
            },
            "yOffset": { "field": GainRow::condition, "type": "nominal", "sort": series.values() },
            "color": series.colour()
        },
        "layer": layers
    });
    let height = noises.len() * (18 + 13 * conditions.len());
    let band = smallest.map_or_else(Html::new, |smallest| {
        let points = super::number::short(100.0 * smallest);
        let unit = if points == "1" { "percentage point" } else { "percentage points" };
        Html::fill(
            " Within the shaded band, ±{} {}, a difference is too small to be of interest.",
            &[&points, &unit],
        )
    });
    let panel = Panel::new("", spec).with_height((height as u32).max(110));
    Some(
        Figure::new(
            "gain",
            &format!("Accuracy under noise, compared with {}", baseline.title()),
            Html::fill(
                "<p>Mean accuracy over severities 1 to 8, minus that of {} with the same seed. A condition \
                 to the right of the line is more robust. Bars are 95&nbsp;% intervals, here and in every \
                 figure.{}</p>",
                &[&baseline.title(), &band],
            ),
            &data,
            vec![panel],
        )
        .with_series(series),
    )
}
