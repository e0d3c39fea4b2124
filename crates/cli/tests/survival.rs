//! Runs survive kills at any moment, damaged files, and full and read-only disks.
#![cfg(unix)]

mod runs;
#[path = "../../lab/tests/support/mod.rs"]
mod support;

use runs::{assert_same, fail, leaklab, message, resume, succeed, train};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use support::{SmallDisk, attack_times};

/// Number of kills (times [`attack_times`]), at moments spread over the whole run.
const KILLS: u32 = 30;

/// Asserts that a run's folder contains no incomplete file.
fn assert_nothing_half_written(run: &Path) {
    let left: Vec<PathBuf> = fs::read_dir(run).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.extension().is_none_or(|e| e != "partial")), "{left:?}");
}

#[test]
fn killed_at_any_moment_it_ends_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let (alone, killed) = (folder.path().join("alone"), folder.path().join("killed"));
    let started = Instant::now();
    succeed(train(&alone, &[]).args(["--threads", "1"]));
    let mut duration = started.elapsed();

    let (mut kills, mut attempts, mut continued, mut finished) = (0, 0, 0, 0);
    let wanted = KILLS * attack_times();
    while kills < wanted || continued <= wanted / 2 {
        attempts += 1;
        assert!(attempts < 100 * wanted, "{kills} kills, {continued} of them of a run under way");
        let begun = killed.join("run.toml").exists();
        let mut command = if begun { resume(&killed) } else { train(&killed, &[]) };
        // With a checkpoint after every batch, half of the kills interrupt the writing of one.
        let threads = if attempts % 2 == 0 { "1" } else { "2" };
        let mut child = command
            .args(["--threads", threads, "--checkpoint-minutes", "0", "--quiet"])
            .spawn()
            .expect("the program starts");
        // A stride by the golden ratio spreads the moments evenly; the scheduler adds randomness.
        let moment = duration.mul_f64(f64::from(attempts) * 0.618_033_988_749 % 1.0);
        std::thread::sleep(moment);
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        match output.status.code() {
            None => {
                kills += 1;
                // The machine may be busier, or less busy, than when the duration was measured.
                if !killed.join("run.toml").exists() {
                    duration = duration.mul_f64(1.1);
                }
            }
            Some(0) => {
                assert_same(&alone, &killed);
                assert_nothing_half_written(&killed);
                fs::remove_dir_all(&killed).unwrap();
                finished += 1;
                if !begun {
                    duration = duration.min(moment);
                }
            }
            Some(_) => panic!("{}", message(&output)),
        }
        continued += u32::from(begun);
    }
    if killed.join("run.toml").exists() {
        succeed(&mut resume(&killed));
    } else {
        succeed(&mut train(&killed, &[]));
    }
    assert_same(&alone, &killed);
    assert_nothing_half_written(&killed);
    println!("{kills} kills, {continued} continuations, {finished} runs finished in between");
}

#[test]
fn threads_do_not_change_a_bit() {
    let folder = tempfile::tempdir().unwrap();
    let run = |threads: &str| {
        let path = folder.path().join(threads);
        let settings = ["dropout=0.2", "augment.crop=1", "optimiser=adam", "learning_rate=0.002"];
        succeed(train(&path, &settings).args(["--threads", threads]));
        path
    };
    let [one, two, three] = ["1", "2", "3"].map(run);
    assert_same(&one, &two);
    assert_same(&one, &three);
}

/// A finished run whose last checkpoint is damaged by `damage`.
fn damaged(folder: &Path, damage: impl Fn(&mut Vec<u8>)) -> PathBuf {
    let run = folder.join("damaged");
    let _ = fs::remove_dir_all(&run);
    succeed(&mut train(&run, &[]));
    let path = run.join("checkpoint.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    damage(&mut bytes);
    fs::write(&path, bytes).unwrap();
    run
}

#[test]
fn a_damaged_checkpoint_is_noticed_and_the_previous_one_used() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("alone");
    succeed(&mut train(&alone, &[]));
    type Damage = fn(&mut Vec<u8>);
    let damages: [Damage; 4] = [
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| bytes.clear(),
        |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
        },
        |bytes| bytes[20] ^= 1,
    ];
    for damage in damages {
        let run = damaged(folder.path(), damage);
        let output = succeed(leaklab(&["evaluate", "--json"]).arg(&run));
        assert!(message(&output).contains("using the previous checkpoint"), "{}", message(&output));
        let evaluation: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(evaluation["epoch"], 3);
        let notices = evaluation["notices"].as_array().unwrap();
        assert!(notices.len() == 1 && notices[0].as_str().unwrap().contains("previous checkpoint"));
        let output = succeed(leaklab(&["analyse", "--quiet"]).arg(&run).arg("generalisation"));
        assert!(message(&output).contains("using the previous checkpoint"), "{}", message(&output));
        let output = succeed(&mut resume(&run));
        assert!(message(&output).contains("checkpoint.safetensors: damaged"), "{}", message(&output));
        assert_same(&alone, &run);
    }
    let run = damaged(folder.path(), |bytes| bytes[20] ^= 1);
    fs::write(run.join("checkpoint.previous.safetensors"), b"rubbish").unwrap();
    fail(&mut resume(&run), 1, &["checkpoint.safetensors: damaged"]);
}

#[test]
fn a_damaged_metrics_line_is_named_and_nothing_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    succeed(&mut train(&run, &[]));
    let path = run.join("metrics.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let number = |epoch: &str| lines[2].replace("\"epoch\":3", &format!("\"epoch\":{epoch}"));
    let huge = number("18446744073709551615");
    let damages = [
        ([lines[0], "junk\n", lines[1], lines[2], lines[3]].concat(), "line 2:"),
        (whole.replacen("\"epoch\":2", "\"epoch\"z2", 1), "line 2:"),
        (
            [lines[0], lines[1], &huge, lines[3]].concat(),
            "epoch 18446744073709551615 where epoch 3 should be",
        ),
        ([lines[0], lines[1], lines[3]].concat(), "epoch 4 where epoch 3 should be"),
        ([lines[0], lines[1]].concat(), "2 epochs where the checkpoint has 4"),
        (String::new(), "0 epochs where the checkpoint has 4"),
    ];
    for (text, words) in damages {
        fs::write(&path, &text).unwrap();
        fail(&mut resume(&run), 1, &["metrics.jsonl", words]);
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "the file was changed");
        if !words.contains("checkpoint") {
            fail(
                leaklab(&["analyse", "compare", "--out"]).args([folder.path().join("out"), run.clone()]),
                1,
                &[words],
            );
        }
    }
    // A torn line after the last epoch, which a kill leaves, is removed.
    fs::write(&path, format!("{whole}{{\"format\":1,\"epo")).unwrap();
    succeed(&mut resume(&run));
    assert_eq!(fs::read_to_string(&path).unwrap(), whole);
}

#[test]
fn best_weights_that_are_not_there_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    succeed(&mut train(&run, &[]));
    succeed(leaklab(&["evaluate", "--best"]).arg(&run));
    fs::remove_file(run.join("best.safetensors")).unwrap();
    fail(leaklab(&["evaluate", "--best"]).arg(&run), 1, &["no best.safetensors"]);
    fail(leaklab(&["analyse", "--best"]).arg(&run).arg("activity"), 1, &["no best.safetensors"]);
}

#[test]
fn a_run_without_its_checkpoints_keeps_its_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    succeed(&mut train(&run, &[]));
    let metrics = fs::read(run.join("metrics.jsonl")).unwrap();
    for name in ["checkpoint.safetensors", "checkpoint.previous.safetensors"] {
        let _ = fs::remove_file(run.join(name));
    }
    let resume = &mut leaklab(&["train", "--quiet", "--resume"]);
    fail(resume.arg(&run), 1, &["epochs, but there is no checkpoint", "restore checkpoint.safetensors"]);
    assert_eq!(fs::read(run.join("metrics.jsonl")).unwrap(), metrics);
}

#[test]
fn a_full_disk_leaves_the_last_good_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let settings = ["network=1x8x8-4C3-2P-300FC-10o"];
    let alone = folder.path().join("alone");
    succeed(&mut train(&alone, &settings));
    let size = fs::metadata(alone.join("checkpoint.safetensors")).unwrap().len();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    // Space for three files of weights and the small ones, but not for the fourth that the second epoch
    // writes.
    let size_option = format!("size={}", 3 * size + size / 2);
    let Some(mounted) = SmallDisk::mount("full disk", &disk, &size_option) else { return };
    let run = disk.join("run");
    let message = fail(&mut train(&run, &settings), 1, &["No space left on device", "is intact", "--resume"]);
    assert!(message.contains("epoch 1"), "{message}");
    succeed(leaklab(&["evaluate"]).arg(&run));
    assert_nothing_half_written(&run);
    // The disk is still full: resuming is refused again, and nothing is lost.
    fail(&mut resume(&run), 1, &["No space left on device"]);
    mounted.remount(&format!("size={}", 9 * size));
    succeed(&mut resume(&run));
    assert_same(&alone, &run);
}

#[test]
fn a_read_only_folder_is_refused_before_training() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let Some(_mounted) = SmallDisk::mount("read-only folder", &disk, "size=1m,ro") else { return };
    let output = train(&disk.join("run"), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = message(&output);
    assert!(message.contains("cannot be written") && message.contains("Read-only file system"), "{message}");
    assert!(output.stdout.is_empty(), "training began: {}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn two_processes_cannot_share_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut first = train(&run, &["epochs=100000"]).arg("--quiet").spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !run.join("checkpoint.safetensors").exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    fail(&mut resume(&run), 1, &["another leaklab process"]);
    fail(&mut train(&run, &[]), 1, &["there is a run here already", "--resume"]);
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn ctrl_c_stops_where_it_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let (alone, stopped) = (folder.path().join("alone"), folder.path().join("stopped"));
    succeed(&mut train(&alone, &["epochs=40"]));
    let child = train(&stopped, &["epochs=40"]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !stopped.join("metrics.jsonl").exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{}", message(&output));
    assert!(message(&output).contains("leaklab train --resume"), "{}", message(&output));
    succeed(&mut resume(&stopped));
    assert_same(&alone, &stopped);
}

/// Adam's bias correction depends on its number of steps, which are fewer than the run's updates after a
/// change of the optimiser.
#[test]
fn after_a_change_of_the_optimiser_a_stop_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (alone, stopped) = (folder.path().join("alone"), folder.path().join("stopped"));
    let has_steps = |run: &Path| {
        let bytes = fs::read(run.join("checkpoint.safetensors")).unwrap();
        bytes.windows(15).any(|word| word == b"optimiser_steps")
    };
    // Sets the optimiser and the number of epochs of a run, and continues it.
    let go_on = |run: &Path, optimiser: &str, epochs: u32| {
        let path = run.join("run.toml");
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| match line.split(' ').next() {
            Some("optimiser") => format!("optimiser = \"{optimiser}\""),
            Some("epochs") => format!("epochs = {epochs}"),
            Some("learning_rate") => "learning_rate = 0.01".to_owned(),
            _ => line.to_owned(),
        });
        fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
        succeed(&mut resume(run));
    };
    for run in [&alone, &stopped] {
        succeed(&mut train(run, &["epochs=1", "schedule.after=[]"]));
        assert!(!has_steps(run), "SGD does not count its steps");
    }
    go_on(&alone, "adam", 3);
    go_on(&stopped, "adam", 2);
    go_on(&stopped, "adam", 3);
    assert!(has_steps(&alone) && has_steps(&stopped));
    assert_same(&alone, &stopped);
    // A run that always had the same optimiser has the same file as ever.
    let adam = folder.path().join("adam");
    succeed(&mut train(&adam, &["optimiser=adam", "learning_rate=0.01"]));
    assert!(!has_steps(&adam));
}
