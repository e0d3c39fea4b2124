//! `leaklab train` and `leaklab evaluate` as a user sees them: settings, files, health, messages.

mod runs;

use runs::{fail, leaklab, message, resume, succeed, train};
use std::fs;

#[test]
fn a_run_leaves_what_was_promised() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let output = succeed(&mut train(&run, &["seed=7"]));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.lines().filter(|line| line.starts_with("epoch")).count(), 4, "{text}");
    let settings = fs::read_to_string(run.join("run.toml")).unwrap();
    for line in ["format = 1", "seed = 7", "tau = 30.0", "time_steps = 8", "learning_rate = "] {
        assert!(settings.contains(line), "{line} not in\n{settings}");
    }
    let metrics = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let last: serde_json::Value = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
    assert_eq!(last["epoch"], 4);
    assert_eq!(last["layers"].as_array().unwrap().len(), 4);
    assert!(last["layers"][1]["synops"].is_null() && last["layers"][0]["synops"].as_f64().unwrap() > 0.0);
    for name in ["checkpoint.safetensors", "best.safetensors", "log.txt"] {
        assert!(run.join(name).is_file(), "{name}");
    }

    // The figures of the last epoch are those that evaluation finds.
    let output = succeed(leaklab(&["evaluate", "--json"]).arg(&run));
    let evaluation: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(evaluation["accuracy"], last["test_accuracy"]);
    assert_eq!(evaluation["sse"], last["test_sse"]);
    let accuracy = evaluation["accuracy"].as_f64().unwrap();
    assert!(evaluation["accuracy_low"].as_f64().unwrap() <= accuracy);
    assert!(evaluation["accuracy_high"].as_f64().unwrap() >= accuracy);

    // The resolved file is a complete run file, and a finished run stays as it is.
    let again = folder.path().join("again");
    succeed(leaklab(&["train", "--quiet", "--out"]).arg(&again).arg(run.join("run.toml")));
    runs::assert_same(&run, &again);
    succeed(&mut resume(&run));
    runs::assert_same(&run, &again);
}

/// The name of a data set may contain a colon, which not every file system allows.
#[test]
fn default_folders_have_no_colon() {
    let folder = tempfile::tempdir().unwrap();
    for class in ["a", "b"] {
        fs::create_dir_all(folder.path().join("images").join(class)).unwrap();
        for n in 0..5 {
            let file = format!("images/{class}/{n}.png");
            succeed(leaklab(&["data", "show", "digits", "--out", &file]).current_dir(folder.path()));
        }
    }
    let mut command =
        leaklab(&["train", "--dataset", "image-folder:8x8", "--data-dir", "images", "--tau", "30"]);
    for setting in ["network=3x8x8-4FC-2o", "epochs=1", "time_steps=4"] {
        command.args(["--set", setting]);
    }
    succeed(command.current_dir(folder.path()));
    let run = folder.path().join("runs/image-folder-8x8_tau-30_seed-1");
    assert!(run.join("run.toml").is_file());
    // The images are found from another folder too.
    succeed(leaklab(&["evaluate"]).arg(&run).current_dir(&run));
}

/// Later commands may be run from another folder, and tables of another leak are elsewhere.
#[test]
fn folders_are_named_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut command = train(&run, &["epochs=1", "test_limit=20", "analysis_images=10"]);
    succeed(command.args(["--data-dir", "data"]).current_dir(folder.path()));
    let settings = fs::read_to_string(run.join("run.toml")).unwrap();
    let line = settings.lines().find(|line| line.starts_with("data_dir = ")).unwrap();
    assert!(line.contains(&*folder.path().join("data").to_string_lossy()), "{line}");
    let tables = |flags: &[&str]| {
        let output = succeed(leaklab(&["analyse"]).arg(&run).args(["activity"]).args(flags));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let written =
            text.lines().find_map(|line| line.strip_prefix("Tables written to ")).unwrap().to_owned();
        assert!(std::path::Path::new(&written).join("activity.csv").is_file(), "{written}");
        written
    };
    assert!(tables(&[]).ends_with("analysis") && tables(&["--tau", "inf"]).ends_with("tau-inf"));
}

#[test]
fn noise_lowers_accuracy_and_severity_zero_is_clean() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let settings = [
        "network=1x8x8-8C3-2P-32FC-10o",
        "time_steps=20",
        "test_limit=200",
        "train_limit=800",
        "learning_rate=0.5",
    ];
    succeed(&mut train(&run, &settings));
    let accuracy = |flags: &[&str]| {
        let output = succeed(leaklab(&["evaluate", "--json"]).arg(&run).args(flags));
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        value["accuracy"].as_f64().unwrap()
    };
    let clean = accuracy(&[]);
    assert!(clean > 0.5, "{clean}");
    for scenario in ["pixel", "channel"] {
        let flags = |severity| ["--noise", "gaussian", "--scenario", scenario, "--severity", severity];
        assert_eq!(accuracy(&flags("0")), clean);
        assert!(accuracy(&flags("8")) < clean);
    }
    let noise = |flags: &[&str], words: &[&str]| fail(leaklab(&["evaluate"]).arg(&run).args(flags), 2, words);
    noise(&["--noise", "thunder", "--severity", "1"], &["thunder", "gaussian"]);
    noise(&["--noise", "gaussian", "--severity", "9"], &["severity 9"]);
}

#[test]
fn activity_that_dies_out_is_reported_with_its_layers() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let settings = ["tau=2", "network=1x8x8-16C3-16C3-16C3-16C3-32FC-10o", "time_steps=20", "epochs=2"];
    let output = succeed(&mut train(&run, &settings));
    let message = message(&output);
    assert!(message.contains("activity dies out") && message.contains("fc1"), "{message}");
    assert!(message.contains("tau = 2") && message.contains("try a larger tau"), "{message}");
    let health = fs::read_to_string(run.join("health.jsonl")).unwrap();
    assert!(health.contains("\"kind\":\"silent\"") && health.contains("\"fc1\""), "{health}");

    let stopped = folder.path().join("stopped");
    fail(train(&stopped, &settings).arg("--stop-on-divergence"), 1, &["after epoch 1", "activity dies out"]);
}

#[test]
fn a_learning_rate_of_a_thousand_is_reported_as_diverged() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let output = train(&run, &["learning_rate=1000"]).output().unwrap();
    let message = message(&output);
    assert!(message.contains("training has diverged") && message.contains("learning_rate"), "{message}");
    let health = fs::read_to_string(run.join("health.jsonl")).unwrap();
    assert!(health.contains("\"diverged\"") || health.contains("\"non-finite\""), "{health}");
    let stopped = folder.path().join("stopped");
    fail(train(&stopped, &["learning_rate=1000"]).arg("--stop-on-divergence"), 1, &["training has diverged"]);
}

#[test]
fn numbers_that_overflow_end_the_run_and_spare_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    fail(&mut train(&run, &["learning_rate=1e38"]), 1, &["training has diverged", "not a finite number"]);
    assert!(fs::read_to_string(run.join("health.jsonl")).unwrap().contains("non-finite"));
    succeed(leaklab(&["evaluate"]).arg(&run));
}

#[test]
fn a_healthy_run_is_not_complained_about() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let output = succeed(&mut train(&run, &["learning_rate=0.3", "time_steps=15"]));
    assert_eq!(message(&output), "");
    assert!(!run.join("health.jsonl").exists());
}

#[test]
fn json_lines_are_json() {
    let folder = tempfile::tempdir().unwrap();
    let output = succeed(train(&folder.path().join("run"), &[]).arg("--json"));
    let lines: Vec<serde_json::Value> = output
        .stdout
        .split(|&b| b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| serde_json::from_slice(l).unwrap())
        .collect();
    assert_eq!(lines.first().unwrap()["event"], "started");
    assert_eq!(lines.last().unwrap()["event"], "finished");
    assert_eq!(lines.iter().filter(|line| line["event"] == "epoch").count(), 4);
    let output = succeed(train(&folder.path().join("quiet"), &[]).arg("--quiet"));
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
}

#[test]
fn wrong_settings_are_refused_with_line_and_hint() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("study.toml");
    let run = folder.path().join("run");
    let refuse = |text: &str, words: &[&str]| {
        fs::write(&file, text).unwrap();
        fail(leaklab(&["train", "--out"]).arg(&run).arg(&file), 2, words);
        assert!(!run.exists(), "a refused run leaves nothing behind");
    };
    refuse(
        "dataset = \"digits\"\ntau = 30\nlearning_rat = 0.1\n",
        &["line 3", "learning_rat", "did you mean `learning_rate`"],
    );
    refuse("dataset = \"digits\"\n\ntau = -1\n", &["line 3", "tau = -1", "1/64 or more"]);
    refuse(
        "dataset = \"digits\"\ntau = 30\ndropout = 1.5\n",
        &["line 3", "dropout = 1.5", "from 0 to below 1"],
    );
    refuse("dataset = \"digits\"\ntau = 30\nepochs = \"many\"\n", &["line 3", "whole number"]);
    refuse("dataset = \"digits\"\ntau = [30, 100]\n", &["line 2", "leaklab study"]);
    refuse("dataset = \"digits\"\ntau = 30\nnetwork = \"1x8x8-16D3-10o\"\n", &["line 3", "16D3"]);
    refuse(
        "dataset = \"digits\"\ntau = 30\n[schedule]\nafterwards = [1]\n",
        &["line 4", "schedule.afterwards"],
    );
    refuse(
        "dataset = \"digits\"\ntau = 30\n[severity]\n\"gaussian/pixel\" = [1, 2]\n",
        &["line 4", "eight levels"],
    );
    refuse("dataset = \"digits\"\ntau = = 30\n", &["line 2"]);
    refuse("tau = 30\n", &["dataset is missing"]);
    refuse("dataset = \"digits\"\n", &["tau is missing", "inf"]);
    fail(
        leaklab(&["train", "--dataset", "digits", "--tau", "30", "--set", "epochs"]).arg("--out").arg(&run),
        2,
        &["key=value"],
    );
    fail(&mut leaklab(&["train", "digits"]), 2, &["tau is missing"]);
    fail(&mut leaklab(&["train", "--resume", "no-such-run"]), 1, &["no-such-run", "not a run folder"]);
    let mismatch = "dataset = \"digits\"\ntau = 30\nnetwork = \"32x32-16C3-10o\"\n";
    fs::write(&file, mismatch).unwrap();
    fail(leaklab(&["train", "--out"]).arg(&run).arg(&file), 1, &["3x32x32", "1x8x8"]);
}

#[test]
fn another_format_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    succeed(&mut train(&run, &["epochs=1"]));
    let path = run.join("run.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("format = 1", "format = 99")).unwrap();
    fail(&mut resume(&run), 1, &["run.toml", "format 99", "update leaklab"]);
    fs::write(&path, text.replace("tau = 30.0", "tau = 31.0")).unwrap();
    fail(&mut resume(&run), 1, &["tau = 30, not 31"]);
    // More epochs are allowed.
    fs::write(&path, text.replace("epochs = 1", "epochs = 2")).unwrap();
    let output = succeed(&mut resume(&run));
    assert!(message(&output).contains("run.toml was changed"), "{}", message(&output));
    assert_eq!(fs::read_to_string(run.join("metrics.jsonl")).unwrap().lines().count(), 2);
}

/// Work outside the pool of `--threads` would start the threads of rayon's global pool.
#[cfg(target_os = "linux")]
#[test]
fn no_more_threads_than_asked_for() {
    /// The most threads that a command had while it ran.
    fn most_threads(command: &mut std::process::Command) -> usize {
        use std::process::Stdio;
        let command = command.env("RAYON_NUM_THREADS", "40").stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut most = 0;
        loop {
            // A process that has ended has no such line, or one of a single thread.
            let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let threads = status.lines().find_map(|line| line.strip_prefix("Threads:"));
            most = most.max(threads.map_or(0, |n| n.trim().parse().unwrap()));
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                return most;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    // The pool's thread, the main thread, and a few that wait for signals or write.
    const FEW: usize = 8;
    let training = most_threads(train(&run, &["initial=rate", "time_steps=30"]).args(["--threads", "1"]));
    assert!((2..=FEW).contains(&training), "training had {training} threads");
    let evaluation = most_threads(leaklab(&["evaluate", "--threads", "1", "--train"]).arg(&run));
    assert!((2..=FEW).contains(&evaluation), "evaluation had {evaluation} threads");
}
