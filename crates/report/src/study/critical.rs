//! Fig. 5a-c: the critical frequency of the target output, image by image, clean and noisy, one panel per tau.

use super::chart::{self, hint, number, number_with};
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
             input lies. A low-pass filter moves it down. The paper finds it lower with more leak, and higher with \
             noise.</p>",
        ),
    );
    let white = white_noise(study);
    if let Some(x) = white {
        let steps = study.setting("time_steps");
        section.text.add(
            "<p>White noise over {} steps would give {} cycles per step (dotted).</p>",
            &[&steps, &format!("{x:.3}")],
        );
    }
    let Some(data) = histogram(study) else {
        section.after =
            chart::missing("The output's critical frequencies are", "critical_frequency tables of the runs");
        return section;
    };
    let conditions = chart::distinct(&data, "condition");
    // The paper's pair; the others are a press away.
    let noisy = conditions.iter().find(|c| c.starts_with("gaussian/pixel")).or(conditions.get(1)).cloned();
    let series = chart::word_series("condition", &conditions, chart::condition_label)
        .showing(|condition| condition == "clean" || Some(condition) == noisy.as_deref());
    let means = study.compare.get("critical_by_tau");
    let mut taus = chart::taus(&data);
    taus.reverse();
    // The last bin is centred on the Nyquist frequency.
    let end = data.rows.iter().filter_map(|row| data.cell(row, "to").number()).fold(0.5, f64::max);
    let panels = taus.iter().map(|tau| {
        let mut layers = vec![json!({
            "transform": [{ "filter": { "field": "tau", "equal": tau } }],
            "mark": { "type": "rect", "opacity": 0.5 },
            "encoding": {
                "x": number_with("from", "critical frequency (cycles/step)", json!({ "scale": { "domain": [0, end], "nice": false }, "axis": { "values": [0, 0.1, 0.2, 0.3, 0.4, 0.5], "format": ".1f" } })),
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
        if let Some(white) = white {
            layers.push(json!({
                "data": { "values": [{ "white": white }] },
                "mark": { "type": "rule", "strokeWidth": 1.5, "strokeDash": [1, 3] },
                "encoding": {
                    "x": { "field": "white", "type": "quantitative" },
                    "color": { "value": "@ink" },
                    "tooltip": [hint("white", "white noise", ".4f")]
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
    section.figures.extend(hidden(study));
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

/// The means by input and tau, with the paper's where they may be compared.
fn mean_table(table: &Table) -> Html {
    let taus = chart::taus(table);
    let head = Html::join(
        taus.iter().map(|tau| Html::fill("<th class=\"number\">{}</th>", &[&palette::tau_label(tau)])),
    );
    let mut body = Html::new();
    for condition in chart::distinct(table, "condition") {
        let cells = Html::join(taus.iter().map(|tau| {
            let row = table.rows.iter().find(|row| {
                table.cell(row, "tau").text() == Some(tau)
                    && table.cell(row, "condition").text() == Some(&condition)
            });
            let value =
                |column| row.and_then(|row| table.cell(row, column).number()).map(|x| format!("{x:.3}"));
            let range = match (value("low"), value("high")) {
                (Some(low), Some(high)) => {
                    Html::fill(" <span class=\"range\">[{}, {}]</span>", &[&low, &high])
                }
                _ => Html::new(),
            };
            let paper = match value("paper") {
                Some(paper) => Html::fill("<span class=\"paper\">paper {}</span>", &[&paper]),
                None => Html::new(),
            };
            Html::fill(
                "<td class=\"number\" data-label=\"{}\"><span>{}{}{}</span></td>",
                &[&palette::tau_label(tau), &value("mean").unwrap_or_else(|| "–".to_owned()), &range, &paper],
            )
        }));
        body.add("<tr><th scope=\"row\">{}</th>{}</tr>\n", &[&chart::condition_label(&condition), &cells]);
    }
    Html::fill(
        "{}<div class=\"scroll\"><table class=\"{}\"><thead><tr><th></th>{}</tr></thead>\
         <tbody>\n{}</tbody></table></div>\n",
        &[
            &chart::table_heading("Mean critical frequency, cycles per step"),
            &chart::stack_class(&taus),
            &head,
            &body,
        ],
    )
}

/// What white noise would give, with as many steps as the study's.
fn white_noise(study: &Study) -> Option<f64> {
    study.runs.iter().find_map(|run| {
        let table = run.tables.get("critical_frequency_summary")?;
        table.cell(table.rows.first()?, "white_noise").number()
    })
}

/// Spectra of the hidden layers' spikes, clean, of the first run of each tau.
fn hidden(study: &Study) -> Option<Figure> {
    let mut data = Table::new(
        "hidden_spectrum",
        "Spectrum of the hidden layers' spikes",
        "One-sided power density of each neuron's spike train, mean over neurons and clean test images.",
        &[
            ("tau", "steps", "Membrane time constant."),
            ("layer", "", "Hidden layer."),
            ("frequency", "cycles/step", "Frequency."),
            ("power", "per cycle/step", "Mean power density."),
        ],
    );
    for run in study.first_of_each_tau() {
        let Some(table) = run.tables.get("hidden_spectrum") else { continue };
        for row in table.rows.iter().filter(|row| table.cell(row, "condition").text() == Some("clean")) {
            let mut cells = vec![run.tau.as_str().into()];
            cells.extend(chart::cells(table, row, &["layer", "frequency", "power"]));
            data.push(cells);
        }
    }
    if data.rows.is_empty() {
        return None;
    }
    let series = chart::tau_series(&chart::taus(&data));
    let panels = chart::distinct(&data, "layer").into_iter().map(|layer| {
        let mut spec = chart::lines_with_hover(
            number_with(
                "frequency",
                "frequency (cycles/step)",
                json!({ "scale": { "nice": false, "domain": [0, 0.5] }, "axis": { "tickCount": 6 } }),
            ),
            number("power", "power density"),
            series.colour(),
            json!([hint("tau", "τ", ""), hint("frequency", "cycles/step", ".3f"), hint("power", "power", ".4~g")]),
        );
        spec["transform"] =
            json!([{ "filter": { "field": "layer", "equal": layer } }, { "filter": "datum.frequency < 0.4999" }]);
        Panel::new(&layer, spec).with_height(190)
    });
    let panels = panels.collect();
    Some(Figure {
        id: "hidden-spectrum".to_owned(),
        title: "Spectrum of the hidden layers' spikes".to_owned(),
        caption: Html::markup(
            "<p>Clean test images, one run of each tau. Where a curve falls with frequency, the layers up to there have \
             filtered; a curve that lies higher as a whole means more spikes.</p>",
        ),
        data,
        series: Some(series),
        panels,
    })
}
