//! Learning curves of all runs, and what the health checks said.

use super::chart::{self, hint, number_with};
use super::records::Study;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::Table;
use serde_json::json;

/// The section on training.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new("learning", "Training", "How the networks learned", Html::new());
    let mut data = Table::new(
        "learning",
        "Learning curves",
        "Accuracy and error after each epoch, run by run; training figures as training runs, with dropout and \
         augmentation on.",
        &[
            ("tau", "steps", "Membrane time constant."),
            ("seed", "", "Seed."),
            ("epoch", "epochs", "Epochs trained."),
            ("train_accuracy", "fraction", "Accuracy while training."),
            ("test_accuracy", "fraction", "Accuracy on the test set."),
            ("train_sse", "", "Error while training."),
            ("test_sse", "", "Error on the test set."),
        ],
    );
    for run in &study.runs {
        for epoch in &run.epochs {
            data.push(vec![
                run.tau.as_str().into(),
                run.seed.as_str().into(),
                epoch.epoch.into(),
                epoch.train_accuracy.into(),
                epoch.test_accuracy.into(),
                epoch.train_sse.into(),
                epoch.test_sse.into(),
            ]);
        }
    }
    if data.rows.is_empty() {
        section.after = chart::missing("Learning curves are", "finished epoch");
        return section;
    }
    let series = chart::tau_series(&chart::taus(&data));
    let panels = [("Test accuracy", "test_accuracy"), ("Training accuracy", "train_accuracy")].map(|(title, field)| {
        let spec = json!({
            "transform": [{ "filter": format!("isValid(datum.{field})") }],
            "encoding": {
                "x": number_with("epoch", "epoch", json!({ "axis": { "tickMinStep": 1, "format": "d" }, "scale": { "nice": false, "zero": false } })),
                "y": number_with(field, "accuracy", json!({ "axis": { "format": ".0~%" }, "scale": { "zero": false } })),
                "color": series.colour(),
                "detail": { "field": "seed", "type": "nominal" }
            },
            "layer": [
                { "mark": { "type": "line", "strokeWidth": 1.4, "opacity": 0.85 } },
                {
                    "mark": { "type": "point", "filled": true, "size": 20, "opacity": 0.9 },
                    "encoding": { "tooltip": [hint("tau", "τ", ""), hint("seed", "seed", ""), hint("epoch", "epoch", "d"), hint("test_accuracy", "test accuracy", ".2%"), hint("train_accuracy", "training accuracy", ".2%"), hint("test_sse", "test SSE", ".4~g")] }
                }
            ]
        });
        Panel::new(title, spec).with_height(230)
    });
    section.figures.push(Figure {
        id: "learning-curves".to_owned(),
        title: "Learning curves".to_owned(),
        caption: Html::markup("<p>One line per run.</p>"),
        data,
        series: Some(series),
        panels: panels.into(),
    });
    let notices: Vec<Html> = study
        .runs
        .iter()
        .flat_map(|run| run.notices.iter().map(move |notice| (run, notice)))
        .map(|(run, notice)| {
            Html::fill(
                "<li><strong>{}</strong>, epoch {}: {} <span class=\"muted\">{}</span></li>",
                &[&run.name, &(notice.epoch as usize), &notice.message, &notice.advice],
            )
        })
        .collect();
    section.after = if notices.is_empty() {
        Html::markup(
            "<p class=\"muted small\">No run gave reason for a health notice (silent or saturated layers, divergence).</p>\n",
        )
    } else {
        Html::fill(
            "<h3 style=\"margin-top:2rem\">Health notices</h3><ul class=\"prose\">{}</ul>\n",
            &[&Html::join(notices)],
        )
    };
    section
}
