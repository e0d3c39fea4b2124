//! Which runs may be compared, and with which baseline: a wrong choice would give wrong verdicts silently.

mod synthetic;

use leaklab_lab::analysis::Analysis;
use leaklab_lab::analysis::compare::{CompareError, RunRecord, compare};
use leaklab_record::Role;
use leaklab_record::tables::{AnswerRow, ConditionRow};
use synthetic::{IMAGES, Numbers, config, gaining, record, rows, study};

/// A sweep of tau, and a condition without leak that differs in its dropout, before it in the order of runs.
fn with_dropout(name: &str) -> Vec<RunRecord> {
    let own = |seed: usize| {
        let settings =
            ["tau=inf", "dropout=0.3", &format!("condition={name}"), &format!("seed={}", seed + 1)];
        record(config(&settings), &Numbers::plain(0.0), IMAGES)
    };
    (0..4).map(own).chain(gaining(0.06, 0.03)).collect()
}

#[test]
fn the_name_of_a_condition_does_not_choose_the_baseline() {
    let found = ["dropout", "with dropout"].map(|name| {
        let tables = compare(&with_dropout(name), None).unwrap();
        let conditions: Vec<ConditionRow> = rows(&tables);
        let baseline = conditions.iter().find(|row| row.role == Role::Baseline).unwrap();
        assert_eq!(baseline.condition, "tau inf", "{name}");
        rows::<AnswerRow>(&tables).remove(0).sentence.replace(name, "it")
    });
    assert_eq!(found[0], found[1]);
    assert!(!found[0].contains("fewer than two conditions"), "{}", found[0]);
    // Any condition can still be named.
    let tables = compare(&with_dropout("dropout"), Some("dropout")).unwrap();
    let baseline = rows::<ConditionRow>(&tables).into_iter().find(|row| row.role == Role::Baseline).unwrap();
    assert_eq!(baseline.condition, "dropout");
}

#[test]
fn runs_that_were_tested_with_other_images_are_refused() {
    let digest = format!("data_sha256=\"{}\"", "ab".repeat(32));
    for (setting, key) in [
        ("validation=0.2", "validation"),
        ("test_limit=100", "test_limit"),
        (&digest, "data_sha256"),
        // Errors at the end of training are means over the evaluated epochs and training images.
        ("evaluate_every=2", "evaluate_every"),
        ("evaluate_train_images=10", "evaluate_train_images"),
    ] {
        let runs: Vec<RunRecord> = [vec!["tau=inf"], vec!["tau=30", setting]]
            .iter()
            .map(|settings| record(config(settings), &Numbers::plain(0.0), IMAGES))
            .collect();
        let error = compare(&runs, None).unwrap_err();
        assert!(matches!(&error, CompareError::Mixed { key: found, .. } if *found == key), "{error}");
    }
}

/// Whether a network is better than chance is judged with the test images of all runs, even if the first run
/// was not analysed.
#[test]
fn chance_is_judged_though_the_first_run_was_not_analysed() {
    // 11.5 % of 1,000 images are above a chance of 10 %, but not significantly.
    let mut runs = study(|_, _| Numbers { accuracy: 0.115, ..Numbers::plain(0.0) });
    let learned = |runs: &[RunRecord]| {
        let conditions: Vec<ConditionRow> = rows(&compare(runs, None).unwrap());
        conditions.iter().any(|row| row.learned == Some(true))
    };
    assert!(!learned(&runs));
    runs[0].correctness.clear();
    assert!(!learned(&runs));
}

/// Each analysis can be made with another number of images.
#[test]
fn analyses_with_other_numbers_of_images_are_refused() {
    let measured = || {
        let mut runs = gaining(0.06, 0.03);
        for run in &mut runs {
            run.activity_images = Some(IMAGES as u64);
        }
        runs
    };
    compare(&measured(), None).unwrap();
    for analysis in [Analysis::Activity, Analysis::Spectrum] {
        let mut runs = measured();
        if analysis == Analysis::Activity {
            runs[1].activity_images = Some(10);
        } else {
            runs[1].critical_summary.iter_mut().for_each(|row| row.images = 10);
        }
        let name = runs[1].name.clone();
        let message = compare(&runs, None).unwrap_err().to_string();
        let expected = format!("{name} with 10 ({}); analyse both", analysis.name());
        assert!(message.contains(&expected), "{message}");
    }
}
