//! Verdicts follow their stated rule: synthetic records in which each claim holds, fails and is undecided.

use leaklab_lab::analysis::compare::{CompareError, RunRecord, compare};
use leaklab_record::metrics::Epoch;
use leaklab_record::{Cell, Table};

const NETWORK: &str = "1x8x8-16C3-32C3-2P-128FC-10o";

/// The numbers of one synthetic run.
#[derive(Clone, Copy)]
struct Numbers {
    accuracy: f64,
    area: f64,
    sse: f64,
    /// Test SSE over train SSE at every epoch.
    gap: f64,
    spikes: f64,
    norm: f64,
    critical: f64,
    noisy: f64,
}

const PLAIN: Numbers = Numbers {
    accuracy: 0.95,
    area: 0.6,
    sse: 0.1,
    gap: 1.5,
    spikes: 0.1,
    norm: 5.0,
    critical: 0.3,
    noisy: 0.32,
};

fn table(name: &str, columns: &[&str], rows: Vec<Vec<Cell>>) -> Table {
    let columns: Vec<_> = columns.iter().map(|&c| (c, "", "")).collect();
    let mut table = Table::new(name, name, "synthetic", &columns);
    rows.into_iter().for_each(|row| table.push(row));
    table
}

fn epoch(number: u64, train_sse: f64, test_sse: f64) -> Epoch {
    Epoch {
        format: 1,
        epoch: number,
        learning_rate: 0.1,
        train_accuracy: 0.9,
        train_sse: Some(train_sse),
        test_accuracy: Some(0.9),
        test_sse: Some(test_sse),
        spike_rate: None,
        synops: None,
        layers: Vec::new(),
        seconds: 1.0,
        images_per_second: 1.0,
    }
}

fn run(tau: f64, seed: u64, n: Numbers) -> RunRecord {
    let images = 1000.0;
    let tables = [
        table(
            "robustness",
            &["noise", "scenario", "severity", "level", "images", "accuracy", "accuracy_low"],
            (0..=8)
                .map(|severity| {
                    let accuracy = n.accuracy * (1.0 - f64::from(severity) / 8.0 * (1.0 - n.area));
                    let low = accuracy - 2.0 * (accuracy * (1.0 - accuracy) / images).sqrt();
                    vec![
                        "gaussian".into(),
                        "pixel".into(),
                        Cell::Integer(severity.into()),
                        0.1.into(),
                        images.into(),
                        accuracy.into(),
                        low.into(),
                    ]
                })
                .collect(),
        ),
        table(
            "robustness_summary",
            &["noise", "scenario", "area"],
            vec![vec!["gaussian".into(), "pixel".into(), n.area.into()]],
        ),
        table(
            "generalisation_summary",
            &["quantity", "value"],
            vec![vec!["test_sse_last".into(), n.sse.into()], vec!["train_sse_last".into(), 0.1.into()]],
        ),
        table(
            "activity_summary",
            &["quantity", "value"],
            vec![vec!["spike_rate".into(), n.spikes.into()], vec!["synops".into(), (1e6 * n.spikes).into()]],
        ),
        table(
            "activity",
            &["layer", "kind", "weighted_input_norm"],
            vec![
                vec!["conv1".into(), "conv".into(), n.norm.into()],
                vec!["pool1".into(), "pool".into(), 1e9.into()],
                vec!["fc1".into(), "full".into(), (2.0 * n.norm).into()],
            ],
        ),
        table(
            "critical_frequency_summary",
            &["condition", "mean"],
            vec![vec!["clean".into(), n.critical.into()], vec!["gaussian/pixel/5".into(), n.noisy.into()]],
        ),
    ];
    RunRecord {
        name: format!("tau-{tau}_seed-{seed}"),
        tau,
        seed,
        dataset: "digits".into(),
        network: NETWORK.into(),
        classes: 10,
        epochs: (1..=20).map(|e| epoch(e, 1.0 / e as f64, n.gap / e as f64)).collect(),
        notices: Vec::new(),
        tables: tables.into_iter().map(|table| (table.name.clone(), table)).collect(),
    }
}

/// Three tau and three seeds; `change` makes the numbers of a run from tau's rank (0: most leak) and a jitter that
/// has mean 0 over seeds and differs between tau.
fn study(change: impl Fn(&mut Numbers, f64, f64)) -> Vec<RunRecord> {
    let jitter = [[-1.0, 0.2, 0.8], [0.5, -0.9, 0.4], [0.1, 0.6, -0.7]];
    let mut runs = Vec::new();
    for (rank, tau) in [30.0, 100.0, f64::INFINITY].into_iter().enumerate() {
        for seed in 0..3 {
            let mut numbers = PLAIN;
            change(&mut numbers, rank as f64, jitter[rank][seed]);
            runs.push(run(tau, seed as u64 + 1, numbers));
        }
    }
    runs
}

fn claims(runs: &[RunRecord]) -> Table {
    compare(runs).unwrap().into_iter().find(|t| t.name == "claims").unwrap()
}

fn entry(runs: &[RunRecord], claim: &str, column: &str) -> String {
    let table = claims(runs);
    let row = table.rows.iter().find(|row| row[0].text() == Some(claim));
    let row = row.unwrap_or_else(|| panic!("no claim {claim}"));
    table.cell(row, column).text().unwrap().to_owned()
}

fn verdict(runs: &[RunRecord], claim: &str) -> String {
    entry(runs, claim, "verdict")
}

/// Checks one claim in three studies: made to hold, made to fail, drowned in jitter.
fn three_ways(claim: &str, set: impl Fn(&mut Numbers, f64), good: [f64; 3], jitter: f64) {
    let with = |values: [f64; 3], jitter: f64| {
        study(|numbers, rank, j| set(numbers, values[rank as usize] + jitter * j))
    };
    let mut bad = good;
    bad.reverse();
    assert_eq!(verdict(&with(good, 0.0), claim), "holds", "{claim}");
    assert_eq!(verdict(&with(good, 1e-3 * jitter), claim), "holds", "{claim}");
    assert_eq!(verdict(&with(bad, 1e-3 * jitter), claim), "does not hold", "{claim}");
    assert_eq!(verdict(&with([good[1]; 3], 1e-3 * jitter), claim), "does not hold", "{claim} without effect");
    assert_eq!(verdict(&with(good, jitter), claim), "not enough evidence", "{claim}");
    let single: Vec<RunRecord> = with(good, 0.0).into_iter().filter(|run| run.seed == 1).collect();
    assert_eq!(verdict(&single, claim), "not enough evidence", "{claim} of one seed");
}

#[test]
fn claim_1_equal_accuracy() {
    let with = |spread: f64, jitter: f64| study(|n, rank, j| n.accuracy += spread * rank + jitter * j);
    assert_eq!(verdict(&with(0.001, 0.001), "1"), "holds");
    assert_eq!(verdict(&with(0.02, 0.001), "1"), "does not hold");
    assert_eq!(verdict(&with(0.001, 0.03), "1"), "not enough evidence");
    assert_eq!(entry(&with(0.001, 0.03), "1", "case"), "undecided");
    let single: Vec<RunRecord> = with(0.0, 0.0).into_iter().filter(|run| run.seed == 1).collect();
    assert_eq!(verdict(&single, "1"), "not enough evidence");
}

#[test]
fn claim_1_shows_a_pair_that_decides() {
    // 30 and 100 surely differ; 100 and inf are far apart in the mean, but not surely.
    let runs = study(|n, rank, j| {
        n.accuracy = [0.95, 0.92, 0.85][rank as usize] + [0.0, 0.0, 0.1][rank as usize] * j
    });
    assert_eq!(entry(&runs, "1", "case"), "different");
    assert!(entry(&runs, "1", "quantity").ends_with("tau 30 minus 100"), "{}", entry(&runs, "1", "quantity"));
}

#[test]
fn seeds_that_agree_to_the_image_do_not_make_certainty() {
    // Two seeds, both with 17 images of 1,000 more at tau 30 than at tau 100, by chance.
    let runs = |few: f64| -> Vec<RunRecord> {
        let mut runs = study(|n, rank, _| n.accuracy = 0.9 + [0.017, 0.0, 0.0][rank as usize]);
        runs.retain(|run| run.seed < 3);
        for table in runs.iter_mut().filter_map(|run| run.tables.get_mut("robustness")) {
            let column = table.column("images").unwrap();
            table.rows.iter_mut().for_each(|row| row[column] = few.into());
        }
        runs
    };
    // Rounding to an image in 1,000 makes 0.0026 of half a width, to one in 100 ten times that.
    assert_eq!(verdict(&runs(1000.0), "1"), "does not hold");
    assert_eq!(verdict(&runs(100.0), "1"), "not enough evidence");
}

#[test]
fn an_interval_that_includes_no_effect_refutes_nothing_by_itself() {
    let with = |leak: f64, jitter: f64| {
        let runs = study(|n, rank, j| n.area = 0.6 + leak * (2.0 - rank) + jitter * j);
        (entry(&runs, "2 gaussian/pixel", "verdict"), entry(&runs, "2 gaussian/pixel", "case"))
    };
    let case = |verdict: &str, case: &str| (verdict.to_owned(), case.to_owned());
    // Half a width is about 3.34 times the jitter; the smallest effect of interest is 0.01.
    assert_eq!(with(0.0, 0.01), case("not enough evidence", "undecided"));
    assert_eq!(with(0.0, 0.001), case("does not hold", "no such effect"));
    assert_eq!(with(0.002, 0.001), case("holds", "as claimed, but small"));
    assert_eq!(with(0.05, 0.001), case("holds", "as claimed"));
    assert_eq!(with(-0.05, 0.001), case("does not hold", "the opposite"));
}

#[test]
fn claim_2_robustness() {
    three_ways("2 gaussian/pixel", |n, x| n.area = x, [0.8, 0.7, 0.6], 0.2);
}

#[test]
fn claim_3_generalisation() {
    three_ways("3 test_sse", |n, x| n.sse = x, [0.05, 0.07, 0.1], 0.045);
    three_ways("3 equal train_sse", |n, x| n.gap = x, [1.2, 1.4, 1.6], 0.8);
}

#[test]
fn claim_4_activity() {
    three_ways("4 spike_rate", |n, x| n.spikes = x, [0.2, 0.15, 0.12], 0.11);
    three_ways("4 synops", |n, x| n.spikes = x, [0.2, 0.15, 0.12], 0.11);
}

#[test]
fn claim_5_norms() {
    three_ways("5", |n, x| n.norm = x, [9.0, 7.0, 6.0], 5.0);
}

#[test]
fn claim_6_critical_frequency() {
    three_ways("6 leak clean", |n, x| n.critical = x, [0.25, 0.31, 0.345], 0.2);
    three_ways("6 leak gaussian/pixel/5", |n, x| n.noisy = x, [0.25, 0.31, 0.345], 0.2);
    let with = |rise: f64, jitter: f64| study(|n, _, j| n.noisy = n.critical + rise + jitter * j);
    for tau in ["30", "100", "inf"] {
        let claim = format!("6 gaussian/pixel/5 tau {tau}");
        assert_eq!(verdict(&with(0.02, 0.001), &claim), "holds");
        assert_eq!(verdict(&with(-0.02, 0.001), &claim), "does not hold");
        assert_eq!(verdict(&with(0.02, 0.1), &claim), "not enough evidence");
    }
}

#[test]
fn claim_7_small_tau() {
    let with = |small: &[f64]| {
        let mut runs = study(|_, _, _| {});
        for (i, &accuracy) in small.iter().enumerate() {
            runs.push(run(5.0, i as u64 + 1, Numbers { accuracy, ..PLAIN }));
        }
        verdict(&runs, "7")
    };
    assert_eq!(with(&[0.1, 0.1, 0.1]), "holds");
    // That none of three runs failed leaves room for more than half of many; none of four does not.
    assert_eq!(with(&[0.9, 0.9, 0.9]), "not enough evidence");
    assert_eq!(with(&[0.9, 0.9, 0.9, 0.9]), "does not hold");
    assert_eq!(with(&[0.9, 0.9, 0.1]), "not enough evidence");
    assert_eq!(with(&[0.1]), "not enough evidence");
    assert_eq!(with(&[]), "not enough evidence");
}

#[test]
fn a_contrary_neighbour_refutes_a_trend() {
    // 30 is better than inf, but 100 far worse than inf.
    let runs = study(|n, rank, j| n.area = [0.8, 0.3, 0.6][rank as usize] + 1e-4 * j);
    assert_eq!(entry(&runs, "2 gaussian/pixel", "case"), "not steady");
    assert_eq!(verdict(&runs, "2 gaussian/pixel"), "does not hold");
    assert!(entry(&runs, "2 gaussian/pixel", "reason").contains("Between tau 100 and inf"));
    // A step back that is too small to speak of refutes nothing.
    let runs = study(|n, rank, j| n.area = [0.8, 0.594, 0.6][rank as usize] + 1e-4 * j);
    assert_eq!(entry(&runs, "2 gaussian/pixel", "case"), "as claimed");
}

#[test]
fn every_row_has_its_rule_and_no_number_is_made_up() {
    let runs = study(|_, _, _| {});
    let table = claims(&runs);
    for row in &table.rows {
        assert!(table.cell(row, "rule").text().unwrap().to_lowercase().contains("not enough evidence"));
        assert!(table.cell(row, "reason").text().unwrap().ends_with('.'));
        assert!(
            !table.cell(row, "paper").text().unwrap().contains("89.65"),
            "digits are not the paper's data"
        );
    }
    let numbers: std::collections::BTreeSet<char> =
        table.rows.iter().filter_map(|row| row[0].text()?.chars().next()).collect();
    assert_eq!(numbers.into_iter().collect::<String>(), "1234567");
}

#[test]
fn the_papers_numbers_stand_beside_the_papers_network() {
    let mut runs = study(|_, _, _| {});
    for run in &mut runs {
        run.dataset = "cifar10".into();
        run.network = "32x32-64C3-64C3-2P-128C3-128C3-2P-256C3-256C3-256C3-2P-1024FC-10o".into();
    }
    let tables = compare(&runs).unwrap();
    let table1 = tables.iter().find(|t| t.name == "table1").unwrap();
    let row =
        table1.rows.iter().find(|r| r[0].text() == Some("synops") && r[1].text() == Some("30")).unwrap();
    assert_eq!(table1.cell(row, "paper").number(), Some(1.59e9));
    assert!(claims(&runs).rows[0][2].text().unwrap().contains("89.65 %"));
}

#[test]
fn means_and_differences_are_those_of_the_runs() {
    let runs = study(|n, rank, j| n.area = 0.5 + 0.1 * rank + 0.01 * j);
    let tables = compare(&runs).unwrap();
    let differences = tables.iter().find(|t| t.name == "differences").unwrap();
    let row = differences
        .rows
        .iter()
        .find(|r| r[0].text() == Some("area gaussian/pixel") && r[2].text() == Some("inf"))
        .unwrap();
    // Jitter of tau 30 minus inf: -1.1, -0.4, 1.5; mean 0, variance 1.81, quantile 4.30265.
    let number = |column: &str| differences.cell(row, column).number().unwrap();
    assert!((number("mean") + 0.2).abs() < 1e-12);
    let half = 0.01 * 4.302_65 * (1.81_f64 / 3.0).sqrt();
    assert!((number("high") - number("mean") - half).abs() < 1e-6, "{}", number("high"));
    let tradeoff = tables.iter().find(|t| t.name == "tradeoff").unwrap();
    let fronts: Vec<f64> =
        tradeoff.rows.iter().map(|row| tradeoff.cell(row, "pareto").number().unwrap()).collect();
    // Equal cost, so only the most robust tau is on the front.
    assert_eq!(fronts, [0.0, 0.0, 1.0]);
}

#[test]
fn missing_analyses_leave_gaps_and_notes() {
    let mut runs = study(|_, _, _| {});
    runs.iter_mut().for_each(|run| run.tables.clear());
    let tables = compare(&runs).unwrap();
    let table1 = tables.iter().find(|t| t.name == "table1").unwrap();
    assert!(table1.notes.iter().any(|note| note.starts_with("synops")));
    assert_eq!(verdict(&runs, "4 synops"), "not enough evidence");
    let single: Vec<RunRecord> = study(|_, _, _| {}).into_iter().filter(|run| run.seed == 2).collect();
    assert!(compare(&single).unwrap()[0].notes.iter().any(|note| note.contains("at least 2 runs")));
}

#[test]
fn what_does_not_compare_is_refused() {
    assert_eq!(compare(&[]).unwrap_err(), CompareError::NoRuns);
    let mut runs = study(|_, _, _| {});
    runs[4].seed = runs[3].seed;
    assert!(compare(&runs).unwrap_err().to_string().contains("both have tau 100 and seed 1"));
    let mut runs = study(|_, _, _| {});
    runs[4].dataset = "mnist".into();
    assert!(compare(&runs).unwrap_err().to_string().contains("differ in dataset (digits, mnist)"));
}
