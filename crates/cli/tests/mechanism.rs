//! `leaklab analyse STUDY mechanism`, the same as a part of `leaklab study`, and `leaklab advise`, run as a
//! user would run them.

mod runs;
mod studies;

use runs::{fail, leaklab, succeed};
use std::path::Path;
use std::process::Command;
use studies::with_short_theory;

/// A study that learns within seconds: two conditions, two seeds.
fn study(out: &Path, settings: &[&str]) -> Command {
    let mut command = leaklab(&["study", "digits", "--quiet", "--out"]);
    command.arg(out);
    for setting in [
        "tau=[10, inf]",
        "seeds=[1, 2]",
        "network=1x8x8-48FC-24FC-10o",
        "time_steps=10",
        "train_limit=800",
        "test_limit=50",
        "batch=20",
        "epochs=8",
        "schedule.after=[]",
        "noise=[\"gaussian/pixel\"]",
        "severity.gaussian/pixel=[0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4]",
    ]
    .iter()
    .chain(settings)
    {
        command.args(["--set", setting]);
    }
    command
}

fn json(command: &mut Command) -> serde_json::Value {
    serde_json::from_slice(&succeed(command).stdout).unwrap()
}

#[test]
fn a_study_asks_why_and_gives_advice() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("study");
    let path = out.to_str().unwrap();
    with_short_theory(&out);
    succeed(&mut study(&out, &["mechanism=false"]));
    let why = out.join("compare/why.json");
    assert!(!why.exists(), "mechanism is off");
    // If mechanism is switched on later, the study does not train again.
    succeed(&mut study(&out, &[]));
    let first = std::fs::read_to_string(&why).unwrap();
    for table in [
        "why_claims",
        "why_split",
        "why_price",
        "why_cells",
        "why_layers",
        "why_windows",
        "why_time",
        "why_colours",
    ] {
        assert!(out.join(format!("compare/{table}.csv")).is_file(), "{table}");
    }
    let tables = json(&mut leaklab(&["analyse", path, "mechanism", "--json"]));
    assert_eq!(tables[0]["name"], "why");
    assert_eq!(std::fs::read_to_string(&why).unwrap(), first, "stored passes give the same table");
    // One of its runs alone, printed as text.
    let run = out.join("runs/tau-inf_seed-1");
    let printed = succeed(&mut leaklab(&["analyse", run.to_str().unwrap(), "mechanism"])).stdout;
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert!(printed.contains("single network") && printed.contains(" from the hidden layers"), "{printed}");

    let advice =
        json(&mut leaklab(&["advise", path, "--noise", "gaussian/pixel", "--severity", "3", "--json"]));
    let apart = ["advise", path, "--noise", "gaussian", "--scenario", "pixel", "--severity", "3", "--json"];
    assert_eq!(advice, json(&mut leaklab(&apart)), "the scenario may be given separately");
    assert_eq!((&advice["stimulus"], &advice["seeds"]), (&"gaussian/pixel/3".into(), &2.into()));
    let synops = advice["synops"].as_f64().unwrap();
    let words = succeed(&mut leaklab(&["advise", path, "--noise", "gaussian/pixel"])).stdout;
    let words = String::from_utf8_lossy(&words).into_owned();
    assert!(words.contains("train with") && words.contains("not used for the choice"), "{words}");
    let own = advice["baseline_readout"].as_str().unwrap();
    assert!(own.starts_with("tau ") || own.starts_with("steps "), "{own}");
    assert!(advice["gain_over_readout"].is_f64());
    assert_eq!(words.contains("their best readout"), own != "tau inf", "{own}: {words}");

    let budget =
        |value: &str| leaklab(&["advise", path, "--noise", "gaussian/pixel", "--synops-budget", value]);
    succeed(&mut budget(&format!("{}", 2.0 * synops)));
    fail(&mut budget("1"), 1, &["at most 1 synaptic operations", "the cheapest needs"]);
    fail(&mut budget("-5"), 2, &["--synops-budget -5", "above 0"]);
    fail(&mut leaklab(&["advise", path, "--noise", "gauss"]), 2, &["--noise gauss", "gaussian/pixel"]);
    let severity = ["advise", path, "--noise", "gaussian/pixel", "--severity", "9"];
    fail(&mut leaklab(&severity), 2, &["--severity 9", "1 to 8"]);
    fail(
        &mut leaklab(&["analyse", path, "robustness"]),
        2,
        &["mechanism and compare only", "one of its runs"],
    );
    let leak = ["analyse", path, "mechanism", "--tau", "5"];
    fail(&mut leaklab(&leak), 2, &["omit --tau"]);
}

#[test]
fn a_study_without_a_pair_goes_without() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("study");
    with_short_theory(&out);
    succeed(&mut study(&out, &["tau=[10]", "epochs=1", "seeds=[1]"]));
    assert!(!out.join("compare/why.json").exists());
    let path = out.to_str().unwrap();
    fail(&mut leaklab(&["analyse", path, "mechanism"]), 1, &["without leak (tau = inf)", "have learned"]);
    fail(&mut leaklab(&["advise", path, "--noise", "gaussian/pixel"]), 1, &["without leak (tau = inf)"]);
    let nothing = folder.path().join("nothing");
    fail(&mut leaklab(&["advise", nothing.to_str().unwrap(), "--noise", "gaussian/pixel"]), 1, &["nothing"]);
}
