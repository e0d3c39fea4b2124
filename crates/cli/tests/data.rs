//! `leaklab data`, run as a user would run it.

use std::path::Path;
use std::process::{Command, Output};

fn leaklab(arguments: &[&str], data: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaklab"));
    command.arg("data").args(arguments).env("LEAKLAB_DATA", data).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn lists_every_data_set_and_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = leaklab(&["list"], folder.path());
    let shown = text(&output.stdout);
    assert!(output.status.success());
    for name in ["digits", "cifar10", "svhn", "mnist", "fashion-mnist", "image-folder"] {
        assert!(shown.contains(name), "{shown}");
    }
    assert!(shown.contains("leaklab data fetch cifar10") && shown.contains("in the program"), "{shown}");
    assert!(shown.contains("CC BY 4.0") && shown.contains(&folder.path().display().to_string()), "{shown}");

    // The sizes are those of the document.
    let document = include_str!("../../../docs/data.md");
    for name in ["cifar10", "svhn", "mnist", "fashion-mnist"] {
        let listed = shown.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        let row = document.lines().find(|line| line.starts_with(&format!("| `{name}` "))).unwrap();
        let size = row.rsplit_once(", ").unwrap().1.trim_end_matches(" |");
        assert!(listed.contains(&format!("  {size} ")), "{listed}: {row}");
    }

    std::fs::create_dir(folder.path().join("cifar-10-batches-bin")).unwrap();
    let output = leaklab(&["list", "--json"], folder.path());
    let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(list["datasets"][1]["name"], "cifar10");
    assert_eq!(list["datasets"][1]["present"], true);
    assert_eq!(list["datasets"][2]["present"], false);
}

#[test]
fn shows_a_contact_sheet() {
    let folder = tempfile::tempdir().unwrap();
    let sheet = folder.path().join("sheet.png");
    let out = sheet.to_str().unwrap();
    let output = leaklab(&["show", "digits", "--out", out], folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let clean = std::fs::read(&sheet).unwrap();
    assert!(clean.starts_with(b"\x89PNG"));
    let noisy =
        ["show", "digits", "--out", out, "--noise", "impulse", "--scenario", "channel", "--severity", "8"];
    assert!(leaklab(&noisy, folder.path()).status.success());
    assert_ne!(std::fs::read(&sheet).unwrap(), clean);
    let zero = ["show", "digits", "--out", out, "--noise", "impulse", "--severity", "0"];
    assert!(leaklab(&zero, folder.path()).status.success());
    assert_eq!(std::fs::read(&sheet).unwrap(), clean, "severity 0 is clean");
}

#[test]
fn verifies() {
    let folder = tempfile::tempdir().unwrap();
    let output = leaklab(&["verify", "digits", "--json"], folder.path());
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["right"], true);
    // No digest of these recordings is published, so they are not known to be right.
    let events = leaklab(&["verify", "digits-events", "--json"], folder.path());
    let found: serde_json::Value = serde_json::from_slice(&events.stdout).unwrap();
    assert_eq!(found["findings"][1]["right"], serde_json::Value::Null, "{found}");
    let fetched = leaklab(&["fetch", "digits", "--json"], folder.path());
    assert!(serde_json::from_slice::<serde_json::Value>(&fetched.stdout).is_ok());
    // A part of a data set can be read, but it is not the published one.
    let record: Vec<u8> = std::iter::once(3).chain([9; 3072]).collect();
    std::fs::write(folder.path().join("train.bin"), &record).unwrap();
    std::fs::write(folder.path().join("test.bin"), &record).unwrap();
    let output = leaklab(&["verify", "cifar10"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("WRONG, it should be 50000"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("is not the published one"));
}

/// An error is one sentence, and its exit code distinguishes wrong usage (2) from failed work (1).
#[test]
fn errors_are_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("x.png");
    let out = out.to_str().unwrap();
    for (arguments, code, part) in [
        (vec!["show", "cifar11", "--out", out], 2, "is not one of digits, cifar10"),
        (vec!["fetch", "cifar11"], 2, "is not one of"),
        (vec!["fetch", "image-folder"], 2, "your own"),
        (vec!["show", "cifar10", "--out", out], 1, "leaklab data fetch cifar10"),
        (vec!["show", "digits", "--out", "/no/such/folder/x.png"], 1, "/no/such/folder/x.png"),
        (
            vec!["show", "digits", "--out", out, "--noise", "thunder", "--severity", "1"],
            2,
            "gaussian, impulse",
        ),
        (vec!["show", "digits", "--out", out, "--noise", "gaussian", "--severity", "9"], 2, "0 to 8"),
        (
            vec![
                "show",
                "digits",
                "--out",
                out,
                "--noise",
                "jitter",
                "--scenario",
                "pixel",
                "--severity",
                "2",
            ],
            2,
            "only 'channel'",
        ),
        (vec!["show", "digits", "--out", out, "--encoder", "morse"], 2, "signed, unsigned"),
        (vec!["show", "digits", "--out", out, "--normalise", "none"], 2, "per-image, per-channel"),
    ] {
        let output = leaklab(&arguments, folder.path());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(part) && message.lines().count() == 1, "{arguments:?}: {message}");
    }
    assert!(!Path::new(out).exists());
}
