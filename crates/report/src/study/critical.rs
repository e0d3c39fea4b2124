//! Fig. 5a-c: the critical frequency of the target output, image by image, clean and noisy, one panel per
//! condition.

use super::chart::{self, hint, number_with};
use super::condition::Condition;
use super::records::Study;
use super::{hidden, readings};
use crate::figure::{Figure, Panel, Series};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::tables::CriticalByConditionRow as Mean;
use leaklab_record::{PAPER_NOISES, Reading, Rows, Stimulus};
use serde_json::{Value, json};

/// The highest frequency of a signal with one value per step.
pub const NYQUIST: f64 = 0.5;

leaklab_record::row! {
    /// One bin of a condition's critical frequencies.
    pub struct CriticalBinRow in "critical_frequency" {
        /// Condition.
        condition: String [""],
        /// Stimulus: clean, or a noise at a severity.
        stimulus: Stimulus [""],
        /// Lower end of the bin.
        from: f64 ["cycles/step"],
        /// Upper end of the bin.
        to: f64 ["cycles/step"],
        /// Images in the bin, over all seeds.
        images: u64 [""],
    }
}

/// The section on the output's spectrum.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new(
        "critical-frequency",
        "Output spectrum",
        "Does leak filter the output?",
        Html::fill(
            "<p>For each {}, take the signal that reaches the output neuron of its class. Its critical \
             frequency is the one below which 70&nbsp;% of the signal's power lies. A low-pass filter moves \
             it down. The paper finds it lower with more leak, and higher with noise.</p>",
            &[&study.sample()],
        ),
    );
    let white = white_noise(study);
    if let Some(x) = white {
        section.text.add(
            "<p>White noise over {} steps would give {} cycles per step (dotted line).</p>",
            &[&study.setting("time_steps"), &format!("{x:.3}")],
        );
    }
    let Some(data) = histogram(study) else {
        let (what, tables) =
            ("The output's critical frequencies are", "critical_frequency tables of the runs");
        section.after = chart::unmeasured(study, what, tables);
        return section;
    };
    let stimuli = chart::distinct(data.rows.iter().map(|row| row.stimulus));
    let series = series(CriticalBinRow::stimulus, &stimuli);
    let conditions = chart::present(study.shown(), data.rows.iter().map(|row| row.condition.as_str()));
    // One scale for all panels, with space above for the means.
    let top = 1.3 * data.rows.iter().map(|row| row.images).max().unwrap_or(1) as f64;
    let panels = conditions.iter().map(|condition| {
        Panel::new(&condition.label(), panel(study, condition, &series, white, top)).with_height(210)
    });
    let panels = panels.collect();
    let caption = Html::fill(
        "<p>Histograms of the {}s of all seeds. A dashed line is the mean over seeds; the block at its top \
         is as wide as its 95&nbsp;% interval. If leak filters, the histograms with more leak are further to \
         the left.</p>{}",
        &[&study.sample(), &chart::unlearned_panels(study)],
    );
    let title = "Fig. 5a–c · Critical frequency of the target output";
    section.figures.push(Figure::new("fig5abc", title, caption, &data, panels).with_series(series));
    section.figures.extend(readings::figure(study, white));
    section.figures.extend(hidden::figure(study));
    section.after = readings::table(study);
    section
}

/// Stimuli as series. The paper's pair is shown; the others can be switched on.
pub fn series(column: &'static str, stimuli: &[Stimulus]) -> Series {
    let [gaussian, ..] = PAPER_NOISES;
    let paper = |s: &Stimulus| matches!(s, Stimulus::Noisy(noise, _) if *noise == gaussian);
    let noisy = stimuli.iter().find(|s| paper(s)).or(stimuli.get(1));
    chart::stimulus_series(column, stimuli, |s| s == Stimulus::Clean || Some(&s) == noisy)
}

/// The line that marks the value for white noise.
pub fn white_rule(white: f64, x: Value) -> Value {
    json!({
        "data": { "values": [{ "white": white }] },
        "mark": { "type": "rule", "strokeWidth": 1.5, "strokeDash": [1, 3] },
        "encoding": {
            "x": x, "y": null, "yOffset": null, "color": { "value": "@ink" },
            "tooltip": [hint("white", "white noise", ".4f")]
        }
    })
}

/// An axis of frequencies up to the Nyquist frequency.
pub fn frequency(field: &str) -> Value {
    let axis = json!({ "values": [0, 0.1, 0.2, 0.3, 0.4, 0.5], "format": ".1f" });
    let scale = json!({ "domain": [0, NYQUIST], "nice": false });
    number_with(field, "critical frequency (cycles/step)", json!({ "scale": scale, "axis": axis }))
}

fn panel(study: &Study, condition: &Condition, series: &Series, white: Option<f64>, top: f64) -> Value {
    use CriticalBinRow as R;
    let samples = &format!("{}s", study.sample());
    let mut layers = vec![json!({
        "transform": [chart::equal(R::condition, &condition.name)],
        "mark": { "type": "rect", "opacity": 0.45 },
        "encoding": {
            "x": frequency(R::from), "x2": { "field": R::to },
            "y": number_with(R::images, samples, json!({ "scale": { "domain": [0, top], "nice": false } })),
            "y2": { "datum": 0 },
            "tooltip": [
                chart::who("input"), hint(R::from, "from", ".3f"), hint(R::to, "to", ".3f"),
                hint(R::images, samples, ",d")
            ]
        }
    })];
    let tooltip = json!([
        hint("words", "mean of", ""),
        hint(Mean::mean, "cycles/step", ".4f"),
        hint(Mean::low, "interval from", ".4f"),
        hint(Mean::high, "to", ".4f")
    ]);
    for (i, mean) in means(study, condition).into_iter().enumerate() {
        // The means are above the histogram, one below the other.
        let row = json!({ "value": 8 + 10 * i });
        let hidden = json!({ "filter": format!("indexof(hidden, datum.{}) < 0", R::stimulus) });
        layers.push(json!({
            "data": { "values": [mean] },
            "transform": [hidden],
            "mark": { "type": "rule", "strokeWidth": 1.5, "strokeDash": [5, 3] },
            "encoding": { "x": frequency(Mean::mean), "tooltip": tooltip }
        }));
        layers.push(json!({
            "data": { "values": [mean] },
            "transform": [hidden, chart::valid(Mean::low)],
            "mark": { "type": "rule", "strokeWidth": 8, "opacity": 1 },
            "encoding": {
                "x": frequency(Mean::low), "x2": { "field": Mean::high }, "y": row,
                "tooltip": tooltip
            }
        }));
    }
    layers.extend(white.map(|white| white_rule(white, frequency("white"))));
    json!({ "encoding": { "color": series.colour() }, "layer": layers })
}

/// The condition's mean critical frequencies as defined, by stimulus.
fn means(study: &Study, condition: &Condition) -> Vec<Value> {
    let rows = study.compare.critical.iter().flat_map(|table| &table.rows);
    let own = rows.filter(|row| row.condition == condition.name && row.reading == Reading::Defined);
    let values = own.map(|row| {
        json!({
            (Mean::stimulus): row.stimulus.to_string(), "words": row.stimulus.words(),
            (Mean::mean): row.mean, (Mean::low): row.low, (Mean::high): row.high
        })
    });
    values.collect()
}

/// The runs' histograms, summed over seeds, with the limits of the bins. No bin extends beyond the Nyquist
/// frequency.
fn histogram(study: &Study) -> Option<Rows<CriticalBinRow>> {
    let mut sums: Vec<(&str, Stimulus, f64, u64)> = Vec::new();
    let shown = study.shown();
    for run in study.runs.iter().filter(|run| shown.iter().any(|c| c.name == run.condition)) {
        for row in run.tables.critical.iter().flat_map(|rows| &rows.rows) {
            let same = |s: &&mut (&str, Stimulus, f64, u64)| {
                s.0 == run.condition && s.1 == row.stimulus && s.2 == row.frequency
            };
            match sums.iter_mut().find(same) {
                Some(sum) => sum.3 += row.images,
                None => sums.push((&run.condition, row.stimulus, row.frequency, row.images)),
            }
        }
    }
    let mut frequencies: Vec<f64> = sums.iter().map(|sum| sum.2).collect();
    frequencies.sort_by(f64::total_cmp);
    frequencies.dedup();
    let width = frequencies.windows(2).map(|pair| pair[1] - pair[0]).reduce(f64::min)?;
    let mut out = Rows::new(
        "Critical frequency of the target output",
        "Images by critical frequency, summed over seeds.",
    );
    out.rows.extend(sums.into_iter().map(|(condition, stimulus, frequency, images)| CriticalBinRow {
        condition: condition.to_owned(),
        stimulus,
        from: (frequency - width / 2.0).max(0.0),
        to: (frequency + width / 2.0).min(NYQUIST),
        images,
    }));
    Some(out)
}

/// The critical frequency of white noise with as many steps as the study's.
fn white_noise(study: &Study) -> Option<f64> {
    let mut rows = study.runs.iter().filter_map(|run| run.tables.critical_summary.as_ref()?.rows.first());
    rows.next().and_then(|row| row.white_noise)
}
