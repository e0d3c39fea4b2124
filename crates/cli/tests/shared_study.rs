//! One study folder shared by several processes, on one machine and on two: no run is done twice, none is
//! lost, and a run is taken over from a dead process but never from a live one.
//!
//! The second machine is simulated with namespaces: it has another host name, another process table and
//! another boot id of the kernel. If namespaces are not allowed, the tests that need them print that they are
//! skipped.
#![cfg(target_os = "linux")]

mod studies;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use studies::{assert_same, leaklab, output, small, text, with_short_theory};

/// Another machine that shares the files of this one.
struct Machine {
    boot: PathBuf,
    name: String,
}

impl Machine {
    /// `None`, with a printed note, if namespaces are not allowed.
    fn start(folder: &Path, name: &str) -> Option<Self> {
        let machine = Machine { boot: folder.join(format!("{name}.boot")), name: name.to_owned() };
        fs::write(&machine.boot, format!("00000000-0000-0000-0000-{name:0>12}\n")).unwrap();
        let done = machine.command("uname", &["-n".into()]).output().unwrap();
        if text(&done.stdout).trim() == name {
            return Some(machine);
        }
        println!("SKIPPED: no second machine, since namespaces are not allowed here: {}", text(&done.stderr));
        None
    }

    fn command(&self, program: &str, arguments: &[String]) -> Command {
        let script = "hostname \"$1\" && mount --bind \"$2\" /proc/sys/kernel/random/boot_id && shift 2 && \
                      exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh"]);
        command.arg(&self.name).arg(&self.boot).arg(program).args(arguments);
        command
    }

    fn leaklab(&self, arguments: &[&str]) -> Command {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        self.command(env!("CARGO_BIN_EXE_leaklab"), &arguments)
    }
}

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until a condition holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asserts that each run of a study was begun and finished once, without interruption.
fn assert_done_once(study: &Path) {
    let mut runs = 0;
    for run in fs::read_dir(study.join("runs")).unwrap().map(|entry| entry.unwrap().path()) {
        let log = fs::read_to_string(run.join("log.txt")).unwrap();
        let count = |words: &str| log.lines().filter(|line| line.contains(words)).count();
        assert_eq!(
            (count("0 epochs and 0 batches done"), count("batches done"), count("finished")),
            (1, 1, 1),
            "{log}"
        );
        assert!(!run.join("lock").exists());
        runs += 1;
    }
    assert_eq!(runs, 4);
}

/// The study done by one process, for comparison.
fn alone(folder: &Path, file: &str) -> PathBuf {
    let alone = folder.join("alone");
    with_short_theory(&alone);
    let done = output(&["study", file, "--out", &alone.to_string_lossy(), "--quiet"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    alone
}

#[test]
fn three_processes_on_two_machines_share_the_runs() {
    let (folder, file) = small();
    let Some(other) = Machine::start(folder.path(), "node2") else { return };
    let alone = alone(folder.path(), &file);
    let out = folder.path().join("shared");
    with_short_theory(&out);
    let out_text = out.to_string_lossy().into_owned();
    let arguments = ["study", &file, "--out", &out_text, "--threads", "1"];
    let children = [leaklab(&arguments), other.leaklab(&arguments), other.leaklab(&arguments)].map(spawn);
    for child in children {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    assert_done_once(&out);
    assert_same(&alone, &out);
}

#[test]
fn an_array_of_tasks_gives_what_one_process_gives() {
    let (folder, file) = small();
    let alone = alone(folder.path(), &file);
    let out = folder.path().join("array");
    let out_text = out.to_string_lossy().into_owned();
    let status = || {
        let done = output(&["study", &file, "--out", &out_text, "--status", "--json"]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        serde_json::from_slice::<serde_json::Value>(&done.stdout).unwrap()
    };
    assert_eq!(status()["counts"]["missing"], 4);
    assert!(!out.exists(), "--status changes nothing");
    with_short_theory(&out);
    let task = |index: &str| leaklab(&["study", &file, "--out", &out_text, "--run", index]);
    // The last run first, and two at a time: the order does not matter.
    let children = [task("3"), task("1")].map(spawn);
    children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    let half = status();
    assert_eq!((&half["counts"]["done"], &half["counts"]["missing"]), (&2.into(), &2.into()), "{half}");
    assert!(
        half["runs"][0]["seconds_to_go"].as_f64().unwrap() > 0.0 && half["runs"][1]["seconds_to_go"] == 0.0
    );
    assert!(half["seconds_to_go"].as_f64().unwrap() > 0.0, "from the speed of the runs that are done");
    // A comparison of the finished runs states which are missing.
    let early = output(&["study", &file, "--out", &out_text, "--compare"]);
    assert_eq!(early.status.code(), Some(1));
    assert!(text(&early.stderr).contains("2 of 4 runs are not done"), "{}", text(&early.stderr));
    assert!(out.join("report.html").is_file());
    let children = [task("0"), task("2")].map(spawn);
    children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    let done = output(&["study", &file, "--out", &out_text, "--compare", "--quiet"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_done_once(&out);
    assert_same(&alone, &out);
    let all = status();
    assert_eq!((&all["counts"]["done"], &all["seconds_to_go"]), (&4.into(), &0.0.into()));
    let beyond = output(&["study", &file, "--out", &out_text, "--run", "4"]);
    assert_eq!(beyond.status.code(), Some(2));
    assert!(text(&beyond.stderr).contains("numbered from 0 to 3"), "{}", text(&beyond.stderr));
}

#[test]
fn a_task_that_is_told_its_time_is_over_goes_on_later() {
    let (folder, file) = small();
    // Long enough to be stopped in the middle.
    let long = fs::read_to_string(&file).unwrap().replace("epochs = 3", "epochs = 60");
    fs::write(&file, long).unwrap();
    let [alone, out] = ["alone", "stopped"].map(|name| folder.path().join(name));
    let task = |out: &Path| leaklab(&["study", &file, "--out", &out.to_string_lossy(), "--run", "0"]);
    assert!(task(&alone).stdout(Stdio::null()).status().unwrap().success());
    let run = out.join("runs/tau-30_seed-1");
    for signal in ["-USR1", "-TERM", "-USR2"] {
        let child = spawn(task(&out));
        let epochs = || fs::read_to_string(run.join("metrics.jsonl")).map_or(0, |text| text.lines().count());
        let before = epochs();
        until("another epoch", || epochs() > before);
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let done = child.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(75), "{signal}: {}", text(&done.stderr));
        assert!(!run.join("lock").exists() && !run.join("complete").exists());
        let status = output(&["study", &file, "--out", &out.to_string_lossy(), "--status"]);
        let shown = text(&status.stdout);
        assert!(
            shown.contains("1 stopped, 3 missing of 4 runs") && shown.contains(" to go, one run at a time"),
            "{shown}"
        );
    }
    assert!(task(&out).stdout(Stdio::null()).status().unwrap().success());
    let checkpoint =
        |study: &Path| fs::read(study.join("runs/tau-30_seed-1/checkpoint.safetensors")).unwrap();
    assert!(checkpoint(&alone) == checkpoint(&out), "checkpoints differ");
}

#[test]
fn a_live_process_keeps_its_run_and_a_dead_one_is_succeeded() {
    let (folder, file) = small();
    let endless = fs::read_to_string(&file).unwrap().replace("epochs = 3", "epochs = 1000000");
    fs::write(&file, endless).unwrap();
    let Some(other) = Machine::start(folder.path(), "node2") else { return };
    let out = folder.path().join("out");
    let out_text = out.to_string_lossy().into_owned();
    let run = out.join("runs/tau-30_seed-1");
    let arguments = ["study", &file, "--out", &out_text, "--run", "0", "--checkpoint-minutes", "0"];
    let holder = || fs::read_to_string(run.join("lock")).unwrap_or_default();
    let status = || text(&output(&["study", &file, "--out", &out_text, "--status"]).stdout);

    // On this machine.
    let mut first = spawn(leaklab(&arguments));
    until("an epoch", || run.join("metrics.jsonl").is_file());
    let held = holder();
    let refused = output(&arguments);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains(&format!("process {} on host", first.id())),
        "{}",
        text(&refused.stderr)
    );
    assert!(status().contains("1 running, 3 missing of 4 runs"), "{}", status());
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(holder(), held, "a killed process leaves its lock");
    assert!(status().contains("1 stopped, 3 missing of 4 runs"), "{}", status());

    // On the other machine: a process that died here counts as alive there, until its last heartbeat is old
    // enough.
    let mut second = spawn(other.leaklab(&arguments));
    std::thread::sleep(Duration::from_millis(800));
    assert_eq!(holder(), held, "a fresh heartbeat of another machine is respected");
    let old = std::time::SystemTime::now() - Duration::from_secs(125);
    fs::File::options().write(true).open(run.join("lock")).unwrap().set_modified(old).unwrap();
    until("succession", || holder().contains("\"host\":\"node2\""));
    let taken = holder();
    // The holder on the other machine is alive: this process waits for a heartbeat, sees it, and exits.
    let refused = output(&arguments);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("on host node2"), "{}", text(&refused.stderr));
    assert!(status().contains("on host node2"), "{}", status());
    assert_eq!(holder(), taken);
    second.kill().unwrap();
    second.wait().unwrap();
}

/// `nohup` starts a program with the signal ignored, and it stays so.
#[cfg(target_os = "linux")]
#[test]
fn a_hangup_that_is_ignored_stays_ignored() {
    let (folder, file) = small();
    let long = fs::read_to_string(&file).unwrap().replace("epochs = 3", "epochs = 60");
    fs::write(&file, long).unwrap();
    // The tests themselves may run under `nohup`, and a shell cannot undo that.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let inherited = u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1;
    for (ignored, code) in [(true, 0), (false, if inherited { 0 } else { 75 })] {
        let out = folder.path().join(format!("ignored-{ignored}"));
        let task = leaklab(&["study", &file, "--out", &out.to_string_lossy(), "--run", "0"]);
        let mut shell = Command::new("sh");
        shell.args(["-c", if ignored { "trap '' HUP; exec \"$0\" \"$@\"" } else { "exec \"$0\" \"$@\"" }]);
        shell.arg(task.get_program()).args(task.get_args());
        let child = spawn(shell);
        let metrics = out.join("runs/tau-30_seed-1/metrics.jsonl");
        until("an epoch", || fs::read_to_string(&metrics).is_ok_and(|text| !text.is_empty()));
        assert!(Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap().success());
        let done = child.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(code), "{}", text(&done.stderr));
    }
}
