//! The trade-off that the paper describes: robustness against synaptic operations, one point per condition
//! that learned.

use super::chart::{self, hint, number_with};
use super::records::Study;
use crate::figure::{Figure, Panel};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::tables::TradeoffRow;
use leaklab_record::{NoiseKey, Rows};
use serde_json::{Value, json};

/// The vertical axis spans at least this, so that a smaller difference of accuracy looks small.
const SMALLEST_SPAN: f64 = 0.1;

/// The section on the trade-off.
pub fn section(study: &Study) -> Section {
    let noises: Vec<String> = study.noises().into_iter().map(NoiseKey::words).collect();
    let noises = if noises.is_empty() { "the study's noises".to_owned() } else { chart::phrase(&noises) };
    let mut section = Section::new(
        "tradeoff",
        "Trade-off",
        "Leak as a knob: robustness against work",
        Html::fill(
            "<p>Up is more robust, left is cheaper. <em>Robustness</em> is the mean accuracy over severities \
             1 to 8 of {}. A condition is on the Pareto front (dashed) if no other one is at least as good \
             in both robustness and work and better in one of them. Which one to choose depends on what an \
             operation costs you.</p>",
            &[&noises],
        ),
    );
    match figure(study) {
        Some(figure) => section.figures.push(figure),
        None => section.after.push(&nothing(study)),
    }
    section.after.push(&super::why::advice::table(study));
    section.after.push(&super::energy::table(study));
    section
}

/// Why there is no trade-off.
fn nothing(study: &Study) -> Html {
    if study.is_without_noise() {
        chart::notice("The study tests no noise, so there is no trade-off.")
    } else if study.compare.claims.is_some() && study.learned().is_empty() {
        chart::notice("No condition learned, so there is no trade-off.")
    } else {
        chart::missing("The trade-off is", "compare/tradeoff table")
    }
}

fn figure(study: &Study) -> Option<Figure> {
    use TradeoffRow as R;
    let table = study.compare.tradeoff.as_ref()?;
    let conditions = chart::present(study.learned(), table.rows.iter().map(|row| row.condition.as_str()));
    let data = chart::only(table, |row| conditions.iter().any(|condition| condition.name == row.condition));
    if data.rows.is_empty() {
        return None;
    }
    let series = chart::series(&conditions);
    let extent = Extent::of(&data);
    let power = extent.right.max(1.0).log10().floor() as i32;
    let x = |field: &str| {
        let scale = json!({ "domain": [0, extent.right], "nice": true });
        let axis = json!({ "labelExpr": format!("format(datum.value / 1e{power}, '~g')"), "tickCount": 5 });
        let power = super::number::superscript(power);
        let title = format!("synaptic operations per {} (10{power})", study.sample());
        number_with(field, &title, json!({ "scale": scale, "axis": axis }))
    };
    let y = |field: &str| {
        let scale = json!({ "domain": [extent.bottom, extent.top], "nice": true });
        let axis = json!({ "format": ".0~%", "tickCount": 6 });
        number_with(field, "robustness (mean accuracy under noise)", json!({ "scale": scale, "axis": axis }))
    };
    let ends = |field: &str, half: &str, along: &str, channel: &dyn Fn(&str) -> Value| {
        let end = |sign: &str, name: &str| {
            let sum = format!("datum.{field} {sign} datum.{half}");
            json!({ "calculate": sum, "as": name })
        };
        json!({
            "transform": [chart::valid(half), end("-", "from"), end("+", "to")],
            "mark": { "type": "rule", "strokeWidth": 1.5, "opacity": 0.8 },
            "encoding": {
                (along): channel("from"), (format!("{along}2")): { "field": "to" }, "color": series.colour()
            }
        })
    };
    let mut layers = vec![
        ends(R::synops, R::synops_half, "x", &x),
        ends(R::robustness, R::robustness_half, "y", &y),
        json!({
            "transform": [{ "filter": format!("datum.{} == 1", R::pareto) }],
            "mark": { "type": "line", "strokeDash": [5, 4], "color": "@rule", "strokeWidth": 1.5 },
            "encoding": { "order": { "field": R::synops } }
        }),
        json!({
            "mark": { "type": "point", "filled": true, "size": 190, "opacity": 1 },
            "encoding": { "color": series.colour(), "shape": chart::shape(&conditions), "tooltip": [
                chart::who("condition"), hint(R::robustness, "robustness", ".1%"),
                hint(R::robustness_half, "± (95 %)", ".1%"), hint(R::synops, "synaptic operations", ".4~s"),
                hint(R::synops_half, "± (95 %)", ".2~s"),
                hint(R::energy, "joule per inference (45 nm)", ".3~s"),
                hint(R::accuracy, "clean accuracy", ".1%"), hint(R::pareto, "on the front (1: yes)", "d")
            ] }
        }),
    ];
    if extent.labels_fit(&data) {
        layers.push(json!({
            "mark": {
                "type": "text", "align": "right", "dx": -11, "dy": -12, "fontWeight": 600, "fontSize": 12
            },
            "encoding": { "text": { "field": crate::figure::LABEL }, "color": { "value": "@ink" } }
        }));
    }
    let spec = json!({ "encoding": { "x": x(R::synops), "y": y(R::robustness) }, "layer": layers });
    let excluded: Vec<String> =
        study.shown().iter().filter(|c| c.failed()).map(|condition| condition.title()).collect();
    let excluded = if excluded.is_empty() {
        Html::new()
    } else {
        Html::fill("<p>Excluded because not every network learned: {}.</p>", &[&excluded.join(", ")])
    };
    let caption = Html::fill(
        "<p>Bars are 95&nbsp;% intervals over seeds. The work axis begins at 0 and the other spans at least \
         {} percentage points, so that small differences look small.</p>{}{}",
        &[&super::number::short(100.0 * SMALLEST_SPAN), &excluded, &chart::small_print(table)],
    );
    let panels = vec![Panel::new("", spec)];
    let title = "Robustness against synaptic operations";
    Some(Figure::new("tradeoff-figure", title, caption, &data, panels).with_series(series))
}

/// Range of the axes, including intervals.
struct Extent {
    right: f64,
    bottom: f64,
    top: f64,
}

impl Extent {
    fn of(data: &Rows<TradeoffRow>) -> Self {
        let rows = || data.rows.iter();
        let right = rows().map(|row| row.synops + row.synops_half.unwrap_or(0.0)).fold(0.0, f64::max);
        let ends = rows().flat_map(|row| {
            let half = row.robustness_half.unwrap_or(0.0);
            [row.robustness - half, row.robustness + half]
        });
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let room = (SMALLEST_SPAN - (high - low)).max(0.0) / 2.0 + 0.01;
        Extent { right: 1.08 * right, bottom: (low - room).max(0.0), top: (high + room).min(1.0) }
    }

    /// Whether labels next to the points would not overlap, even on a narrow screen. The buttons name the
    /// points anyway.
    fn labels_fit(&self, data: &Rows<TradeoffRow>) -> bool {
        let clear = |a: &TradeoffRow, b: &TradeoffRow| {
            (a.synops - b.synops).abs() > 0.4 * self.right
                || (a.robustness - b.robustness).abs() > 0.1 * (self.top - self.bottom)
        };
        // A long name at the left edge would extend beyond the picture.
        let inside = data.rows.iter().all(|row| row.synops > 0.4 * self.right || row.condition.len() < 9);
        let rows = &data.rows;
        inside && (0..rows.len()).all(|i| (0..i).all(|j| clear(&rows[i], &rows[j])))
    }
}
