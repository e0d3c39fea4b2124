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
        for heading in [" energy_per_operation (pJ) ", " spiking (J) ", " dense (J)"] {
            assert!(printed.contains(heading), "{printed}");
        }
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
    assert_eq!(printed, done(here, &["analyse", "study", "compare"]), "the folder may come first");
    let again =
        done(here, &["analyse", "compare", run, "study/runs/tau-inf_seed-1", "--out", "other", "--json"]);
    assert!(serde_json::from_str::<serde_json::Value>(&again).is_ok());
    let equal =
        |a: &str, b: &str| std::fs::read(here.join(a)).unwrap() == std::fs::read(here.join(b)).unwrap();
    assert!(equal("study/compare/claims.csv", "other/claims.csv"));
    // Without --out, a part of the runs would replace the comparison of all of them.
    let output = leaklab(here, &["analyse", "compare", run, "study/runs/tau-inf_seed-1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("give the folder for the tables with --out"));

    // A run's folder is neither that of a study nor that of a model.
    for arguments in [
        &["study", "digits", "--out", run][..],
        &["export", run, "--safetensors", run],
        &["advise", run, "--noise", "gaussian/pixel"],
    ] {
        let output = leaklab(here, arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let message = text(&output.stderr);
        let words = ["there is a run here already", "the folder of a run", "not the folder of a study"];
        assert!(words.iter().any(|words| message.contains(words)), "{message}");
    }
    // If a run's folder contains a model as well, the run counts.
    done(here, &["export", run, "--safetensors", "model"]);
    for file in ["config.json", "model.safetensors"] {
        std::fs::write(here.join(run).join(file), "{}").unwrap();
    }
    done(here, &["export", run, "--npz", "weights.npz"]);
    let output = leaklab(here, &["export", "model", "--npz", "other.npz", "--best"]);
    assert!(text(&output.stderr).contains("a model has one set of weights"), "{}", text(&output.stderr));
}

/// The card of the best weights must not state what was measured with the last ones.
#[test]
fn a_model_card_states_what_was_measured_with_its_weights() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let mut train = vec!["train", "--dataset", "digits", "--tau", "30", "--out", "run", "--quiet"];
    for setting in [
        "epochs=3",
        "time_steps=8",
        "train_limit=100",
        "validation=0.2",
        "network=1x8x8-12FC-10o",
        "noise=gaussian/pixel",
    ] {
        train.extend(["--set", setting]);
    }
    done(here, &train);
    let card = |flags: &[&str]| {
        let _ = std::fs::remove_dir_all(here.join("model"));
        done(here, &[&["export", "run", "--safetensors", "model"][..], flags].concat());
        std::fs::read_to_string(here.join("model/README.md")).unwrap()
    };
    done(here, &["analyse", "run", "robustness", "--quiet"]);
    assert!(card(&[]).contains("## Under noise") && card(&[]).contains("on the validation set"));
    assert!(!card(&["--best"]).contains("## Under noise"), "measured with the last weights");
    done(here, &["analyse", "run", "robustness", "--best", "--quiet"]);
    assert!(card(&["--best"]).contains("## Under noise"));
    // The network of a later epoch has not been analysed yet.
    let settings = here.join("run/run.toml");
    let longer = std::fs::read_to_string(&settings).unwrap().replace("epochs = 3", "epochs = 4");
    std::fs::write(&settings, longer).unwrap();
    done(here, &["train", "--resume", "run", "--quiet"]);
    assert!(!card(&[]).contains("## Under noise"), "measured with the weights of an earlier epoch");
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
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("nowhere: not a run folder"), "{}", text(&output.stderr));
    for (images, words) in [("0", "a whole number of 1 or more"), ("x", "a whole number of 1 or more")] {
        let output = leaklab(folder.path(), &["analyse", "nowhere", "all", "--images", images]);
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}
