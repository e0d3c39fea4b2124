//! Claims and their verdicts. No verdict is made here: the comparison made them, and this module shows them.
//! Any list of claims can be shown: the paper's seven, or those on where robustness comes from.

use super::chart::capital;
use super::number;
use super::typeset;
use super::words::{Words, words};
use crate::html::Html;
use leaklab_record::tables::ClaimRow;
use leaklab_record::{Case, ClaimId, Unit, Verdict};

/// The paper's claims.
pub const PAPER: [ClaimId; 7] = [
    ClaimId::EqualAccuracy,
    ClaimId::Robustness,
    ClaimId::Generalisation,
    ClaimId::Price,
    ClaimId::WeightedInput,
    ClaimId::CriticalFrequency,
    ClaimId::Divergence,
];

/// The claims on where robustness comes from.
pub const WHY: [ClaimId; 4] =
    [ClaimId::FromHidden, ClaimId::FromTraining, ClaimId::FromReadout, ClaimId::SlowNoise];

/// A claim with its parts.
pub struct Group<'a> {
    /// Which claim.
    pub id: ClaimId,
    words: Words,
    rows: Vec<&'a ClaimRow>,
}

/// The claims of a list that were judged, in the order of the list.
pub fn groups<'a>(rows: &'a [ClaimRow], claims: &[ClaimId]) -> Vec<Group<'a>> {
    let groups = claims.iter().map(|&id| {
        let rows = rows.iter().filter(|row| row.claim == id).collect();
        Group { id, words: words(id), rows }
    });
    groups.filter(|group| !group.rows.is_empty()).collect()
}

/// A verdict as a badge with a symbol and words, so that it can be understood without colour.
pub fn badge(verdict: Verdict) -> Html {
    let class = match verdict {
        Verdict::Holds => "holds",
        Verdict::DoesNotHold => "fails",
        Verdict::NotEnoughEvidence => "open",
    };
    Html::fill("<span class=\"verdict {}\">{}</span>", &[&class, &verdict.to_string()])
}

impl Group<'_> {
    fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict).count()
    }

    /// The verdict that all parts share.
    fn unanimous(&self) -> Option<Verdict> {
        let first = self.rows.first()?.verdict;
        (self.count(first) == self.rows.len()).then_some(first)
    }

    /// The cases of the rule that apply: `Of 3 parts: as claimed in 2, undecided in 1.` `None` if the verdict
    /// alone is enough.
    fn cases(&self) -> Option<String> {
        let mut found: Vec<(Case, usize)> = Vec::new();
        for row in Verdict::ALL.iter().flat_map(|v| self.rows.iter().filter(move |row| row.verdict == *v)) {
            match found.iter_mut().find(|(known, _)| *known == row.case) {
                Some((_, count)) => *count += 1,
                None => found.push((row.case, 1)),
            }
        }
        match found[..] {
            [(Case::AsClaimed | Case::Different | Case::NoEffect | Case::Undecided, _)] => None,
            [_] if self.rows.len() == 1 => Some(self.rows[0].reason.clone()),
            [(case, _)] => Some(format!("{}.", capital(&case.to_string()))),
            [] | [_, _, ..] => {
                let pieces: Vec<String> =
                    found.iter().map(|(case, count)| format!("{case} in {count}")).collect();
                Some(format!("Of {} parts: {}.", self.rows.len(), pieces.join(", ")))
            }
        }
    }

    /// What the verdict refers to, and what is added to it. A claim that fails is stated as it was made, with
    /// what was found instead, so that "does not hold" cannot be taken to deny the finding.
    fn sentence(&self) -> (String, String) {
        let cases = self.cases().unwrap_or_default();
        match self.unanimous() {
            Some(Verdict::Holds) => (self.words.holds.to_owned(), cases),
            Some(Verdict::DoesNotHold) => {
                (format!("{}.", self.words.heading), format!("{} {cases}", self.words.fails))
            }
            Some(Verdict::NotEnoughEvidence) => (self.words.open.to_owned(), cases),
            None => (format!("{}.", self.words.heading), cases),
        }
    }

    fn badge(&self) -> Html {
        self.unanimous().map_or_else(|| Html::markup("<span class=\"verdict open\">mixed</span>"), badge)
    }
}

/// One line for each claim, with its verdict.
pub fn findings(groups: &[Group]) -> Html {
    let items = Html::join(groups.iter().map(|group| {
        let (claim, more) = group.sentence();
        let id = group.id.to_string();
        Html::fill(
            "<li><a href=\"#claim-{}\">{}</a> <span>{} <span class=\"muted\">{}</span></span>{}</li>\n",
            &[&id, &id, &claim, &typeset::html(more.trim_end()), &group.badge()],
        )
    }));
    Html::fill("<ol class=\"findings\">\n{}</ol>\n", &[&items])
}

/// Every claim with all its parts. Each can be collapsed, and is on a narrow screen. `more` follows a claim's
/// parts.
pub fn list(groups: &[Group], more: impl Fn(ClaimId) -> Html) -> Html {
    let items = Html::join(groups.iter().map(|group| {
        let id = group.id.to_string();
        let rows = Html::join(group.rows.iter().map(|row| part(row)));
        Html::fill(
            "<details class=\"claim\" id=\"claim-{}\" open><summary><span \
             class=\"claim-number\">{}</span><span class=\"claim-heading\">{}</span>{}</summary>\n<table \
             class=\"claims\"><thead><tr><th>Verdict</th><th>Claim</th><th>The paper</th><th>This study, \
             with its 95&nbsp;% interval</th></tr></thead><tbody>\n{}</tbody></table>\n{}</details>\n",
            &[&id, &id, &group.words.heading, &group.badge(), &rows, &more(group.id)],
        )
    }));
    Html::fill("<div class=\"claim-list\">\n{}</div>\n", &[&items])
}

fn part(row: &ClaimRow) -> Html {
    Html::fill(
        "<tr><td data-label=\"\">{}{}</td><td data-label=\"Claim\">{}<details \
         class=\"rule\"><summary>Rule</summary>{}</details></td><td data-label=\"The paper\">{}</td><td \
         data-label=\"This study\">{}<span class=\"reason\">{}</span><span \
         class=\"paper\">{}{}</span></td></tr>\n",
        &[
            &badge(row.verdict),
            &needed(row),
            &typeset::html(&row.statement),
            &typeset::html(&row.rule),
            &typeset::html(&row.paper),
            &ours(row),
            &typeset::html(&row.reason.replace(" %", "\u{a0}%")),
            &typeset::html(&row.quantity),
            &sample(row),
        ],
    )
}

/// How many runs would settle an undecided claim.
fn needed(row: &ClaimRow) -> Html {
    match (row.verdict, row.seeds_needed) {
        (Verdict::NotEnoughEvidence, Some(n)) if row.claim == ClaimId::Divergence => Html::fill(
            "<span class=\"needed\">about {} runs with a small τ would settle it, if the same share of \
             them fails</span>",
            &[&(n as usize)],
        ),
        (Verdict::NotEnoughEvidence, Some(n)) => Html::fill(
            "<span class=\"needed\">about {} pairs of runs would settle it (power 80&nbsp;%)</span>",
            &[&(n as usize)],
        ),
        (Verdict::NotEnoughEvidence, None)
            if row.case == Case::Undecided
                && row.unit == Unit::Fraction
                && row.claim != ClaimId::Divergence =>
        {
            Html::markup(
                "<span class=\"needed\">more runs alone would not settle it; use more test images</span>",
            )
        }
        (Verdict::Holds | Verdict::DoesNotHold, _) | (Verdict::NotEnoughEvidence, None) => Html::new(),
    }
}

/// The number of runs from which our value follows, and its p value.
fn sample(row: &ClaimRow) -> String {
    let several = if row.seeds == 1 { "" } else { "s" };
    let runs = match row.claim {
        ClaimId::Divergence => format!(", {} run{several}", row.seeds),
        ClaimId::EqualAccuracy
        | ClaimId::Robustness
        | ClaimId::Generalisation
        | ClaimId::Price
        | ClaimId::WeightedInput
        | ClaimId::CriticalFrequency
        | ClaimId::FromHidden
        | ClaimId::FromTraining
        | ClaimId::FromReadout
        | ClaimId::SlowNoise => format!(", {} pair{several} of runs", row.seeds),
    };
    // Claims that are judged for each noise are a family of tests; claim 6 is not.
    let family = row.noise.is_some() && row.claim != ClaimId::CriticalFrequency;
    let corrected = if family { " after Holm's correction" } else { "" };
    let p = match row.p {
        Some(p) if p < 0.001 => format!(", p < 0.001{corrected}"),
        Some(p) => format!(", p = {p:.3}{corrected}"),
        None => String::new(),
    };
    format!("{runs}{p}")
}

/// Our value and its interval.
fn ours(row: &ClaimRow) -> Html {
    let (write, unit): (fn(f64) -> String, &str) = match row.unit {
        // For claim 7 a share of runs; for the others a difference of shares.
        Unit::Fraction if row.claim == ClaimId::Divergence => (|x| number::percent(x, 0), ""),
        Unit::Fraction => (|x| number::signed(100.0 * x, 1), "points"),
        Unit::Frequency => (|x| number::signed(x, 4), "cycles per step"),
        Unit::Ratio => (number::ratio, "times"),
        Unit::Sse => (|x| number::signed(x, 4), "SSE"),
        Unit::Operations => (number::plain, "operations per image"),
        Unit::Threshold => (number::plain, "times the threshold"),
    };
    match (row.ours, row.low, row.high) {
        (Some(value), Some(low), Some(high)) => Html::fill(
            "{} {} <span class=\"range\">[{}, {}]</span>",
            &[&write(value), &unit, &write(low), &write(high)],
        ),
        (Some(value), ..) => {
            Html::fill("{} {} <span class=\"range\">(no interval)</span>", &[&write(value), &unit])
        }
        (None, ..) => Html::markup("<span class=\"muted\">not measured</span>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_is_in_one_list() {
        let lists: Vec<ClaimId> = PAPER.into_iter().chain(WHY).collect();
        assert_eq!(lists, ClaimId::ALL);
    }
}
