//! The gain from leak and its cost, split by the place where leak acts, and leak layer by layer.

use super::{caption, gain_hints, points, stimuli, taus, title};
use crate::figure::{Figure, Panel, Series};
use crate::study::chart::{self, hint};
use leaklab_record::tables::{LayerLeakRow, PriceRow, SplitRow};
use leaklab_record::{LayerChoice, PriceMeasure, Rows, Stimulus};
use serde_json::{Value, json};

/// Parts in the order of their rows, with their labels.
const PARTS: [(&str, &str); 4] =
    [("total", "total"), ("readout", "readout"), ("hidden", "hidden layers"), ("training", "training")];

/// A panel with one row per part. Time constants have different colours and offsets within a row.
fn rows_of_parts(
    stimulus: Stimulus,
    transform: Vec<Value>,
    part: &str,
    series: &Series,
    layer: [Value; 3],
) -> Panel {
    let labels = chart::words(PARTS.iter().map(|(part, words)| ((*part).to_owned(), json!([words]))));
    let order: Vec<&str> = PARTS.iter().map(|(part, _)| *part).collect();
    let spec = json!({
        "transform": transform,
        "encoding": {
            "y": {
                "field": part, "type": "nominal", "sort": order, "title": null,
                "axis": { "labelExpr": labels, "domain": false, "ticks": false, "grid": false }
            },
            "yOffset": { "field": series.column, "type": "nominal", "sort": series.values() },
            "color": series.colour()
        },
        "layer": layer
    });
    Panel::new(&title(stimulus), spec).with_height(170)
}

/// The gain.
pub fn gain(table: &Rows<SplitRow>) -> Figure {
    use SplitRow as R;
    let series = taus(R::tau, table.rows.iter().map(|row| row.tau));
    let ends = table.rows.iter().flat_map(|row| [Some(row.mean), row.low, row.high]).flatten();
    let scale = chart::common_scale(ends);
    let panels = stimuli(table.rows.iter().map(|row| row.stimulus)).into_iter().map(|stimulus| {
        let mut tooltip = vec![chart::who("leak"), hint(R::part, "part", "")];
        tooltip.extend(gain_hints(R::mean, R::low, R::high, R::seeds));
        let axis = chart::points_axis();
        let fields = [R::mean, R::low, R::high];
        let name = "gain in accuracy (percentage points)";
        let layer = points("x", fields, name, (&axis, &scale), tooltip.into());
        let transform = vec![chart::equal(R::stimulus, &stimulus.to_string())];
        rows_of_parts(stimulus, transform, R::part, &series, layer)
    });
    let panels = panels.collect();
    let text = "The gain in accuracy from leak: the total, and the part from each place where leak acts. The \
                three parts add up to the total. Bars are 95 % intervals. All panels share one scale.";
    Figure::new("why-split", "The gain, split by where leak acts", caption(text, table), table, panels)
        .with_series(series)
        .with_columns(2)
}

/// The price, in synaptic operations.
pub fn price(table: &Rows<PriceRow>) -> Figure {
    use PriceRow as R;
    // Only synaptic operations are drawn, not the spike rate.
    let data = chart::only(table, |row| row.measure == PriceMeasure::Synops);
    let series = taus(R::tau, data.rows.iter().map(|row| row.tau));
    let shares = data
        .rows
        .iter()
        .flat_map(|row| [Some(row.mean), row.low, row.high].into_iter().flatten().map(|x| x / row.baseline));
    let scale = chart::common_scale(shares);
    let panels = stimuli(data.rows.iter().map(|row| row.stimulus)).into_iter().map(|stimulus| {
        let share = |field: &str| {
            json!({
                "calculate": format!("isValid(datum.{field}) ? datum.{field} / datum.{} : null", R::baseline),
                "as": format!("{field}_share")
            })
        };
        let mut transform = vec![chart::equal(R::stimulus, &stimulus.to_string())];
        transform.extend([R::mean, R::low, R::high].map(share));
        let tooltip = json!([
            chart::who("leak"),
            hint(R::part, "part", ""),
            hint("mean_share", "change", "+.1%"),
            hint("low_share", "interval from", "+.1%"),
            hint("high_share", "to", "+.1%"),
            hint(R::mean, "operations per image", "+.3~s"),
            hint(R::seeds, "seeds", "d")
        ]);
        let label = "datum.value == 0 ? '0' : format(datum.value, '+~%')";
        let axis = json!({ "labelExpr": label, "tickCount": 4, "labelOverlap": true, "labelSeparation": 8 });
        let fields = ["mean_share", "low_share", "high_share"];
        let layer = points("x", fields, "change in synaptic operations", (&axis, &scale), tooltip);
        rows_of_parts(stimulus, transform, R::part, &series, layer)
    });
    let panels = panels.collect();
    let text = "The cost of leak in synaptic operations per image, relative to the network trained and run \
                without leak, split in the same way. The readout adds none. Bars are 95 % intervals. All \
                panels share one scale.";
    Figure::new("why-price", "The price, split by where leak acts", caption(text, table), &data, panels)
        .with_series(series)
        .with_columns(2)
}

/// Leak in one hidden layer alone.
pub fn layers(table: &Rows<LayerLeakRow>) -> Figure {
    use LayerLeakRow as R;
    let series = taus(R::tau, table.rows.iter().map(|row| row.tau));
    let alone = table.rows.iter().filter(|row| row.choice == LayerChoice::Only);
    let ends = alone.flat_map(|row| [Some(row.gain), row.low, row.high]).flatten();
    let scale = chart::common_scale(ends);
    let noisy = stimuli(table.rows.iter().map(|row| row.stimulus)).into_iter();
    let panels = noisy.filter(|stimulus| *stimulus != Stimulus::Clean).map(|stimulus| {
        let mut tooltip = vec![chart::who("leak"), hint(R::layer, "layer", "")];
        tooltip.extend(gain_hints(R::gain, R::low, R::high, R::seeds));
        let (fields, axis) = ([R::gain, R::low, R::high], chart::points_axis());
        let name = "gain in accuracy (percentage points)";
        let layer = points("y", fields, name, (&axis, &scale), tooltip.into());
        let spec = json!({
            "transform": [chart::equal(R::stimulus, &stimulus.to_string()), chart::equal(R::choice, "only")],
            "encoding": {
                "x": {
                    "field": R::layer, "type": "nominal", "sort": null, "title": null,
                    "axis": { "labelAngle": 0 }
                },
                "xOffset": { "field": R::tau, "type": "nominal", "sort": series.values() },
                "color": series.colour()
            },
            "layer": layer
        });
        Panel::new(&title(stimulus), spec).with_height(190)
    });
    let panels = panels.collect();
    let text = "Weights trained without leak are run with leak in one hidden layer and nowhere else. Bars \
                are 95 % intervals. All panels share one scale.";
    Figure::new("why-layers", "Leak in one hidden layer alone", caption(text, table), table, panels)
        .with_series(series)
        .with_columns(2)
}
