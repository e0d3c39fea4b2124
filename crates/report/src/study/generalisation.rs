//! Fig. 5d,e: test error against training error, epoch by epoch, and compared at equal training error.

use super::chart::{self, hint, number_with};
use super::records::Study;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::tables::{EqualTrainSseRow, GeneralisationByConditionRow};
use serde_json::{Value, json};

/// The section on generalisation.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new(
        "generalisation",
        "Generalisation",
        "Test error at equal training error",
        Html::markup(
            "<p>During training, a network moves from the upper right to the lower left. Of two networks \
             with the same training error, the one with the lower test error generalises better. A network \
             with both errors lower fits better; that alone is not better generalisation.</p>",
        ),
    );
    match trajectory(study) {
        Some(figure) => section.figures.push(figure),
        None => {
            section.after = chart::missing("Generalisation is", "compare/generalisation_by_condition table");
        }
    }
    section.figures.extend(equal(study));
    section
}

/// A logarithmic axis for an error, with more labels than Vega's, which are at powers of ten only.
fn log(field: &str, title: &str) -> Value {
    let axis =
        json!({ "labelExpr": "format(datum.value, '.3~g')", "tickCount": 5, "labelOverlap": "greedy" });
    number_with(
        field,
        title,
        json!({ "scale": { "type": "log", "nice": false, "padding": 12 }, "axis": axis }),
    )
}

fn trajectory(study: &Study) -> Option<Figure> {
    use GeneralisationByConditionRow as R;
    let table = study.compare.generalisation.as_ref()?;
    let conditions = chart::present(study.shown(), table.rows.iter().map(|row| row.condition.as_str()));
    let shown = |row: &R| conditions.iter().any(|condition| condition.name == row.condition);
    let data = chart::only(table, |row| shown(row) && row.train_sse > 0.0 && row.test_sse > 0.0);
    let series = chart::series(&conditions);
    let spec = json!({
        "encoding": {
            "x": log(R::train_sse, "training SSE per sample (log)"),
            "y": log(R::test_sse, "test SSE per sample (log)"),
            "color": series.colour(), "order": { "field": R::epoch }
        },
        "layer": [
            { "mark": { "type": "line", "opacity": 0.7, "strokeWidth": 1.6 } },
            {
                "mark": { "type": "point", "filled": true, "size": 42, "opacity": 0.95 },
                "encoding": {
                    "shape": chart::shape(&conditions),
                    "tooltip": [
                        chart::who("condition"), hint(R::epoch, "epoch", "d"),
                        hint(R::train_sse, "training SSE", ".4~g"), hint(R::test_sse, "test SSE", ".4~g")
                    ]
                }
            }
        ]
    });
    let caption = Html::fill(
        "<p>One point per epoch, mean over seeds. SSE is the squared error, summed over the outputs. Both \
         errors are measured after the epoch, without dropout and augmentation.</p>{}{}",
        &[&chart::unlearned(study), &chart::small_print(table)],
    );
    let title = "Fig. 5d, e · Test error against training error";
    Some(Figure::new("fig5de", title, caption, &data, vec![Panel::new("", spec)]).with_series(series))
}

fn equal(study: &Study) -> Option<Figure> {
    use EqualTrainSseRow as R;
    let table = study.compare.equal_train_sse.as_ref()?;
    let conditions = chart::present(study.learned(), table.rows.iter().map(|row| row.condition.as_str()));
    let data = chart::only(table, |row| conditions.iter().any(|condition| condition.name == row.condition));
    if data.rows.is_empty() {
        return None;
    }
    let series = chart::series(&conditions);
    let y = |field: &str| number_with(field, "test SSE per sample", json!({ "scale": { "zero": false } }));
    let spec = json!({
        "encoding": { "x": log(R::train_sse, "training SSE per sample (log)"), "color": series.colour() },
        "layer": [
            {
                "transform": [chart::valid(R::low)],
                "mark": { "type": "area", "opacity": 0.16 },
                "encoding": { "y": y(R::low), "y2": { "field": R::high } }
            },
            { "mark": { "type": "line" }, "encoding": { "y": y(R::mean) } },
            {
                "mark": { "type": "point", "filled": true, "size": 42, "opacity": 0.95 },
                "encoding": {
                    "y": y(R::mean), "shape": chart::shape(&conditions),
                    "tooltip": [
                        chart::who("condition"), hint(R::train_sse, "training SSE", ".4~g"),
                        hint(R::mean, "test SSE", ".4~g"), hint(R::low, "interval from", ".4~g"),
                        hint(R::high, "to", ".4~g")
                    ]
                }
            }
        ]
    });
    let caption = Html::fill(
        "<p>At each training error, the lower curve generalises better. Bands are 95&nbsp;% intervals.</p>{}",
        &[&chart::small_print(table)],
    );
    let panels = vec![Panel::new("", spec).with_height(230)];
    Some(
        Figure::new("equal-train-sse", "Test error at equal training error", caption, &data, panels)
            .with_series(series),
    )
}
