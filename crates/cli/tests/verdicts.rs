//! From records to words: run folders in which each claim is made to hold, to fail and to be undecided, judged by the
//! comparison's rules, and the page says so.

use leaklab_lab::analysis::compare::compare_folders;
use leaklab_record::metrics::{self, Epoch};
use leaklab_record::{Cell, RunFolder, Table, manifest};
use std::path::{Path, PathBuf};

/// The numbers of one made-up run.
#[derive(Clone, Copy)]
struct Numbers {
    accuracy: f64,
    area: f64,
    /// Test SSE, at the end and over train SSE at every epoch.
    sse: f64,
    spikes: f64,
    norm: f64,
    critical: f64,
    noisy: f64,
}

/// Verdicts that a study is made to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Made {
    Hold,
    Fail,
    Undecided,
}

fn table(name: &str, columns: &str, rows: Vec<Vec<Cell>>) -> Table {
    let columns: Vec<_> = columns.split_whitespace().map(|c| (c, "", "")).collect();
    let mut table = Table::new(name, name, "Made-up numbers.", &columns);
    rows.into_iter().for_each(|row| table.push(row));
    table
}

fn write_run(folder: &Path, tau: f64, seed: usize, n: Numbers) -> PathBuf {
    let run = RunFolder::at(folder.join(format!("runs/tau-{tau}_seed-{seed}")));
    std::fs::create_dir_all(run.analysis()).unwrap();
    let tau = toml::Value::Float(tau);
    manifest::write(
        &run.run_toml(),
        &format!("dataset = \"digits\"\ntau = {tau}\nseed = {seed}\nepochs = 20\n"),
    )
    .unwrap();
    for epoch in 1..=20u64 {
        let train_sse = 1.0 / epoch as f64;
        let line = Epoch {
            format: metrics::FORMAT,
            epoch,
            learning_rate: 0.1,
            train_accuracy: n.accuracy,
            train_sse: Some(train_sse),
            test_accuracy: Some(n.accuracy),
            test_sse: Some(10.0 * n.sse * train_sse),
            spike_rate: Some(n.spikes),
            synops: Some(1e6 * n.spikes),
            layers: Vec::new(),
            seconds: 1.0,
            images_per_second: 1.0,
        };
        metrics::append(&run.metrics(), &line).unwrap();
    }
    let robustness = (0..=8).map(|severity| {
        let accuracy = n.accuracy * (1.0 - f64::from(severity) / 8.0 * (1.0 - n.area));
        vec![
            "gaussian".into(),
            "pixel".into(),
            Cell::Integer(severity.into()),
            0.1.into(),
            accuracy.into(),
            (accuracy - 0.02).into(),
        ]
    });
    let pairs =
        |rows: &[(&str, f64)]| rows.iter().map(|&(name, value)| vec![name.into(), value.into()]).collect();
    for table in [
        table("robustness", "noise scenario severity level accuracy accuracy_low", robustness.collect()),
        table(
            "robustness_summary",
            "noise scenario area",
            vec![vec!["gaussian".into(), "pixel".into(), n.area.into()]],
        ),
        table(
            "generalisation_summary",
            "quantity value",
            pairs(&[("test_sse_last", n.sse), ("train_sse_last", 0.1)]),
        ),
        table(
            "activity_summary",
            "quantity value",
            pairs(&[("spike_rate", n.spikes), ("synops", 1e6 * n.spikes)]),
        ),
        table(
            "activity",
            "layer kind weighted_input_norm",
            vec![vec!["conv1".into(), "conv".into(), n.norm.into()]],
        ),
        table(
            "critical_frequency_summary",
            "condition mean",
            pairs(&[("clean", n.critical), ("gaussian/pixel/5", n.noisy)]),
        ),
    ] {
        table.write(&run.analysis()).unwrap();
    }
    run.path().to_owned()
}

/// The page of a study of three tau and three seeds, with further runs of tau 5.
fn page(made: Made, small_tau: &[f64]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let jitter = [[-1.0, 0.2, 0.8], [0.5, -0.9, 0.4], [0.1, 0.6, -0.7]];
    let numbers = |rank: usize, seed: usize| {
        // Leak, most first; reversed where claims are to fail. Jitter alone decides nothing.
        let (leak, j) = match made {
            Made::Hold => (2.0 - rank as f64, 0.001 * jitter[rank][seed]),
            Made::Fail => (rank as f64, 0.001 * jitter[rank][seed]),
            Made::Undecided => (2.0 - rank as f64, jitter[rank][seed]),
        };
        let drift = if made == Made::Fail { 0.03 * rank as f64 } else { 0.0 };
        let rise = if made == Made::Fail { -0.02 } else { 0.02 };
        Numbers {
            accuracy: 0.9 + drift + 0.03 * j,
            area: 0.5 + 0.1 * leak + 0.2 * j,
            sse: 0.12 - 0.02 * leak + 0.05 * j,
            spikes: 0.12 + 0.04 * leak + 0.11 * j,
            norm: 6.0 + leak + 5.0 * j,
            critical: 0.34 - 0.04 * leak + 0.2 * j,
            noisy: 0.34 - 0.04 * leak + 0.2 * j + rise + 0.1 * j,
        }
    };
    let mut runs = Vec::new();
    for (rank, tau) in [30.0, 100.0, f64::INFINITY].into_iter().enumerate() {
        for seed in 0..3 {
            runs.push(write_run(folder.path(), tau, seed + 1, numbers(rank, seed)));
        }
    }
    for (seed, &accuracy) in small_tau.iter().enumerate() {
        runs.push(write_run(folder.path(), 5.0, seed + 1, Numbers { accuracy, ..numbers(0, seed % 3) }));
    }
    compare_folders(&runs, &folder.path().join("compare")).unwrap();
    let taus = if small_tau.is_empty() { "30.0, 100.0, inf" } else { "5.0, 30.0, 100.0, inf" };
    let settings = format!("name = \"made up\"\ndataset = \"digits\"\ntau = [{taus}]\nseeds = [1, 2, 3]\n");
    manifest::write(&folder.path().join("study.toml"), &settings).unwrap();
    std::fs::read_to_string(leaklab_report::study::write(folder.path(), None).unwrap()).unwrap()
}

/// The verdicts that the page's claims table shows for a claim.
fn shown(html: &str, claim: usize) -> Vec<&str> {
    let rest = &html[html.find(&format!("id=\"claim-{claim}\"")).expect("the claim's group")..];
    let end =
        rest[1..].find("class=\"group\"").map_or(usize::MAX, |i| i + 1).min(rest.find("</tbody>").unwrap());
    let badges = rest[..end].split("<span class=\"verdict ").skip(1);
    badges.map(|badge| badge.split(['>', '<']).nth(1).unwrap()).collect()
}

#[test]
fn each_claim_holds_fails_and_is_undecided() {
    for (made, word, answer) in [
        (Made::Hold, "holds", "Yes: "),
        (Made::Fail, "does not hold", "No: "),
        (Made::Undecided, "not enough evidence", "cannot tell"),
    ] {
        let html = page(made, &[]);
        let reason = match made {
            Made::Hold => "<span class=\"reason\">The whole interval lies above 0.</span>",
            Made::Fail => {
                "<span class=\"reason\">The whole interval lies below 0: the opposite of the claim.</span>"
            }
            Made::Undecided => {
                "<span class=\"reason\">The interval includes both 0 and an effect of one percentage point as claimed.</span>"
            }
        };
        assert!(html.contains(reason), "{made:?}: the reason is not said");
        for claim in 1..=6 {
            let verdicts = shown(&html, claim);
            assert!(!verdicts.is_empty());
            assert!(verdicts.iter().all(|&v| v == word), "{made:?}, claim {claim}: {verdicts:?}");
        }
        let start = html.find("<p class=\"first\">").unwrap();
        assert!(html[start..start + 150].contains(answer), "{}", &html[start..start + 150]);
    }
}

#[test]
fn claim_7_holds_fails_and_is_undecided() {
    assert_eq!(shown(&page(Made::Hold, &[0.1, 0.1, 0.1]), 7), ["holds"]);
    assert_eq!(shown(&page(Made::Hold, &[0.9, 0.9, 0.9, 0.9]), 7), ["does not hold"]);
    assert_eq!(shown(&page(Made::Hold, &[0.9, 0.9, 0.1]), 7), ["not enough evidence"]);
    assert_eq!(shown(&page(Made::Hold, &[]), 7), ["not enough evidence"]);
}
