//! Recordings of an event camera from file to analysis.

use leaklab_engine::encode::Encoding;
use leaklab_engine::noise::{HIGHEST_SEVERITY, Noise, NoiseSetting, Scenario, Severities};
use leaklab_engine::{Input, Shape};
use leaklab_lab::analysis::{self, Analysis, mechanism};
use leaklab_lab::config::{RunConfig, Settings};
use leaklab_lab::data::present::Scratch;
use leaklab_lab::data::{Binning, Dataset, Limits, Normaliser, Presentation, load, load_complete, zip};
use leaklab_lab::train::{self, Control, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The real recordings, if they are available.
fn real() -> Option<PathBuf> {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/n-mnist-small.tar.xz");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("n-mnist-real");
    if !folder.join("n-mnist/Test").is_dir() {
        if !packed.is_file() {
            println!("SKIPPED: no N-MNIST recordings next to the project");
            return None;
        }
        std::fs::create_dir_all(&folder).unwrap();
        let tar = std::process::Command::new("tar").arg("xJf").arg(&packed).arg("-C").arg(&folder).status();
        if !tar.is_ok_and(|status| status.success()) {
            println!("SKIPPED: tar cannot unpack the N-MNIST recordings");
            return None;
        }
    }
    Some(folder)
}

/// Reads every event of every file, independently of the loader: number of events, and sums of x, y, polarity
/// and time.
fn sums(folder: &Path) -> [u64; 5] {
    let mut sums = [0; 5];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let inner = self::sums(&path);
            sums.iter_mut().zip(inner).for_each(|(a, b)| *a += b);
            continue;
        }
        for event in std::fs::read(path).unwrap().chunks(5) {
            let word = u64::from(event[2]) << 16 | u64::from(event[3]) << 8 | u64::from(event[4]);
            let values = [1, u64::from(event[0]), u64::from(event[1]), word >> 23, word & 0x7f_ffff];
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    }
    sums
}

/// The same sums over the loaded recordings, in which events of one pixel and polarity in one step are a
/// single spike.
fn loaded(data: &Dataset) -> [[u64; 5]; 2] {
    let Shape { width, .. } = data.shape;
    [&data.train, &data.test].map(|split| {
        let recordings = split.recordings().unwrap();
        let mut sums = [recordings.events(), 0, 0, 0, 0];
        for index in 0..recordings.len() {
            for (step, neuron) in recordings.recording(index) {
                let (polarity, pixel) = (neuron / data.shape.pixels(), neuron % data.shape.pixels());
                let values = [0, pixel % width, pixel / width, polarity, step];
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value as u64);
            }
        }
        sums
    })
}

#[test]
fn every_event_of_n_mnist_is_read() {
    let Some(folder) = real() else { return };
    // The recordings end before 65535 steps of 6 us; times are compared to within a step.
    let at = |binning: Binning| load_complete("n-mnist", Some(&folder), &binning).unwrap();
    let data = at(Binning { time_steps: 60_000, step_us: Some(6), downsample: 1 });
    assert_eq!((data.train.len(), data.test.len()), (1000, 100));
    for (part, found) in ["Train", "Test"].iter().zip(loaded(&data)) {
        let expected = sums(&folder.join("n-mnist").join(part));
        assert_eq!(found[0], expected[0], "{part}: events");
        // Two events of a pixel and polarity within 6 us are one spike, which is rare.
        let spikes =
            if *part == "Train" { &data.train } else { &data.test }.recordings().unwrap().spikes() as u64;
        assert!(expected[0] - spikes < expected[0] / 1000, "{part}: {spikes} of {}", expected[0]);
        for (i, name) in ["x", "y", "polarity"].into_iter().enumerate() {
            let largest = [33, 33, 1][i] * (expected[0] - spikes);
            assert!((0..=largest).contains(&(expected[i + 1] - found[i + 1])), "{part}: sum of {name}");
        }
        let (least, most) = (6 * found[4], 6 * found[4] + 5 * spikes);
        let lost = 360_000 * (expected[0] - spikes);
        assert!((least..=most + lost).contains(&expected[4]), "{part}: sum of times");
    }
    // Memory at T = 100, compared with dense floats and bits.
    let data = at(Binning { time_steps: 100, ..Binning::default() });
    let train = data.train.recordings().unwrap();
    let dense = 1000 * 100 * data.shape.neurons();
    println!(
        "1,000 recordings at T = 100: {} bytes; dense floats {}, bits {}",
        train.bytes(),
        4 * dense,
        dense / 8
    );
    assert!(train.bytes() < 4 * dense / 40 && train.bytes() < dense / 8);
}

#[test]
fn folders_and_archives_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let event = |i: u8| [i % 34, i / 8, if i.is_multiple_of(2) { 0x80 } else { 0 }, i, 7];
    for part in ["Train", "Test"] {
        let mut files = Vec::new();
        for (digit, name) in [(7, "b"), (2, "a"), (7, "a")] {
            let bytes: Vec<u8> = (0..50 + digit).flat_map(event).collect();
            let path = folder.path().join("folders").join(part).join(digit.to_string());
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join(format!("{name}.bin")), &bytes).unwrap();
            files.push((format!("{part}/{digit}/{name}.bin"), bytes));
        }
        std::fs::create_dir_all(folder.path().join("zips")).unwrap();
        std::fs::write(folder.path().join("zips").join(format!("{part}.zip")), zip::pack(&files).unwrap())
            .unwrap();
    }
    let read = |name: &str| load("n-mnist", Some(&folder.path().join(name)), &Limits::NONE).unwrap();
    assert_eq!(read("folders").train.labels, [2, 7, 7]);
    assert_eq!(read("folders").digest(), read("zips").digest());
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    for assignment in [
        "dataset=digits-events",
        "tau=30",
        "time_steps=20",
        "network=2x16x16-8C3-2P-32FC-10o",
        "train_limit=200",
        "test_limit=40",
        "epochs=2",
        "evaluate_train_images=0",
        "augment.shift=1",
    ] {
        settings.assign(assignment).unwrap();
    }
    settings
}

#[test]
fn a_run_of_recordings_is_trained_and_measured() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let config = RunConfig::resolve(settings()).unwrap();
    let summary = train::train(&config, &out, &Options::default(), &mut |_| Control::Continue).unwrap();
    assert!(summary.last.unwrap().test_accuracy.unwrap() > 0.2);
    let text = std::fs::read_to_string(out.join("run.toml")).unwrap();
    assert!(
        text.contains("downsample = 1") && !text.contains("encoder") && !text.contains("normalise"),
        "{text}"
    );
    let pool = Arc::new(train::threads(Some(2)).unwrap());
    let options = analysis::Options { images: Some(20), ..analysis::Options::as_trained(pool) };
    let tables = analysis::analyse(&out, &Analysis::ALL, &options, &mut |_| true).unwrap();
    let rows = |name: &str| tables.iter().find(|table| table.name == name).unwrap().rows.len();
    assert_eq!(rows("robustness"), 5 * (1 + HIGHEST_SEVERITY));
    assert!(rows("raster") > 100 && rows("example_image") == 512 && rows("input_spectrum") == 20);
    // The mechanism analysis, without what only the encoder can make.
    let tables = mechanism::run(&out, &options, &mut |_| true).unwrap();
    let rows = |name: &str| tables.iter().find(|table| table.name == name).unwrap().rows.len();
    assert!(rows("why_cells") > 0);
    assert_eq!((rows("why_colours"), rows("why_response")), (0, 0));
}

#[test]
fn what_recordings_cannot_have_is_refused() {
    let refused = |assignment: &str| {
        let mut settings = settings();
        settings.assign(assignment).unwrap();
        RunConfig::resolve(settings).unwrap_err().to_string()
    };
    assert!(refused("encoder=signed").contains("omit it"), "{}", refused("encoder=signed"));
    let noise = refused("noise=[\"gaussian/pixel\"]");
    assert!(noise.contains("use one of deletion, jitter, background, hot-pixel, polarity-flip"), "{noise}");
    let mut images = Settings::default();
    for assignment in ["dataset=digits", "tau=30", "step_us=1000"] {
        images.assign(assignment).unwrap();
    }
    let message = RunConfig::resolve(images).unwrap_err().to_string();
    assert!(message.contains("step_us") && message.contains("recordings of events"), "{message}");
}

/// The noises of a sensor, counted on recordings.
#[test]
fn sensor_noises_have_their_level() {
    let data = load("digits-events", None, &Limits { test: Some(30), ..Limits::NONE }).unwrap();
    let clean = Presentation::new(&data, Normaliser::PER_IMAGE, Encoding::clean(100), 3);
    let show = |presentation: &Presentation, index: usize| {
        let mut input = Input::silent(data.shape, 100);
        presentation.show(&data.test, index, 0, &mut Scratch::default(), &mut input);
        let Input::Ternary { spikes, .. } = input else { panic!("recordings are spikes") };
        spikes
    };
    let noisy = |noise: Noise, level: f32| {
        clean.clone().noisy(Some(NoiseSetting::new(noise, Scenario::Channel, level).unwrap())).unwrap()
    };
    let count =
        |presentation: &Presentation| (0..30).map(|i| show(presentation, i).count()).sum::<u64>() as f64;
    let (before, sites) = (count(&clean), (30 * 100 * data.shape.neurons()) as f64);
    // Five standard deviations of binomial counts.
    let near = |found: f64, n: f64, p: f64| (found - n * p).abs() < 5.0 * (n * p * (1.0 - p)).sqrt();
    assert!(near(count(&noisy(Noise::Background, 0.02)) - before, sites - before, 0.02));
    assert!(near(before - count(&noisy(Noise::Deletion, 0.3)), before, 0.3));
    let flipped = noisy(Noise::PolarityFlip, 0.25);
    let moved: u64 = (0..30)
        .map(|i| {
            let (a, b) = (show(&clean, i), show(&flipped, i));
            let places = (0..256).flat_map(|pixel| (0..100).map(move |step| (pixel, step)));
            places.filter(|&(pixel, step)| a.at(pixel, step) != b.at(pixel, step)).count() as u64
        })
        .sum();
    // Pixels with both polarities in a step, where a single flip merges two spikes, are rare.
    assert!((moved as f64 / before - 0.25).abs() < 0.02, "{moved} of {before}");
    let hot = show(&noisy(Noise::HotPixel, 0.1), 0);
    let always = |pixel: usize, channel: usize| (0..100).all(|step| hot.get(pixel, step, channel));
    let pixels: Vec<bool> = (0..256).map(|pixel| always(pixel, 0) || always(pixel, 1)).collect();
    assert!(near(pixels.iter().filter(|&&hot| hot).count() as f64, 256.0, 0.1));
    let jittered = count(&noisy(Noise::Jitter, 1.0));
    assert!(jittered <= before && jittered > 0.9 * before, "{jittered} of {before}");
    for noise in [Noise::Background, Noise::HotPixel, Noise::PolarityFlip] {
        let levels = Severities::default().levels(noise, Scenario::Channel).unwrap();
        assert_ne!(show(&noisy(noise, levels[7]), 0), show(&clean, 0));
        assert_eq!(show(&noisy(noise, 0.0), 0), show(&clean, 0));
    }
}
