//! Learning curves of all runs, including probes, and the notices of the health checks.

use super::chart::{self, hint, number_with};
use super::records::Study;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::Rows;
use serde_json::json;

leaklab_record::row! {
    /// One epoch of one run.
    pub struct LearningRow in "learning" {
        /// Condition.
        condition: String [""],
        /// Seed.
        seed: u64 [""],
        /// Epochs trained.
        epoch: u64 ["epochs"],
        /// Accuracy during training, with dropout and augmentation.
        train_accuracy: f64 ["fraction"],
        /// Accuracy on the test set after the epoch.
        test_accuracy: Option<f64> ["fraction"],
        /// SSE on a fixed part of the training set after the epoch.
        train_sse: Option<f64> ["SSE"],
        /// SSE on the test set after the epoch.
        test_sse: Option<f64> ["SSE"],
    }
}

/// The section on training.
pub fn section(study: &Study) -> Section {
    use LearningRow as R;
    let mut section = Section::new("learning", "Training", "How the networks learned", Html::new());
    let mut data = Rows::new("Learning curves", "Accuracy and error after each epoch, run by run.");
    for run in &study.runs {
        data.rows.extend(run.epochs.iter().map(|epoch| LearningRow {
            condition: run.condition.clone(),
            seed: run.seed,
            epoch: epoch.epoch,
            train_accuracy: epoch.train_accuracy,
            test_accuracy: epoch.test_accuracy,
            train_sse: epoch.train_sse_evaluated,
            test_sse: epoch.test_sse,
        }));
    }
    if data.rows.is_empty() {
        let whose = if study.single { "run" } else { "study" };
        section.after = chart::notice(&format!(
            "Learning curves are not available yet: the {whose} has no finished epoch."
        ));
        return section;
    }
    let conditions =
        chart::present(study.conditions.iter().collect(), data.rows.iter().map(|row| row.condition.as_str()));
    let series = chart::series(&conditions);
    let panel = |title: &str, field: &str| {
        let x =
            json!({ "axis": { "tickMinStep": 1, "format": "d" }, "scale": { "nice": false, "zero": false } });
        let y = json!({ "axis": { "format": ".0~%" }, "scale": { "domain": [0, 1] } });
        let spec = json!({
            "transform": [chart::valid(field)],
            "encoding": {
                "x": number_with(R::epoch, "epoch", x),
                "y": number_with(field, "accuracy", y),
                "color": series.colour(),
                "detail": { "field": R::seed, "type": "nominal" }
            },
            "layer": [
                { "mark": { "type": "line", "strokeWidth": 1.4, "opacity": 0.85 } },
                {
                    "mark": { "type": "point", "filled": true, "size": 20, "opacity": 0.9 },
                    "encoding": { "tooltip": [
                        chart::who("condition"), hint(R::seed, "seed", ""), hint(R::epoch, "epoch", "d"),
                        hint(R::test_accuracy, "test accuracy", ".2%"),
                        hint(R::train_accuracy, "training accuracy", ".2%"),
                        hint(R::test_sse, "test SSE", ".4~g")
                    ] }
                }
            ]
        });
        Panel::new(title, spec).with_height(230)
    };
    let panels =
        vec![panel("Test accuracy", R::test_accuracy), panel("Training accuracy", R::train_accuracy)];
    let caption = Html::fill(
        "<p>One line per run. Test accuracy is measured after the epoch, training accuracy during the epoch, \
         with dropout and augmentation.</p>{}",
        &[&chart::unlearned(study)],
    );
    section
        .figures
        .push(Figure::new("learning-curves", "Learning curves", caption, &data, panels).with_series(series));
    section.after = notices(study);
    section
}

fn notices(study: &Study) -> Html {
    let notices = study.runs.iter().flat_map(|run| run.notices.iter().map(move |notice| (run, notice)));
    let notices: Vec<Html> = notices
        .map(|(run, notice)| {
            Html::fill(
                "<li><strong>{}</strong>, epoch {}: {} <span class=\"muted\">{}</span></li>",
                &[&run.name, &(notice.epoch as usize), &notice.message, &notice.advice],
            )
        })
        .collect();
    if notices.is_empty() {
        return Html::markup(
            "<p class=\"muted small\">The health checks (silent or saturated layers, divergence) found no \
             problem in any run.</p>\n",
        );
    }
    Html::fill(
        "<h3 class=\"table-heading\">Health notices</h3><ul class=\"prose\">{}</ul>\n",
        &[&Html::join(notices)],
    )
}
