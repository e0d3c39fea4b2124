//! The page of a study: the answer first, then the evidence, figure by figure, then how to do it again. Each section
//! reads its own tables and says what is missing while a study still runs.

mod activity;
mod chart;
pub mod claims;
pub mod coherence;
mod critical;
mod example;
mod generalisation;
mod learning;
mod number;
pub mod records;
mod robustness;
mod settings;
mod spectrum;
mod table1;
mod tradeoff;

use crate::html::Html;
use crate::page::{Page, Section, render};
use records::{ReportError, Study};
use std::path::{Path, PathBuf};

/// Reads a study's folder, writes `report.html` into it and returns its path. `refresh` is for a study that runs.
pub fn write(folder: &Path, refresh: Option<u32>) -> Result<PathBuf, ReportError> {
    write_to(folder, &folder.join("report.html"), refresh)
}

/// Like [`write()`], to any file.
pub fn write_to(folder: &Path, file: &Path, refresh: Option<u32>) -> Result<PathBuf, ReportError> {
    let study = Study::read(folder)?;
    let text = render(&Page { refresh, ..page(&study) });
    leaklab_record::atomic::write(file, text.as_bytes()).map_err(|source| ReportError::Io {
        path: file.to_owned(),
        action: "the page cannot be written",
        source,
    })?;
    Ok(file.to_owned())
}

/// The page of a study.
pub fn page(study: &Study) -> Page {
    let taus: Vec<String> = study.taus().iter().map(|tau| tau.replace("inf", "∞")).collect();
    let mut seeds: Vec<&str> = study.runs.iter().map(|run| run.seed.as_str()).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let taus = if taus.is_empty() { String::new() } else { format!(" · τ {}", taus.join(", ")) };
    let seeds = match seeds.len() {
        0 => String::new(),
        1 => " · 1 seed".to_owned(),
        n => format!(" · {n} seeds"),
    };
    Page {
        title: "Does leak make a spiking network robust?".to_owned(),
        eyebrow: format!("Study {} · data set {}{taus}{seeds}", study.name(), study.setting("dataset")),
        lead: claims::answer(study),
        sections: vec![
            claims_section(study),
            table1::section(study),
            robustness::section(study),
            tradeoff::section(study),
            generalisation::section(study),
            activity::section(study),
            coherence::section(&study.theory),
            spectrum::section(study),
            critical::section(study),
            example::section(study),
            learning::section(study),
            settings::section(study),
        ],
        footer: Html::fill(
            "<p>Made by LeakLab {}. The paper is Chowdhury, Lee and Roy, <cite>Towards Understanding the Effect of Leak in \
             Spiking Neural Networks</cite> (2020).</p>",
            &[&env!("CARGO_PKG_VERSION")],
        ),
        refresh: None,
    }
}

fn claims_section(study: &Study) -> Section {
    let mut section = Section::new(
        "claims",
        "Claims",
        "The paper's claims, judged",
        Html::markup(
            "<p>Each claim is judged by a rule that was fixed beforehand, from a 95 % interval over seeds. Runs of one seed \
             share initial weights, image order and input spikes, so they are compared in pairs. Every claim has a smallest \
             effect of interest: one percentage point of accuracy, 2 % of a ratio, 0.005 cycles per step, half of the \
             runs.</p><ul><li>It <strong>holds</strong> where the whole interval lies on the claimed side.</li>\
             <li>It <strong>does not hold</strong> where the interval leaves no room for an effect of interest on that \
             side, or where between two neighbouring tau it surely goes the other way.</li><li>Where the interval includes both no effect and one of interest, there is <strong>not enough \
             evidence</strong>, however the mean looks.</li></ul><p>Claim 1 says that there is no effect: it holds where \
             every interval lies within one percentage point of 0, and does not where one lies wholly outside.</p>",
        ),
    );
    match study.compare.get("claims") {
        Some(table) => {
            section.after = claims::table(table);
            section.after.add("<div class=\"prose muted small\">{}</div>\n", &[&chart::notes(table)]);
        }
        None => section.after = chart::missing("Verdicts are", "compare/claims table"),
    }
    section
}
