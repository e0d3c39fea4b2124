//! The user's own arrays from training to analysis: they are found in the run's folder and pinned by their
//! digest.

use leaklab_lab::analysis::{self, Analysis};
use leaklab_lab::config::{RunConfig, Settings, StudyConfig};
use leaklab_lab::data::arrays::{self, Part, Values};
use leaklab_lab::data::npz;
use leaklab_lab::run::{TrainedRun, Weights};
use leaklab_lab::study::Plan;
use leaklab_lab::train::{self, Control, Options};
use leaklab_record::StudyFolder;
use std::path::Path;
use std::sync::Arc;

/// Two classes of features: the first or the second half is large.
fn write(path: &Path, shift: f64) {
    let labels: Vec<i64> = (0..40).map(|i| i % 2).collect();
    let of = |label: &i64| if *label == 0 { [9.0 + shift, 8.0, 1.0, 0.0] } else { [0.0, 1.0, 8.0, 9.0] };
    let values: Vec<f64> =
        labels.iter().enumerate().flat_map(|(i, label)| of(label).map(|x| x + 0.01 * i as f64)).collect();
    let part = Part { dimensions: vec![40, 4], values: Values::Numbers(values), labels, samples: None };
    npz::save(&arrays::dataset("npz:mine", part, None, None).unwrap(), path).unwrap();
}

fn settings(data_dir: Option<&Path>) -> Settings {
    let mut settings = Settings::default();
    for assignment in [
        "dataset=npz:mine",
        "network=1x1x4-8FC-2o",
        "tau=10",
        "time_steps=20",
        "epochs=30",
        "batch=4",
        "evaluate_train_images=0",
        "noise=[\"deletion/channel\"]",
        "presentations=1",
        "schedule.after=[]",
    ] {
        settings.assign(assignment).unwrap();
    }
    if let Some(folder) = data_dir {
        settings.set("data_dir", folder.to_str().unwrap());
    }
    settings
}

fn train_at(config: &RunConfig, out: &Path) -> Result<train::Summary, train::TrainError> {
    train::train(config, out, &Options::default(), &mut |_| Control::Continue)
}

#[test]
fn a_run_finds_the_data_in_its_folder_and_refuses_others() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    std::fs::create_dir(&out).unwrap();
    write(&out.join("mine.npz"), 0.0);
    let config = RunConfig::resolve(settings(None)).unwrap();
    let summary = train_at(&config, &out).unwrap();
    assert!(summary.last.unwrap().test_accuracy.unwrap() > 0.9);
    let text = std::fs::read_to_string(out.join("run.toml")).unwrap();
    assert!(text.contains("data_sha256 = ") && !text.contains("data_dir"), "{text}");
    // Moved elsewhere, it still has its data.
    let moved = folder.path().join("moved");
    std::fs::rename(&out, &moved).unwrap();
    let options = analysis::Options::as_trained(Arc::new(train::threads(Some(1)).unwrap()));
    let tables = analysis::analyse(&moved, &Analysis::ALL, &options, &mut |_| true).unwrap();
    assert!(tables.iter().any(|table| table.name == "robustness"));
    // The same data in another place are accepted; other data are not.
    let other = folder.path().join("mine.npz");
    std::fs::rename(moved.join("mine.npz"), &other).unwrap();
    let mut run = TrainedRun::open(&moved, Weights::Last).unwrap();
    run.config.data_dir = Some(folder.path().to_owned());
    run.dataset().unwrap();
    write(&other, 1.0);
    let message = run.dataset().unwrap_err().to_string();
    assert!(message.contains("npz:mine is not the one") && message.contains("data_sha256"), "{message}");
}

#[test]
fn a_study_pins_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("mine.npz");
    write(&data, 0.0);
    let study = StudyFolder::at(folder.path().join("study"));
    let config = StudyConfig::resolve(settings(Some(folder.path())), "mine").unwrap();
    let plan = Plan::make(&config, &study, 1).unwrap();
    assert_eq!((plan.train_images, plan.test_images), (32, 8));
    assert!(plan.config.runs().iter().all(|run| run.data_sha256.is_some()));
    std::fs::create_dir_all(study.path()).unwrap();
    leaklab_lab::study::begin(&study, &plan.config, "leaklab study").unwrap();
    // If the study is requested again without a digest, the same data are accepted, and other data are
    // refused.
    leaklab_lab::study::check(&study, &Plan::make(&config, &study, 1).unwrap().config).unwrap();
    write(&data, 1.0);
    let changed = Plan::make(&config, &study, 1).unwrap().config;
    let message = leaklab_lab::study::check(&study, &changed).unwrap_err().to_string();
    assert!(message.contains("data_sha256"), "{message}");
}

/// A task of a job array and a comparison preserve the digest, and the whole study continues after them.
#[test]
fn a_study_of_own_data_stays_pinned_in_parts() {
    use leaklab_lab::study::{Options, check, compare, run, run_one};
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("mine.npz");
    write(&data, 0.0);
    let study = StudyFolder::at(folder.path().join("study"));
    let config = StudyConfig::resolve(settings(Some(folder.path())), "mine").unwrap();
    let options = Options {
        command: "leaklab study".into(),
        checkpoint_minutes: 10.0,
        isa: leaklab_engine::Isa::best(),
    };
    let watch = |_: &leaklab_lab::study::Event| train::Control::Continue;
    run(&Plan::make(&config, &study, 1).unwrap(), &study, &options, &watch).unwrap();
    let pinned = || std::fs::read_to_string(study.study_toml()).unwrap().contains("data_sha256");
    assert!(pinned());
    compare(&config, &study, 1, &options, &watch).unwrap();
    run_one(&config, &study, 0, 1, &options, &watch).unwrap();
    assert!(pinned());
    check(&study, &Plan::make(&config, &study, 1).unwrap().config).unwrap();
}

#[test]
fn the_message_for_a_network_that_does_not_fit_states_what_would() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("mine.npz"), 0.0);
    let mut settings = settings(Some(folder.path()));
    settings.set("network", "1x8x8-8FC-2o");
    let config = RunConfig::resolve(settings).unwrap();
    let message = train_at(&config, &folder.path().join("run")).unwrap_err().to_string();
    assert!(message.contains("begins with 1x1x4- and ends with -2o"), "{message}");
}
