//! From records to words: synthetic runs in which claims hold, fail and are undecided are judged by the
//! comparison's rules, and the page shows these verdicts. The rules themselves are tested in the lab's
//! `claims` and `promises`.

#[path = "../../lab/tests/synthetic/mod.rs"]
mod synthetic;

use leaklab_lab::analysis::compare::{RunRecord, compare};
use leaklab_record::tables::{AnswerRow, ClaimRow};
use leaklab_record::{ClaimId, Rows, StudyFolder, manifest};
use synthetic::{Numbers, config, record};

/// A study of three tau with four seeds each; `gain` is the gain of each tau under noise, most leak first.
fn study(gain: [f64; 3], spread: f64, dead: usize) -> Vec<RunRecord> {
    let mut runs = Vec::new();
    for (tau, gain) in ["30", "100", "inf"].into_iter().zip(gain) {
        for (seed, wobble) in [1.0, -0.8, 0.3, -0.5].into_iter().enumerate() {
            let config = config(&[&format!("tau={tau}"), &format!("seed={}", seed + 1)]);
            let spread = if tau == "30" { spread } else { 0.004 };
            runs.push(record(config, &Numbers::plain(gain + spread * wobble), 1000));
        }
    }
    for seed in 1..=dead {
        let numbers = Numbers { accuracy: 0.1, ..Numbers::plain(0.0) };
        runs.push(record(config(&["tau=5", &format!("seed={seed}")]), &numbers, 1000));
    }
    runs
}

/// The page of the runs, and the claims and the answer from which it was made.
fn page(runs: &[RunRecord]) -> (String, Vec<ClaimRow>, AnswerRow) {
    let folder = tempfile::tempdir().unwrap();
    let study = StudyFolder::at(folder.path());
    std::fs::create_dir_all(study.compare()).unwrap();
    for table in compare(runs, None).unwrap() {
        table.write(&study.compare()).unwrap();
    }
    for run in runs {
        let path = study.run(&run.key());
        std::fs::create_dir_all(path.path()).unwrap();
        manifest::write(&path.run_toml(), &run.config.to_toml()).unwrap();
    }
    manifest::write(&study.study_toml(), "name = \"synthetic\"\ndataset = \"digits\"\n").unwrap();
    let html = std::fs::read_to_string(leaklab_report::study::write(folder.path(), None).unwrap()).unwrap();
    let claims: Rows<ClaimRow> = Rows::read(&study.compare()).unwrap().unwrap();
    let answer: Rows<AnswerRow> = Rows::read(&study.compare()).unwrap().unwrap();
    (html, claims.rows, answer.rows[0].clone())
}

#[test]
fn the_page_says_what_was_judged() {
    for (gain, spread) in [([0.06, 0.03, 0.0], 0.004), ([-0.06, -0.03, 0.0], 0.004), ([0.01, 0.0, 0.0], 0.06)]
    {
        let (html, claims, answer) = page(&study(gain, spread, 0));
        let start = html.find("<p class=\"first\">").expect("the answer comes first");
        let first = &html[start..start + 600];
        let words = answer.sentence.split([' ', '\u{a0}']).take(3).collect::<Vec<_>>().join(" ");
        assert!(first.contains(&words), "{words}: {first}");
        for id in ClaimId::ALL.into_iter().take(7) {
            let rows = claims.iter().filter(|row| row.claim == id).count();
            assert!(rows > 0, "{id}");
            let place = html.find(&format!("id=\"claim-{id}\"")).unwrap_or_else(|| panic!("claim {id}"));
            let end = ClaimId::ALL.into_iter().skip_while(|other| *other != id).nth(1);
            let end = end.and_then(|next| html.find(&format!("id=\"claim-{next}\""))).unwrap_or(html.len());
            let badges = html[place..end].matches("class=\"verdict ").count();
            assert!(badges >= rows, "claim {id}: {badges} badges for {rows} rows");
        }
        // Symbols are typeset on the page, so a reason that names a tau differs there.
        for row in claims.iter().filter(|row| !row.reason.contains("tau")) {
            let reason = row.reason.split(['.', '\'']).next().unwrap_or_default().replace(" %", "\u{a0}%");
            assert!(html.contains(reason.trim()), "{reason}");
        }
    }
}

#[test]
fn what_did_not_learn_is_named_on_the_page() {
    let (html, _, answer) = page(&study([0.06, 0.03, 0.0], 0.004, 3));
    assert!(answer.sentence.contains("not every run learned: tau 5"), "{}", answer.sentence);
    assert!(html.contains("3 of 3 runs did not learn"), "the reason is not on the page");
}
