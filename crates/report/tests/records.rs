//! How the page interprets records: which condition a run belongs to, when a study is finished, and what is
//! compared with a baseline that did not learn.

mod synthetic;

use leaklab_record::{RunFolder, manifest};
use leaklab_report::study::{page, records::Study};
use leaklab_report::{Figure, Page};
use std::path::Path;
use synthetic::{Made, Synthetic};

fn figure<'a>(page: &'a Page, id: &str) -> Option<&'a Figure> {
    page.sections.iter().flat_map(|section| &section.figures).find(|figure| figure.id == id)
}

/// Writes the settings of a run as the lab does if its condition has no name of its own: without `condition`.
fn rename(study: &Path, run: &str, leak: &str, seed: u64) {
    let folder = RunFolder::at(study.join("runs").join(run));
    let settings = format!("dataset = \"digits\"\n{leak}\nseed = {seed}\nepochs = 12\n");
    manifest::write(&folder.run_toml(), &settings).unwrap();
}

#[test]
fn unnamed_conditions_that_differ_in_one_layer_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let conditions = vec![
        Made::tau(f64::INFINITY),
        Made::named("tau inf, readout 30", "readout_tau = 30", 0.1),
        Made::named("tau inf, conv1 5", "layer_tau = { conv1 = 5 }", 0.2),
    ];
    let made = Synthetic { conditions, ..Synthetic::default() };
    made.write(folder.path());
    for seed in 1..=made.seeds {
        for (run, leak) in [
            ("tau-inf", "tau = inf"),
            ("tau-inf-readout-30", "tau = inf\nreadout_tau = 30.0"),
            ("tau-inf-conv1-5", "tau = inf\nlayer_tau.conv1 = 5.0"),
        ] {
            rename(folder.path(), &format!("{run}_seed-{seed}"), leak, seed);
        }
    }
    let titles = ["no leak", "τ ∞, readout 30", "τ ∞, conv1 5"];
    // From the plan, and without one from the runs' own settings.
    for planned in [true, false] {
        if !planned {
            std::fs::remove_file(folder.path().join("plan.json")).unwrap();
            std::fs::remove_dir_all(folder.path().join("compare")).unwrap();
        }
        let study = Study::read(folder.path()).unwrap();
        for made in &made.conditions {
            let runs = study.runs.iter().filter(|run| run.condition == made.name).count();
            assert_eq!(runs, 3, "{}, planned {planned}", made.name);
        }
        let page = page(&study);
        let rates = figure(&page, "spike-rates").unwrap();
        let seeds = rates.data.column("seeds").unwrap();
        assert!(rates.data.rows.iter().all(|row| row[seeds].number() == Some(3.0)));
        let mut found: Vec<String> = study.conditions.iter().map(|condition| condition.title()).collect();
        let mut titles = titles.map(str::to_owned).to_vec();
        found.sort();
        titles.sort();
        assert_eq!(found, titles);
    }
    let single = Study::read(&folder.path().join("runs/tau-inf-readout-30_seed-1")).unwrap();
    assert_eq!(single.conditions[0].title(), titles[1]);
}

#[test]
fn a_run_that_diverged_does_not_leave_its_study_preliminary() {
    let folder = tempfile::tempdir().unwrap();
    Synthetic::default().write(folder.path());
    let run = RunFolder::at(folder.path().join("runs/tau-2_seed-1"));
    let metrics = std::fs::read_to_string(run.metrics()).unwrap();
    let first: Vec<&str> = metrics.lines().take(3).collect();
    std::fs::write(run.metrics(), first.join("\n") + "\n").unwrap();
    let lead = || page(&Study::read(folder.path()).unwrap()).lead.as_str().to_owned();
    assert!(lead().contains("Preliminary: 14 of 15 runs are trained."), "{}", lead());
    std::fs::write(run.complete(), "").unwrap();
    assert!(!lead().contains("Preliminary"), "{}", lead());
    assert_eq!(Study::read(folder.path()).unwrap().trained(), 15);
}

#[test]
fn one_run_is_not_many() {
    let mut study = {
        let folder = tempfile::tempdir().unwrap();
        Synthetic::default().write(folder.path());
        Study::read(folder.path()).unwrap()
    };
    study.runs.truncate(1);
    assert_eq!(study.progress(), "1 of 15 runs is trained");
    study.planned = 1;
    assert_eq!(study.progress(), "1 of 1 run is trained");
    study.runs.clear();
    assert_eq!(study.progress(), "0 of 1 run is trained");
}

#[test]
fn nothing_is_compared_with_a_baseline_that_did_not_learn() {
    let folder = tempfile::tempdir().unwrap();
    let conditions = vec![Made::tau(30.0), Made::tau(100.0), Made::tau(f64::INFINITY).dead()];
    Synthetic { conditions, ..Synthetic::default() }.write(folder.path());
    let study = Study::read(folder.path()).unwrap();
    // The comparison has such contrasts; the page must not show them.
    assert!(study.compare.contrasts.as_ref().is_some_and(|table| !table.rows.is_empty()));
    let page = page(&study);
    assert!(figure(&page, "gain").is_none());
    assert!(figure(&page, "fig3").unwrap().panels.iter().all(|panel| !panel.title.contains("Difference")));
    assert!(!figure(&page, "readings").unwrap().caption.as_str().contains("What moves it"));
    let html = leaklab_report::page::render(&page);
    assert!(html.contains("not every network learned: no leak. It counts in claim 7 only."), "{html}");
}
