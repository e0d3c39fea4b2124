//! The page of a study: first the answer, then the evidence, figure by figure, then how to reproduce it. Each
//! section reads its own tables and states what is missing while a study is still running.

mod activity;
mod answer;
mod chart;
pub mod claims;
pub mod coherence;
mod condition;
mod critical;
mod energy;
mod example;
mod further;
mod gain;
mod generalisation;
mod hidden;
mod judgement;
mod learning;
mod membrane;
mod number;
mod readings;
pub mod records;
mod robustness;
mod settings;
mod spectrum;
mod table1;
pub mod tables;
mod tradeoff;
mod typeset;
mod why;
mod words;

pub use condition::Condition;

use crate::html::Html;
use crate::page::{Page, render};
use leaklab_record::StudyFolder;
use records::{ReportError, Study};
use std::path::{Path, PathBuf};

/// Reads a study's folder, writes `report.html` into it and returns its path. `refresh` is for a study that
/// is still running.
pub fn write(folder: &Path, refresh: Option<u32>) -> Result<PathBuf, ReportError> {
    let file = StudyFolder::at(folder).page();
    write_page(&Study::read(folder)?, &file, refresh)?;
    Ok(file)
}

/// Writes the page of a study that was read to any file.
pub fn write_page(study: &Study, file: &Path, refresh: Option<u32>) -> Result<(), ReportError> {
    let text = render(&Page { refresh, ..page(study) });
    leaklab_record::atomic::write(file, text.as_bytes()).map_err(|source| ReportError::Io {
        path: file.to_owned(),
        action: "the page cannot be written",
        source,
    })
}

/// The page of a study, or of a single run.
pub fn page(study: &Study) -> Page {
    let title = if study.single {
        "What one spiking network does"
    } else {
        "Does leak make a spiking network robust?"
    };
    let mut sections = if study.single {
        Vec::new()
    } else {
        vec![
            answer::section(study),
            judgement::section(study),
            table1::section(study),
            robustness::section(study),
            tradeoff::section(study),
            generalisation::section(study),
        ]
    };
    if let Some(section) = why::section(study) {
        sections.insert(2, section);
    }
    if let Some(section) = further::section(study) {
        let place = sections.len().min(3);
        sections.insert(place, section);
    }
    sections.push(activity::section(study));
    if !study.single {
        sections.push(coherence::section(&study.theory));
    }
    sections.extend([
        spectrum::section(study),
        critical::section(study),
        example::section(study),
        learning::section(study),
        settings::section(study),
    ]);
    Page {
        title: title.to_owned(),
        eyebrow: eyebrow(study),
        lead: answer::lead(study),
        sections,
        footer: Html::fill(
            "<p>Made by LeakLab {}. The paper is Chowdhury, Lee and Roy, <cite>Towards Understanding the \
             Effect of Leak in Spiking Neural Networks</cite> (2020).</p>",
            &[&env!("CARGO_PKG_VERSION")],
        ),
        refresh: None,
    }
}

/// What was studied, in one line.
fn eyebrow(study: &Study) -> String {
    let what = if study.single { "Run" } else { "Study" };
    let name = match study.runs.first() {
        Some(run) if study.single => run.name.clone(),
        Some(_) | None => study.name(),
    };
    let mut out = format!("{what} {name} · data set {}", study.setting("dataset"));
    let conditions = study.shown();
    let taus: Option<Vec<String>> =
        conditions.iter().map(|condition| Some(condition.tau?.to_string().replace("inf", "∞"))).collect();
    match taus {
        Some(taus) if !taus.is_empty() => out += &format!(" · τ {}", taus.join(", ")),
        Some(_) => {}
        None if conditions.len() == 1 => out += " · 1 condition",
        None => out += &format!(" · {} conditions", conditions.len()),
    }
    let seeds = chart::distinct(study.runs.iter().map(|run| run.seed)).len();
    match seeds {
        0 => {}
        1 => out += " · 1 seed",
        n => out += &format!(" · {n} seeds"),
    }
    out
}
