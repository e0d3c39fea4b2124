//! A training that ends because a value is no longer finite: its last weights depend only on the settings.

use leaklab_lab::config::{RunConfig, Settings};
use leaklab_lab::train::{self, Control, Event, Options};
use leaklab_record::{Checkpoint, RunFolder};
use std::path::Path;

/// A run whose weights overflow within its first epoch.
fn config() -> RunConfig {
    let mut settings = Settings::default();
    for assignment in [
        "dataset=digits",
        "network=1x8x8-8C3-2P-10o",
        "tau=30",
        "seed=1",
        "time_steps=10",
        "epochs=2",
        "batch=8",
        "train_limit=200",
        "test_limit=20",
        "optimiser=sgd",
        "learning_rate=3",
        "weight_decay=1e5",
    ] {
        settings.assign(assignment).unwrap();
    }
    RunConfig::resolve(settings).unwrap()
}

fn weights(run: &Path) -> Vec<(String, Vec<f32>)> {
    let found = Checkpoint::read(&RunFolder::at(run).checkpoint()).unwrap();
    found.tensors.into_iter().map(|tensor| (tensor.name, tensor.values)).collect()
}

#[test]
fn the_weights_of_a_diverged_run_do_not_depend_on_the_clock() {
    let folder = tempfile::tempdir().unwrap();
    let [rarely, often, stopped] = ["rarely", "often", "stopped"].map(|name| folder.path().join(name));
    let go = |out: &Path, minutes: f64| {
        let options = Options { checkpoint_minutes: minutes, ..Options::default() };
        train::train(&config(), out, &options, &mut |_| Control::Continue).unwrap()
    };
    let summary = go(&rarely, 60.0);
    assert_eq!(summary.outcome, train::Outcome::Diverged);
    // A checkpoint after every batch.
    go(&often, 0.0);
    // Stopped after some batches, and resumed.
    let mut batches = 0;
    let interrupted = train::train(&config(), &stopped, &Options::default(), &mut |event| match event {
        Event::Batch(_) => {
            batches += 1;
            if batches == 2 { Control::Stop } else { Control::Continue }
        }
        _ => Control::Continue,
    });
    assert_eq!(interrupted.unwrap().outcome, train::Outcome::Interrupted);
    train::resume(&stopped, &Options::default(), &mut |_| Control::Continue).unwrap();
    let left = weights(&rarely);
    assert!(left.iter().all(|(_, values)| values.iter().all(|x| x.is_finite())));
    assert_eq!(left, weights(&often));
    assert_eq!(left, weights(&stopped));
}
