//! `leaklab study` as a user sees it: the plan, the last line, refusals, and a study that is killed
//! repeatedly.

mod studies;

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use studies::{SMALL, assert_same, leaklab, output, results, small, text, with_short_theory};

const WORDS: [&str; 3] = ["holds", "does not hold", "not enough evidence"];

#[test]
fn killed_and_resumed_it_ends_with_the_same_bytes() {
    let (folder, file) = small();
    let whole = folder.path().join("whole");
    // So that most kills fall into training and analyses.
    with_short_theory(&whole);
    let begun = Instant::now();
    let done = output(&["study", &file, "--out", &whole.to_string_lossy()]);
    let took = begun.elapsed();
    assert!(done.status.success(), "{}", text(&done.stderr));
    let last = text(&done.stdout).lines().last().unwrap().to_owned();
    assert_eq!(Path::new(&last), whole.join("report.html"));

    let broken = folder.path().join("broken");
    with_short_theory(&broken);
    let broken_text = broken.to_string_lossy().into_owned();
    let arguments = ["study", &file, "--out", &broken_text, "--threads", "1", "--checkpoint-minutes", "0"];
    for fraction in [0.13, 0.29, 0.47, 0.61, 0.83] {
        let mut child = leaklab(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs_f64(fraction * took.as_secs_f64()));
        // SIGKILL: the program has no chance to clean up.
        child.kill().unwrap();
        child.wait().unwrap();
        if broken.join("study.toml").is_file() {
            let page = output(&["report", &broken_text]);
            assert!(page.status.success(), "a page at any moment: {}", text(&page.stderr));
        }
    }
    let done = output(&arguments);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_same(&whole, &broken);
    let whole = results(&whole);
    for needed in ["report.html", "compare/claims.json", "runs/tau-30_seed-1/analysis/robustness.csv"] {
        assert!(whole.contains_key(Path::new(needed)), "{needed}");
    }
}

#[test]
fn the_baseline_may_be_the_last_condition() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("last.toml");
    let small = SMALL.replace("tau = [30, inf]\n", "").replace("seeds = [1, 2]", "seeds = [1]");
    let conditions = "mechanism = false\nbaseline = \"plain\"\n[[condition]]\nname = \"unsigned\"\ntau = 30\n\
                      encoder = \"unsigned\"\n[[condition]]\nname = \"plain\"\ntau = 30\n";
    fs::write(&file, small + conditions).unwrap();
    let out = folder.path().join("out");
    with_short_theory(&out);
    let run = output(&["study", &file.to_string_lossy(), "--out", &out.to_string_lossy(), "--threads", "1"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let further = fs::read_to_string(out.join("compare/further.csv")).unwrap();
    assert!(further.contains("encoder,plain,unsigned,,"), "{further}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("Signed or unsigned input spikes?"));
}

#[test]
fn a_watched_page_reads_itself_again_until_the_study_ends() {
    let (folder, file) = small();
    let out = folder.path().join("out");
    with_short_theory(&out);
    let page = out.join("report.html");
    let refreshes =
        || fs::read_to_string(&page).is_ok_and(|text| text.contains("<html lang=\"en\" data-refresh="));
    let mut child = leaklab(&["study", &file, "--out", &out.to_string_lossy(), "--watch"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut seen = false;
    while child.try_wait().unwrap().is_none() {
        seen |= refreshes();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(child.wait().unwrap().success());
    assert!(seen && page.is_file() && !refreshes());
}

#[test]
fn the_plan_comes_first_and_a_dry_run_writes_nothing() {
    let (folder, file) = small();
    let out = folder.path().join("out");
    let done = output(&["study", &file, "--out", &out.to_string_lossy(), "--dry-run", "--tau", "5,30,inf"]);
    let plan = text(&done.stdout);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(plan.starts_with("Study small: 6 runs: tau 5; tau 30; tau inf; seeds 1, 2\n"), "{plan}");
    for word in ["  time    about ", "  disk    about ", "3 epochs of 160 images of digits"] {
        assert!(plan.contains(word), "{plan}");
    }
    assert!(!out.exists());
}

#[test]
fn a_study_with_one_condition_is_warned_about() {
    let (folder, file) = small();
    let warning = "warning: this study has one condition, so nothing can be compared; add another, such as \
                   --tau 30,inf";
    for (tau, warned) in [("30", true), ("30,inf", false)] {
        let done = leaklab(&["study", &file, "--dry-run", "--tau", tau]).current_dir(folder.path()).output();
        let message = text(&done.unwrap().stderr);
        assert_eq!(message.contains(warning), warned, "{tau}: {message}");
    }
}

/// Without a name and a folder, the status is that of the study in the default folder, whatever its settings.
#[test]
fn the_status_of_the_default_folder_is_read_as_it_is() {
    let (folder, file) = small();
    let here = |arguments: &[&str]| {
        let done = leaklab(arguments).current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
        text(&done.stdout)
    };
    here(&["study", &file, "--out", "leaklab-study/digits", "--run", "0", "--quiet"]);
    let status = here(&["study", "--status"]);
    let first = "Study small in leaklab-study/digits: 1 done, 3 missing of 4 runs\n";
    assert!(status.starts_with(first), "{status}");
}

#[test]
fn a_program_gets_one_object() {
    let (folder, file) = small();
    let out = folder.path().join("out");
    let out_text = out.to_string_lossy().into_owned();
    let object = |more: &[&str]| {
        let done = output(&[&["study", &file, "--out", &out_text, "--json"], more].concat());
        assert!(done.status.success(), "{}", text(&done.stderr));
        serde_json::from_slice::<serde_json::Value>(&done.stdout).expect("standard output is one JSON object")
    };
    let plan = object(&["--dry-run"]);
    assert!(!out.exists());
    assert_eq!((plan["study"].as_str(), plan["epochs"].as_u64()), (Some("small"), Some(3)));
    assert_eq!(plan["runs"].as_array().unwrap().len(), 4);
    assert_eq!(plan["runs"][0]["epochs"], 0);
    assert!(plan["seconds"].as_f64().unwrap() > 0.0 && plan["bytes"].as_u64().unwrap() > 0);

    with_short_theory(&out);
    let done = object(&[]);
    assert_eq!(Path::new(done["report"].as_str().unwrap()), out.join("report.html"));
    assert!(done["seconds"].as_f64().unwrap() > 0.0);
    let runs = done["runs"].as_array().unwrap();
    let taus: Vec<&str> = runs.iter().map(|run| run["tau"].as_str().unwrap()).collect();
    assert_eq!(taus, ["30", "inf", "30", "inf"]);
    for run in runs {
        assert_eq!(run["epochs"], 3);
        assert!((0.0..=1.0).contains(&run["test_accuracy"].as_f64().unwrap()));
        assert!(Path::new(run["run"].as_str().unwrap()).join("run.toml").is_file());
    }
    let claims = done["claims"].as_array().unwrap();
    for claim in claims {
        assert!(WORDS.contains(&claim["verdict"].as_str().unwrap()), "{claim}");
    }
    assert!(claims.iter().any(|claim| claim["claim"] == "2" && claim["noise"] == "gaussian/pixel"));
    assert!(done["answer"]["sentence"].as_str().is_some_and(|sentence| sentence.ends_with('.')));
    // Without a name, the study in the folder is meant.
    let status = output(&["study", "--out", &out_text, "--status"]);
    assert!(text(&status.stdout).starts_with("Study small in "), "{}", text(&status.stdout));
    let command = fs::read(out.join("command.txt")).unwrap();
    assert!(output(&["study", "--out", &out_text, "--quiet"]).status.success());
    assert_eq!(fs::read(out.join("command.txt")).unwrap(), command);
    // Some of its runs do not replace the comparison of all.
    let tables = fs::read(out.join("compare/claims.csv")).unwrap();
    let some = ["tau-30_seed-1", "tau-inf_seed-1"].map(|run| out.join("runs").join(run));
    let [a, b] = some.map(|run| run.to_string_lossy().into_owned());
    let refused = output(&["analyse", "compare", &a, &b]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("of a whole study instead of its runs"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(fs::read(out.join("compare/claims.csv")).unwrap(), tables);
    // Runs that a continued study would no longer compare are named.
    assert_eq!(object(&["--dry-run"])["omitted_runs"], serde_json::json!([]));
    let fewer = object(&["--dry-run", "--tau", "30"]);
    assert_eq!(fewer["omitted_runs"], serde_json::json!(["tau-inf_seed-1", "tau-inf_seed-2"]));
    let plan = output(&["study", &file, "--out", &out_text, "--dry-run", "--tau", "30"]);
    let expected =
        "contains 2 runs of other conditions or seeds, which are not compared: tau-inf_seed-1, tau";
    assert!(text(&plan.stdout).contains(expected), "{}", text(&plan.stdout));
    // The data sets may be moved while a study is stopped.
    assert_eq!(object(&["--dry-run", "--data-dir", "elsewhere"])["runs"][3]["epochs"], 3);
}

#[test]
fn wrong_usage_is_told_in_one_sentence_with_exit_code_2() {
    let (folder, file) = small();
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("study.toml"), format!("format = 1\n{SMALL}")).unwrap();
    let out = out.to_string_lossy().into_owned();
    for (arguments, wanted) in [
        (vec!["study", "no-such-study"], "no study is called `no-such-study`"),
        (vec!["study", &file, "--tau", "30,x"], "tau"),
        (vec!["study", &file, "--set", "epoks=3"], "unknown key `epoks`"),
        (vec!["study", &file, "--out", &out, "--set", "epochs=4"], "choose another --out"),
        (vec!["study", &file, "--threads", "0"], "threads"),
        (vec!["study", &file, "--quiet", "--json"], "cannot be used with"),
    ] {
        let done = output(&arguments);
        let message = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(wanted), "{arguments:?}: {message}");
    }
}

#[test]
fn a_report_of_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let done = output(&["report", &folder.path().to_string_lossy()]);
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("neither a study nor a run"));
}

/// A condition whose runs exist cannot be given other settings under the same name.
#[test]
fn a_condition_does_not_change_under_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("change.toml");
    let write = |dropout: f64| {
        let base = SMALL.replace("tau = [30, inf]\n", "").replace("seeds = [1, 2]", "seeds = [1]");
        let condition = format!(
            "mechanism = false\n[[condition]]\nname = \"x\"\ntau = 30\ndropout = {dropout}\n\
             [[condition]]\ntau = inf\n"
        );
        fs::write(&file, base + &condition).unwrap();
    };
    let out = folder.path().join("out");
    with_short_theory(&out);
    let study = || output(&["study", &file.to_string_lossy(), "--out", &out.to_string_lossy(), "--quiet"]);
    write(0.25);
    assert!(study().status.success());
    write(0.5);
    let refused = study();
    let message = text(&refused.stderr);
    assert!(!refused.status.success());
    assert!(message.contains("started with dropout = 0.25") && message.contains("another name"), "{message}");
    write(0.25);
    assert!(study().status.success());
}

/// The question where robustness comes from is answered for the runs that the study has, or not at all.
#[test]
fn answers_about_other_runs_do_not_stay() {
    let (folder, file) = small();
    let out = folder.path().join("out");
    with_short_theory(&out);
    let study = |more: &[&str]| {
        let mut arguments = vec!["study", &file, "--out", out.to_str().unwrap(), "--quiet"];
        arguments.extend(more);
        let done = output(&arguments);
        assert!(done.status.success(), "{}", text(&done.stderr));
    };
    study(&[]);
    // These networks are too small to learn enough for an answer, so these files stand for the answer of
    // earlier runs.
    let old = ["why_split.json", "why.csv", "advice.json"].map(|name| out.join("compare").join(name));
    old.iter().for_each(|file| fs::write(file, "of other runs").unwrap());
    study(&["--tau", "10,inf", "--set", "mechanism=false"]);
    assert!(old.iter().all(|file| !file.exists()));
    assert!(out.join("compare/claims.json").is_file());
}

/// Comparing a study's folder uses the study's baseline and the runs of its plan.
#[test]
fn a_study_compared_by_its_folder_keeps_its_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("named.toml");
    let base = SMALL.replace("seeds = [1, 2]", "seeds = [1, 2]\nmechanism = false\nbaseline = \"tau 30\"");
    fs::write(&file, base).unwrap();
    let out = folder.path().join("out");
    with_short_theory(&out);
    assert!(output(&["study", &file.to_string_lossy(), "--out", &out.to_string_lossy()]).status.success());
    let conditions = out.join("compare/conditions.csv");
    let before = fs::read_to_string(&conditions).unwrap();
    assert!(before.contains("tau 30,30,baseline"), "{before}");
    let done = output(&["analyse", "compare", &out.to_string_lossy()]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(fs::read_to_string(&conditions).unwrap(), before);
}

/// A small study that is done, and its folder as text.
fn finished() -> (tempfile::TempDir, String) {
    let (folder, file) = small();
    let out = folder.path().join("out");
    with_short_theory(&out);
    let out = out.to_string_lossy().into_owned();
    let done = output(&["study", &file, "--out", &out, "--quiet", "--set", "mechanism=false"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    (folder, out)
}

/// A run is complete only if its tables exist, whatever its mark says.
#[test]
fn lost_tables_are_reported_and_made_again() {
    let (_folder, out) = finished();
    let run = Path::new(&out).join("runs/tau-30_seed-2");
    let table = |name: &str| run.join("analysis").join(name);
    let before = fs::read(table("robustness.json")).unwrap();
    for name in ["robustness.json", "activity_summary.json"] {
        fs::remove_file(table(name)).unwrap();
    }
    let compared = output(&["study", "--out", &out, "--compare"]);
    let message = text(&compared.stderr);
    assert_eq!(compared.status.code(), Some(1), "{message}");
    assert!(message.contains("1 of 4 runs are not done, and not compared: tau-30_seed-2 ("), "{message}");
    assert!(message.contains("robustness.json: missing"), "{message}");
    let runs = fs::read_to_string(Path::new(&out).join("compare/runs.csv")).unwrap();
    assert!(!runs.contains("tau-30_seed-2"), "{runs}");
    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.contains("The comparison omits runs that are complete: tau-30_seed-2"));
    let status = output(&["study", "--out", &out, "--status"]);
    assert!(text(&status.stdout).contains("3 done"), "{}", text(&status.stdout));
    // The study makes them again, and those of a later run that were made with other images.
    let later = Path::new(&out).join("runs/tau-inf_seed-2").to_string_lossy().into_owned();
    assert!(output(&["analyse", &later, "activity", "--images", "10", "--quiet"]).status.success());
    let refused = output(&["analyse", "compare", &out]);
    assert!(!refused.status.success(), "{}", text(&refused.stdout));
    let done = output(&["study", "--out", &out, "--quiet"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(fs::read(table("robustness.json")).unwrap(), before);
    assert!(output(&["study", "--out", &out, "--compare"]).status.success());
}

/// The page attributes results to the runs that they belong to.
#[test]
fn a_page_is_about_the_runs_of_its_plan() {
    let (_folder, out) = finished();
    let runs = Path::new(&out).join("runs");
    let [a, b, aside] = ["tau-30_seed-1", "tau-inf_seed-1", "aside"].map(|name| runs.join(name));
    let refused = || {
        let done = output(&["report", &out]);
        assert_eq!(done.status.code(), Some(1), "{}", text(&done.stdout));
        text(&done.stderr)
    };
    let swap = || {
        for (from, to) in [(&a, &aside), (&b, &a), (&aside, &b)] {
            fs::rename(from, to).unwrap();
        }
    };
    assert!(output(&["report", &out]).status.success());
    swap();
    let message = refused();
    let expected = "the plan of the study has 'tau 30' with seed 1 here, but run.toml is that of 'tau inf'";
    assert!(message.contains(expected), "{message}");
    swap();

    // Settings are those of the weights. Without a condition's name, an edited tau is that of another plan.
    let settings = fs::read_to_string(a.join("run.toml")).unwrap();
    let edited = settings.replace("time_steps = 12", "time_steps = 20");
    fs::write(a.join("run.toml"), edited).unwrap();
    let message = refused();
    assert!(message.contains("they were trained with time_steps = 12, not 20"), "{message}");
    for (from, to, words) in [
        ("v_th = 1.0", "v_th = 3.0", "trained with v_th = 1, not 3"),
        (
            "v_th = 1.0",
            "readout_divisor = \"memory\"\nv_th = 1.0",
            "readout_divisor = its default, not memory",
        ),
        ("encoder = \"signed\"", "encoder = \"unsigned\"", "trained with encoder = signed, not unsigned"),
    ] {
        fs::write(a.join("run.toml"), settings.replace(from, to)).unwrap();
        assert!(refused().contains(words), "{}", refused());
    }
    let edited = settings.replace("tau = 30.0", "condition = \"tau 30\"\ntau = inf");
    fs::write(a.join("run.toml"), edited).unwrap();
    assert!(refused().contains("with seed 1 and tau inf"), "{}", refused());
    let done = output(&["report", &a.to_string_lossy()]);
    assert!(text(&done.stderr).contains("trained with tau = 30, not inf"), "{}", text(&done.stderr));
    fs::write(a.join("run.toml"), &settings).unwrap();

    // The epoch of the checkpoint is in the metrics.
    let metrics = fs::read_to_string(a.join("metrics.jsonl")).unwrap();
    let lines: Vec<&str> = metrics.split_inclusive('\n').collect();
    fs::write(a.join("metrics.jsonl"), lines[..2].concat()).unwrap();
    assert!(refused().contains("2 epochs where the checkpoint has 3"), "{}", refused());
    fs::write(a.join("metrics.jsonl"), metrics).unwrap();

    // A table of earlier weights is not shown with the metrics of later ones.
    let table = a.join("analysis/activity.json");
    let now = fs::read_to_string(&table).unwrap();
    let mut earlier: serde_json::Value = serde_json::from_str(&now).unwrap();
    earlier["origin"]["epoch"] = 1.into();
    earlier["origin"]["checkpoint"] = "0".repeat(64).into();
    fs::write(&table, earlier.to_string()).unwrap();
    assert!(refused().contains("activity.json: measured with the weights after epoch 1"), "{}", refused());
    fs::write(&table, now).unwrap();

    // Runs that were compared and are gone are named.
    fs::remove_dir_all(&b).unwrap();
    assert!(output(&["report", &out]).status.success());
    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert!(page.contains("The comparison includes runs that this study does not have: tau-inf_seed-1"));
}

/// A table of the theory that is lost or damaged is made again.
#[test]
fn lost_tables_of_the_theory_are_made_again() {
    let (_folder, out) = finished();
    let theory = Path::new(&out).join("theory");
    for damage in [None, Some("{")] {
        let table = theory.join("fig2_own_simulation.json");
        fs::remove_file(&table).unwrap();
        damage.iter().for_each(|text| fs::write(&table, text).unwrap());
        let done = output(&["study", "--out", &out, "--quiet"]);
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert!(fs::read_to_string(&table).unwrap().contains("\"rows\""));
    }
}

/// The tables of a run must have been made with as many images as the study prescribes.
#[test]
fn runs_that_were_measured_with_other_images_are_not_done() {
    let (_folder, out) = finished();
    let runs = fs::read_dir(Path::new(&out).join("runs")).unwrap();
    let before = fs::read(Path::new(&out).join("compare/claims.csv")).unwrap();
    for run in runs.map(|run| run.unwrap().path()) {
        let measured = output(&["analyse", &run.to_string_lossy(), "all", "--images", "10", "--quiet"]);
        assert!(measured.status.success(), "{}", text(&measured.stderr));
    }
    let status = output(&["study", "--out", &out, "--status"]);
    assert!(text(&status.stdout).contains(": 4 stopped of 4 runs"), "{}", text(&status.stdout));
    let compared = output(&["study", "--out", &out, "--compare"]);
    let message = text(&compared.stderr);
    assert_eq!(compared.status.code(), Some(1), "{message}");
    let expected = "measured with 10 test samples, and the study prescribes 60";
    assert!(message.contains("4 of 4 runs are not done") && message.contains(expected), "{message}");
    assert_eq!(fs::read(Path::new(&out).join("compare/claims.csv")).unwrap(), before);
    assert!(output(&["study", "--out", &out, "--quiet"]).status.success());
    assert!(output(&["study", "--out", &out, "--compare"]).status.success());
}

/// Other settings than those of the runs are neither shown on a page nor used for advice.
#[test]
fn an_edited_study_is_refused() {
    let (_folder, out) = finished();
    let page = fs::read(Path::new(&out).join("report.html")).unwrap();
    let file = Path::new(&out).join("study.toml");
    let edited = fs::read_to_string(&file).unwrap().replace("time_steps = 12", "time_steps = 25");
    fs::write(&file, edited).unwrap();
    for arguments in [&["report", &out][..], &["advise", &out, "--noise", "gaussian/pixel"]] {
        let refused = output(arguments);
        let message = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{message}");
        assert!(message.contains("time_steps = 12, and the study now has 25"), "{message}");
    }
    assert_eq!(fs::read(Path::new(&out).join("report.html")).unwrap(), page);
}

/// The stored command makes the study, also after it was continued from its own folder with other flags.
#[test]
fn the_command_of_a_continued_study_does_not_need_the_study() {
    let (folder, file) = small();
    let out = folder.path().join("out");
    with_short_theory(&out);
    let run = |arguments: &[&str]| {
        let done = output(&[arguments, &["--out", &out.to_string_lossy(), "--run", "0"]].concat());
        assert!(done.status.success(), "{}", text(&done.stderr));
        fs::read_to_string(out.join("command.txt")).unwrap()
    };
    run(&["study", &file, "--tau", "30,inf", "--set", "name=small"]);
    let command = run(&["study", "--tau", "30,100", "--set", "seeds=[1, 2, 3]"]);
    let expected = format!("leaklab study {file} --set name=small --tau 30,100 --set 'seeds=[1, 2, 3]'\n");
    assert_eq!(command, expected);
}
