//! Fig. 3: accuracy against severity, one panel for each noise and scenario.

use super::chart::{self, hint, number_with};
use super::records::Study;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use crate::page::Section;
use serde_json::json;

/// The section on robustness.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new(
        "robustness",
        "Robustness",
        "Accuracy under noise",
        Html::markup(
            "<p>Every network was trained on clean images and is tested here with noise in its input: added to the \
             pixels before they become spikes (scenario 1), or to the spikes themselves (scenario 2). Severity 0 is \
             clean, severity 8 meant to be devastating.</p>",
        ),
    );
    let Some(table) = study.compare.get("robustness_by_tau").filter(|table| !table.rows.is_empty()) else {
        section.after = chart::missing("Accuracy under noise is", "compare/robustness_by_tau table");
        return section;
    };
    let taus = chart::taus(table);
    let series = chart::tau_series(&taus);
    let mut settings: Vec<(String, String)> = Vec::new();
    for row in &table.rows {
        let text = |column| table.cell(row, column).text().unwrap_or_default().to_owned();
        let setting = (text("noise"), text("scenario"));
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    let panels = settings.iter().map(|(noise, scenario)| {
        let spec = json!({
            "transform": [{ "filter": { "and": [
                { "field": "noise", "equal": noise }, { "field": "scenario", "equal": scenario }
            ] } }],
            "encoding": {
                "x": number_with("severity", "noise severity", json!({ "axis": { "tickMinStep": 1, "format": "d" }, "scale": { "nice": false } })),
                "color": series.colour()
            },
            "layer": [
                {
                    "mark": { "type": "area", "opacity": 0.16 },
                    "encoding": {
                        "y": number_with("low", "accuracy", json!({ "axis": { "format": ".0%" }, "scale": { "domain": [0, 1] } })),
                        "y2": { "field": "high" }
                    }
                },
                { "mark": { "type": "line" }, "encoding": { "y": { "field": "mean", "type": "quantitative" } } },
                {
                    "mark": { "type": "point", "filled": true, "size": 62, "opacity": 1 },
                    "encoding": {
                        "y": { "field": "mean", "type": "quantitative" },
                        "shape": chart::tau_shape(&taus),
                        "tooltip": [
                            hint("tau", "τ", ""), hint("severity", "severity", "d"), hint("level", "noise level", ".3~g"),
                            hint("mean", "accuracy", ".1%"), hint("low", "interval from", ".1%"), hint("high", "to", ".1%"),
                            hint("seeds", "seeds", "d")
                        ]
                    }
                }
            ]
        });
        Panel::new(&format!("{} noise, {}", chart::capital(noise), chart::scenario_label(scenario)), spec).with_height(250)
    });
    let panels = panels.collect();
    section.figures.push(Figure {
        id: "fig3".to_owned(),
        title: "Fig. 3 · Accuracy against noise severity".to_owned(),
        caption: Html::fill(
            "<p>A curve that stays high is a robust network; bands are the intervals. What a severity stands for is in the tooltip (noise level) and in the settings; the paper does not say \
             what its levels are, so curves compare within this study only.</p>{}",
            &[&chart::small_print(table)],
        ),
        data: table.clone(),
        series: Some(series),
        panels,
    });
    section
}
