//! Weights trained with one leak and run with another, as a map of accuracies.

use super::{caption, stimuli, title};
use crate::figure::{Figure, Panel};
use crate::study::chart::{self, hint};
use leaklab_record::tables::CellRow;
use leaklab_record::{Readout, Rows, Stimulus, Tau};
use serde_json::{Value, json};

/// A way to run weights: leak of the hidden layers and of the readout.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Run {
    hidden: Tau,
    readout: Tau,
}

impl Run {
    fn of(row: &CellRow) -> Option<Self> {
        match row.readout {
            Readout::Leaky(readout) => Some(Run { hidden: row.hidden, readout }),
            Readout::Reversed(_) | Readout::Window { .. } => None,
        }
    }

    /// The key that the figure's transform computes.
    fn key(self) -> String {
        format!("{}|{}", self.hidden, Readout::Leaky(self.readout))
    }

    /// The name of its row.
    fn words(self) -> Value {
        match (self.hidden.leaks(), self.readout.leaks()) {
            (false, false) => json!("no leak"),
            (false, true) => json!(format!("readout τ {}", self.readout)),
            (true, false) => json!(format!("hidden τ {}", self.hidden)),
            (true, true) => json!(format!("both τ {}", self.hidden)),
        }
    }
}

/// No leak, then for each time constant: readout only, hidden layers only, both.
fn runs(taus: &[Tau]) -> Vec<Run> {
    let none = Tau::INFINITE;
    let leaky = taus.iter().filter(|tau| tau.leaks()).flat_map(|&tau| {
        [(none, tau), (tau, none), (tau, tau)].map(|(hidden, readout)| Run { hidden, readout })
    });
    std::iter::once(Run { hidden: none, readout: none }).chain(leaky).collect()
}

/// The map, one panel for each stimulus.
pub fn figure(table: &Rows<CellRow>) -> Option<Figure> {
    use CellRow as R;
    let mut taus = chart::distinct(table.rows.iter().flat_map(|row| [row.trained, row.hidden]));
    taus.sort();
    let runs = runs(&taus);
    let data = chart::only(table, |row| Run::of(row).is_some_and(|run| runs.contains(&run)));
    let mut trained = chart::distinct(data.rows.iter().map(|row| row.trained));
    trained.sort();
    let trained: Vec<String> = trained.iter().map(Tau::to_string).collect();
    let trained_words = trained.iter().map(|tau| {
        let words = if tau == "inf" { "no leak".to_owned() } else { format!("τ = {tau}") };
        (tau.clone(), json!([words]))
    });
    let trained_words = chart::words(trained_words);
    let order: Vec<String> = runs.iter().map(|run| run.key()).collect();
    let run_words = chart::words(runs.iter().map(|run| (run.key(), run.words())));
    let base = |stimulus: Stimulus| {
        let same = |row: &&CellRow| {
            row.stimulus == stimulus && !row.trained.leaks() && Run::of(row) == Some(runs[0])
        };
        data.rows.iter().find(same).map(|row| row.accuracy)
    };
    // One scale for all panels: points above or below the network without leak.
    let far = |row: &CellRow| base(row.stimulus).map_or(0.0, |base| (row.accuracy - base).abs());
    let span = data.rows.iter().map(far).fold(0.02, f64::max);
    let panels = stimuli(data.rows.iter().map(|row| row.stimulus)).into_iter().filter_map(|stimulus| {
        let base = base(stimulus)?;
        let scale = json!({
            "domain": [base - span, base, base + span], "range": ["@worse", "@band", "@better"],
            "interpolate": "rgb"
        });
        let spec = json!({
            "transform": [
                chart::equal(R::stimulus, &stimulus.to_string()),
                { "calculate": format!("datum.{} + '|' + datum.{}", R::hidden, R::readout), "as": "run" },
                { "calculate": format!("datum.{} - {base}", R::accuracy), "as": "change" }
            ],
            "encoding": {
                "tooltip": [
                    hint(R::trained, "trained with τ", ""), hint(R::hidden, "hidden layers run with τ", ""),
                    hint(R::readout, "readout", ""), hint(R::accuracy, "accuracy", ".1%"),
                    hint("change", "compared with no leak", "+.1%"), hint(R::low, "interval from", ".1%"),
                    hint(R::high, "to", ".1%"), hint(R::synops, "synaptic operations", ".3~s"),
                    hint(R::seeds, "seeds", "d")
                ],
                "x": {
                    "field": R::trained, "type": "nominal", "sort": trained, "title": "trained with",
                    "axis": { "labelExpr": trained_words, "labelAngle": 0, "domain": false, "ticks": false }
                },
                "y": {
                    "field": "run", "type": "nominal", "sort": order, "title": "run with leak in",
                    "axis": { "labelExpr": run_words, "domain": false, "ticks": false }
                }
            },
            "layer": [
                {
                    "mark": { "type": "rect" },
                    "encoding": {
                        "color": {
                            "field": R::accuracy, "type": "quantitative", "scale": scale, "legend": null
                        }
                    }
                },
                {
                    "mark": { "type": "text", "fontSize": 12 },
                    "encoding": {
                        "text": {
                            "field": R::accuracy, "type": "quantitative", "format": ".0%"
                        },
                        "color": { "value": "@ink" }
                    }
                }
            ]
        });
        Some(Panel::new(&title(stimulus), spec).with_height(28 * runs.len() as u32))
    });
    let panels: Vec<Panel> = panels.collect();
    if panels.is_empty() {
        return None;
    }
    let text = "Accuracy of weights trained with one leak (columns) and run with another (rows). Blue is \
                better than the network trained and run without leak, red is worse; all panels share one \
                scale. An empty cell was not measured.";
    let title = "Trained with one leak, run with another";
    Some(Figure::new("why-cells", title, caption(text, table), &data, panels).with_columns(2))
}
