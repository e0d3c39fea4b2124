//! The section with the paper's claims: the rules, each claim with its parts, and below claim 7 the networks
//! that show whether training fails.

use super::records::Study;
use super::{chart, claims, number};
use crate::html::Html;
use crate::page::Section;
use leaklab_record::tables::RunRow;
use leaklab_record::{ClaimId, Role};

/// The section on the paper's claims.
pub fn section(study: &Study) -> Section {
    let mut section = Section::new("claims", "Claims", "The paper's claims, judged", rules());
    match &study.compare.claims {
        Some(table) => {
            let groups = claims::groups(&table.rows, &claims::PAPER);
            section.after = claims::list(&groups, |claim| {
                if claim == ClaimId::Divergence { small_tau(study) } else { Html::new() }
            });
            section.after.add("<div class=\"prose muted small\">{}</div>\n", &[&chart::notes(&table.notes)]);
        }
        None => section.after = chart::missing("Verdicts are", "compare/claims table"),
    }
    section
}

/// The rules for verdicts.
fn rules() -> Html {
    Html::markup(
        "<p>Each claim is judged by a rule that was fixed beforehand, from a 95&nbsp;% interval and a \
         smallest effect of interest: one percentage point of accuracy, 2&nbsp;% of a ratio, 0.005 cycles \
         per step, half of the runs.</p><ul><li>It <strong>holds</strong> if the whole interval lies on the \
         claimed side.</li><li>It <strong>does not hold</strong> if the interval excludes an effect of \
         interest on that side.</li><li>If the interval includes both no effect and an effect of interest, \
         there is <strong>not enough evidence</strong>. Next to this verdict is the number of pairs of runs \
         that would settle the claim, if more runs can.</li></ul><details class=\"rules\"><summary>The rules \
         in full</summary><ul><li><strong>Only networks that learned are judged.</strong> A run learned if \
         its clean accuracy exceeds chance by at least half as much as the best condition's mean does. A \
         condition in which a run did not learn is shown in grey, and excluded from claims 1 to 6, from the \
         trade-off and from the answer. It counts in claim 7.</li><li><strong>Robustness</strong> is the \
         mean accuracy over severities 1 to 8, in percentage points. It is not divided by the clean \
         accuracy: a network that has learned nothing has nothing to lose, and would seem \
         robust.</li><li><strong>Intervals are paired by seed.</strong> Runs of one seed share initial \
         weights, image order and input spikes, so they are compared in pairs (Student's t). An interval is \
         never narrower than the test images allow: the study stores which images each network classified \
         correctly, and the standard error over images is a lower limit.</li><li><strong>Several noises are \
         several tests.</strong> Claim 2 holds for a noise only if it also holds after Holm's correction \
         over all noises.</li><li><strong>“The more leak, the more …”</strong> is stated only if every step \
         from one τ to the next agrees in sign and the claim holds for the extremes. Otherwise the sentence \
         names the pair of τ that it refers to.</li><li><strong>Not steady.</strong> A claim about more leak \
         also does not hold if, between two neighbouring τ, the whole interval lies on the other side by \
         more than an effect of interest. The row then still shows the pair with most and least leak, and \
         the reason gives the interval that decides.</li><li><strong>Claim 1</strong> states that there is \
         no effect. It holds if every interval lies within one percentage point of 0, and does not hold if \
         one lies wholly outside.</li></ul></details>",
    )
}

/// The networks that claim 7 refers to: probes, and conditions that did not learn.
fn small_tau(study: &Study) -> Html {
    let Some(runs) = &study.compare.runs else { return Html::new() };
    let conditions = study.conditions.iter().filter(|c| c.role == Role::Probe || c.failed());
    let rows = Html::join(conditions.map(|condition| {
        let own: Vec<&RunRow> = runs.rows.iter().filter(|row| row.condition == condition.name).collect();
        let learned = own.iter().filter(|row| row.learned == Some(true)).count();
        let accuracies = own.iter().filter_map(|row| row.accuracy);
        let (low, high) =
            accuracies.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let accuracy = match (low.is_finite(), low == high) {
            (false, _) => "–".to_owned(),
            (true, true) => number::percent(low, 1),
            (true, false) => format!("{} to {}", number::percent(low, 1), number::percent(high, 1)),
        };
        let reason = if condition.failed() { chart::reason(condition) } else { Html::markup("–") };
        Html::fill(
            "<tr><th scope=\"row\">{}</th><td data-label=\"Runs that learned\">{} of {}</td>\
             <td data-label=\"Clean accuracy\">{}</td><td data-label=\"Why it did not learn\">{}</td></tr>\n",
            &[&condition.title(), &learned, &own.len(), &accuracy, &reason],
        )
    }));
    if rows.is_empty() {
        return Html::new();
    }
    Html::fill(
        "<table class=\"stack probes\"><thead><tr><th>Condition</th><th>Runs that learned</th><th>Clean \
         accuracy</th><th>Why it did not learn</th></tr></thead><tbody>\n{}</tbody></table>\n",
        &[&rows],
    )
}
