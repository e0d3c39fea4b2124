//! The page of made-up studies: it says what the tables say, with any verdict, any name, and whatever is missing.

mod synthetic;

use leaklab_report::page::render;
use leaklab_report::study::{page, records::Study, write};
use synthetic::Synthetic;

const WORDS: [&str; 3] = ["holds", "does not hold", "not enough evidence"];
const CLASSES: [&str; 3] = ["verdict holds", "verdict fails", "verdict open"];

fn html(study: &Synthetic) -> String {
    let folder = tempfile::tempdir().unwrap();
    study.write(folder.path());
    render(&page(&Study::read(folder.path()).unwrap()))
}

/// The rows of one claim in the claims table.
fn rows(html: &str, claim: usize) -> Vec<String> {
    let start = html.find(&format!("id=\"claim-{claim}\"")).expect("the claim's group");
    let rest = &html[start..];
    let end = rest[1..].find("class=\"group\"").map_or(rest.len(), |i| i + 1);
    let end = end.min(rest.find("</tbody>").unwrap());
    rest[..end].split("<tr>").skip(1).map(str::to_owned).collect()
}

/// The page of the usual study with other verdicts.
fn judged(study: &Study, verdict: impl Fn(usize) -> &'static str) -> String {
    let mut study = study.clone();
    let claims = study.compare.get_mut("claims").unwrap();
    let column = claims.column("verdict").unwrap();
    for row in &mut claims.rows {
        let number = row[0].text().unwrap()[..1].parse().unwrap();
        row[column] = verdict(number).into();
    }
    render(&page(&study))
}

fn usual() -> Study {
    let folder = tempfile::tempdir().unwrap();
    Synthetic::default().write(folder.path());
    Study::read(folder.path()).unwrap()
}

#[test]
fn every_verdict_of_every_claim_is_shown() {
    let study = usual();
    for claim in 1..=7 {
        for (word, class) in WORDS.into_iter().zip(CLASSES) {
            let html = judged(&study, |number| if number == claim { word } else { "holds" });
            let rows = rows(&html, claim);
            assert!(!rows.is_empty());
            for row in &rows {
                assert!(
                    row.contains(&format!("<span class=\"{class}\">{word}</span>")),
                    "claim {claim}: {row}"
                );
            }
            let lead = &html[html.find("class=\"findings\"").unwrap()..html.find("</ol>").unwrap()];
            let line = lead.split("<li>").nth(claim).unwrap();
            assert!(line.contains(class) && line.contains(word), "claim {claim} in the answer: {line}");
        }
    }
}

#[test]
fn the_answer_follows_the_verdicts() {
    let study = usual();
    let answer = |verdict: &'static str| {
        let html = judged(&study, |_| verdict);
        let start = html.find("<p class=\"first\">").unwrap();
        html[start..start + 120].to_owned()
    };
    assert!(answer("holds").contains("Yes: "));
    assert!(answer("does not hold").contains("No: "));
    assert!(answer("not enough evidence").contains("cannot tell"));
}

#[test]
fn a_mixed_claim_is_called_mixed() {
    let mut study = usual();
    let claims = study.compare.get_mut("claims").unwrap();
    let (verdict, case) = (claims.column("verdict").unwrap(), claims.column("case").unwrap());
    for row in claims.rows.iter_mut().filter(|row| row[0].text() == Some("2 impulse/pixel")) {
        row[verdict] = "does not hold".into();
        row[case] = "the opposite".into();
    }
    let html = render(&page(&study));
    assert!(html.contains("In part: accuracy falls less with more leak in 3 of 4 kinds of noise"));
    assert!(html.contains("it does not in 1 of 4 kinds of noise (impulse on pixels)"));
    assert!(html.contains("As claimed in 3, the opposite in 1 of 4 parts."));
}

#[test]
fn hostile_names_neither_break_nor_script_the_page() {
    let name = "\"></code><script>alert(1)</script><!-- ' & \u{202e}漢字";
    let html = html(&Synthetic { name: name.into(), dataset: name.into(), ..Synthetic::default() });
    assert!(!html.contains("<script>alert") && !html.contains("<!-- '") && !html.contains('\u{202e}'));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&lt;!-- &#39; &amp; \u{fffd}漢字"));
    let plain = crate::html(&Synthetic::default());
    let tags = |html: &str| html.matches("<script").count();
    assert_eq!(tags(&html), tags(&plain));
}

#[test]
fn a_study_that_has_begun_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    Synthetic::default().write_settings(folder.path());
    let path = write(folder.path(), Some(5)).unwrap();
    let html = std::fs::read_to_string(path).unwrap();
    assert!(html.contains("0 of 9 runs are trained"));
    assert!(html.contains("data-refresh=\"5\""));
    let sections = html.matches("<section id=").count();
    let missing = html.matches("class=\"notice missing\"").count();
    // All but the settings.
    assert_eq!(missing, sections - 1);
}

#[test]
fn the_same_records_give_the_same_bytes_but_for_the_times() {
    let folder = tempfile::tempdir().unwrap();
    Synthetic::default().write(folder.path());
    let html = || render(&page(&Study::read(folder.path()).unwrap()));
    let first = html();
    assert_eq!(first, html());
    std::fs::write(folder.path().join("times.jsonl"), "{\"what\":\"analyses\",\"seconds\":99.0}\n").unwrap();
    let second = html();
    let without_times = |html: &str| {
        let lines = html.lines().filter(|line| !line.starts_with("<p id=\"times\""));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_ne!(first, second);
    assert_eq!(without_times(&first), without_times(&second));
}

#[test]
fn runs_outside_the_lists_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    Synthetic { taus: vec!["5", "30", "inf"], ..Synthetic::default() }.write(folder.path());
    Synthetic { taus: vec!["30", "inf"], ..Synthetic::default() }.write_settings(folder.path());
    let study = Study::read(folder.path()).unwrap();
    assert_eq!(study.taus(), ["30", "inf"]);
    assert_eq!((study.runs.len(), study.planned), (6, 6));
}

#[test]
fn a_folder_without_a_study_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let message = Study::read(folder.path()).unwrap_err().to_string();
    assert!(message.contains("neither a study nor a run") && message.contains("leaklab study"), "{message}");
}

#[test]
fn a_single_run_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    Synthetic::default().write(folder.path());
    let run = folder.path().join("runs/tau-30_seed-1");
    let html = std::fs::read_to_string(write(&run, None).unwrap()).unwrap();
    assert!(html.contains("id=\"raster\"") && html.contains("id=\"learning-curves\""));
}
