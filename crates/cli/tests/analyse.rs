//! `leaklab analyse`, run as a user would run it.

use std::path::Path;
use std::process::{Command, Output};

fn leaklab(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leaklab")).current_dir(folder).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must succeed and returns what it printed.
fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = leaklab(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn analyses_and_compares_runs() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for tau in ["30", "inf"] {
        let out = format!("study/runs/tau-{tau}_seed-1");
        let mut arguments = vec!["train", "--dataset", "digits", "--tau", tau, "--out", &out, "--quiet"];
        for setting in
            ["epochs=1", "time_steps=8", "train_limit=100", "test_limit=40", "network=1x8x8-12FC-10o"]
        {
            arguments.extend(["--set", setting]);
        }
        arguments.extend(["--set", "noise=gaussian/pixel"]);
        done(here, &arguments);
        let printed = done(here, &["analyse", &out, "all"]);
        assert!(printed.contains("Accuracy against severity of noise (robustness)"), "{printed}");
        assert!(printed.trim_end().ends_with("analysis"), "{printed}");
    }
    let run = "study/runs/tau-30_seed-1";
    let json: serde_json::Value =
        serde_json::from_str(&done(here, &["analyse", run, "robustness", "activity", "--json"])).unwrap();
    let names: Vec<&str> = json.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["robustness", "correctness", "robustness_summary", "activity", "activity_summary"]);
    assert_eq!(done(here, &["analyse", run, "spectrum", "--quiet"]), "");
    assert!(here.join(run).join("analysis/critical_frequency.csv").is_file());

    let printed = done(here, &["analyse", run, "robustness", "--noise", "deletion/channel"]);
    assert!(printed.contains("deletion"), "{printed}");

    let printed = done(here, &["analyse", "compare", "study"]);
    assert!(printed.contains("not enough evidence"), "{printed}");
    assert!(here.join("study/compare/claims.json").is_file());
    let again =
        done(here, &["analyse", "compare", run, "study/runs/tau-inf_seed-1", "--out", "other", "--json"]);
    assert!(serde_json::from_str::<serde_json::Value>(&again).is_ok());
    let equal =
        |a: &str, b: &str| std::fs::read(here.join(a)).unwrap() == std::fs::read(here.join(b)).unwrap();
    assert!(equal("study/compare/claims.csv", "other/claims.csv"));
}

#[test]
fn wrong_usage_is_2_and_failure_1() {
    let folder = tempfile::tempdir().unwrap();
    let output = leaklab(folder.path(), &["analyse", "nowhere", "all"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nowhere: not a run folder"), "{}", text(&output.stderr));
    let output = leaklab(folder.path(), &["analyse", "nowhere", "colour"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("'colour' is not one of robustness"), "{}", text(&output.stderr));
    assert_eq!(leaklab(folder.path(), &["analyse"]).status.code(), Some(2));
    assert_eq!(
        leaklab(folder.path(), &["analyse", "nowhere", "all", "--images", "0"]).status.code(),
        Some(2)
    );
    let output = leaklab(folder.path(), &["analyse", "nowhere", "all", "--noise", "deletion"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("such as gaussian/pixel"), "{}", text(&output.stderr));
    let output = leaklab(folder.path(), &["analyse", "compare", "nowhere"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}
