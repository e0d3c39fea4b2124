//! Fig. 3: accuracy against severity, one panel for each noise and scenario, and next to it the difference
//! from the baseline in pairs of runs. Bands of single conditions may overlap completely even if every pair
//! differs in the same direction.

use super::chart::{self, hint, number_with};
use super::condition::Condition;
use super::records::Study;
use crate::figure::{Figure, Panel, Series};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::tables::RobustnessByConditionRow;
use leaklab_record::{Noise, NoiseKey, Quantity, Rows, Scenario};
use serde_json::{Value, json};

leaklab_record::row! {
    /// Accuracy of one condition at one severity of one noise, and its difference from the baseline.
    pub struct SeverityRow in "robustness" {
        /// Kind of noise.
        noise: Noise [""],
        /// Where it enters: pixel (before encoding) or channel (added to the spikes).
        scenario: Scenario [""],
        /// 0 is clean, 8 the strongest.
        severity: u64 [""],
        /// Strength of the noise at this severity.
        level: f64 [""],
        /// Condition.
        condition: String [""],
        /// Mean accuracy over seeds.
        mean: f64 ["fraction"],
        /// Lower end of its 95 % interval; empty with one seed.
        low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        high: Option<f64> ["fraction"],
        /// Number of runs.
        seeds: u64 [""],
        /// Accuracy minus that of the baseline with the same seed, mean over pairs.
        difference: Option<f64> ["fraction"],
        /// Lower end of its 95 % interval; empty with one pair.
        difference_low: Option<f64> ["fraction"],
        /// Upper end of the interval.
        difference_high: Option<f64> ["fraction"],
    }
}

/// The section on robustness.
pub fn section(study: &Study) -> Section {
    let place = if study.recorded {
        "Noise acts on the spikes of a recording"
    } else {
        "Noise acts on the pixels before they become spikes (scenario 1), or on the spikes themselves \
         (scenario 2)"
    };
    let mut section = Section::new(
        "robustness",
        "Robustness",
        "Accuracy under noise",
        Html::fill(
            "<p>Every network was trained on clean {}s and is tested here with noise in its input. {}. \
             Severity 0 is clean, and severity 8 is the strongest noise.</p>",
            &[&study.sample(), &place],
        ),
    );
    let Some(table) = &study.compare.robustness else {
        section.after = match study.is_without_noise() {
            true => chart::notice("The study tests no noise."),
            false => chart::missing("Accuracy under noise is", "compare/robustness_by_condition table"),
        };
        return section;
    };
    let conditions = chart::present(study.shown(), table.rows.iter().map(|row| row.condition.as_str()));
    let shown = |row: &&RobustnessByConditionRow| conditions.iter().any(|c| c.name == row.condition);
    let mut data = Rows::new(&table.title, &table.definition);
    data.rows = table.rows.iter().filter(shown).map(|row| joined(study, row)).collect();
    let series = chart::series(&conditions);
    let noises = chart::distinct(data.rows.iter().map(|row| (row.noise, row.scenario)));
    let paired = data.rows.iter().any(|row| row.difference.is_some());
    let span = span(&data);
    let mut panels = Vec::new();
    for (noise, scenario) in noises {
        let title = chart::capital(&NoiseKey { noise, scenario }.words());
        panels.push(Panel::new(&title, accuracy(noise, scenario, &series, &conditions)).with_height(230));
        if let Some(baseline) = study.baseline().filter(|_| paired) {
            let spec = difference(noise, scenario, &series, &conditions, span);
            panels.push(
                Panel::new(&format!("Difference from {}, in pairs", baseline.title()), spec).with_height(230),
            );
        }
    }
    let pairs = study.baseline().filter(|_| paired).map_or_else(Html::new, |baseline| {
        Html::fill(
            "<p>Next to each noise is the accuracy minus that of {} with the same seed, which is shown the \
             same {}s and input spikes. What a pair has in common cancels, so a difference can be clear even \
             if the bands overlap.</p>",
            &[&baseline.title(), &study.sample()],
        )
    });
    section.figures.push(
        Figure::new(
            "fig3",
            "Fig. 3 · Accuracy against noise severity",
            Html::fill(
                "<p>A curve that stays high belongs to a robust network. Bands and bars are 95&nbsp;% \
                 intervals.</p>{}<p>The noise level of a severity is in the tooltip and in the settings. The \
                 paper does not state its levels, so curves can be compared only within this study.</p>{}{}",
                &[&pairs, &chart::unlearned(study), &chart::small_print(table)],
            ),
            &data,
            panels,
        )
        .with_series(series)
        .with_columns(2),
    );
    if let Some(baseline) = study.learned_baseline() {
        section.after = by_severity(baseline, &study.learned(), &data.rows);
    }
    section
}

/// The severities at which a condition and the baseline differ significantly, for each noise. The mean over
/// severities, by which the claim is judged, hides a difference whose sign depends on the severity.
fn by_severity(baseline: &Condition, learned: &[&Condition], rows: &[SeverityRow]) -> Html {
    let rows: Vec<&SeverityRow> = rows.iter().filter(|row| row.difference_low.is_some()).collect();
    let with_interval = |c: &&&Condition| rows.iter().any(|row| row.condition == c.name);
    let conditions: Vec<&Condition> = learned.iter().filter(with_interval).copied().collect();
    if conditions.is_empty() {
        return Html::new();
    }
    let body = Html::join(chart::distinct(rows.iter().map(|row| (row.noise, row.scenario))).into_iter().map(
        |(noise, scenario)| {
            let cells = Html::join(conditions.iter().map(|condition| {
                let own = rows.iter().filter(|row| {
                    (row.noise, row.scenario) == (noise, scenario) && row.condition == condition.name
                });
                let own: Vec<&SeverityRow> = own.copied().collect();
                Html::fill(
                    "<td data-label=\"{}\"><span>{}</span></td>",
                    &[&condition.label(), &significant(&own)],
                )
            }));
            let words = chart::capital(&NoiseKey { noise, scenario }.words());
            Html::fill("<tr><th scope=\"row\">{}</th>{}</tr>\n", &[&words, &cells])
        },
    ));
    let heads = Html::join(conditions.iter().map(|condition| {
        Html::fill(
            "<th><span class=\"swatch\" data-colour=\"{}\"></span>{}</th>",
            &[&condition.look.colour, &condition.label()],
        )
    }));
    Html::fill(
        "{}<div class=\"scroll\"><table class=\"{}\"><thead><tr><th></th>{}</tr></thead><tbody>\n{}</tbody>\
         </table></div>\n<p class=\"muted small prose\">Severities at which accuracy is lower or higher than \
         that of {}, so that the 95&nbsp;% interval of the difference excludes zero. Severity 0 is clean. The \
         intervals are not corrected for the number of severities. \
         Claim 2 is judged by the mean over severities 1 to 8.</p>\n",
        &[
            &chart::table_heading("At which severities is the difference clear?"),
            &chart::stack_class(conditions.len()),
            &heads,
            &body,
            &baseline.title(),
        ],
    )
}

/// Where the accuracy is significantly lower, and where it is higher.
fn significant(rows: &[&SeverityRow]) -> Html {
    let at = |is: fn(&SeverityRow) -> bool| -> Vec<u64> {
        rows.iter().filter(|row| is(row)).map(|row| row.severity).collect()
    };
    let lower = at(|row| row.difference_high.is_some_and(|high| high < 0.0));
    let higher = at(|row| row.difference_low.is_some_and(|low| low > 0.0));
    let found: Vec<String> = [("lower", lower), ("higher", higher)]
        .into_iter()
        .filter(|(_, severities)| !severities.is_empty())
        .map(|(word, severities)| format!("{word} at {}", ranges(&severities)))
        .collect();
    Html::text(&if found.is_empty() { "–".to_owned() } else { found.join("; ") })
}

/// Ascending numbers in words: `0 to 4, 6 and 7`.
fn ranges(numbers: &[u64]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let parts = runs.flat_map(|run| match run {
        [first, _, .., last] => vec![format!("{first} to {last}")],
        few => few.iter().map(u64::to_string).collect(),
    });
    chart::phrase(&parts.collect::<Vec<_>>())
}

/// A row with its difference from the baseline, if both learned.
fn joined(study: &Study, row: &RobustnessByConditionRow) -> SeverityRow {
    let quantity = match row.severity {
        0 => Quantity::Accuracy,
        severity => {
            let noise = NoiseKey { noise: row.noise, scenario: row.scenario };
            Quantity::AccuracyUnder(noise, severity as usize)
        }
    };
    let judged = study.learned().iter().any(|condition| condition.name == row.condition);
    let baseline = study.learned_baseline().filter(|_| judged);
    let contrast = baseline.and_then(|b| study.compare.contrast(&quantity, &row.condition, &b.name));
    SeverityRow {
        noise: row.noise,
        scenario: row.scenario,
        severity: row.severity,
        level: row.level,
        condition: row.condition.clone(),
        mean: row.mean,
        low: row.low,
        high: row.high,
        seeds: row.seeds,
        difference: contrast.map(|contrast| contrast.mean),
        difference_low: contrast.and_then(|contrast| contrast.low),
        difference_high: contrast.and_then(|contrast| contrast.high),
    }
}

fn of(noise: Noise, scenario: Scenario) -> [Value; 2] {
    let noise = chart::equal(SeverityRow::noise, &noise.to_string());
    [noise, chart::equal(SeverityRow::scenario, &scenario.to_string())]
}

fn severity() -> Value {
    let axis = json!({ "tickMinStep": 1, "format": "d" });
    number_with(SeverityRow::severity, "noise severity", json!({ "axis": axis, "scale": { "nice": false } }))
}

fn accuracy(noise: Noise, scenario: Scenario, series: &Series, conditions: &[&Condition]) -> Value {
    let y = |field: &str| {
        let more = json!({ "axis": { "format": ".0%" }, "scale": { "domain": [0, 1] } });
        number_with(field, "accuracy", more)
    };
    json!({
        "transform": of(noise, scenario),
        "encoding": { "x": severity(), "color": series.colour() },
        "layer": [
            {
                "mark": { "type": "area", "opacity": 0.16 },
                "encoding": { "y": y(SeverityRow::low), "y2": { "field": SeverityRow::high } }
            },
            { "mark": { "type": "line" }, "encoding": { "y": y(SeverityRow::mean) } },
            {
                "mark": { "type": "point", "filled": true, "size": 56, "opacity": 1 },
                "encoding": {
                    "y": y(SeverityRow::mean),
                    "shape": chart::shape(conditions),
                    "tooltip": [
                        chart::who("condition"), hint(SeverityRow::severity, "severity", "d"),
                        hint(SeverityRow::level, noise.level_name(), ".3~g"),
                        hint(SeverityRow::mean, "accuracy", ".1%"),
                        hint(SeverityRow::low, "interval from", ".1%"), hint(SeverityRow::high, "to", ".1%"),
                        hint(SeverityRow::seeds, "seeds", "d")
                    ]
                }
            }
        ]
    })
}

/// Range of the differences, including intervals: one scale for all noises, so that they can be compared.
fn span(data: &Rows<SeverityRow>) -> [f64; 2] {
    let ends = data.rows.iter().flat_map(|row| [row.difference, row.difference_low, row.difference_high]);
    let (low, high) = ends.flatten().fold((0f64, 0f64), |(low, high), x| (low.min(x), high.max(x)));
    let room = 0.04 * (high - low);
    [low - room, high + room]
}

fn difference(
    noise: Noise,
    scenario: Scenario,
    series: &Series,
    conditions: &[&Condition],
    span: [f64; 2],
) -> Value {
    let y = |field: &str| {
        let scale = json!({ "domain": span, "nice": false });
        number_with(
            field,
            "difference (percentage points)",
            json!({ "axis": chart::points_axis(), "scale": scale }),
        )
    };
    let [noise, scenario] = of(noise, scenario);
    let offset = json!({ "field": SeverityRow::condition, "type": "nominal", "sort": series.values() });
    // Severities are ordinal here, so that the bars of several conditions can be side by side.
    let x = json!({
        "field": SeverityRow::severity, "type": "ordinal", "title": "noise severity",
        "axis": { "labelAngle": 0 }, "scale": { "paddingInner": 0.3 }
    });
    json!({
        "transform": [noise, scenario, chart::valid(SeverityRow::difference)],
        "encoding": { "x": x, "xOffset": offset, "color": series.colour() },
        "layer": [
            {
                "data": { "values": [{ "none": 0 }] },
                "mark": { "type": "rule", "color": "@rule", "strokeWidth": 1.5 },
                "encoding": { "y": y("none"), "x": null, "xOffset": null, "color": null }
            },
            {
                "transform": [chart::valid(SeverityRow::difference_low)],
                "mark": { "type": "rule", "strokeWidth": 2 },
                "encoding": {
                    "y": y(SeverityRow::difference_low), "y2": { "field": SeverityRow::difference_high }
                }
            },
            {
                "mark": { "type": "point", "filled": true, "size": 46, "opacity": 1 },
                "encoding": {
                    "y": y(SeverityRow::difference),
                    "shape": chart::shape(conditions),
                    "tooltip": [
                        chart::who("condition"), hint(SeverityRow::severity, "severity", "d"),
                        hint(SeverityRow::difference, "difference", "+.1%"),
                        hint(SeverityRow::difference_low, "interval from", "+.1%"),
                        hint(SeverityRow::difference_high, "to", "+.1%")
                    ]
                }
            }
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn severities_in_words() {
        for (numbers, words) in [
            (&[0, 1, 2, 3, 4, 6, 7][..], "0 to 4, 6 and 7"),
            (&[8], "8"),
            (&[6, 7, 8], "6 to 8"),
            (&[1, 3], "1 and 3"),
        ] {
            assert_eq!(ranges(numbers), words);
        }
    }
}
