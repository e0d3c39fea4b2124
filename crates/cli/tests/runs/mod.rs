//! Running the program as a user would: small runs, and their results.
#![allow(dead_code)] // each test uses a part

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A network and data small enough to train within a second.
pub const SMALL: [&str; 10] = [
    "tau=30",
    "network=1x8x8-4C3-2P-16FC-10o",
    "time_steps=8",
    "train_limit=160",
    "test_limit=50",
    "batch=16",
    "epochs=4",
    "schedule.after=[2]",
    "optimiser=sgd",
    "learning_rate=0.7",
];

/// The program with some arguments.
pub fn leaklab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaklab"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// `leaklab train` of a new small run on digits, with further settings on top.
pub fn train(out: &Path, settings: &[&str]) -> Command {
    let mut command = leaklab(&["train", "--dataset", "digits", "--out"]);
    command.arg(out);
    for setting in SMALL.iter().chain(settings) {
        command.args(["--set", setting]);
    }
    command
}

/// `leaklab train --resume`.
pub fn resume(run: &Path) -> Command {
    let mut command = leaklab(&["train", "--resume"]);
    command.arg(run);
    command
}

/// What the program wrote to standard error.
pub fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command that must succeed.
pub fn succeed(command: &mut Command) -> Output {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {}", message(&output));
    output
}

/// Runs a command that must exit with `code` and print each of `words`.
pub fn fail(command: &mut Command, code: i32, words: &[&str]) -> String {
    let output = command.output().expect("the program starts");
    let message = message(&output);
    assert_eq!(output.status.code(), Some(code), "{command:?}: {message}");
    assert!(words.iter().all(|word| message.contains(word)), "{words:?} not in: {message}");
    message
}

/// The results of a run: checkpoint, best weights, metrics without times, and health notices.
pub fn results(run: &Path) -> (Vec<u8>, Vec<u8>, Vec<serde_json::Value>, String) {
    let read = |name: &str| std::fs::read(run.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let metrics = String::from_utf8(read("metrics.jsonl")).unwrap();
    let metrics = metrics.lines().map(|line| {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        let object = value.as_object_mut().unwrap();
        assert!(object.remove("seconds").is_some() && object.remove("images_per_second").is_some());
        value
    });
    let health = std::fs::read_to_string(run.join("health.jsonl")).unwrap_or_default();
    (read("checkpoint.safetensors"), read("best.safetensors"), metrics.collect(), health)
}

/// Asserts that two runs gave bit-identical results.
pub fn assert_same(a: &Path, b: &Path) {
    let (a, b) = (results(a), results(b));
    assert_eq!(a.2, b.2, "metrics differ");
    assert_eq!(a.3, b.3, "health differs");
    assert!(a.0 == b.0, "checkpoints differ");
    assert!(a.1 == b.1, "best weights differ");
}
