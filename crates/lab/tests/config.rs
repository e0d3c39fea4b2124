//! Files, built-in studies and what they resolve to.

use leaklab_lab::config::{BUILTIN, KEYS, RunConfig, Settings, StudyConfig};

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

#[test]
fn built_in_studies_resolve_and_read_back() {
    for (name, _) in BUILTIN {
        let study = StudyConfig::load(name, &[]).unwrap();
        assert_eq!((study.name.as_str(), study.taus.len(), study.seeds.len()), (name, 3, 3));
        assert_eq!(load(&study.to_toml()), study, "{name}");
        for run in study.runs() {
            let again = load(&run.to_toml());
            assert_eq!((again.runs(), again.taus), (vec![run.clone()], vec![run.tau]));
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
    assert_eq!((one.seeds, one.taus), (vec![9], vec![f64::INFINITY]));
}

#[test]
fn what_is_said_last_counts() {
    let run = RunConfig::resolve(settings(&["dataset=digits", "tau=2.5", "epochs=3", "epochs=4"])).unwrap();
    assert_eq!((run.tau, run.epochs, run.seed), (2.5, 4, 1));
    let levels = "severity.\"gaussian/pixel\"=[1,2,3,4,5,6,7,8]".replace('"', "");
    let run = RunConfig::resolve(settings(&["dataset=digits", "tau=30", &levels])).unwrap();
    use leaklab_engine::noise::{Noise, Scenario};
    let setting = run.severities.setting(Noise::Gaussian, Scenario::Pixel, 3).unwrap().unwrap();
    assert_eq!(setting.level(), 3.0);
    let again = RunConfig::resolve({
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        std::fs::write(&path, run.to_toml()).unwrap();
        Settings::from_file(&path).unwrap()
    });
    assert_eq!(again.unwrap(), run);
}

#[test]
fn wrong_values_name_what_would_be_right() {
    let refused = |assignment: &str| {
        RunConfig::resolve(settings(&["dataset=digits", "tau=30", assignment])).unwrap_err().to_string()
    };
    for (assignment, words) in [
        ("tau=0", "above 0"),
        ("tau=[]", "at least one"),
        ("seeds=[1, 1]", "once only"),
        ("optimiser=adamw", "sgd or adam"),
        ("gradient=surrogate", "straight-through, exact"),
        ("normalise=none", "per-image, per-channel"),
        ("encoder=rate", "signed, unsigned"),
        ("noise=[\"gaussian\"]", "such as gaussian/pixel"),
        ("noise=[\"deletion/pixel\"]", "only 'channel'"),
        ("batch=0", "1 or more"),
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
fn the_manual_lists_every_key() {
    let manual = include_str!("../../../docs/training.md");
    for (key, _) in KEYS.iter().filter(|(key, _)| *key != "format") {
        let word = key.split('.').next().unwrap();
        assert!(manual.contains(&format!("`{word}")), "docs/training.md does not speak of {key}");
    }
}
