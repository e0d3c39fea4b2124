//! The page of synthetic studies: it shows what the tables contain, with any verdict, any name and any
//! conditions, and states what is missing.

mod synthetic;

use leaklab_record::machine::Trainer;
use leaklab_record::tables::ClaimRow;
use leaklab_record::{Case, ClaimId, Machine, Quantity, Rows, Verdict};
use leaklab_report::page::render;
use leaklab_report::study::{claims, page, records::Study, write};
use leaklab_report::{Figure, Page};
use std::sync::LazyLock;
use synthetic::{Made, Synthetic};

const CASES: [(Case, &str); 3] = [
    (Case::AsClaimed, "verdict holds"),
    (Case::Opposite, "verdict fails"),
    (Case::Undecided, "verdict open"),
];

fn read(made: &Synthetic) -> Study {
    let folder = tempfile::tempdir().unwrap();
    made.write(folder.path());
    Study::read(folder.path()).unwrap()
}

/// The default study, written and read once.
fn default_study() -> Study {
    static STUDY: LazyLock<Study> = LazyLock::new(|| read(&Synthetic::default()));
    STUDY.clone()
}

/// The text from one mark up to the next occurrence of another.
fn between<'a>(html: &'a str, from: &str, to: &str) -> &'a str {
    let rest = &html[html.find(from).unwrap_or_else(|| panic!("no {from}"))..];
    &rest[..rest.find(to).unwrap_or(rest.len())]
}

/// The parts of one claim on the page.
fn parts(html: &str, claim: ClaimId) -> Vec<&str> {
    let group = between(html, &format!("id=\"claim-{claim}\""), "</table>");
    between(group, "<tbody>", "</tbody>").split("<tr>").skip(1).collect()
}

/// The page of a study whose claims have other cases.
fn judged(study: &Study, case: impl Fn(&ClaimRow) -> Case) -> String {
    let mut study = study.clone();
    for row in &mut study.compare.claims.as_mut().unwrap().rows {
        row.case = case(row);
        row.verdict = row.case.verdict();
    }
    render(&page(&study))
}

fn figure<'a>(page: &'a Page, id: &str) -> &'a Figure {
    let mut figures = page.sections.iter().flat_map(|section| &section.figures);
    figures.find(|figure| figure.id == id).unwrap_or_else(|| panic!("no figure {id}"))
}

/// The values of a text column of a figure's data.
fn column<'a>(figure: &'a Figure, name: &str) -> Vec<&'a str> {
    let place = figure.data.column(name).unwrap();
    figure.data.rows.iter().filter_map(|row| row[place].text()).collect()
}

#[test]
fn every_verdict_of_every_claim_is_shown() {
    let study = default_study();
    for (i, claim) in claims::PAPER.into_iter().enumerate() {
        for (case, class) in CASES {
            let html = judged(&study, |row| if row.claim == claim { case } else { Case::AsClaimed });
            let badge = format!("<span class=\"{class}\">{}</span>", case.verdict());
            let parts = parts(&html, claim);
            assert!(!parts.is_empty());
            for part in parts {
                assert!(part.contains(&badge), "claim {claim}: {part}");
            }
            let line = between(&html, "class=\"findings\"", "</ol>").split("<li>").nth(i + 1).unwrap();
            assert!(line.contains(&badge), "claim {claim} in the answer: {line}");
        }
    }
}

#[test]
fn the_answer_is_the_comparison_s_own_sentence() {
    let mut study = default_study();
    let sentence = "Only at strong noise, tau 30 against inf.";
    study.compare.answer.as_mut().unwrap().rows[0].sentence = sentence.to_owned();
    // The claims do not matter here: the page makes no verdict.
    let html = judged(&study, |_| Case::NoEffect);
    assert!(html.contains("<p class=\"first\">Only at strong noise, τ 30 against ∞.</p>"));
}

#[test]
fn an_undecided_claim_says_how_many_runs_would_settle_it() {
    let html = render(&page(&default_study()));
    let [first, ..] = parts(&html, ClaimId::Generalisation)[..] else { panic!("no part") };
    assert!(first.contains("about 14 pairs of runs would settle it (power 80&nbsp;%)"), "{first}");
    let [first, ..] = parts(&html, ClaimId::Robustness)[..] else { panic!("no part") };
    assert!(
        !first.contains("would settle it") && first.contains("p = 0.012 after Holm&#39;s correction"),
        "{first}"
    );
}

#[test]
fn a_mixed_claim_is_called_mixed() {
    let study = default_study();
    let html =
        judged(&study, |row| if row.part == "impulse/pixel" { Case::Opposite } else { Case::AsClaimed });
    let line = between(&html, "class=\"findings\"", "</ol>").split("<li>").nth(2).unwrap().to_owned();
    assert!(
        line.contains(">mixed</span>") && line.contains("Of 4 parts: as claimed in 3, the opposite in 1."),
        "{line}"
    );
}

#[test]
fn claims_beyond_the_paper_are_not_among_its_seven_but_can_be_listed() {
    let study = default_study();
    assert!(!render(&page(&study)).contains("claim-W1"));
    let rows = &study.compare.claims.as_ref().unwrap().rows;
    let why = claims::groups(rows, &claims::WHY);
    assert!(claims::findings(&why).as_str().contains("href=\"#claim-W1\""));
    assert_eq!(claims::PAPER.len() + claims::WHY.len(), ClaimId::ALL.len());
}

#[test]
fn a_condition_that_did_not_learn_is_named_and_never_wins() {
    let study = read(&Synthetic::with_dead());
    let page = page(&study);
    let html = render(&page);
    // Named with its reason, in grey, where it is drawn.
    for id in ["fig3", "learning-curves", "fig6"] {
        let figure = figure(&page, id);
        let item = figure.series.as_ref().unwrap().items.iter().find(|item| item.value == "tau 5").unwrap();
        assert_eq!((item.colour, item.label.as_str()), ("@unlearned", "τ = 5 (did not learn)"));
        assert!(figure.caption.as_str().contains("<strong>τ = 5</strong>, in grey, did not learn"));
        assert!(figure.caption.as_str().contains("clean accuracy 10.0 %"));
    }
    // Not in the trade-off, though its table has it on the front; not in the first figure.
    assert!(!column(figure(&page, "tradeoff-figure"), "condition").contains(&"tau 5"));
    assert!(!column(figure(&page, "gain"), "condition").contains(&"tau 5"));
    assert!(!page.lead.as_str().contains("τ 5") && !page.lead.as_str().contains("τ = 5"));
    // It counts only in claim 7.
    let seven = between(&html, "id=\"claim-7\"", "</details>\n</div>");
    assert!(seven.contains("<th scope=\"row\">τ = 5</th><td data-label=\"Runs that learned\">0 of 3</td>"));
    for claim in &claims::PAPER[..6] {
        let group = between(&html, &format!("id=\"claim-{claim}\""), "class=\"claim\"");
        assert!(!group.contains("τ = 5"), "claim {claim}");
    }
    // No difference from the baseline is drawn for it.
    let fig3 = figure(&page, "fig3");
    let [condition, difference] = ["condition", "difference"].map(|name| fig3.data.column(name).unwrap());
    for row in &fig3.data.rows {
        let judged = row[difference].number().is_some();
        assert_eq!(judged, !["tau 5", "tau inf"].contains(&row[condition].text().unwrap()));
    }
}

#[test]
fn severities_with_a_clear_difference_are_named() {
    let mut study = default_study();
    for row in &mut study.compare.contrasts.as_mut().unwrap().rows {
        let Quantity::AccuracyUnder(noise, severity) = &row.quantity else { continue };
        let (low, high) = match (noise.to_string().as_str(), *severity, row.a.as_str()) {
            ("gaussian/pixel", 1..=3, "tau 30") => (-0.05, -0.01),
            ("gaussian/pixel", 6 | 8, "tau 30") => (0.01, 0.05),
            _ => (-0.01, 0.01),
        };
        (row.low, row.high) = (Some(low), Some(high));
    }
    let html = render(&page(&study));
    let table = between(&html, "At which severities is the difference clear?", "</table>");
    assert!(!table.contains("no leak"), "the baseline is not compared with itself");
    let gaussian = between(table, "Gaussian noise on pixels", "</tr>");
    let cells: Vec<&str> = gaussian.split("<span>").skip(1).collect();
    assert_eq!(cells.len(), 2, "τ 30 and 100: {gaussian}");
    assert!(cells[0].starts_with("lower at 1 to 3; higher at 6 and 8<"), "{gaussian}");
    assert!(cells[1].starts_with("–<"), "{gaussian}");
}

#[test]
fn probes_are_in_the_learning_curves_and_at_claim_7_only() {
    let page = page(&default_study());
    for figure in page.sections.iter().flat_map(|section| &section.figures) {
        if let Some(series) = figure.series.as_ref().filter(|series| series.column == "condition") {
            let probe = series.items.iter().any(|item| item.value == "tau 3");
            assert_eq!(probe, figure.id == "learning-curves", "{}", figure.id);
            assert_eq!(column(figure, "condition").contains(&"tau 3"), probe, "{}", figure.id);
        }
    }
    let html = render(&page);
    let seven = between(&html, "id=\"claim-7\"", "</details>\n</div>");
    assert!(seven.contains("τ = 2") && seven.contains("τ = 3") && seven.contains("3 of 3"));
}

#[test]
fn conditions_that_are_no_sweep_go_by_their_names() {
    let study = read(&Synthetic::two_by_two());
    let page = page(&study);
    assert!(page.eyebrow.contains("4 conditions"), "{}", page.eyebrow);
    let fig3 = figure(&page, "fig3");
    let labels: Vec<&str> =
        fig3.series.as_ref().unwrap().items.iter().map(|item| item.label.as_str()).collect();
    assert_eq!(labels, ["τ = 30", "no leak", "leaky hidden layers", "leaky readout"]);
    let colours: Vec<&str> = fig3.series.as_ref().unwrap().items.iter().map(|item| item.colour).collect();
    assert_eq!(colours, ["@blue", "@green", "@amber", "@black"]);
    assert!(render(&page).contains("<td data-label=\"Differs in\">readout_tau = 30</td>"));
}

#[test]
fn the_first_figure_is_about_leak_alone() {
    let mut made = Synthetic::default();
    made.conditions[2].name = "no leak (25 steps)".to_owned();
    let differs = "tau = 100, time_steps = 100, epochs = 2";
    made.conditions.push(Made::named("tau 100 (100 steps)", differs, 0.1));
    let page = page(&read(&made));
    let gain = figure(&page, "gain");
    assert!(!column(gain, "condition").contains(&"tau 100 (100 steps)"));
    assert!(column(gain, "condition").contains(&"tau 100"));
    let caption = gain.caption.as_str();
    let omitted = "<strong>τ 100 (100 steps)</strong> is not shown, because it differs in more than leak: \
                   time_steps = 100 and epochs = 2.";
    assert!(caption.contains(omitted) && caption.contains("minus that of no leak (25 steps)"), "{caption}");
    // Other figures show it, and all of them use the names that the study gives.
    let fig3 = figure(&page, "fig3").series.as_ref().unwrap();
    let labels: Vec<&str> = fig3.items.iter().map(|item| item.label.as_str()).collect();
    assert_eq!(labels, ["τ = 30", "τ = 100", "no leak (25 steps)", "τ 100 (100 steps)"]);
}

#[test]
fn hostile_names_neither_break_nor_script_the_page() {
    let name = "\"></code><script>alert(1)</script><!-- ' & \u{202e}漢字";
    let mut hostile = Synthetic { name: name.into(), dataset: name.into(), ..Synthetic::default() };
    hostile.conditions.push(Made::named(name, "v_th = 2", 0.1));
    let html = render(&page(&read(&hostile)));
    assert!(!html.contains("<script>alert") && !html.contains("<!-- '"));
    let body = &html[..html.find("<script type=\"application/json\"").unwrap()];
    assert!(!body.contains('\u{202e}'));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;&lt;!-- &#39; &amp; \u{fffd}漢字"));
    let tags = |html: &str| html.matches("<script").count();
    assert_eq!(tags(&html), tags(&render(&page(&default_study()))));
}

#[test]
fn a_study_that_has_begun_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    Synthetic::default().begin(folder.path());
    let html = std::fs::read_to_string(write(folder.path(), Some(5)).unwrap()).unwrap();
    assert!(html.contains("0 of 15 runs are trained"));
    assert!(html.contains("data-refresh=\"5\""));
    let sections = html.matches("<section id=").count();
    // All sections except for the settings.
    assert_eq!(html.matches("class=\"notice missing\"").count(), sections - 1);
}

#[test]
fn a_study_without_a_plan_has_the_runs_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    Synthetic::default().write_settings(folder.path());
    assert!(
        std::fs::read_to_string(write(folder.path(), None).unwrap()).unwrap().contains("no run is trained")
    );
    Synthetic::default().write(folder.path());
    std::fs::remove_file(folder.path().join("plan.json")).unwrap();
    std::fs::remove_dir_all(folder.path().join("compare")).unwrap();
    let study = Study::read(folder.path()).unwrap();
    assert_eq!((study.runs.len(), study.planned, study.trained()), (15, 15, 15));
    let names: Vec<String> = study.conditions.iter().map(|condition| condition.title()).collect();
    // Without a plan it is not known which conditions are probes.
    assert_eq!(names, ["τ = 2", "τ = 3", "τ = 30", "τ = 100", "no leak"]);
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
fn runs_outside_the_plan_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = |taus: &[f64]| {
        let mut made = Synthetic::sweep(taus);
        made.conditions.retain(|condition| condition.role != leaklab_record::Role::Probe);
        made
    };
    sweep(&[5.0, 30.0, f64::INFINITY]).write(folder.path());
    std::fs::remove_dir_all(folder.path().join("compare")).unwrap();
    sweep(&[30.0, f64::INFINITY]).begin(folder.path());
    let study = Study::read(folder.path()).unwrap();
    let names: Vec<&str> = study.conditions.iter().map(|condition| condition.name.as_str()).collect();
    assert_eq!(names, ["tau 30", "tau inf"]);
    assert_eq!((study.runs.len(), study.planned), (6, 6));
}

#[test]
fn a_table_with_other_columns_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    Synthetic::default().write(folder.path());
    let compare = folder.path().join("compare");
    let mut table = Rows::<ClaimRow>::read(&compare).unwrap().unwrap().table();
    table.columns[5].name = "our".into();
    table.write(&compare).unwrap();
    let message = Study::read(folder.path()).unwrap_err().to_string();
    assert!(
        message.contains("claims.json") && message.contains("our, low") && message.contains("ours, low"),
        "{message}"
    );
}

#[test]
fn a_folder_without_a_study_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let message = Study::read(folder.path()).unwrap_err().to_string();
    assert!(message.contains("neither a study nor a run") && message.contains("leaklab study"), "{message}");
    let message = Study::read(&folder.path().join("nowhere")).unwrap_err().to_string();
    assert!(message.contains("nowhere: there is no such folder"), "{message}");
}

#[test]
fn a_single_run_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    Synthetic::default().write(folder.path());
    let run = folder.path().join("runs/tau-30_seed-1");
    let html = std::fs::read_to_string(write(&run, None).unwrap()).unwrap();
    for figure in ["raster", "membrane", "learning-curves", "fig5abc", "spike-rates", "fig4-spectrum"] {
        assert!(html.contains(&format!("<figure class=\"figure\" id=\"{figure}\">")), "{figure}");
    }
    assert!(html.contains("page of a single run (τ = 30, seed 1)") && !html.contains("notice missing"));
    // Without analyses, each section gives the command that measures it.
    std::fs::remove_dir_all(run.join("analysis")).unwrap();
    let html = std::fs::read_to_string(write(&run, None).unwrap()).unwrap();
    let command =
        "Not measured yet: run <code>leaklab analyse RUN all</code>, then <code>leaklab report RUN</code>.";
    assert_eq!(html.matches(command).count(), 4);
    assert!(!html.contains("the study has no"));
}

#[test]
fn every_axis_has_a_title_and_the_numbers_brackets() {
    let page = page(&default_study());
    for figure in page.sections.iter().flat_map(|section| &section.figures) {
        for panel in &figure.panels {
            let text = panel.spec.to_string();
            assert!(text.contains("\"title\":\""), "{}: {text}", figure.id);
        }
    }
    assert!(render(&page).contains("</span>)</span> ×\u{a0}10⁶"));
    assert_eq!(Verdict::ALL.len(), CASES.len());
}

#[test]
fn the_page_says_what_the_runs_were_trained_by() {
    let mut study = default_study();
    let guarantee = "with the same instruction set and operating system";
    assert!(render(&page(&study)).contains(guarantee) && !render(&page(&study)).contains("trained by"));
    for (run, cpu) in study.runs.iter_mut().zip(["Fast <1>", "Fast <1>", "Slow"]) {
        let machine = Machine {
            version: "9.8.7".into(),
            commit: Some("0123456789abcdef".into()),
            cpu: cpu.into(),
            isa: "avx2".into(),
            system: "linux x86_64".into(),
        };
        run.machines.push(Trainer { format: 1, after_epoch: 0, machine });
    }
    let html = render(&page(&study));
    let entry = |cpu: &str| {
        let by = format!("LeakLab 9.8.7 (0123456789ab) on {cpu}, avx2, linux x86_64");
        html.matches(&format!("<dt>trained by</dt><dd>{by}</dd>")).count()
    };
    assert_eq!((entry("Fast &lt;1&gt;"), entry("Slow")), (1, 1));
}

#[test]
fn time_constants_are_compared_with_those_of_the_paper() {
    let note = |study: &Study| {
        let html = render(&page(study));
        between(&html, "This applies only to", "</p>").to_owned()
    };
    let paper = note(&default_study());
    assert!(
        paper.contains("τ is 0.3 and 1 times the number of time steps (100), as in the paper."),
        "{paper}"
    );
    let sweep = note(&read(&Synthetic::sweep(&[5.0, 123.0, f64::INFINITY])));
    assert!(
        sweep.contains("τ is 0.05 and 1.2 times the number of time steps (100); in the paper it"),
        "{sweep}"
    );
}
