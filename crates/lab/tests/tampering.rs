//! Changes made outside the program are noticed: in stored passes and cells, in the images and the
//! TensorBoard file of a run that is resumed, in the lock of a study, and in the records of runs that are
//! compared.

use image::{GrayImage, ImageFormat, Luma};
use leaklab_engine::encode::Encoding;
use leaklab_engine::noise::Severities;
use leaklab_engine::{Architecture, Isa, Leak, Network, Shape, Tau};
use leaklab_lab::analysis::compare::compare_folders;
use leaklab_lab::analysis::mechanism;
use leaklab_lab::analysis::mechanism::subject::{Subject, Work};
use leaklab_lab::analysis::mechanism::subjects::Subjects;
use leaklab_lab::analysis::pass::Pass;
use leaklab_lab::analysis::{Analysis, Options, analyse};
use leaklab_lab::config::{RunConfig, StudyConfig};
use leaklab_lab::data::{Content, Dataset, Normaliser, Presentation, Split, TEST_SAMPLES};
use leaklab_lab::study;
use leaklab_lab::train::{self, Control, threads};
use leaklab_record::{RunFolder, Stimulus, StudyFolder, Table, events, hexadecimal};
use serde_json::Value;
use sha2::{Digest, Sha256};
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
        forged(|pass| pass.activity.as_mut().unwrap().image_synops[2] = u64::MAX),
        forged(|pass| pass.activity.as_mut().unwrap().norms[0] = Some(-1.0)),
        forged(|pass| pass.spectrum.as_mut().unwrap().input_power[1] = -1.0),
        forged(|pass| pass.sse = Some(-1.0)),
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

#[test]
fn a_damaged_tensorboard_file_loses_no_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let settings =
        "dataset = \"digits\"\nnetwork = \"1x8x8-4C3-2P-10o\"\ntrain_limit = 50\ntest_limit = 20\n";
    let (config, run) = (config(folder.path(), settings), folder.path().join("run"));
    let options = train::Options::default();
    // Stopped within the second epoch.
    let mut batches = 0;
    let stopped = train::train(&config, &run, &options, &mut |event| {
        batches += u32::from(matches!(event, train::Event::Batch(_)));
        if batches > 5 { Control::Stop } else { Control::Continue }
    });
    assert_eq!(stopped.unwrap().epochs, 1);
    let path = RunFolder::at(&run).events();
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 1;
    fs::write(&path, bytes).unwrap();
    let mut notices = Vec::new();
    let finished = train::resume(&run, &options, &mut |event| {
        if let train::Event::Notice(notice) = event {
            notices.push(notice.to_owned());
        }
        Control::Continue
    });
    assert_eq!(finished.unwrap().outcome, train::Outcome::Finished);
    let expected =
        "damaged: the record at byte 0 is not complete or not as it was written; it is written again";
    assert!(notices.len() == 1 && notices[0].contains(expected), "{notices:?}");
    let bytes = fs::read(&path).unwrap();
    assert_eq!(events::kept_length(&bytes, 2), Ok(bytes.len()));
}

/// The tables that runs share are removed and written only by the holder of the study's lock, and not through
/// a link.
#[test]
fn shared_tables_are_left_to_the_holder_of_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("study.toml");
    let settings = "dataset = \"digits\"\nnetwork = \"1x8x8-4C3-2P-10o\"\ntrain_limit = 50\ntest_limit = 20\n\
                    mechanism = false\nseeds = [1]\n";
    fs::write(&file, format!("{settings}{SMALL}")).unwrap();
    let config = StudyConfig::load(file.to_str().unwrap(), &[]).unwrap();
    let place = StudyFolder::at(folder.path().join("study"));
    let options =
        study::Options { command: "leaklab study".into(), checkpoint_minutes: 10.0, isa: Isa::best() };
    study::run_one(&config, &place, 0, 1, &options, &|_| Control::Continue).unwrap();
    // The comparison removes a table of an earlier mechanism analysis.
    let table = |folder: &Path| folder.join(format!("{}.json", mechanism::TABLES[0]));
    fs::create_dir_all(place.compare()).unwrap();
    fs::write(table(&place.compare()), "").unwrap();
    study::compare(&config, &place, 1, &options, &|_| Control::Continue).unwrap();
    assert!(!table(&place.compare()).exists());
    // Another process takes over before it is removed.
    let lock = place.path().join("lock");
    fs::write(table(&place.compare()), "").unwrap();
    let halted = study::compare(&config, &place, 1, &options, &|event| {
        if matches!(event, study::Event::Compared { .. }) {
            fs::write(&lock, "another process").unwrap();
        }
        Control::Continue
    });
    let message = halted.unwrap_err().to_string();
    assert!(message.contains("another one took over its work"), "{message}");
    assert!(table(&place.compare()).exists(), "a table was removed without the lock");
    fs::remove_file(&lock).unwrap();

    #[cfg(unix)]
    {
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(place.compare(), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, place.compare()).unwrap();
        let messages = [
            study::compare(&config, &place, 1, &options, &|_| Control::Continue).unwrap_err().to_string(),
            study::check(&place, &config).unwrap_err().to_string(),
            study::members(&[place.path().to_owned()]).unwrap_err().to_string(),
        ];
        assert!(
            messages.iter().all(|message| message.contains("compare: cannot be used: it is a symbolic link"))
        );
        assert!(table(&elsewhere).exists(), "a table was removed through a link");
    }
}

/// A small network that stores its runs in a folder.
fn subject(trained: Tau, seed: u64, folder: PathBuf) -> Subject {
    let shape = Shape { channels: 1, height: 1, width: 2 };
    let test = Split {
        content: Content::Images((0..48).map(|i| 5 * i).collect()),
        labels: (0..24).map(|i| i % 2).collect(),
        samples: (0..24).map(|i| TEST_SAMPLES + i).collect(),
    };
    let (name, class_names, train) = (String::new(), Vec::new(), Split::default());
    let dataset = Dataset { name, shape, classes: 2, class_names, train, test: test.clone() };
    let presentation = Presentation::new(&dataset, Normaliser::PER_IMAGE, Encoding::clean(8), seed);
    let work = Work { pool: Arc::new(threads(Some(1)).unwrap()), folder: Some(folder) };
    let architecture = Architecture::parse("1x1x2-4FC-2o").unwrap();
    let network = Network::initialised(architecture, Leak::uniform(trained), 0.2, seed).unwrap();
    let taus = [Tau::new(10.0).unwrap()];
    Subject::new(network, trained, presentation, test, Severities::default(), &taus, work).unwrap()
}

/// A stored measurement with changed content and the digest of that content.
fn forge(stored: &str, change: impl Fn(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(stored).unwrap();
    let digest = |value: &Value| -> String {
        hexadecimal(Sha256::new_with_prefix(serde_json::to_string(&value["content"]).unwrap()))
    };
    assert_eq!(value["digest"], digest(&value), "the digest is that of the program");
    change(&mut value["content"]);
    value["digest"] = digest(&value).into();
    value.to_string()
}

#[test]
fn a_changed_cell_is_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    let ten = Tau::new(10.0).unwrap();
    let of = |tau: Tau| -> Vec<Subject> {
        [1, 2].map(|seed| subject(tau, seed, folder.path().join(format!("{tau}-{seed}")))).into()
    };
    let subjects = Subjects {
        reference: of(Tau::INFINITE),
        leaky: vec![(ten, of(ten))],
        taus: vec![ten],
        stimuli: vec![Stimulus::Clean],
        presentations: 1,
        notes: Vec::new(),
    };
    let tables = || mechanism::tables(&subjects, &mut |_| true).unwrap();
    let expected = tables();
    type Change = fn(&mut Value);
    let cell: [Change; 4] = [
        |cell| cell["correct"] = Value::Object(Default::default()),
        |cell| cell["correct"].as_object_mut().unwrap().values_mut().for_each(|bits| *bits = "3:7".into()),
        |cell| cell["spikes"] = u64::MAX.into(),
        |cell| cell["synops"] = u64::MAX.into(),
    ];
    let response: [Change; 3] = [
        |counts| *counts = Value::Array(Vec::new()),
        |counts| counts[0] = vec![1u64].into(),
        |counts| counts[0][3] = u64::MAX.into(),
    ];
    for (file, changes) in [("inf_clean_1.json", &cell[..]), ("response_inf_1.json", &response)] {
        let path = folder.path().join("inf-1").join(file);
        let stored = fs::read_to_string(&path).unwrap();
        for (number, change) in changes.iter().enumerate() {
            fs::write(&path, forge(&stored, change)).unwrap();
            assert!(tables() == expected, "forgery {number} of {file} changed a table");
            assert_eq!(fs::read_to_string(&path).unwrap(), stored, "forgery {number} of {file}");
        }
        // A possible change cannot be noticed: a digest is not a signature.
        fs::write(&path, forge(&stored, |_| {})).unwrap();
        assert!(tables() == expected);
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

/// Writes a part of MNIST: images of one grey value, with labels 0 to 9 in turn.
fn write_idx(folder: &Path, name: &str, images: u8, grey: u8) {
    let header = |kind: u8, sizes: &[u32]| {
        let sizes = sizes.iter().flat_map(|size| size.to_be_bytes());
        [0, 0, 8, kind].into_iter().chain(sizes).collect::<Vec<u8>>()
    };
    let mut pixels = header(3, &[u32::from(images), 28, 28]);
    pixels.resize(pixels.len() + 28 * 28 * usize::from(images), grey);
    let labels = header(1, &[u32::from(images)]).into_iter().chain((0..images).map(|i| i % 10));
    fs::write(folder.join(format!("{name}-images-idx3-ubyte")), pixels).unwrap();
    fs::write(folder.join(format!("{name}-labels-idx1-ubyte")), labels.collect::<Vec<u8>>()).unwrap();
}

/// Runs of a publisher's data set are pinned to the files as well, test images included.
#[test]
fn other_test_images_of_a_published_data_set_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mnist = folder.path().join("mnist");
    fs::create_dir(&mnist).unwrap();
    write_idx(&mnist, "train", 20, 100);
    write_idx(&mnist, "t10k", 10, 100);
    let text = format!(
        "dataset = \"mnist\"\ndata_dir = {:?}\nnetwork = \"1x28x28-2C3-10o\"\n",
        folder.path().display().to_string()
    );
    let (config, run) = (config(folder.path(), &text), folder.path().join("run"));
    train::train(&config, &run, &train::Options::default(), &mut |_| Control::Continue).unwrap();
    write_idx(&mnist, "t10k", 10, 200);
    let resumed = train::resume(&run, &train::Options::default(), &mut |_| Control::Continue);
    let message = resumed.unwrap_err().to_string();
    assert!(message.contains("mnist is not the one") && message.contains("data_sha256"), "{message}");
    let message = tables(&run).unwrap_err();
    assert!(message.contains("mnist is not the one"), "{message}");
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
