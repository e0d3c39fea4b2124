//! Runs survive what happens to them: kills at any moment, damaged files, full and read-only disks.
#![cfg(unix)]

mod runs;

use runs::{assert_same, fail, leaklab, resume, said, succeed, train};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Killed this often, at moments spread over the whole run.
const KILLS: u32 = 30;

#[test]
fn killed_at_any_moment_it_ends_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let (alone, killed) = (folder.path().join("alone"), folder.path().join("killed"));
    let started = Instant::now();
    succeed(train(&alone, &[]).args(["--threads", "1"]));
    let duration = started.elapsed().max(Duration::from_millis(50));

    // A stride by the golden ratio spreads the moments evenly; the scheduler adds the chance.
    let moment = |i: u32| duration.mul_f64(f64::from(i) * 0.618_033_988_749 % 1.0);
    let (mut kills, mut attempts, mut continued, mut finished) = (0, 0, 0, 0);
    while kills < KILLS {
        attempts += 1;
        assert!(attempts < 20 * KILLS, "the run ends before it can be killed");
        let begun = killed.join("run.toml").exists();
        let mut command = if begun { resume(&killed) } else { train(&killed, &[]) };
        // A checkpoint after every batch: half of the kills then hit the writing of one.
        let threads = if attempts % 2 == 0 { "1" } else { "2" };
        let mut child = command
            .args(["--threads", threads, "--checkpoint-minutes", "0", "--quiet"])
            .spawn()
            .expect("the program starts");
        std::thread::sleep(moment(attempts));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        match output.status.code() {
            None => kills += 1,
            Some(0) => {
                assert_same(&alone, &killed);
                fs::remove_dir_all(&killed).unwrap();
                finished += 1;
            }
            Some(_) => panic!("{}", said(&output)),
        }
        continued += u32::from(begun);
    }
    if killed.join("run.toml").exists() {
        succeed(&mut resume(&killed));
    } else {
        succeed(&mut train(&killed, &[]));
    }
    assert_same(&alone, &killed);
    let left: Vec<PathBuf> = fs::read_dir(&killed).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.extension().is_none_or(|e| e != "partial")), "{left:?}");
    println!("{kills} kills, {continued} continuations, {finished} runs finished in between");
    assert!(continued > KILLS / 2, "only {continued} kills hit a run under way");
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

/// A finished run of which the last checkpoint is damaged by `damage`.
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
        assert!(said(&output).contains("using the previous checkpoint"), "{}", said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("\"epoch\":3"));
        let output = succeed(&mut resume(&run));
        assert!(said(&output).contains("checkpoint.safetensors: damaged"), "{}", said(&output));
        assert_same(&alone, &run);
    }
    let run = damaged(folder.path(), |bytes| bytes[20] ^= 1);
    fs::write(run.join("checkpoint.previous.safetensors"), b"rubbish").unwrap();
    fail(&mut resume(&run), 1, &["checkpoint.safetensors: damaged"]);
}

/// A small file system in memory, unmounted when dropped; `None`, said aloud, where the test may not mount one.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(folder: &Path, options: &str) -> Option<Self> {
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk(folder.to_owned()));
        }
        println!("SKIPPED: this user may not mount a small file system");
        None
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
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
    // Room for three files of weights and the small ones, but not for the fourth that the second epoch writes.
    let Some(mounted) = SmallDisk::mount(&disk, &format!("size={}", 3 * size + size / 2)) else { return };
    let run = disk.join("run");
    let message = fail(&mut train(&run, &settings), 1, &["No space left on device", "is intact", "--resume"]);
    assert!(message.contains("epoch 1"), "{message}");
    succeed(leaklab(&["evaluate"]).arg(&run));
    let left: Vec<PathBuf> = fs::read_dir(&run).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.iter().all(|path| path.extension().is_none_or(|e| e != "partial")), "{left:?}");
    // Still full: refused again, and nothing lost.
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
    let Some(_mounted) = SmallDisk::mount(&disk, "size=1m,ro") else { return };
    let output = train(&disk.join("run"), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(said.contains("cannot be written") && said.contains("Read-only file system"), "{said}");
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
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("leaklab train --resume"), "{}", said(&output));
    succeed(&mut resume(&stopped));
    assert_same(&alone, &stopped);
}
