//! The claims, and the answer in plain words that follows from them by fixed rules. No verdict is made here: the
//! comparison judged, and this says what it found.

use super::chart::{capital, noise_label};
use super::number;
use super::records::Study;
use crate::html::Html;
use leaklab_record::Table;

/// What was found of one part of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The evidence supports it.
    Holds,
    /// The evidence excludes it.
    DoesNotHold,
    /// The evidence allows both.
    NotEnoughEvidence,
}

impl Verdict {
    /// The verdict a table writes; an unknown word decides nothing.
    pub fn from_text(text: &str) -> Self {
        match text {
            "holds" => Verdict::Holds,
            "does not hold" => Verdict::DoesNotHold,
            _ => Verdict::NotEnoughEvidence,
        }
    }

    /// The words that a table writes.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::NotEnoughEvidence => "not enough evidence",
        }
    }

    /// Badge with a sign and words, so that it does not rest on colour.
    pub fn badge(self) -> Html {
        let class = match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "fails",
            Verdict::NotEnoughEvidence => "open",
        };
        Html::fill("<span class=\"verdict {}\">{}</span>", &[&class, &self.text()])
    }
}

/// The paper's claims by number: a short heading, and what to say where all parts of it agree.
struct Words {
    number: &'static str,
    heading: &'static str,
    holds: &'static str,
    fails: &'static str,
    open: &'static str,
}

const CLAIMS: [Words; 7] = [
    Words {
        number: "1",
        heading: "Equal accuracy without noise",
        holds: "Without noise, networks with and without leak are equally accurate, within one percentage point.",
        fails: "Without noise, leak does change the accuracy, by more than one percentage point.",
        open: "Whether leak changes the accuracy without noise, by as much as one percentage point, is not decided.",
    },
    Words {
        number: "2",
        heading: "Robustness: accuracy under noise falls less with more leak",
        holds: "Accuracy under noise falls less with more leak, for every noise tested.",
        fails: "Accuracy under noise does not fall less with more leak, for any noise tested.",
        open: "Whether accuracy under noise falls less with more leak is not decided.",
    },
    Words {
        number: "3",
        heading: "Generalisation: lower test error with leak",
        holds: "The test error is lower with leak, also at equal training error.",
        fails: "The test error is not lower with leak, neither at the end of training nor at equal training error.",
        open: "Whether leak lowers the test error is not decided.",
    },
    Words {
        number: "4",
        heading: "The price: more spikes and synaptic operations with more leak",
        holds: "Leak costs work: with more leak, there are more spikes and more synaptic operations.",
        fails: "Leak does not cost work here: spikes and synaptic operations do not grow with it.",
        open: "Whether leak costs spikes and synaptic operations is not decided.",
    },
    Words {
        number: "5",
        heading: "Larger weighted input with more leak",
        holds: "Hidden layers receive a larger weighted input with more leak.",
        fails: "Hidden layers do not receive a larger weighted input with more leak.",
        open: "Whether hidden layers receive a larger weighted input with more leak is not decided.",
    },
    Words {
        number: "6",
        heading: "Low-pass filtering: the critical frequency falls with leak and rises with noise",
        holds: "The critical frequency of the output falls with leak and rises with noise, as a low-pass filter's would.",
        fails: "The critical frequency of the output neither falls with leak nor rises with noise.",
        open: "Whether the critical frequency falls with leak and rises with noise is not decided.",
    },
    Words {
        number: "7",
        heading: "Training diverges for small tau",
        holds: "Training fails where tau is small.",
        fails: "Training does not fail here where tau is small.",
        open: "Whether training fails where tau is small is not decided.",
    },
];

/// The parts of one claim.
struct Parts<'a> {
    words: &'static Words,
    rows: Vec<(&'a [leaklab_record::Cell], Verdict)>,
}

impl Parts<'_> {
    fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|(_, v)| *v == verdict).count()
    }

    /// The verdict that all parts share.
    fn unanimous(&self) -> Option<Verdict> {
        let first = self.rows.first()?.1;
        (self.count(first) == self.rows.len()).then_some(first)
    }

    /// Which cases of the rules these are: `As claimed in 2, undecided in 1 of 3 parts.` Nothing where the verdict says it all.
    fn cases(&self, table: &Table) -> Option<String> {
        let mut found: Vec<(&str, usize)> = Vec::new();
        let order = [Verdict::Holds, Verdict::DoesNotHold, Verdict::NotEnoughEvidence];
        let rows =
            order.iter().flat_map(|wanted| self.rows.iter().filter(move |(_, verdict)| verdict == wanted));
        for (row, verdict) in rows {
            let case = table.cell(row, "case").text().unwrap_or(verdict.text());
            match found.iter_mut().find(|(known, _)| *known == case) {
                Some((_, count)) => *count += 1,
                None => found.push((case, 1)),
            }
        }
        match found[..] {
            [
                (
                    "as claimed"
                    | "different"
                    | "undecided"
                    | "holds"
                    | "does not hold"
                    | "not enough evidence",
                    _,
                ),
            ] => None,
            [_] if self.rows.len() == 1 => table.cell(self.rows[0].0, "reason").text().map(str::to_owned),
            [(case, _)] => Some(format!("{}.", capital(case))),
            _ => {
                let pieces: Vec<String> =
                    found.iter().map(|(case, count)| format!("{case} in {count}")).collect();
                Some(format!("{} of {} parts.", capital(&pieces.join(", ")), self.rows.len()))
            }
        }
    }

    fn sentence(&self) -> String {
        match self.unanimous() {
            Some(Verdict::Holds) => self.words.holds.to_owned(),
            Some(Verdict::DoesNotHold) => self.words.fails.to_owned(),
            Some(Verdict::NotEnoughEvidence) => self.words.open.to_owned(),
            None => format!("{}.", self.words.heading),
        }
    }

    fn badge(&self) -> Html {
        match self.unanimous() {
            Some(verdict) => verdict.badge(),
            None => Html::markup("<span class=\"verdict open\">mixed</span>"),
        }
    }
}

fn parts(table: &Table) -> Vec<Parts<'_>> {
    let mut found = Vec::new();
    for words in &CLAIMS {
        let rows: Vec<_> = table
            .rows
            .iter()
            .filter(|row| {
                let claim = table.cell(row, "claim");
                let text = claim.text().map(str::to_owned).or(claim.number().map(|n| n.to_string()));
                text.is_some_and(|text| text.split_whitespace().next() == Some(words.number))
            })
            .map(|row| {
                let verdict = Verdict::from_text(table.cell(row, "verdict").text().unwrap_or_default());
                (row.as_slice(), verdict)
            })
            .collect();
        if !rows.is_empty() {
            found.push(Parts { words, rows });
        }
    }
    found
}

/// The answer to "does leak make a spiking network robust?", then what was found of the other claims.
pub fn answer(study: &Study) -> Html {
    let Some(table) = study.compare.get("claims") else {
        return Html::fill(
            "<p class=\"first\">This study is not finished, so there is no answer yet: {} of {} runs are trained. \
             Below is what is there already.</p>",
            &[&study.trained(), &study.planned],
        );
    };
    let parts = parts(table);
    let mut out = Html::new();
    match parts.iter().find(|p| p.words.number == "2") {
        Some(robustness) => out.push(&robustness_answer(table, robustness)),
        None => out.push(&Html::markup(
            "<p class=\"first\">This study did not measure accuracy under noise, so it does not answer the main \
             question.</p>",
        )),
    }
    if study.trained() < study.planned {
        out.add(
            "<div class=\"notice missing\"><p>Preliminary: {} of {} runs are trained.</p></div>",
            &[&study.trained(), &study.planned],
        );
    }
    let items = Html::join(parts.iter().map(|p| {
        let cases = p.cases(table).unwrap_or_default();
        Html::fill(
            "<li><a href=\"#claim-{}\">{}</a> <span>{} <span class=\"muted\">{}</span></span>{}</li>\n",
            &[&p.words.number, &p.words.number, &p.sentence(), &cases, &p.badge()],
        )
    }));
    out.add("<ol class=\"findings\">\n{}</ol>\n", &[&items]);
    out.add(
        "<p class=\"muted small\">This speaks of the data set {} and the network <code>{}</code> only. The sentences \
         follow from the <a href=\"#claims\">claims table</a> by fixed rules; “not decided” means that the \
         interval over seeds allows both.</p>",
        &[&study.setting("dataset"), &study.setting("network")],
    );
    out
}

fn robustness_answer(table: &Table, parts: &Parts) -> Html {
    let names = |verdict: Verdict| -> String {
        let names: Vec<String> = parts
            .rows
            .iter()
            .filter(|(_, v)| *v == verdict)
            .filter_map(|(row, _)| Some(noise_label(table.cell(row, "claim").text()?.split_once(' ')?.1)))
            .collect();
        names.join(", ")
    };
    let n = parts.rows.len();
    let text = match parts.unanimous() {
        Some(Verdict::Holds) => {
            format!(
                "Yes: the more leak, the less accuracy falls under noise, in all {n} kinds of noise tested."
            )
        }
        Some(Verdict::DoesNotHold) => {
            format!(
                "No: accuracy under noise does not fall less with more leak, in any of the {n} kinds of noise tested."
            )
        }
        Some(Verdict::NotEnoughEvidence) => {
            format!("This study cannot tell: for all {n} kinds of noise tested, its runs allow both answers.")
        }
        None => {
            let mut pieces = Vec::new();
            for (verdict, words) in [
                (Verdict::Holds, "accuracy falls less with more leak in"),
                (Verdict::DoesNotHold, "it does not in"),
                (Verdict::NotEnoughEvidence, "its runs allow both answers in"),
            ] {
                let count = parts.count(verdict);
                if count > 0 {
                    let words = if pieces.is_empty() {
                        words.replace("it does not", "leak does not help")
                    } else {
                        words.to_owned()
                    };
                    pieces.push(format!("{words} {count} of {n} kinds of noise ({})", names(verdict)));
                }
            }
            let opening =
                if parts.count(Verdict::Holds) > 0 { "In part" } else { "Not as far as this study can tell" };
            format!("{opening}: {}.", pieces.join("; "))
        }
    };
    Html::fill("<p class=\"first\">{}</p>", &[&text])
}

/// The claims table.
pub fn table(table: &Table) -> Html {
    let mut body = Html::new();
    for group in parts(table) {
        body.add(
            "<tr class=\"group\" id=\"claim-{}\"><th colspan=\"4\" scope=\"rowgroup\">{}. {}</th></tr>\n",
            &[&group.words.number, &group.words.number, &group.words.heading],
        );
        for (row, verdict) in &group.rows {
            let text = |column: &str| table.cell(row, column).text().unwrap_or_default();
            let seeds = table
                .cell(row, "seeds")
                .number()
                .map_or(String::new(), |n| format!(", {n} pair{} of runs", if n == 1.0 { "" } else { "s" }));
            let seeds = if group.words.number == "7" { String::new() } else { seeds };
            body.add(
                "<tr><td data-label=\"\">{}</td><td data-label=\"Claim\">{}<details class=\"rule\"><summary>Rule</summary>\
                 {}</details></td><td data-label=\"The paper\">{}</td>\
                 <td data-label=\"This study\">{}<span class=\"reason\">{}</span><span class=\"paper\">{}{}</span></td></tr>\n",
                &[
                    &verdict.badge(),
                    &text("statement"),
                    &text("rule"),
                    &text("paper"),
                    &ours(table, row),
                    &text("reason").replace(" %", "\u{a0}%"),
                    &measure(text("quantity")),
                    &seeds,
                ],
            );
        }
    }
    Html::fill(
        "<div class=\"scroll\"><table class=\"claims\"><thead><tr><th>Verdict</th><th>Claim</th><th>The paper</th>\
         <th>This study, with its 95 % interval</th></tr></thead><tbody>\n{}</tbody></table></div>\n",
        &[&body],
    )
}

/// What was measured, in words: the tables' names of quantities are for programs.
fn measure(quantity: &str) -> String {
    const NAMES: [(&str, &str); 8] = [
        // The longer names first, where one begins like another.
        ("of test_sse_at_equal_train_sse", "of test SSE at equal training SSE"),
        ("of test_sse", "of test SSE"),
        ("of area", "of relative area under the accuracy curve,"),
        ("of spike_rate", "of spikes per neuron and step"),
        ("of synops", "of synaptic operations per image"),
        ("of weighted_input_norm", "of the weighted-input norm, geometric mean over layers"),
        ("of critical_frequency,", "of critical frequency,"),
        ("of critical_frequency", "of critical frequency,"),
    ];
    let found = NAMES.iter().find(|(name, _)| quantity.contains(name));
    found.map_or_else(|| quantity.to_owned(), |(name, words)| quantity.replacen(name, words, 1))
}

/// Our figure and its interval.
fn ours(table: &Table, row: &[leaklab_record::Cell]) -> Html {
    let unit = table.cell(row, "unit").text().unwrap_or_default();
    let write = |x: f64| match unit {
        "ratio" => format!("{x:.3}"),
        "cycles/step" => number::signed(x, 4),
        unit if unit.starts_with("fraction") => number::signed(100.0 * x, 1),
        _ => number::plain(x),
    };
    let unit = match unit {
        "ratio" => "times",
        "fraction" => "points",
        "fraction of clean accuracy" => "points",
        unit => unit,
    };
    let cell = |column: &str| table.cell(row, column).number().map(write);
    match (cell("ours"), cell("low"), cell("high")) {
        (Some(value), Some(low), Some(high)) => {
            Html::fill("{} {} <span class=\"range\">[{}, {}]</span>", &[&value, &unit, &low, &high])
        }
        (Some(value), ..) => Html::fill("{} {} <span class=\"range\">(no interval)</span>", &[&value, &unit]),
        (None, ..) => match table.cell(row, "ours").text() {
            Some(text) => Html::text(text),
            None => Html::markup("<span class=\"muted\">not measured</span>"),
        },
    }
}
