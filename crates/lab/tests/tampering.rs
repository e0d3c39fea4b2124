//! Changes made outside the program are noticed: in stored passes, in the images of a run that is resumed,
//! and in the records of runs that are compared.

use image::{GrayImage, ImageFormat, Luma};
use leaklab_lab::analysis::compare::compare_folders;
use leaklab_lab::analysis::pass::Pass;
use leaklab_lab::analysis::{Analysis, Options, analyse};
use leaklab_lab::config::RunConfig;
use leaklab_lab::train::{self, Control, threads};
use leaklab_record::Table;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SMALL: &str = "tau = 30\ntime_steps = 8\nepochs = 2\nbatch = 10\npresentations = 1\nlearning_rate = \
                     0.1\nevaluate_train_images = 10\nschedule = { after = [], times = 1.0 }\nnoise = []\n";

fn config(folder: &Path, text: &str) -> RunConfig {
    let file = folder.join("settings.toml");
    fs::write(&file, format!("{text}{SMALL}")).unwrap();
    RunConfig::load(&file, &[]).unwrap()
}

/// All tables of a run, and how many images had to be shown for them.
fn tables(run: &Path) -> Result<(Vec<Table>, u64), String> {
    let options = Options::as_trained(Arc::new(threads(Some(1)).unwrap()));
    let mut shown = 0;
    let made = analyse(run, &Analysis::ALL, &options, &mut |advance| {
        shown = advance.total;
        true
    });
    made.map(|tables| (tables, shown)).map_err(|e| e.to_string())
}

#[test]
fn a_changed_pass_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let settings =
        "dataset = \"digits\"\nnetwork = \"1x8x8-4C3-2P-10o\"\ntrain_limit = 50\ntest_limit = 20\n";
    let run = folder.path().join("run");
    let config = config(folder.path(), settings);
    train::train(&config, &run, &train::Options::default(), &mut |_| Control::Continue).unwrap();
    let (expected, _) = tables(&run).unwrap();
    assert_eq!(tables(&run).unwrap().1, 0, "everything is stored");

    let path = run.join("analysis/passes/clean.json");
    let stored = fs::read_to_string(&path).unwrap();
    let value: serde_json::Value = serde_json::from_str(&stored).unwrap();
    let fingerprint = value["fingerprint"].as_str().unwrap();
    let pass: Pass = serde_json::from_value(value["content"].clone()).unwrap();
    assert_eq!(pass.to_text(fingerprint.to_owned()), stored);

    // A number is changed, first without its digest and then with it.
    let changed = stored.replacen("\"presentation\":1", "\"presentation\":2", 1);
    let forged = |change: fn(&mut Pass)| {
        let mut pass = pass.clone();
        change(&mut pass);
        pass.to_text(fingerprint.to_owned())
    };
    let forgeries = [
        changed,
        stored.replacen("\"activity\":{", "\"activity\":null,\"was\":{", 1),
        forged(|pass| pass.activity = None),
        forged(|pass| pass.spectrum = None),
        forged(|pass| pass.correct = Default::default()),
        forged(|pass| pass.spectrum.as_mut().unwrap().critical[0][3] = Some(0.6)),
        forged(|pass| pass.spectrum.as_mut().unwrap().hidden_power.clear()),
        forged(|pass| pass.activity.as_mut().unwrap().spikes[0] = u64::MAX),
        forged(|pass| pass.activity.as_mut().unwrap().image_synops.truncate(1)),
    ];
    for (number, forgery) in forgeries.iter().enumerate() {
        assert_ne!(*forgery, stored, "forgery {number} changes nothing");
        fs::write(&path, forgery).unwrap();
        let (made, shown) = tables(&run).unwrap();
        assert_eq!(shown, 20, "forgery {number} was accepted");
        assert!(made == expected, "forgery {number} changed a table");
        assert_eq!(fs::read_to_string(&path).unwrap(), stored, "forgery {number}");
    }

    #[cfg(unix)]
    {
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let message = tables(&run).unwrap_err();
        assert!(message.contains("clean.json") && message.contains("not a regular file"), "{message}");
    }
}

/// Writes ten images of each of two classes.
fn write_images(folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for (class, start) in [("a", 0u8), ("b", 128)] {
        fs::create_dir_all(folder.join(class)).unwrap();
        for i in 0..10u8 {
            let path = folder.join(format!("{class}/{i}.png"));
            GrayImage::from_pixel(8, 8, Luma([start + 10 * i]))
                .save_with_format(&path, ImageFormat::Png)
                .unwrap();
            paths.push(path);
        }
    }
    paths
}

#[test]
fn a_run_goes_on_with_the_images_that_it_began_with() {
    let folder = tempfile::tempdir().unwrap();
    let images = folder.path().join("images");
    let paths = write_images(&images);
    let text = format!(
        "dataset = \"image-folder:8x8\"\ndata_dir = {:?}\nnetwork = \"8x8-2C3-2o\"\n",
        images.display().to_string()
    );
    let (config, run) = (config(folder.path(), &text), folder.path().join("run"));
    let options = train::Options::default();
    let stopped = train::train(&config, &run, &options, &mut |event| {
        if matches!(event, train::Event::Batch(_)) { Control::Stop } else { Control::Continue }
    });
    assert_eq!(stopped.unwrap().outcome, train::Outcome::Interrupted);

    let aside = folder.path().join("aside.png");
    fs::rename(&paths[0], &aside).unwrap();
    let refused = train::resume(&run, &options, &mut |_| Control::Continue).unwrap_err().to_string();
    assert!(refused.contains("is not the one that the settings name"), "{refused}");
    fs::rename(&aside, &paths[0]).unwrap();
    GrayImage::from_pixel(8, 8, Luma([77])).save_with_format(&paths[1], ImageFormat::Png).unwrap();
    assert!(train::resume(&run, &options, &mut |_| Control::Continue).is_err(), "a pixel was changed");
    write_images(&images);
    let finished = train::resume(&run, &options, &mut |_| Control::Continue).unwrap();
    assert_eq!(finished.outcome, train::Outcome::Finished);
}

/// A small run that is trained and analysed.
fn analysed(folder: &Path) -> PathBuf {
    let settings =
        "dataset = \"digits\"\nnetwork = \"1x8x8-4C3-2P-10o\"\ntrain_limit = 50\ntest_limit = 20\n";
    let (config, run) = (config(folder, settings), folder.join("run"));
    train::train(&config, &run, &train::Options::default(), &mut |_| Control::Continue).unwrap();
    tables(&run).unwrap();
    run
}

/// Compares one run, which gives its tables with empty intervals.
fn compared(run: &Path) -> Result<Vec<Table>, String> {
    let out = run.with_extension("compare");
    compare_folders(&[run.to_owned()], None, &out).map_err(|e| e.to_string())
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn tables_of_an_earlier_state_of_a_run_are_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let run = analysed(folder.path());
    let noted = |tables: &[Table]| tables[0].notes.iter().any(|note| note.contains("run (2 of 3)"));
    assert!(!noted(&compared(&run).unwrap()));
    edit(&run.join("run.toml"), "epochs = 2", "epochs = 3");
    assert!(noted(&compared(&run).unwrap()), "the run has been trained for a part of its epochs");
    train::resume(&run, &train::Options::default(), &mut |_| Control::Continue).unwrap();
    let message = compared(&run).unwrap_err();
    let expected = "measured with the weights after epoch 2, and not with those of the run's checkpoint \
                    (epoch 3); analyse the run again";
    assert!(message.contains(expected), "{message}");
    tables(&run).unwrap();
    assert!(!noted(&compared(&run).unwrap()));
    // Records that are published have no checkpoint, so there is nothing to compare them with.
    for file in ["checkpoint.safetensors", "checkpoint.previous.safetensors"] {
        fs::remove_file(run.join(file)).unwrap();
    }
    compared(&run).unwrap();
}

#[test]
fn edited_settings_are_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let run = analysed(folder.path());
    edit(&run.join("run.toml"), "tau = 30.0", "tau = inf");
    let message = compared(&run).unwrap_err();
    assert!(message.contains("they were trained with tau = 30, not inf"), "{message}");
}

#[test]
fn metrics_without_the_epoch_of_the_checkpoint_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = analysed(folder.path());
    let metrics = run.join("metrics.jsonl");
    let text = fs::read_to_string(&metrics).unwrap();
    fs::write(&metrics, text.split_inclusive('\n').next().unwrap()).unwrap();
    for message in [compared(&run).unwrap_err(), tables(&run).unwrap_err()] {
        assert!(message.contains("metrics.jsonl") && message.contains("the checkpoint has 2"), "{message}");
    }
}

#[test]
fn a_complete_run_has_all_its_records() {
    let folder = tempfile::tempdir().unwrap();
    let run = analysed(folder.path());
    fs::write(run.join("complete"), "").unwrap();
    compared(&run).unwrap();
    for file in ["checkpoint.safetensors", "checkpoint.previous.safetensors"] {
        fs::remove_file(run.join(file)).unwrap();
    }
    for file in ["analysis/robustness.json", "analysis/activity_summary.json", "metrics.jsonl"] {
        let (path, aside) = (run.join(file), folder.path().join("aside"));
        fs::rename(&path, &aside).unwrap();
        let message = compared(&run).unwrap_err();
        assert!(message.contains(&format!("{file}: missing, although")), "{message}");
        fs::rename(&aside, &path).unwrap();
    }
    compared(&run).unwrap();
}
