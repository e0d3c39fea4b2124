//! Settings that are refused, and the messages, which name the place and what would be right.

mod support;

use leaklab_lab::config::{RunConfig, Settings, StudyConfig};
use support::worked;

fn settings(assignments: &[&str]) -> Settings {
    let mut settings = Settings::default();
    assignments.iter().for_each(|assignment| settings.assign(assignment).unwrap());
    settings
}

/// The error message for a settings file, which must be reported within seconds.
fn message(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.toml");
    std::fs::write(&path, text).unwrap();
    let begun = worked();
    let message = StudyConfig::load(path.to_str().unwrap(), &[]).unwrap_err().to_string();
    let seconds = worked() - begun;
    println!("{seconds:.2} s for {} kB: {message:.60}", text.len() / 1000);
    assert!(seconds < 5.0, "{seconds} s for: {message:.200}");
    assert!(message.len() < 2000 && !message.contains('\n'), "{message}");
    message
}

/// The message that refuses a setting of a run on the digits.
fn refused(assignment: &str) -> String {
    let mut settings = settings(&["dataset=digits", "tau=30"]);
    let set = settings.assign(assignment).and_then(|()| RunConfig::resolve(settings));
    set.unwrap_err().to_string()
}

#[test]
fn wrong_conditions_are_refused_with_their_line() {
    for (text, words) in [
        ("[[condition]]\nname = \"a\"\n", ["line 3", "tau"]),
        (
            "[[condition]]\nname = \"a\"\ntau = 3\n[[condition]]\nname = \"A\"\ntau = 4\n",
            ["line 6: name = \"A\"", "differs from 'a' in letters or digits, not only in case"],
        ),
        ("[[condition]]\ntau = 30\ndropuot = 0.5\n", ["line 4", "did you mean `dropout`"]),
        ("[[condition]]\ntau = 30\nnetwork = \"1x8x8-10o\"\n", ["line 4", "share it"]),
        ("[[condition]]\ntau = 30\nvalidation = 0.2\n", ["line 4", "share it"]),
        ("[[condition]]\ntau = 30\ntest_limit = 100\n", ["line 4", "share it"]),
        (
            "[[condition]]\ntau = 30\nseverity.\"gaussian/pixel\" = [1, 2, 3, 4, 5, 6, 7, 8]\n",
            ["line 4", "share it"],
        ),
        ("[[condition]]\ntau = 0\n", ["line 3", "1/64 or more"]),
        ("[[condition]]\ntau = 30\n[[condition]]\ntau = 30\n", ["line 5: tau", "'tau 30' needs a `name`"]),
        ("[[condition]]\ntau = 30\nlayer_tau = { conv9 = 5 }\n", ["line 4", "conv1, fc1"]),
        (
            "[[condition]]\nname = \"a\"\ntau = 9\n[[condition]]\nname = \"b\"\ntau = 9\n",
            ["line 6", "condition 'b' has the same settings as 'a'"],
        ),
        ("[[condition]]\nname = \"a\\nb\"\ntau = 9\n", ["line 3", "in one line"]),
        ("tau = \"abc\"\n[[condition]]\ntau = 9\n", ["line 2", "a number of steps"]),
        ("condition = \"a\"\ntau = 9\n", ["line 2", "conditions are [[condition]] tables"]),
        ("format = 99\n[[condition]]\ntau = 9\n", ["line 2", "this program reads format 1"]),
        (
            "tau = 9\nnoise = [\"impulse/pixel\", \"impulse/pixel\"]\n",
            ["line 3", "impulse/pixel is given twice"],
        ),
        ("baseline = \"x\"\n[[condition]]\ntau = 30\n", ["line 2", "tau 30"]),
    ] {
        let message = message(&format!("dataset = \"digits\"\n{text}"));
        for word in words {
            assert!(message.contains(word), "{word}: {message}");
        }
    }
}

#[test]
fn numbers_are_checked_as_the_network_will_have_them() {
    for assignment in [
        "dropout=0.99999999",
        "momentum=0.99999999999",
        "v_th=1e300",
        "v_th=1e-300",
        "weight_decay=1e300",
        "epsilon=1e-60",
        "tau=0.001",
        "learning_rate=1e300",
    ] {
        let message = refused(assignment);
        assert!(message.contains("expected"), "{assignment}: {message}");
    }
}

#[test]
fn wrong_values_name_what_would_be_right() {
    for (assignment, words) in [
        ("tau=0", "1/64 or more"),
        ("tau=[]", "at least one"),
        ("seeds=[1, 1]", "a run has one"),
        ("optimiser=adamw", "sgd or adam"),
        ("gradient=surrogate", "straight-through, exact"),
        ("normalise=none", "per-image, per-channel"),
        ("encoder=rate", "signed, unsigned"),
        ("noise=[\"gaussian\"]", "such as gaussian/pixel"),
        ("noise=[\"deletion/pixel\"]", "only 'channel'"),
        ("batch=0", "from 1 to"),
        ("momentum=1", "below 1"),
        ("learning_rate=-0.1", "above 0"),
        ("learning_rate=inf", "above 0"),
        ("augment.crop=yes", "whole number"),
        ("timesteps=3", "did you mean `time_steps`"),
    ] {
        let message = refused(assignment);
        assert!(message.contains(words), "{assignment}: {message}");
    }
}

#[test]
fn large_files_are_refused_quickly() {
    // This once took 25 s; it now takes a quarter of a second.
    let keys: String = (0..300_000).map(|i| format!("key{i} = {i}\n")).collect();
    let found = message(&format!("dataset = \"digits\"\ntau = 30\n{keys}"));
    assert!(found.contains("own.toml, line ") && found.contains("unknown key `key0`"), "{found}");

    let numbers: Vec<String> = (0..300_000).map(|i| i.to_string()).collect();
    for key in ["seeds", "tau"] {
        let other = if key == "tau" { "" } else { "tau = 30\n" };
        let text = format!("dataset = \"digits\"\n{other}{key} = [1, 1, {}]\n", numbers.join(", "));
        let found = message(&text);
        assert!(found.contains(key) && found.contains(" ...: "), "{found}");
    }
    let conditions: String =
        (0..30_000).map(|i| format!("[[condition]]\nname = \"c{i}\"\ntau = 30\n")).collect();
    let found = message(&format!("dataset = \"digits\"\n{conditions}"));
    assert!(found.contains("a study has at most 1000 conditions"), "{found}");
    let names: String = (1..=1000).map(|i| format!("[[condition]]\nname = \"c{i}\"\ntau = {i}\n")).collect();
    let found = message(&format!("dataset = \"digits\"\nseeds = [{}]\n{names}", numbers[..1000].join(", ")));
    assert!(found.contains("1000000 runs are too many; a study has at most 100000"), "{found}");
}

#[cfg(unix)]
#[test]
fn a_settings_file_is_a_regular_file_of_a_size() {
    let folder = tempfile::tempdir().unwrap();
    let load = |name: &str| {
        let path = folder.path().join(name);
        let study = StudyConfig::load(path.to_str().unwrap(), &[]).unwrap_err().to_string();
        let run = RunConfig::load(&path, &[]).unwrap_err().to_string();
        assert_eq!(study, run);
        study
    };
    let pipe = folder.path().join("pipe.toml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(load("pipe.toml").ends_with("pipe.toml: cannot be read: it is not a regular file"));
    let sparse = std::fs::File::create(folder.path().join("sparse.toml")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    assert!(load("sparse.toml").contains("it has more than 134 MB"), "{}", load("sparse.toml"));
}

#[test]
fn every_key_is_read_even_if_its_table_is_empty() {
    for (assignment, words) in [
        ("foo={}", "unknown key `foo`"),
        ("epochs={}", "epochs = {}: a whole number from 1 to 1000000 is expected"),
        ("format=nan", "format = nan: a whole number from 0 to 4294967295 is expected"),
        ("condition=5", "[[condition]] tables are expected in a study, a name in a run"),
        ("condition={}", "[[condition]] tables are expected in a study, a name in a run"),
        ("seeds=x", "seed = \"x\": a whole number"),
        ("layer_tau=5", "layer_tau = 5: this is a table, and its members are set, such as layer_tau.conv1"),
        ("schedule=5", "schedule = 5: this is a table, and its members are set, such as schedule.after"),
    ] {
        let message = refused(assignment);
        assert!(message.contains(words), "{assignment}: {message}");
    }
    let of_file = |text: &str| message(&format!("dataset = \"digits\"\ntau = 30\n{text}\n"));
    assert!(of_file("[learning_rat]").contains("own.toml, line 3: unknown key `learning_rat`"));
    assert!(of_file("[epochs]").contains("own.toml, line 3: epochs = {}: a whole number"));
    let nested = of_file("[[condition]]\ntau = 5\n[[condition.condition]]\ntau = 6");
    assert!(nested.contains("a condition has no conditions of its own"), "{nested}");
    // An empty table of settings sets none, as an empty dictionary of Python does.
    for table in ["layer_tau={}", "severity={}", "augment={}"] {
        RunConfig::resolve(settings(&["dataset=digits", "tau=30", table])).unwrap();
    }
    let run = RunConfig::resolve(settings(&["dataset=digits", "tau=30", "seeds=7"])).unwrap();
    assert_eq!(run.seed, 7);
}

#[test]
fn no_number_becomes_0_in_silence() {
    for key in ["dropout", "validation", "momentum", "beta1", "beta2", "weight_decay"] {
        let message = refused(&format!("{key}=1e-300"));
        let words = "a number that single precision can hold is expected, and this one becomes 0";
        assert_eq!(message, format!("{key} = 1e-300: {words}"));
        RunConfig::resolve(settings(&["dataset=digits", "tau=30", &format!("{key}=0.0")])).unwrap();
    }
    assert!(refused("dropout=0.99999999").contains("and this one becomes 1"));
    for (level, becomes) in [("1e300", "inf"), ("1e-300", "0")] {
        let message = refused(&format!("severity.gaussian/pixel=[1, 2, 3, 4, {level}, 6, 7, 8]"));
        assert!(message.contains("severity 5: ") && message.ends_with(&format!("becomes {becomes}")));
    }
}

#[test]
fn an_assignment_is_a_line_of_a_settings_file() {
    let levels = "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]";
    let run =
        |assignment: &str| RunConfig::resolve(settings(&["dataset=digits", "tau=30", assignment])).unwrap();
    let quoted = run(&format!("severity.\"gaussian/pixel\" = {levels}"));
    assert_eq!(quoted, run(&format!("severity.gaussian/pixel={levels}")));
    assert_eq!(quoted, run(&format!("severity = {{ \"gaussian/pixel\" = {levels} }}")));
    assert_eq!(run("epochs = 4 # few").epochs, 4);
    for (assignment, words) in [
        ("layer_tau={💥=5}", "--set layer_tau={💥=5}: the value is not valid TOML: "),
        ("noise=[gaussian/pixel", "--set noise=[gaussian/pixel: the value is not valid TOML: "),
        ("layer_tau={conv1=5,fc7=3}", "layer_tau.fc7 = 3: layer_tau names 'fc7'"),
        ("epochs=4\nbatch=5", "epochs = "),
        ("# epochs=4", "unknown key `# epochs`"),
    ] {
        let message = refused(assignment);
        assert!(message.starts_with(words), "{assignment}: {message}");
    }
}

#[test]
fn limits_are_stated_and_values_are_shown_as_they_were_written() {
    let most = "18446744073709551615";
    assert_eq!(
        refused(&format!("seed={most}")),
        format!("seed = {most}: a whole number from 0 to 9223372036854775807 is expected")
    );
    assert_eq!(
        refused("test_limit=0"),
        "test_limit = 0: a whole number from 1 to 281474976710656 is expected"
    );
    assert!(refused("seed=\"5\"").starts_with("seed = \"5\": "));
}
