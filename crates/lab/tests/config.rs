//! Settings files and built-in studies, and what they resolve to.

use leaklab_lab::config::{BUILTIN, KEYS, RunConfig, Settings, StudyConfig};
use std::path::Path;

fn settings(assignments: &[&str]) -> Settings {
    let mut settings = Settings::default();
    assignments.iter().for_each(|assignment| settings.assign(assignment).unwrap());
    settings
}

fn load(text: &str) -> StudyConfig {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.toml");
    std::fs::write(&path, text).unwrap();
    StudyConfig::load(path.to_str().unwrap(), &[]).unwrap()
}

/// A run, written to a file and read again.
fn read_back(run: &RunConfig) -> RunConfig {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.toml");
    std::fs::write(&path, run.to_toml()).unwrap();
    RunConfig::load(&path, &[]).unwrap()
}

#[test]
fn built_in_studies_resolve_and_read_back() {
    for (name, _) in BUILTIN {
        let study = StudyConfig::load(name, &[]).unwrap();
        assert_eq!(study.name, name);
        assert!(study.conditions.len() >= 3 && study.seeds.len() >= 3, "{name}");
        assert_eq!(load(&study.to_toml()), study, "{name}:\n{}", study.to_toml());
        for run in study.runs() {
            assert_eq!(read_back(&run), run);
        }
    }
}

#[test]
fn the_papers_protocol_is_as_published() {
    for (name, layers) in [("cifar10", 12), ("svhn", 9)] {
        let run = StudyConfig::load(name, &[]).unwrap().base;
        assert_eq!(
            (run.epochs, run.batch, run.time_steps, run.network.layers().len()),
            (150, 64, 100, layers)
        );
        let rates = [1, 70, 71, 100, 101, 150].map(|epoch| run.learning_rate_of(epoch) / run.learning_rate);
        for (rate, expected) in rates.iter().zip([1.0, 1.0, 0.2, 0.2, 0.04, 0.04]) {
            assert!((rate - expected).abs() < 1e-12, "{rates:?}");
        }
        assert_eq!((run.dropout, run.augment.crop_padding, run.augment.flip), (0.2, 4, name == "cifar10"));
    }
}

#[test]
fn a_study_has_a_run_for_each_tau_and_seed() {
    let study =
        StudyConfig::resolve(settings(&["dataset=digits", "tau=[30, inf]", "seeds=[4, 2]"]), "own").unwrap();
    let names: Vec<String> = study.runs().iter().map(RunConfig::folder_name).collect();
    assert_eq!(names, ["tau-30_seed-4", "tau-inf_seed-4", "tau-30_seed-2", "tau-inf_seed-2"]);
    let one = StudyConfig::resolve(settings(&["dataset=digits", "seed=9", "tau=\"inf\""]), "own").unwrap();
    let names: Vec<&str> = one.conditions.iter().map(|condition| condition.name.as_str()).collect();
    assert_eq!((one.seeds.clone(), names), (vec![9], vec!["tau inf"]));
}

#[test]
fn conditions_are_names_and_what_differs() {
    let text = r#"
dataset = "digits"
seeds = [1, 2]
baseline = "none"
[[condition]]
name = "none"
tau = inf
[[condition]]
name = "leaky readout"
tau = inf
readout_tau = 30
[[condition]]
name = "leak in one layer"
tau = inf
layer_tau = { conv1 = 5, fc1 = 7.5 }
v_th = 0.5
[[condition]]
tau = 2
probe = true
seeds = [3]
gradient = "exact"
"#;
    let study = load(text);
    let names: Vec<&str> = study.conditions.iter().map(|condition| condition.name.as_str()).collect();
    assert_eq!(names, ["none", "leaky readout", "leak in one layer", "tau 2"]);
    let folders: Vec<String> = study.runs().iter().map(RunConfig::folder_name).collect();
    assert_eq!(
        folders,
        [
            "none_seed-1",
            "leaky-readout_seed-1",
            "leak-in-one-layer_seed-1",
            "tau-2_seed-3",
            "none_seed-2",
            "leaky-readout_seed-2",
            "leak-in-one-layer_seed-2"
        ]
    );
    let third = &study.conditions[2].run;
    assert_eq!((third.leak.to_string().as_str(), third.v_th), ("inf, conv1 5, fc1 7.5", 0.5));
    assert!(study.conditions[3].run.probe && !study.conditions[0].run.probe);
    assert_eq!(load(&study.to_toml()), study, "{}", study.to_toml());
    for run in study.runs() {
        assert_eq!(read_back(&run), run);
    }
    // A list of tau makes conditions, and `[[condition]]` tables may add others.
    let both =
        load("dataset = \"digits\"\ntau = [9, inf]\n[[condition]]\ntau = 1\nprobe = true\nseeds = [1]\n");
    let names: Vec<&str> = both.conditions.iter().map(|condition| condition.name.as_str()).collect();
    assert_eq!(names, ["tau 9", "tau inf", "tau 1"]);
    assert_eq!(load(&both.to_toml()), both, "{}", both.to_toml());
}

#[test]
fn the_schema_knows_every_key() {
    let schema = leaklab_lab::config::schema();
    for key in KEYS {
        let mut place = &schema["properties"];
        for part in key.name.split('.') {
            place = if place[part].is_object() { &place[part] } else { &place["properties"][part] };
        }
        assert!(place["description"].is_string(), "{}", key.name);
    }
    // Conditions have only the settings in which they may differ.
    let condition = &schema["properties"]["condition"]["anyOf"][1]["items"]["properties"];
    assert!(condition["tau"].is_object() && condition["dropout"].is_object());
    for shared in ["dataset", "severity", "analysis_images", "presentations", "data_sha256"] {
        assert!(condition[shared].is_null(), "{shared}");
    }
}

#[test]
fn the_last_value_counts() {
    let run = RunConfig::resolve(settings(&["dataset=digits", "tau=2.5", "epochs=3", "epochs=4"])).unwrap();
    assert_eq!((run.leak.to_string().as_str(), run.epochs, run.seed), ("2.5", 4, 1));
    let levels = "severity.\"gaussian/pixel\"=[1,2,3,4,5,6,7,8]".replace('"', "");
    let run = RunConfig::resolve(settings(&["dataset=digits", "tau=30", &levels])).unwrap();
    use leaklab_engine::noise::{Noise, Scenario};
    let setting = run.severities.setting(Noise::Gaussian, Scenario::Pixel, 3).unwrap().unwrap();
    assert_eq!(setting.level(), 3.0);
    assert_eq!(read_back(&run), run);
}

#[test]
fn the_manual_has_the_table_of_settings() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/training.md");
    let Ok(manual) = std::fs::read_to_string(path) else {
        eprintln!("skipped: this is a packaged crate, without the manual");
        return;
    };
    let table = leaklab_lab::config::reference();
    let notice = "docs/training.md: replace the settings by the output of `leaklab schema --markdown`";
    assert!(manual.contains(table.trim()), "{notice}");
}

#[test]
fn a_name_that_says_no_more_than_the_leak_is_the_same_after_it_is_written() {
    let study = load("dataset = \"digits\"\ntau = 30\nlayer_tau.conv1 = 5\nreadout_tau = inf\n");
    assert_eq!(load(&study.to_toml()), StudyConfig { name: "own".into(), ..study });
}

/// Constants of the other optimiser have no effect, so they are not part of a run.
#[test]
fn constants_of_the_other_optimiser_do_not_count() {
    let study = load("dataset = \"digits\"\ntau = 30\noptimiser = \"adam\"\nmomentum = 0.2\n");
    assert_eq!(load(&study.to_toml()), study);
    let plain = load("dataset = \"digits\"\ntau = 30\noptimiser = \"sgd\"\n");
    let other = load("dataset = \"digits\"\ntau = 30\noptimiser = \"sgd\"\nbeta1 = 0.5\nepsilon = 0.1\n");
    assert_eq!(other, plain);
}

#[test]
fn a_tau_that_every_condition_replaces_is_not_shared() {
    let study = load("dataset = \"digits\"\ntau = inf\n[[condition]]\ntau = 381\nseeds = [3]\n");
    assert_eq!(study.base.leak.as_uniform().map(|tau| tau.steps()), Some(381.0));
    assert_eq!(load(&study.to_toml()), study);
    let study = load("dataset = \"digits\"\n[[condition]]\ntau = 38\n");
    assert_eq!(load(&study.to_toml()), study);
}

/// The keys of each field of a run's settings, from a list that the compiler compares with the fields.
macro_rules! fields {
    ($($field:ident: [$($key:literal),*],)*) => {
        fn keys_of_fields(config: RunConfig) -> Vec<&'static str> {
            let RunConfig { $($field: _),* } = config;
            vec![$($($key),*),*]
        }
    };
}

fields! {
    condition: ["condition"],
    probe: ["probe"],
    dataset: ["dataset"],
    data_dir: ["data_dir"],
    data_sha256: ["data_sha256"],
    train_limit: ["train_limit"],
    test_limit: ["test_limit"],
    validation: ["validation"],
    normalise: ["normalise"],
    encoder: ["encoder"],
    step_us: ["step_us"],
    downsample: ["downsample"],
    augment: ["augment.crop", "augment.flip", "augment.shift"],
    network: ["network"],
    leak: ["tau", "layer_tau", "readout_tau"],
    readout_divisor: ["readout_divisor"],
    v_th: ["v_th"],
    time_steps: ["time_steps"],
    gradient: ["gradient"],
    dropout: ["dropout"],
    initial: ["initial"],
    rule: ["optimiser"],
    momentum: ["momentum"],
    beta1: ["beta1"],
    beta2: ["beta2"],
    epsilon: ["epsilon"],
    learning_rate: ["learning_rate"],
    schedule_after: ["schedule.after"],
    schedule_times: ["schedule.times"],
    weight_decay: ["weight_decay"],
    epochs: ["epochs"],
    batch: ["batch"],
    seed: ["seed"],
    initial_sha256: ["initial_sha256"],
    evaluate_every: ["evaluate_every"],
    evaluate_train_images: ["evaluate_train_images"],
    noise: ["noise"],
    analysis_images: ["analysis_images"],
    presentations: ["presentations"],
    presentation_seed: ["presentation_seed"],
    mechanism: ["mechanism"],
    severities: ["severity"],
}

#[test]
fn every_field_of_a_run_has_its_row_in_the_table_of_settings() {
    let config = StudyConfig::load("digits", &[]).unwrap().base;
    let rows: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    let missing: Vec<&str> = keys_of_fields(config).into_iter().filter(|key| !rows.contains(key)).collect();
    assert!(missing.is_empty(), "config/keys.rs has no row for {missing:?}");
}

/// A built-in study may use a part of the images; settings that only name the data set use all of them.
#[test]
fn limits_of_a_built_in_study_are_no_defaults() {
    let study = StudyConfig::load("cifar10-small", &[]).unwrap();
    assert_eq!(study.base.train_limit, Some(20_000));
    for dataset in ["cifar10", "image-folder", "fashion-mnist", "svhn"] {
        let mut settings = Settings::default();
        settings.assign(&format!("dataset={dataset}")).unwrap();
        let study = StudyConfig::resolve(settings.clone(), "own").unwrap();
        assert_eq!((study.base.train_limit, study.base.test_limit), (None, None), "{dataset}");
        settings.assign("tau=30").unwrap();
        assert_eq!(RunConfig::resolve(settings).unwrap().train_limit, None, "{dataset}");
    }
}

/// On the command line, one `tau` is a list of one: it does not leave a study with its other
/// conditions, the probes, only.
#[test]
fn a_single_tau_replaces_the_list_of_a_study() {
    let names = |tau: &str| -> Vec<String> {
        let study = StudyConfig::load("digits", &[format!("tau={tau}")]).unwrap();
        study.conditions.into_iter().map(|condition| condition.name).collect()
    };
    assert_eq!(names("50"), ["tau 50", "tau 5", "tau 1", "tau 1, exact gradient"]);
    assert_eq!(names("[50]"), ["tau 50"]);
    for tau in ["abc", "3,4"] {
        let message = StudyConfig::load("digits", &[format!("tau={tau}")]).unwrap_err().to_string();
        assert!(message.contains("tau") && message.contains("a number of steps"), "{message}");
    }
}

/// A study's file also describes single runs: `--tau` selects one, even if the file has further conditions.
#[test]
fn a_run_of_a_study_with_conditions() {
    let text = "dataset = \"digits\"\ntau = [9, inf]\nseeds = [1, 2]\n[[condition]]\ntau = 1\nprobe = true\n";
    let settings = || Settings::from_toml(text, Path::new("study.toml")).unwrap();
    let mut chosen = settings();
    chosen.assign("tau=9").unwrap();
    chosen.assign("seed=2").unwrap();
    let run = RunConfig::resolve(chosen).unwrap();
    assert_eq!((run.leak.as_uniform().map(|tau| tau.steps()), run.seed, run.probe), (Some(9.0), 2, false));
    let single =
        Settings::from_toml(&text.replace("[9, inf]", "9").replace("[1, 2]", "[1]"), Path::new("study.toml"));
    let message = RunConfig::resolve(single.unwrap()).unwrap_err().to_string();
    assert!(message.starts_with("study.toml, line 5: [[condition]]: a run has one condition"), "{message}");
}

#[test]
fn long_time_constants_have_short_names() {
    let taus = settings(&["dataset=digits", "tau=[1e300, 30, inf]", "seeds=[1]"]);
    let study = StudyConfig::resolve(taus, "own").unwrap();
    let names: Vec<String> = study.runs().iter().map(RunConfig::folder_name).collect();
    assert_eq!(names, ["tau-1e300_seed-1", "tau-30_seed-1", "tau-inf_seed-1"]);
    assert_eq!(load(&study.to_toml()), study, "{}", study.to_toml());
    for run in study.runs() {
        assert_eq!(read_back(&run), run);
    }
    let run = settings(&["dataset=digits", "tau=1e300", "layer_tau.conv1=1e30", "readout_tau=1e20"]);
    let run = RunConfig::resolve(run).unwrap();
    assert_eq!(run.condition_name(), "tau 1e300, conv1 1e30, readout 1e20");
}
