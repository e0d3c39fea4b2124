//! What is needed to reproduce the study: the command, every setting and the version; and, separately, the
//! times.

use super::chart;
use super::number;
use super::records::Study;
use super::typeset;
use crate::html::Html;
use crate::page::Section;
use leaklab_record::{Role, number_text};

/// The section on settings.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new(
        "settings",
        "Settings",
        "How to reproduce it",
        Html::markup(
            "<p>The same program version, settings and seeds, with the same instruction set and operating \
             system, give bit-identical numbers, on any number of threads and however often it was \
             interrupted. AVX-512 and AVX2 give the same weights, and norms may differ in the last bits. \
             Portable code has no fused multiply-adds, so the last bits of weights differ, and in the \
             course of a training the networks differ slightly; <code>--isa</code> chooses the set.</p>",
        ),
    );
    if !study.single {
        let command = study.command.clone().unwrap_or_else(|| "leaklab study study.toml".to_owned());
        section.after.add(
            "<div class=\"copyable\"><pre><code>{}</code></pre>\
             <button type=\"button\" class=\"copy\">Copy</button></div>\n",
            &[&command],
        );
    }
    section.after.push(&conditions(study));
    let mut items = Html::new();
    let mut item = |name: &str, value: &str| items.add("<dt>{}</dt><dd>{}</dd>\n", &[&name, &value]);
    for (key, value) in &study.settings.settings {
        match value {
            toml::Value::Table(inner) => {
                for (name, value) in inner {
                    item(&format!("{key}.{name}"), &text(value));
                }
            }
            // Lists of tables are the conditions, which are listed above.
            toml::Value::Array(values) if values.iter().any(toml::Value::is_table) => {}
            value => item(key, &text(value)),
        }
    }
    item("leaklab", env!("CARGO_PKG_VERSION"));
    for machine in
        chart::distinct(study.runs.iter().flat_map(|run| &run.machines).map(|t| t.machine.to_string()))
    {
        item("trained by", &machine);
    }
    item("runs", &format!("{} of {} trained", study.trained(), study.planned));
    section
        .after
        .add("<details><summary>All settings</summary><dl class=\"settings\">{}</dl></details>\n", &[&items]);
    section.after.add(
        "<details><summary>The complete settings file</summary><div \
         class=\"copyable\"><pre><code>{}</code></pre><button type=\"button\" \
         class=\"copy\">Copy</button></div></details>\n",
        &[&study.settings.text],
    );
    section.after.push(&times(study));
    section
}

/// The conditions: their roles and the settings in which they differ.
fn conditions(study: &Study) -> Html {
    if study.single || study.conditions.is_empty() {
        return Html::new();
    }
    let rows = Html::join(study.conditions.iter().map(|condition| {
        let role = match condition.role {
            Role::Baseline => "baseline: the others are compared with it",
            Role::Compared => "compared with the baseline",
            Role::Probe => "probe: trained for claim 7 only",
        };
        let differs =
            if condition.differs.0.is_empty() { "–".to_owned() } else { condition.differs.to_string() };
        let learned = match condition.learned {
            Some(true) => "yes",
            Some(false) => "no",
            None => "–",
        };
        let runs = study.runs.iter().filter(|run| run.condition == condition.name).count();
        Html::fill(
            "<tr><th scope=\"row\"><span class=\"swatch\" data-colour=\"{}\"></span>{}</th><td \
             data-label=\"Role\">{}</td><td data-label=\"Differs in\">{}</td><td class=\"number\" \
             data-label=\"Runs\">{}</td><td data-label=\"Learned\">{}</td></tr>\n",
            &[&condition.look.colour, &condition.title(), &role, &typeset::html(&differs), &runs, &learned],
        )
    }));
    Html::fill(
        "{}<div class=\"scroll\"><table class=\"stack\"><thead><tr><th></th><th>Role</th><th>Differs in</th>\
         <th class=\"number\">Runs</th><th>Learned</th></tr></thead><tbody>\n{}</tbody></table></div>\n",
        &[&chart::table_heading("Conditions"), &rows],
    )
}

/// The times, in a single element: the pages of two equal studies differ in them.
fn times(study: &Study) -> Html {
    let pieces: Vec<String> = study
        .seconds
        .iter()
        .filter(|(_, seconds)| *seconds > 0.0)
        .map(|(what, seconds)| format!("{what} {}", number::duration(*seconds)))
        .collect();
    if pieces.is_empty() {
        return Html::new();
    }
    Html::fill(
        "<p id=\"times\" class=\"muted small\">Working time, summed over runs: {}.</p>\n",
        &[&pieces.join(", ")],
    )
}

fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Float(x) => number_text(*x),
        toml::Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
