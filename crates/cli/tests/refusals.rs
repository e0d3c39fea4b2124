//! Bad input to every subcommand is refused with one sentence, with exit code 2 for wrong usage, 1 for work
//! that failed, and never a panic.

mod runs;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a command line (split at spaces) in a folder; returns its exit code and its standard error.
fn outcome(folder: &Path, line: &str) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_leaklab"))
        .current_dir(folder)
        .env("LEAKLAB_DATA", folder.join("no-data"))
        .args(line.split(' '))
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn every_subcommand_says_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir(here.join("empty")).unwrap();
    fs::create_dir_all(here.join("one/empty")).unwrap();
    fs::write(here.join("unclosed.toml"), "tau = [30\n").unwrap();
    fs::write(here.join("negative.toml"), "dataset = \"digits\"\ntau = -3\n").unwrap();
    fs::write(here.join("no-dataset.toml"), "tau = [30, inf]\n").unwrap();
    fs::write(here.join("bytes.toml"), [0xff, 0xfe]).unwrap();
    fs::write(here.join("random.nir"), [7; 1000]).unwrap();
    for file in ["study/study.toml", "model/model.safetensors", "model/config.json"] {
        let path = here.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    for (line, code, words) in [
        ("study nosuch", 2, "no study is called `nosuch`; there are digits, "),
        ("study unclosed.toml", 2, "unclosed.toml, line 1: "),
        (
            "study negative.toml",
            2,
            "negative.toml, line 2: tau = -3: a number of steps (1/64 or more) or inf is expected",
        ),
        ("study bytes.toml", 2, "bytes.toml: cannot be read"),
        ("study digits --tau 30,-5", 2, "a number of steps (1/64 or more) or inf is expected"),
        ("study digits --tau 30,30 --dry-run", 2, "each value may be given only once"),
        ("study digits --set seeds=[] --dry-run", 2, "at least one value is expected"),
        ("study digits --set name=.. --dry-run", 2, "a name with a letter or digit is expected"),
        ("train --dataset digits --select 0", 2, "a number above 0 is expected"),
        (
            "train --dataset digits --seed 18446744073709551615",
            2,
            "from 0 to 9223372036854775807 is expected",
        ),
        ("man --out study", 2, "this is the folder of a study"),
        ("study digits --set epochs", 2, "write it as key=value"),
        ("study digits --checkpoint-minutes -1", 2, "a number of minutes, 0 or more, is expected"),
        ("study digits --threads 65535", 2, "a whole number from 1 to 1024 is expected"),
        ("study --out nowhere --status", 2, "nowhere: there is no study here"),
        ("study --out nowhere --run 0", 2, "nowhere: there is no study here"),
        ("study --out nowhere --compare", 2, "nowhere: there is no study here"),
        ("study digits --partition gpu", 2, "--slurm"),
        ("study digits --time 90", 2, "--slurm"),
        ("study cifar10 --dry-run", 1, "run `leaklab data fetch cifar10`, or name the folder"),
        ("report empty", 1, "neither a study nor a run"),
        ("report nowhere", 1, "nowhere: there is no such folder"),
        ("train", 2, "dataset is missing: add --dataset digits, or set it in the file"),
        ("train --dataset digits --tau 30 --set tua=3", 2, "unknown key `tua`; did you mean `tau`?"),
        ("study no-dataset.toml", 2, "dataset is missing: set it in the file, or with --set dataset=digits"),
        ("train --dataset digits --layer-tau conv1", 2, "conv1=5"),
        ("evaluate empty --noise gaussian/pixel --severity 3", 1, "not a run folder"),
        ("train --dataset nosuch --tau 30", 2, "'nosuch' is not one of digits, "),
        ("train --dataset empty --tau 30", 2, "choose image-folder, npz or events, and give its place with"),
        (
            "train --dataset image-folder --data-dir one --tau 30 --set network=3x32x32-4FC-2o",
            1,
            "it has one class folder, empty; 2 to 256 are needed",
        ),
        ("train --dataset digits --tau abc", 2, "a number of steps (1/64 or more) or inf is expected"),
        ("train --dataset digits --tau 30 --set network=8x8-10o", 2, "network = \"8x8-10o\": token 2 '10o'"),
        ("train --dataset digits --tau 30 --set time_steps=1000000000", 2, "from 1 to 65535 is expected"),
        ("train --dataset digits --tau 30 --set dropout=1", 2, "a number from 0 to below 1 is expected"),
        ("train nosuch", 2, "no study is called `nosuch`; there are digits, "),
        ("train nosuch.toml", 2, "nosuch.toml: cannot be read: "),
        ("evaluate nowhere", 1, "nowhere: not a run folder: there is no such folder"),
        ("train --resume empty", 1, "not a run folder"),
        ("evaluate empty", 1, "not a run folder"),
        ("evaluate empty --severity 3", 2, "--noise"),
        (
            "evaluate study",
            2,
            "study: this is a study; give the folder of one of its runs, which are in study",
        ),
        (
            "evaluate model",
            2,
            "model: this is an exported model, not a run: it does not name its test images",
        ),
        ("analyse model all", 2, "model: this is an exported model, not a run"),
        ("analyse all empty", 2, "all is an analysis, but the folder comes first: leaklab analyse empty all"),
        ("analyse study compare --images 5", 2, "--images: compare reads the tables of analysed runs"),
        ("advise empty --noise gaussian --scenario pixel", 1, "empty: not the folder of a study"),
        (
            "advise empty --noise gaussian/pixel --scenario channel",
            2,
            "noise 'gaussian/pixel' and scenario 'channel' contradict each other",
        ),
        ("advise empty --noise jitter --scenario pixel", 2, "--noise jitter/pixel: "),
        ("analyse empty all", 1, "not a run folder"),
        ("analyse empty colour", 2, "'colour' is not one of robustness"),
        ("analyse compare empty", 1, "not a run folder: it has no run.toml"),
        ("data fetch nosuch", 2, "'nosuch' is not one of digits, "),
        ("data verify cifar10", 1, "leaklab data fetch cifar10"),
        ("data show digits --out sheet.png --noise pink --severity 3", 2, "'pink' is not one of gaussian, "),
        (
            "data show digits --out sheet.png --noise gaussian/pixel --scenario channel --severity 3",
            2,
            "noise 'gaussian/pixel' and scenario 'channel' contradict each other",
        ),
        ("theory coherence --mu 0.8 --d -1 --omega 1", 2, "it must be a finite number above 0"),
        ("theory coherence --mu 0.8 --d 1 --omega 5:1:10", 2, "the range is empty"),
        ("theory coherence --mu 0.8 --d 1", 2, "give the frequencies, such as --omega"),
        (
            "theory coherence --physical R=1e8,C=2e-10,I=3e-10,D_I=1e-23,V=0.02",
            2,
            "in hertz, such as --frequency",
        ),
        (
            "theory figure --out figure.png",
            2,
            "figure.png: the file will be a page; give a name that ends in .html",
        ),
        ("theory figure --out nowhere/figure.html", 1, "the page cannot be written"),
        ("theory figure --out f.html --segments 100000000000", 2, "is not in 0..=1000000"),
        (
            "theory coherence --mu 0.8 --d 0.1 --simulate --segments 2 --omega 1e11",
            2,
            "steps, and at most 1e10 are reasonable; give lower frequencies",
        ),
        (
            "theory coherence --mu 0.8 --d 0.1 --simulate --segments 2 --omega 1e9",
            2,
            "the simulation would take",
        ),
        (
            "theory rate --mu 1e308 --d 0.1",
            2,
            "mu = 1e308 cannot be used: it must be a number from -1e12 to 1e12",
        ),
        ("theory coherence --mu 0.8 --d 0.1 --frequency 10", 2, "in hertz and requires --physical"),
        ("theory coherence --mu 0.8 --d 0.1 --omega 1 --frequency 5", 2, "in hertz and requires --physical"),
        ("theory coherence --mu 0.8 --d 0.1 --omega -1", 2, "omega"),
        ("theory coherence --mu 0.8 --d 0.1 --omega 1 --seed -1", 2, "invalid value '-1' for '--seed"),
        ("data show digits --out sheet.png --seed -1", 2, "invalid value '-1' for '--seed"),
        ("study digits --run -1", 2, "invalid value '-1' for '--run"),
        ("study digits --slurm-script --cpus -1", 2, "invalid value '-1' for '--cpus"),
        ("study digits --out unclosed.toml --dry-run", 2, "--out unclosed.toml: this is a file"),
        ("train --dataset digits --tau 30 --out unclosed.toml", 2, "this is a file; give a folder"),
        ("export empty --safetensors unclosed.toml", 2, "this is a file; give a folder"),
        ("import random.nir --out unclosed.toml", 2, "this is a file; give a folder"),
        ("man --out unclosed.toml", 2, "this is a file; give a folder"),
        ("train --dataset digits --tau 1e400", 2, "this number is too large"),
        ("train --dataset digits --tau 30 --layer-tau conv1=5,conv1=6", 2, "conv1 is given twice"),
        ("analyse empty all --layer-tau conv1=5 --layer-tau conv1=6", 2, "conv1 is given twice"),
        ("export empty --nir net.nir --dt nan", 2, "a number above 0 is expected"),
        ("export empty --nir net.nir --if-r 0", 2, "a number above 0 is expected"),
        ("network foo", 2, "the first token must be the input"),
        ("export empty --nir net.nir", 1, "not a run folder"),
        ("import random.nir", 1, "random.nir: not a readable NIR file"),
        ("import nowhere.nir", 1, "nowhere.nir: cannot be read"),
        ("import random.nir --dt -1", 2, "a positive number of seconds is expected"),
        ("bench foo", 2, "the first token must be the input"),
        ("bench --spike-rate 2", 2, "it must be above 0 and at most 0.5"),
        ("selftest --fast", 2, "unexpected argument"),
    ] {
        let (found, message) = outcome(here, line);
        assert_eq!(found, Some(code), "{line}: {message}");
        assert!(message.contains(words), "{line}: {message}");
        assert!(!message.contains("panicked"), "{line}: {message}");
    }
    assert!(!here.join("leaklab-study").exists() && !here.join("runs").exists(), "nothing was begun");
}

#[test]
fn a_network_states_what_its_columns_count() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_leaklab")).args(["network", "8x8-4C3-2P-10o"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains(" synapses ") && text.contains("reaches, away from the borders; a pool has none"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_leaklab"))
        .args(["theory", "coherence", "--mu", "0.8", "--d", "0.1", "--omega", "0.1:100:20000", "--csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut few = [0; 64];
    child.stdout.take().unwrap().read_exact(&mut few).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(target_os = "linux")]
#[test]
fn a_training_outlives_its_output() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("full");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = runs::train(&run, &[]).stdout(full).output().unwrap();
    let message = runs::message(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    let expected = "standard output cannot be written: No space left on device";
    assert!(message.contains(expected) && !message.contains("panicked"), "{message}");

    let closed = folder.path().join("closed");
    let mut child = runs::train(&closed, &[]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{}", runs::message(&output));
    runs::assert_same(&run, &closed);
    assert_eq!(runs::results(&run).2.len(), 4, "all epochs were trained");
}

#[cfg(unix)]
#[test]
fn nothing_is_written_over_devices_or_through_links() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let run = here.join("run");
    runs::succeed(&mut runs::train(&run, &[]));
    // A named pipe stands for a device, because a test that could replace `/dev/null` would be dangerous.
    let pipe = here.join("pipe.html");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (code, message) = outcome(here, "report run --out pipe.html");
    assert_eq!(code, Some(1), "{message}");
    assert!(message.contains("pipe") && message.contains("not a regular file"), "{message}");
    assert!(!fs::symlink_metadata(&pipe).unwrap().is_file(), "the pipe was replaced");

    let precious = here.join("precious");
    fs::write(&precious, "do not touch").unwrap();
    for name in ["events.out.tfevents.0000000000.leaklab", "log.txt"] {
        let (place, aside) = (run.join(name), here.join("aside"));
        fs::rename(&place, &aside).unwrap();
        std::os::unix::fs::symlink(&precious, &place).unwrap();
        runs::fail(&mut runs::resume(&run), 1, &[name, "symbolic link"]);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "do not touch");
        fs::remove_file(&place).unwrap();
        fs::rename(&aside, &place).unwrap();
    }
}

#[test]
fn outputs_replace_no_file_of_a_run_or_study() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    runs::succeed(&mut runs::train(&here.join("run"), &[]));
    fs::create_dir_all(here.join("study/runs")).unwrap();
    fs::write(here.join("study/study.toml"), "").unwrap();
    fs::write(here.join("study/plan.json"), "").unwrap();
    let before = runs::results(&here.join("run"));
    let ending = "give a name that ends in ";
    let train = "train --dataset digits --tau 30 --set epochs=1 --out";
    for (line, words) in [
        ("export run --nir run/checkpoint.safetensors", format!("{ending}.nir or .h5")),
        ("export run --npz run/metrics.jsonl", format!("{ending}.npz")),
        ("export run --quantised run/run.toml --weight-bits 8", format!("{ending}.safetensors")),
        ("report run --out run/run.toml", format!("{ending}.html or .htm")),
        ("data show digits --out run/run.toml", format!("{ending}.png")),
        ("export run --quantised run/best.safetensors --weight-bits 8", "belongs to the run".into()),
        ("export run --quantised run/BEST.safetensors --weight-bits 8", "belongs to the run".into()),
        ("theory figure --segments 0 --out study/report.html", "belongs to the study".into()),
        ("export run --safetensors study", "--safetensors study: this is the folder of a study".into()),
        ("export run --safetensors study/runs", "study/runs: this is a folder of a study".into()),
        ("export run --safetensors run/analysis", "the folder of a run's tables".into()),
        ("import net.nir --out study", "--out study: this is the folder of a study".into()),
        ("theory figure --segments 0 --out f.html --tables run", "this is the folder of a run".into()),
        ("theory figure --segments 0 --out f.html --tables study/theory", "a folder of a study".into()),
        ("train --dataset digits --tau 30 --out run/analysis", "this is within a run".into()),
        ("train --dataset digits --tau 30 --out run/inner", "this is within a run".into()),
        ("train --dataset digits --tau 30 --out study/compare", "this is a folder of a study".into()),
        ("train --dataset digits --tau 30 --out study/runs/other", "this is a folder of a study".into()),
        ("train --dataset digits --tau 30 --out study/runs/.", "this is a folder of a study".into()),
        ("study digits --out study/compare", "this is a folder of a study".into()),
        ("study digits --out run/analysis", "this is within a run".into()),
        ("analyse compare run --out run", "this is the folder of a run".into()),
        ("analyse compare run --out run/analysis", "the folder of a run's tables".into()),
        ("analyse compare run --out study", "this is the folder of a study".into()),
        ("analyse compare run --out study/compare", "this is a folder of a study".into()),
    ] {
        let (code, message) = outcome(here, line);
        assert_eq!(code, Some(2), "{line}: {message}");
        assert!(message.contains(&words) && message.lines().count() == 1, "{line}: {message}");
    }
    let (code, message) = outcome(here, &format!("{train} study"));
    let words = "study: this is a folder of a study; choose another --out";
    assert!(code == Some(1) && message.contains(words), "{message}");
    assert_eq!(runs::results(&here.join("run")), before);
    assert_eq!(fs::read_dir(here.join("study")).unwrap().count(), 3, "nothing was written into the study");
    // Files of settings that the user wrote make no study and no run of their folder.
    fs::create_dir(here.join("mine")).unwrap();
    for file in ["mine/study.toml", "mine/run.toml"] {
        fs::write(here.join(file), "dataset = \"digits\"\n").unwrap();
    }
    for line in ["study digits --dry-run --out mine/slurm", "export run --safetensors mine/compare"] {
        let (code, message) = outcome(here, line);
        assert_eq!(code, Some(0), "{line}: {message}");
    }
    // Names of the user's own, also next to the files of a run.
    for line in ["export run --npz run/weights.npz", "export run --nir run/net.H5", "report run"] {
        for _ in 0..2 {
            let (code, message) = outcome(here, line);
            assert_eq!(code, Some(0), "{line}: {message}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn paths_that_become_text_are_text() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"s\xff");
    let in_odd = folder.path().join(odd);
    fs::create_dir(&in_odd).unwrap();
    let words = ["the path must be text in UTF-8 here; choose another name"];
    for flags in
        [&["study", "digits", "--slurm-script", "--out"][..], &["study", "digits", "--dry-run", "--data-dir"]]
    {
        runs::fail(runs::leaklab(flags).arg(odd).current_dir(folder.path()), 2, &words);
    }
    let within = &["study", "digits", "--slurm-script", "--out", "study"];
    runs::fail(runs::leaklab(within).current_dir(&in_odd), 2, &words);
    let show = &["data", "show", "digits", "--json", "--out"];
    let file = std::ffi::OsStr::from_bytes(b"s\xff.png");
    runs::fail(runs::leaklab(show).arg(file).current_dir(folder.path()), 2, &words);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was written");
    assert_eq!(fs::read_dir(&in_odd).unwrap().count(), 0, "nothing was written");
}

#[test]
fn a_study_accepts_the_time_constants_that_a_run_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--dry-run", "--json", "--set", "train_limit=100", "--set", "network=1x8x8-4FC-10o"];
    let output = runs::succeed(
        runs::leaklab(&["study", "digits", "--tau", "1e19,30,inf"]).args(flags).current_dir(folder.path()),
    );
    let plan = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(plan.contains("10000000000000000000") && plan.contains("tau inf"), "{plan}");
}

/// With limits of the shell: the number of threads is refused before one of them aborts the process, and a
/// file that may not grow is an error of writing.
#[cfg(target_os = "linux")]
#[test]
fn limits_of_the_shell_are_errors_and_not_signals() {
    let folder = tempfile::tempdir().unwrap();
    let limited = |limit: &str, command: &Command| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")]);
        shell.arg(command.get_program()).args(command.get_args());
        shell
    };
    let run = folder.path().join("run");
    let mut threads = runs::train(&run, &[]);
    threads.args(["--threads", "1024"]);
    let words = ["1024 threads cannot be started: they need about ", "MiB of address space", "ulimit -v"];
    runs::fail(&mut limited("-v 2097152", &threads), 1, &words);
    runs::fail(&mut limited("-f 2", &runs::train(&run, &[])), 1, &["File too large"]);
}

#[test]
fn escapes_in_names_are_shown_and_not_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let (code, message) = outcome(folder.path(), "evaluate \u{1b}[31mred");
    assert_eq!(code, Some(1));
    assert!(!message.contains('\u{1b}') && message.contains("\\u{1b}[31mred: not a run folder"), "{message}");
}

/// In a process with an address space of two gigabytes.
#[cfg(target_os = "linux")]
#[test]
fn what_does_not_fit_is_refused_before_it_is_made() {
    let folder = tempfile::tempdir().unwrap();
    for (line, words) in [
        (
            "bench 32x32-65535C3-10o",
            "training the network 32x32-65535C3-10o with 672847845 weights needs about ",
        ),
        (
            "bench --no-train 32x32-65535C3-10o",
            "GB is available; choose a smaller network or fewer time_steps",
        ),
        (
            "train --dataset digits --tau 30 --set network=1x8x8-46000FC-46000FC-10o --set optimiser=sgd \
             --set time_steps=30 --set batch=64",
            "with 2119404000 weights needs about 50.9 GB of memory, but only ",
        ),
        (
            "study digits --dry-run --set network=1x8x8-46000FC-46000FC-10o",
            "with 2119404000 weights needs about",
        ),
    ] {
        let output = Command::new("sh")
            .args(["-c", "ulimit -v 2097152 && exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_leaklab"))
            .args(line.split(' '))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let message = runs::message(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {message}");
        assert!(message.contains(words) && message.lines().count() == 1, "{line}: {message}");
    }
    assert!(!folder.path().join("runs").exists(), "nothing was begun");
}
