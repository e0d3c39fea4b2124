//! Fig. 5a-c: the critical frequency of the target output, image by image, clean and noisy, one panel per tau.

use super::chart::{self, hint, number, number_with};
use super::number;
use super::records::Study;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use crate::page::Section;
use crate::palette;
use leaklab_record::Table;
use serde_json::{Value, json};

/// The section on the output's spectrum.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new(
        "critical-frequency",
        "Output spectrum",
        "Does leak filter the output?",
        Html::markup(
            "<p>The critical frequency of an image is the one below which 70 % of the power of its target output's \
             input lies. White noise gives a value close to 0.35 cycles per step; a low-pass filter moves it down. \
             The paper finds it lower with more leak, and higher with noise.</p>",
        ),
    );
    let Some(data) = histogram(study) else {
        section.after =
            chart::missing("The output's critical frequencies are", "critical_frequency tables of the runs");
        return section;
    };
    let conditions = chart::distinct(&data, "condition");
    let series = chart::word_series("condition", &conditions, chart::condition_label);
    let means = study.compare.get("critical_by_tau");
    let mut taus = chart::taus(&data);
    taus.reverse();
    let panels = taus.iter().map(|tau| {
        let mut layers = vec![json!({
            "transform": [{ "filter": { "field": "tau", "equal": tau } }],
            "mark": { "type": "rect", "opacity": 0.5 },
            "encoding": {
                "x": number_with("from", "critical frequency (cycles/step)", json!({ "scale": { "domain": [0, 0.5] }, "axis": { "values": [0, 0.1, 0.2, 0.3, 0.4, 0.5], "format": ".1f" } })),
                "x2": { "field": "to" },
                "y": number("images", "images"),
                "y2": { "datum": 0 },
                "tooltip": [hint("condition", "input", ""), hint("from", "from", ".3f"), hint("to", "to", ".3f"), hint("images", "images", ",d")]
            }
        })];
        let rules = means.map(|table| mean_rules(table, tau)).unwrap_or_default();
        if !rules.is_empty() {
            layers.push(json!({
                "data": { "values": rules },
                "transform": [{ "filter": "indexof(hidden, datum.condition) < 0" }],
                "mark": { "type": "rule", "strokeWidth": 2, "strokeDash": [5, 3] },
                "encoding": {
                    "x": { "field": "mean", "type": "quantitative" },
                    "tooltip": [hint("condition", "mean of", ""), hint("mean", "cycles/step", ".4f")]
                }
            }));
        }
        let spec = json!({ "encoding": { "color": series.colour() }, "layer": layers });
        Panel::new(&palette::tau_label(tau), spec).with_height(210)
    });
    let panels = panels.collect();
    section.figures.push(Figure {
        id: "fig5abc".to_owned(),
        title: "Fig. 5a–c · Critical frequency of the target output".to_owned(),
        caption: Html::fill(
            "<p>Images of all seeds. Dashed: the mean, clean and noisy. A shift to the left from panel to panel is \
             low-pass filtering.</p>{}",
            &[&means.map(chart::small_print).unwrap_or_default()],
        ),
        data,
        series: Some(series),
        panels,
    });
    if let Some(table) = means {
        section.after = mean_table(table);
    }
    section
}

fn mean_rules(table: &Table, tau: &str) -> Vec<Value> {
    table
        .rows
        .iter()
        .filter(|row| table.cell(row, "tau").text() == Some(tau))
        .filter_map(|row| {
            let condition = table.cell(row, "condition").text()?;
            Some(json!({ "condition": condition, "mean": table.cell(row, "mean").number()? }))
        })
        .collect()
}

/// The runs' histograms, summed over seeds, with the bins' ends.
fn histogram(study: &Study) -> Option<Table> {
    let mut sums: Vec<(String, String, f64, f64)> = Vec::new();
    for run in &study.runs {
        let Some(table) = run.tables.get("critical_frequency") else { continue };
        for row in &table.rows {
            let condition = table.cell(row, "condition").text().unwrap_or_default();
            let frequency = table.cell(row, "frequency").number()?;
            let images = table.cell(row, "images").number().unwrap_or(0.0);
            match sums.iter_mut().find(|s| s.0 == run.tau && s.1 == condition && s.2 == frequency) {
                Some(sum) => sum.3 += images,
                None => sums.push((run.tau.clone(), condition.to_owned(), frequency, images)),
            }
        }
    }
    let mut frequencies: Vec<f64> = sums.iter().map(|s| s.2).collect();
    frequencies.sort_by(f64::total_cmp);
    frequencies.dedup();
    let width = frequencies.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min)?;
    let mut out = Table::new(
        "critical_frequency",
        "Critical frequency of the target output",
        "Images by critical frequency, summed over seeds.",
        &[
            ("tau", "steps", "Membrane time constant."),
            ("condition", "", "clean, or noise/scenario/severity."),
            ("from", "cycles/step", "Lower end of the bin."),
            ("to", "cycles/step", "Upper end of the bin."),
            ("images", "", "Images in the bin."),
        ],
    );
    for (tau, condition, frequency, images) in sums {
        out.push(vec![
            tau.into(),
            condition.into(),
            (frequency - width / 2.0).max(0.0).into(),
            (frequency + width / 2.0).into(),
            images.into(),
        ]);
    }
    (!out.rows.is_empty()).then_some(out)
}

/// The means, beside the paper's where they may be compared.
fn mean_table(table: &Table) -> Html {
    let mut body = Html::new();
    for row in &table.rows {
        let text = |column| table.cell(row, column).text().unwrap_or_default();
        let value = |column| table.cell(row, column).number().map(|x| format!("{x:.4}"));
        let range = match (value("low"), value("high")) {
            (Some(low), Some(high)) => format!("[{low}, {high}]"),
            _ => "–".to_owned(),
        };
        body.add(
            "<tr><th scope=\"row\">{}</th><td data-label=\"Input\">{}</td><td class=\"number\" data-label=\"Mean\">{}</td><td class=\"number\" data-label=\"95 % interval\">{}</td>\
             <td class=\"number\" data-label=\"The paper\">{}</td></tr>\n",
            &[
                &palette::tau_label(text("tau")),
                &chart::condition_label(text("condition")),
                &value("mean").unwrap_or_else(|| "–".to_owned()),
                &range,
                &table.cell(row, "paper").number().map_or_else(|| "–".to_owned(), number::plain),
            ],
        );
    }
    Html::fill(
        "<div class=\"scroll\"><table class=\"stack\"><thead><tr><th>Leak</th><th>Input</th><th class=\"number\">Mean critical frequency</th>\
         <th class=\"number\">95 % interval</th><th class=\"number\">The paper</th></tr></thead><tbody>\n{}</tbody></table></div>\n",
        &[&body],
    )
}
