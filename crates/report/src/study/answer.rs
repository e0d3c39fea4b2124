//! The first screen: the answer in plain words, taken from the comparison; the figure that shows it; and what
//! was found for each claim.

use super::chart;
use super::claims;
use super::gain;
use super::number;
use super::records::Study;
use super::typeset;
use crate::html::Html;
use crate::page::Section;
use leaklab_record::noun;

/// The sentence below the heading.
pub fn lead(study: &Study) -> Html {
    if study.single {
        let of = study.conditions.first().map(|condition| condition.title()).unwrap_or_default();
        return Html::fill(
            "<p class=\"first\">This is the page of a single run ({}, seed {}). It shows what this network \
             does; to judge the effect of leak, run a study with several conditions and seeds.</p>",
            &[&of, &study.runs.first().map(|run| run.seed).unwrap_or(0).to_string()],
        );
    }
    let mut out = Html::new();
    match study.compare.answer.as_ref().and_then(|answer| answer.rows.first()) {
        Some(answer) => out.add("<p class=\"first\">{}</p>", &[&typeset::html(&answer.sentence)]),
        None if study.planned == 0 => out.push(&Html::markup(
            "<p class=\"first\">This study has only begun, so there is no answer yet: no run is trained.</p>",
        )),
        None => out.add(
            "<p class=\"first\">This study is not finished, so there is no answer yet: {}. The results so \
             far are below.</p>",
            &[&study.progress()],
        ),
    }
    if study.compare.answer.is_some() && study.trained() < study.planned {
        out.add("<div class=\"notice missing\"><p>Preliminary: {}.</p></div>", &[&study.progress()]);
    }
    if let Some(problem) = study.comparison_problem() {
        out.add("<div class=\"notice missing\"><p>{}</p></div>", &[&problem]);
    }
    out
}

/// The rest of the first screen.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new("answer", "Answer", "", Html::new());
    let Some(claims) = &study.compare.claims else {
        section.after = chart::missing("The answer is", "compare/claims table");
        return section;
    };
    section.figures.extend(gain::figure(study));
    let failed: Vec<String> =
        study.shown().iter().filter(|c| c.failed()).map(|condition| condition.title()).collect();
    section.after.push(&claims::findings(&claims::groups(&claims.rows, &claims::PAPER)));
    if !failed.is_empty() {
        section.after.add(
            "<p class=\"muted small prose\">Excluded from the answer, from claims 1 to 6 and from the \
             trade-off, because not every network learned: {}. {} in claim 7 only.</p>",
            &[&failed.join(", "), &if failed.len() == 1 { "It counts" } else { "They count" }],
        );
    }
    section.after.add(
        "<p class=\"muted small prose\">This applies only to the data set {} and the network \
         <code>{}</code>. {}The sentences follow from the <a href=\"#claims\">claims</a> by fixed rules. \
         “Not decided” means that the evidence allows both answers.</p>\n",
        &[&study.setting("dataset"), &study.setting("network"), &proportion(study).unwrap_or_default()],
    );
    section
}

/// The time constants in proportion to the number of time steps, beside those of the paper: 0.3 and 1.
fn proportion(study: &Study) -> Option<String> {
    let steps = study.setting("time_steps");
    let count: f64 = steps.parse().ok()?;
    // Where other settings differ as well, so may the number of steps.
    let taus: Option<Vec<_>> = study.shown().into_iter().map(|condition| condition.tau).collect();
    let two_digits = |x: f64| {
        let unit = 10f64.powi(x.log10().floor() as i32 - 1);
        number::short((x / unit).round() * unit)
    };
    let leaky = taus?.into_iter().filter(|tau| tau.leaks());
    let shares: Vec<String> = leaky.map(|tau| two_digits(tau.steps() / count)).collect();
    let (ours, paper) = (noun::list(&shares), "30 and 100 with 100 steps");
    let compared = match shares[..] {
        [] => return None,
        _ if ours == "0.3 and 1" && steps == "100" => ", as in the paper".to_owned(),
        _ if ours == "0.3 and 1" => format!(", as in the paper ({paper})"),
        _ => format!("; in the paper it is 0.3 and 1 times that number ({paper})"),
    };
    Some(format!("The time constant τ is {ours} times the number of time steps ({steps}){compared}. "))
}
