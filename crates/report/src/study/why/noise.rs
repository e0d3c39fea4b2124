//! Filtering, measured directly: the gain against the colour of the noise, and how each layer follows a
//! modulated input.

use super::{caption, gain_hints, points, taus};
use crate::figure::{Figure, Item, Panel, Series};
use crate::study::chart::{self, hint, number_with};
use leaklab_record::Rows;
use leaklab_record::tables::{ColourRow, ResponseRow};
use serde_json::json;

/// The gain against the colour of the noise.
pub fn colours(table: &Rows<ColourRow>) -> Figure {
    use ColourRow as R;
    let colours: Vec<String> = chart::distinct(table.rows.iter().map(|row| row.colour.to_string()));
    let places = [
        ("hidden", "leak in the hidden layers", "@layer4"),
        ("readout", "leak in the readout", "@noise3"),
        ("control", "no leak, first steps skipped (control)", "@clean"),
    ];
    let items = places.iter().map(|&(value, label, colour)| Item {
        value: value.to_owned(),
        label: label.to_owned(),
        colour,
        shown: true,
    });
    let series = Series { column: R::place, items: items.collect() };
    let shown = |row: &ColourRow| places.iter().any(|place| place.0 == row.place.to_string());
    let data = chart::only(table, shown);
    let mut taus = chart::distinct(data.rows.iter().map(|row| row.tau));
    taus.sort();
    let ends = data.rows.iter().flat_map(|row| [Some(row.gain), row.low, row.high]).flatten();
    let scale = chart::common_scale(ends);
    let panels = taus.into_iter().map(|tau| {
        let sigma = hint(R::sigma, "sigma", ".3~g");
        let mut tooltip = vec![chart::who("leak"), hint(R::colour, "colour", ""), sigma];
        tooltip.extend(gain_hints(R::gain, R::low, R::high, R::seeds));
        let (fields, axis) = ([R::gain, R::low, R::high], chart::points_axis());
        let name = "gain in accuracy (percentage points)";
        let layer = points("y", fields, name, (&axis, &scale), tooltip.into());
        let spec = json!({
            "transform": [chart::equal(R::tau, &tau.to_string())],
            "encoding": {
                "x": {
                    "field": R::colour, "type": "nominal", "sort": colours,
                    "title": "colour of the noise (correlation time in steps)",
                    "axis": { "labelAngle": 0, "labelOverlap": true }
                },
                "xOffset": { "field": R::place, "type": "nominal", "sort": series.values() },
                "color": series.colour()
            },
            "layer": layer
        });
        Panel::new(&format!("τ = {tau}"), spec).with_height(220)
    });
    let panels = panels.collect();
    let text = "Equally hard Gaussian noises of different colours. A filter in the hidden layers should help \
                most against fast noise (blue, white) and not at all against frozen noise. The control has \
                no leak anywhere; its readout skips the first 20 % of steps. Bars are 95 % intervals.";
    Figure::new(
        "why-colours",
        "The gain against the colour of the noise",
        caption(text, table),
        &data,
        panels,
    )
    .with_series(series)
    .with_columns(2)
}

/// How the rate of each layer follows a modulated input, compared with the theory of one neuron.
pub fn response(table: &Rows<ResponseRow>) -> Figure {
    use ResponseRow as R;
    let series = taus(R::hidden, table.rows.iter().map(|row| row.hidden));
    let highest = table.rows.iter().flat_map(|row| [Some(row.gain), row.high, row.theory]).flatten();
    let highest = highest.fold(1.0, f64::max).min(4.0);
    let panels = chart::distinct(table.rows.iter().map(|row| row.layer.as_str())).into_iter().map(|layer| {
        let scale = json!({ "type": "log", "nice": false });
        let axis = json!({ "format": "~g", "tickCount": 4 });
        let x = number_with(R::frequency, "frequency (cycles/step)", json!({ "scale": scale, "axis": axis }));
        let y = |field: &str| {
            number_with(
                field,
                "gain (output / input)",
                json!({ "scale": { "domain": [0, highest], "clamp": true } }),
            )
        };
        let tooltip = json!([
            chart::who("leak"),
            hint(R::frequency, "cycles/step", ".3~g"),
            hint(R::gain, "gain", ".2f"),
            hint(R::low, "interval from", ".2f"),
            hint(R::high, "to", ".2f"),
            hint(R::theory, "theory", ".2f"),
            hint(R::rate, "spikes/neuron/step", ".2~g")
        ]);
        let spec = json!({
            "transform": [chart::equal(R::layer, layer)],
            "encoding": { "x": x, "color": series.colour() },
            "layer": [
                {
                    "transform": [chart::valid(R::theory)],
                    "mark": { "type": "line", "strokeDash": [5, 4], "strokeWidth": 1.5 },
                    "encoding": { "y": y(R::theory) }
                },
                {
                    "transform": [chart::valid(R::low)],
                    "mark": { "type": "rule", "strokeWidth": 2, "opacity": 0.7 },
                    "encoding": { "y": y(R::low), "y2": { "field": R::high } }
                },
                { "mark": { "type": "line" }, "encoding": { "y": y(R::gain) } },
                {
                    "mark": { "type": "point", "filled": true, "size": 60, "opacity": 1 },
                    "encoding": { "y": y(R::gain), "tooltip": tooltip }
                }
            ]
        });
        Panel::new(layer, spec).with_height(190)
    });
    let panels = panels.collect();
    let text = "How well the rate of a layer follows an input whose spike probability oscillates at one \
                frequency. With gain 1 the rate follows completely; the gain of a low-pass filter would fall \
                to the right. Points are measurements, bars are their 95 % intervals. Dashed lines are the \
                theory of one neuron.";
    let title = "Do the layers filter? Gain against frequency";
    Figure::new("why-response", title, caption(text, table), table, panels).with_series(series)
}
