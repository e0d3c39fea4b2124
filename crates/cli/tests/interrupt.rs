//! Ctrl-C while something other than a training is at work: it stops soon, with exit code 75, and the same
//! command continues.
#![cfg(unix)]

mod runs;

use runs::{leaklab, message, succeed, train};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Starts a command, waits until something is the case, presses Ctrl-C, and returns the output and the time
/// that the program took to stop.
fn interrupted(command: &mut Command, until: impl Fn() -> bool) -> (Output, Duration) {
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !until() {
        assert!(Instant::now() < deadline, "{command:?} did not come that far");
        assert!(child.try_wait().unwrap().is_none(), "{command:?} ended before it was interrupted");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let sent = Instant::now();
    (child.wait_with_output().unwrap(), sent.elapsed())
}

/// Number of files in a folder.
fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, |entries| entries.count())
}

#[test]
fn an_interrupted_analysis_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    // Many passes, of enough images that the first one is stored long before the last one begins.
    let long = ["time_steps=100", "test_limit=355", "network=1x8x8-16C3-16C3-2P-64FC-10o", "epochs=1"];
    succeed(&mut train(&run, &long));
    let stored = || files(&run.join("analysis/passes"));
    let analyse = || leaklab(&["analyse", run.to_str().unwrap(), "robustness", "--quiet"]);
    let (output, _) = interrupted(&mut analyse(), || stored() > 0);
    assert_eq!(output.status.code(), Some(75), "{}", message(&output));
    assert!(message(&output).contains("the same command continues"), "{}", message(&output));
    assert!(!run.join("analysis/robustness.json").exists(), "the analysis was complete already");
    let before = stored();
    succeed(&mut analyse());
    assert!(stored() > before);
    let table = || std::fs::read(run.join("analysis/robustness.json")).unwrap();
    let continued = table();
    std::fs::remove_dir_all(run.join("analysis/passes")).unwrap();
    succeed(&mut analyse());
    assert_eq!(continued, table(), "the stored passes are those that would be made");
}

#[test]
fn the_theory_of_a_new_study_does_not_delay_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("study");
    let mut study = leaklab(&["study", "digits", "--quiet", "--out", out.to_str().unwrap()]);
    // The lock of the study is held by the theory, which comes first and takes many seconds.
    let (output, time) = interrupted(&mut study, || out.join("lock").exists());
    assert_eq!(output.status.code(), Some(75), "{}", message(&output));
    assert!(!out.join("theory/complete").exists());
    assert!(time < Duration::from_secs(20), "it stopped after {time:?}");
}
