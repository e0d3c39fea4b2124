//! The critical frequency by several readings of its definition, side by side, because the sign of leak's
//! effect depends on the reading.

use super::chart::{self, hint, number_with};
use super::condition::Condition;
use super::records::Study;
use super::{critical, number};
use crate::figure::{Figure, Panel};
use crate::html::Html;
use leaklab_record::tables::CriticalByConditionRow;
use leaklab_record::{Quantity, Reading, Rows, Stimulus};
use serde_json::json;

/// One panel per reading, with the paired differences in words.
pub fn figure(study: &Study, white: Option<f64>) -> Option<Figure> {
    use CriticalByConditionRow as R;
    let table = study.compare.critical.as_ref()?;
    let conditions = chart::present(study.shown(), table.rows.iter().map(|row| row.condition.as_str()));
    let data = chart::only(table, |row| conditions.iter().any(|condition| condition.name == row.condition));
    let stimuli = chart::distinct(data.rows.iter().map(|row| row.stimulus));
    let series = critical::series(R::stimulus, &stimuli);
    let names: Vec<&str> = conditions.iter().map(|condition| condition.name.as_str()).collect();
    let span = span(&data, white);
    let x = |field: &str| {
        let scale = json!({ "domain": span, "nice": false });
        let axis = json!({ "tickCount": 3, "format": "~g" });
        number_with(field, "critical frequency (cycles/step)", json!({ "scale": scale, "axis": axis }))
    };
    let labels = chart::words(conditions.iter().map(|c| (c.name.clone(), chart::short_lines(&c.title()))));
    let readings =
        Reading::ALL.into_iter().filter(|reading| data.rows.iter().any(|row| row.reading == *reading));
    let panels = readings.map(|reading| {
        let mut layers = vec![
            json!({
                "transform": [chart::valid(R::low)],
                "mark": { "type": "rule", "strokeWidth": 2 },
                "encoding": { "x": x(R::low), "x2": { "field": R::high } }
            }),
            json!({
                "mark": { "type": "point", "filled": true, "size": 40, "opacity": 1 },
                "encoding": { "x": x(R::mean), "tooltip": [
                    chart::who("input"), hint(R::mean, "cycles/step", ".4f"),
                    hint(R::low, "interval from", ".4f"),
                    hint(R::high, "to", ".4f"), hint(R::seeds, "seeds", "d")
                ] }
            }),
        ];
        layers.extend(white.map(|white| critical::white_rule(white, x("white"))));
        let spec = json!({
            "transform": [chart::equal(R::reading, &reading.to_string())],
            "encoding": {
                "y": {
                    "field": R::condition, "type": "nominal", "sort": names, "title": null,
                    "axis": { "labelExpr": labels, "domain": false, "ticks": false, "grid": true },
                    "scale": { "paddingInner": 0.3, "paddingOuter": 0.2 }
                },
                "yOffset": { "field": R::stimulus, "type": "nominal", "sort": series.values() },
                "color": series.colour()
            },
            "layer": layers
        });
        let height = 24 + 34 * conditions.len() as u32;
        Panel::new(&chart::capital(reading.words()), spec).with_height(height)
    });
    let panels: Vec<Panel> = panels.collect();
    let caption = Html::fill(
        "<p>The same signals, read in several ways. Bars are 95&nbsp;% intervals over seeds.</p>{}{}",
        &[&moves(study), &chart::small_print(table)],
    );
    let title = "Critical frequency by several readings of its definition";
    let columns = panels.len().clamp(1, 3);
    Some(Figure::new("readings", title, caption, &data, panels).with_columns(columns).with_series(series))
}

/// Range of the axis: all intervals, at least a fifth of the band, and nothing beyond it.
fn span(data: &Rows<CriticalByConditionRow>, white: Option<f64>) -> [f64; 2] {
    let ends = data.rows.iter().flat_map(|row| [Some(row.mean), row.low, row.high]);
    let ends = ends.chain([white]).flatten();
    let (low, high) = ends.fold((critical::NYQUIST, 0f64), |(low, high), x| (low.min(x), high.max(x)));
    let room = (0.1 - (high - low)).max(0.0) / 2.0 + 0.01;
    [(low - room).max(0.0), (high + room).min(critical::NYQUIST)]
}

/// The effect of most leak on the critical frequency by each reading, and how to interpret it.
fn moves(study: &Study) -> Html {
    let Some(baseline) = study.learned_baseline() else { return Html::new() };
    let Some(most) = study.learned().into_iter().find(|condition| condition.name != baseline.name) else {
        return Html::new();
    };
    let effects = Reading::ALL.into_iter().filter_map(|reading| {
        let quantity = Quantity::CriticalFrequency(reading, Stimulus::Clean);
        let row = study.compare.contrast(&quantity, &most.name, &baseline.name)?;
        let write = |x: f64| number::signed(x, 3);
        let range = match (row.low, row.high) {
            (Some(low), Some(high)) => format!(" [{}, {}]", write(low), write(high)),
            (None, _) | (_, None) => String::new(),
        };
        Some(format!("{}{range} {}", write(row.mean), reading.words()))
    });
    let effects: Vec<String> = effects.collect();
    if effects.is_empty() {
        return Html::new();
    }
    Html::fill(
        "<p><strong>What moves it.</strong> On clean {}s, {} differs from {} by {} (cycles per step). A \
         difference that disappears without the first steps comes from the onset, when potentials build up. \
         A difference that remains when spike trains are shuffled in time is not filtering: shuffling \
         removes all temporal structure.</p>",
        &[&study.sample(), &most.title(), &baseline.title(), &effects.join("; ")],
    )
}

/// The means by stimulus, reading and condition, with the paper's values if they can be compared.
pub fn table(study: &Study) -> Html {
    let Some(table) = &study.compare.critical else { return Html::new() };
    let conditions = chart::present(study.shown(), table.rows.iter().map(|row| row.condition.as_str()));
    let mut body = Html::new();
    for (reading, stimulus) in chart::distinct(table.rows.iter().map(|row| (row.reading, row.stimulus))) {
        let cells = Html::join(conditions.iter().map(|condition| {
            let row = table.rows.iter().find(|row| {
                row.condition == condition.name && row.stimulus == stimulus && row.reading == reading
            });
            cell(condition, row.map(|row| (row.mean, row.low.zip(row.high), row.paper)), |x| {
                format!("{x:.3}")
            })
        }));
        let label = format!("{}, {}", chart::capital(&stimulus.words()), reading.words());
        body.add("<tr><th scope=\"row\">{}</th>{}</tr>\n", &[&label, &cells]);
    }
    for stimulus in chart::distinct(table.rows.iter().map(|row| row.stimulus)) {
        let shares: Vec<Option<f64>> =
            conditions.iter().map(|condition| zero_share(study, condition, stimulus)).collect();
        if shares.iter().any(Option::is_some) {
            let cells = Html::join(conditions.iter().zip(shares).map(|(condition, share)| {
                cell(condition, share.map(|share| (share, None, None)), |x| number::percent(x, 1))
            }));
            let label = format!("{}, share of power at frequency 0", chart::capital(&stimulus.words()));
            body.add("<tr><th scope=\"row\">{}</th>{}</tr>\n", &[&label, &cells]);
        }
    }
    Html::fill(
        "<details><summary>Mean critical frequencies as numbers</summary><div class=\"scroll\"><table \
         class=\"{}\"><thead><tr><th></th>{}</tr></thead><tbody>\n{}</tbody></table></div>\n<p class=\"muted \
         small prose\">In cycles per step; means over seeds, with 95&nbsp;% intervals in \
         brackets.</p></details>\n",
        &[&chart::stack_class(conditions.len()), &chart::head(&conditions), &body],
    )
}

/// A mean, its interval and the paper's value.
type Value = (f64, Option<(f64, f64)>, Option<f64>);

fn cell(condition: &Condition, value: Option<Value>, write: impl Fn(f64) -> String) -> Html {
    let value = value.map_or_else(
        || Html::markup("–"),
        |(mean, interval, paper)| {
            let mut out = Html::text(&write(mean));
            if let Some((low, high)) = interval {
                out.add(" <span class=\"range\">[{}, {}]</span>", &[&write(low), &write(high)]);
            }
            if let Some(paper) = paper {
                out.add("<span class=\"paper\">paper {}</span>", &[&write(paper)]);
            }
            out
        },
    );
    let class = if condition.failed() { "number muted" } else { "number" };
    Html::fill(
        "<td class=\"{}\" data-label=\"{}\"><span>{}</span></td>",
        &[&class, &condition.label(), &value],
    )
}

/// The share of power at frequency 0, mean over the condition's runs.
fn zero_share(study: &Study, condition: &Condition, stimulus: Stimulus) -> Option<f64> {
    let runs = study.runs.iter().filter(|run| run.condition == condition.name);
    let rows = runs.flat_map(|run| run.tables.critical_summary.iter().flat_map(|rows| &rows.rows));
    let own = rows.filter(|row| row.stimulus == stimulus && row.reading == Reading::Defined);
    let shares: Vec<f64> = own.filter_map(|row| row.zero_share).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}
