//! Accuracy by the number of steps read.

use super::{caption, stimuli, taus, title};
use crate::figure::{Figure, Panel};
use crate::study::chart::{self, hint, number_with};
use leaklab_record::tables::TimeRow;
use leaklab_record::{Rows, TimeWindow};
use serde_json::json;

/// Accuracy from the first steps, up to each step.
pub fn figure(table: &Rows<TimeRow>) -> Figure {
    use TimeRow as R;
    let data = chart::only(table, |row| row.window == TimeWindow::UpTo);
    let series = taus(R::tau, data.rows.iter().map(|row| row.tau));
    let panels = stimuli(data.rows.iter().map(|row| row.stimulus)).into_iter().map(|stimulus| {
        let mut spec = chart::lines_with_hover(
            number_with(R::last, "steps read", json!({ "scale": { "nice": false } })),
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
    let text = "Accuracy if the network is read after this number of steps, from the sum of the output \
                signal, without leak in the readout.";
    Figure::new("why-time", "Accuracy by the number of steps read", caption(text, table), &data, panels)
        .with_series(series)
        .with_columns(2)
}
