//! Fig. 5d,e: test error against train error, epoch by epoch.

use super::chart::{self, hint, number_with};
use super::records::Study;
use crate::figure::Figure;
use crate::html::Html;
use crate::page::Section;
use serde_json::json;

/// The section on generalisation.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new(
        "generalisation",
        "Generalisation",
        "Test error at equal training error",
        Html::markup(
            "<p>As training goes on, a network moves from the upper right to the lower left. Of two networks at the \
             same training error, the one with the lower test error generalises better.</p>",
        ),
    );
    let Some(table) = study.compare.get("generalisation_by_tau").filter(|table| !table.rows.is_empty())
    else {
        section.after = chart::missing("Generalisation is", "compare/generalisation_by_tau table");
        return section;
    };
    let taus = chart::taus(table);
    let series = chart::tau_series(&taus);
    // Vega leaves out a logarithmic axis' labels between powers of ten; within one decade none would be left.
    let log = |field: &str, title: &str| {
        number_with(
            field,
            title,
            json!({ "scale": { "type": "log", "nice": false, "padding": 12 }, "axis": { "labelExpr": "format(datum.value, '.3~g')", "tickCount": 5 } }),
        )
    };
    let spec = json!({
        "transform": [{ "filter": "datum.train_sse > 0 && datum.test_sse > 0" }],
        "encoding": { "x": log("train_sse", "training SSE (log)"), "y": log("test_sse", "test SSE (log)"), "color": series.colour(), "order": { "field": "epoch" } },
        "layer": [
            { "mark": { "type": "line", "opacity": 0.7, "strokeWidth": 1.6 } },
            {
                "mark": { "type": "point", "filled": true, "size": 42, "opacity": 0.95 },
                "encoding": {
                    "shape": chart::tau_shape(&taus),
                    "tooltip": [hint("tau", "τ", ""), hint("epoch", "epoch", "d"), hint("train_sse", "training SSE", ".4~g"), hint("test_sse", "test SSE", ".4~g")]
                }
            }
        ]
    });
    section.figures.push(
        Figure::new(
            "fig5de",
            "Fig. 5d, e · Test error against training error",
            Html::fill("<p>One point per epoch. Training error is measured as training runs, with dropout and augmentation on.</p>{}", &[&chart::small_print(table)]),
            table.clone(),
            spec,
        )
        .with_series(series),
    );
    section
}
