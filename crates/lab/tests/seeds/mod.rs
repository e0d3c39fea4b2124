//! Small valid files for every fuzz target, made by the program's own writers where there is one.

use super::archive::cifar_archive;
use super::samples::{event_frames, event_lists, picture, recording};
use super::targets::files::members;
use super::targets::records::{FINGERPRINT, PASS_SIZE, pass_network};
use flate2::Compression;
use leaklab_engine::noise::{Noise, Scenario};
use leaklab_engine::{Architecture, Leak, Network, Tau};
use leaklab_lab::analysis::pass::{ActivityPass, Pass, SpectrumPass};
use leaklab_lab::data::Limits;
use leaklab_lab::exchange::{ExportOptions, export, nir, npz, safetensors};
use leaklab_record::checkpoint::{self, Checkpoint, Header, Position, Tensor};
use leaklab_record::health::{self, Notice, Trouble};
use leaklab_record::machine::{self, Trainer};
use leaklab_record::metrics::{self, Epoch, LayerEpoch};
use leaklab_record::tables::{PlanRow, RobustnessRow};
use leaklab_record::{LayerKind, Machine, Role, Rows, events};
use std::io::Write;

/// Target, name and bytes of every seed.
pub fn all() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let mut seeds = texts();
    seeds.extend(records());
    seeds.extend(data());
    seeds.extend(weights());
    seeds
}

type Seed = (&'static str, &'static str, Vec<u8>);

fn texts() -> Vec<Seed> {
    let run = "dataset = \"digits\"\ntau = 30.0\nseed = 1\nnetwork = \"1x8x8-4C3-2P-16FC-10o\"\nepochs = 4\n\
               schedule.after = [2]\nlayer_tau.conv1 = 5\nreadout_tau = inf\nnoise = [\"gaussian/pixel\"]\n\
               dropout = 0.2\noptimiser = \"adam\"\n";
    let study = "name = \"own\"\ndataset = \"digits\"\nseeds = [1, 2]\nbaseline = \"none\"\n\n[severity]\n\
                 \"gaussian/pixel\" = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]\n\n[[condition]]\n\
                 name = \"none\"\ntau = inf\n\n[[condition]]\nname = \"some\"\ntau = 30\nseeds = [3]\n";
    vec![
        ("notation", "small", b"1x8x8-4C3-2P-16FC-10o".to_vec()),
        ("notation", "paper", b"32x32-64C3-64C3-2P-128C3-128C3-2s-1024FC-10o".to_vec()),
        ("settings", "run.toml", run.as_bytes().to_vec()),
        ("settings", "study.toml", study.as_bytes().to_vec()),
        ("settings", "sweep.toml", b"dataset = \"digits\"\ntau = [10, 30, inf]\nseed = 7\n".to_vec()),
    ]
}

fn records() -> Vec<Seed> {
    let position = Position { seed: 7, epoch: 3, best_epoch: 2, best_accuracy: 0.75, ..Position::default() };
    let tensor = |name: &str, shape: &[usize]| Tensor {
        name: name.to_owned(),
        shape: shape.to_vec(),
        values: (0..shape.iter().product()).map(|i| i as f32 * 0.5).collect(),
    };
    let checkpoint = Checkpoint {
        header: Header {
            format: checkpoint::FORMAT,
            checksum: String::new(),
            position,
            settings: [("tau".to_owned(), "30".to_owned())].into(),
            data: "0123".to_owned(),
        },
        tensors: vec![tensor("conv1", &[1, 1, 3, 3]), tensor("fc1", &[2, 2]), tensor("optimiser.v", &[2])],
    };
    let lines: Vec<String> =
        (1..=2).map(|number| serde_json::to_string(&epoch(number)).unwrap() + "\n").collect();
    let notice = Notice {
        format: health::FORMAT,
        epoch: 1,
        kind: Trouble::Silent,
        layers: vec!["conv1".to_owned()],
        message: "conv1 is silent".to_owned(),
        advice: "try a lower v_th".to_owned(),
    };
    let machine = Machine {
        version: "0.2.0".to_owned(),
        commit: Some("0123456789abcdef".to_owned()),
        cpu: "a processor".to_owned(),
        isa: "portable".to_owned(),
        system: "linux x86_64".to_owned(),
    };
    let trainer = Trainer { format: machine::FORMAT, after_epoch: 3, machine };
    // Of no machine, so that the corpus does not depend on the one that writes it.
    let lock = serde_json::json!({
        "token": "0123456789abcdef",
        "host": "node7",
        "pid": 42,
        "boot": "a boot",
        "namespace": "pid:[1]",
        "started": 98765,
    });
    let lock = format!("{lock}\n");
    let mut robustness = Rows::new("Accuracy against severity of noise", "Accuracy and SSE.");
    robustness.note("A note.");
    robustness.rows.push(RobustnessRow {
        noise: Noise::Gaussian,
        scenario: Scenario::Pixel,
        severity: 5,
        level: 0.1,
        images: 3,
        presentations: 1,
        correct: 2,
        accuracy: 2.0 / 3.0,
        accuracy_low: 0.2,
        accuracy_high: 0.9,
        sse: None,
    });
    let mut plan = Rows::new("The runs of this study", "Each condition with each of its seeds.");
    plan.rows.push(PlanRow {
        run: "=HYPERLINK(\"x\")".to_owned(),
        condition: "a, \"b\"\nc".to_owned(),
        seed: 1,
        epochs: 4,
        tau: Some(Tau::INFINITE),
        role: Role::Baseline,
    });
    vec![
        ("checkpoint", "small", checkpoint.to_bytes()),
        ("metrics", "two-epochs", lines.concat().into_bytes()),
        ("health", "a-notice", (serde_json::to_string(&notice).unwrap() + "\n").into_bytes()),
        ("machines", "a-machine", (serde_json::to_string(&trainer).unwrap() + "\n").into_bytes()),
        ("tensorboard", "two-steps", tensorboard()),
        ("lock", "a-process", lock.into_bytes()),
        ("passes", "clean", pass().to_text(FINGERPRINT.to_owned()).into_bytes()),
        ("tables", "robustness", robustness.table().to_json().into_bytes()),
        ("tables", "plan", plan.table().to_json().into_bytes()),
    ]
}

/// A TensorBoard file with two steps, at the time 0.
fn tensorboard() -> Vec<u8> {
    let wall_time = [&[9][..], &0f64.to_le_bytes()].concat();
    let version = [&wall_time[..], &[16, 0, 26, 13], b"brain.Event:2"].concat();
    let value = [&[10, 1, b'x', 21][..], &0.5f32.to_le_bytes()].concat();
    let step = |step: u8| [&wall_time[..], &[16, step, 42, 10, 10, 8], &value].concat();
    [version, step(1), step(2)].iter().flat_map(|data| events::frame(data)).collect()
}

fn epoch(number: u64) -> Epoch {
    Epoch {
        format: metrics::FORMAT,
        epoch: number,
        learning_rate: 0.7,
        train_accuracy: 0.5,
        train_sse: Some(0.9),
        train_accuracy_evaluated: None,
        train_sse_evaluated: None,
        test_accuracy: Some(0.4),
        test_sse: Some(1.0),
        spike_rate: Some(0.1),
        synops: Some(1000.0),
        layers: vec![LayerEpoch {
            name: "conv1".to_owned(),
            kind: LayerKind::Conv,
            spike_rate: Some(0.1),
            synops: Some(500.0),
            weighted_input_norm: Some(1.5),
        }],
        seconds: 0.5,
        images_per_second: 320.0,
    }
}

/// A pass over three images of the network with three hidden layers.
fn pass() -> Pass {
    let (images, steps) = PASS_SIZE;
    let (hidden, bins) = (pass_network().architecture.hidden().len(), steps / 2);
    Pass {
        stimulus: "clean".to_owned(),
        presentation: 1,
        correct: [true, false, true].into_iter().collect(),
        sse: Some(0.9),
        spectrum: Some(SpectrumPass {
            critical: [const { Some(0.25) }; 3].map(|x| vec![x; images]),
            zero_share: vec![Some(0.5); images],
            input_power: vec![1.0; bins],
            input_amplitude: vec![0.5; images],
            hidden_power: vec![vec![0.1; bins]; hidden],
        }),
        activity: Some(ActivityPass {
            spikes: vec![5; hidden],
            dead: vec![1; hidden],
            saturated: vec![0; hidden],
            synops: vec![40; hidden],
            norms: vec![Some(1.5); hidden],
            image_spikes: vec![4; images],
            image_synops: vec![30; images],
            neuron_updates: 12,
            effective_acs: 90,
            effective_macs: 0,
        }),
    }
}

fn data() -> Vec<Seed> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let images = [words(&[0x803, 2, 4, 4]), (0..32).collect()].concat();
    let labels = [words(&[0x801, 12]), (0..12).map(|i| i % 10).collect()].concat();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&images).unwrap();
    vec![
        ("idx", "images", images),
        ("idx", "images.gz", encoder.finish().unwrap()),
        ("idx", "labels", labels),
        ("cifar", "labels-and-pixels", vec![7, 128, 0, 255, 9, 0]),
        ("matlab", "svhn.mat", include_bytes!("../fixtures/svhn-compressed.mat").to_vec()),
        ("matlab", "doubles.mat", doubles()),
        ("tar", "cifar.tar.gz", archive()),
        ("nmnist", "recording.bin", recording(12)),
        ("image", "small.png", picture(8, image::ImageFormat::Png)),
        ("image", "small.jpg", picture(8, image::ImageFormat::Jpeg)),
        ("images", "digits", members(&digits())),
        ("events", "lists", members(&event_lists())),
        ("events", "frames", members(&event_frames())),
    ]
}

/// Two digits to train with and one to test with, as an archive of arrays.
fn digits() -> Vec<u8> {
    let limits = Limits { train: Some(2), test: Some(1), ..Limits::NONE };
    let data = leaklab_lab::data::load("digits", None, &limits).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    leaklab_lab::data::npz::save(&data, &path).unwrap();
    std::fs::read(path).unwrap()
}

/// A MATLAB file with one array of three doubles.
fn doubles() -> Vec<u8> {
    let mut bytes = vec![b' '; 124];
    bytes.extend([0, 1, b'I', b'M']);
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    bytes.extend(words(&[14, 72, 6, 8, 6, 0, 5, 8, 1, 3, 1 | 1 << 16, u32::from(b'y'), 9, 24]));
    [1.0f64, 2.5, 10.0].iter().for_each(|x| bytes.extend(x.to_le_bytes()));
    bytes
}

/// A small `cifar-10-binary.tar.gz`: one record in each of its files.
fn archive() -> Vec<u8> {
    cifar_archive(Compression::best(), |number| {
        let mut record = vec![128; 3073];
        record[0] = number as u8;
        record
    })
}

fn weights() -> Vec<Seed> {
    let network = Architecture::parse("1x4x4-1C3-2P-2o").unwrap();
    let network = Network::initialised(network, Leak::uniform(Tau::INFINITE), 1.0, 1).unwrap();
    let graph = export(&network, &ExportOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let arrays: [(&str, &[usize], &[f32]); 2] = [("conv1", &[1, 2], &[1.0, -2.5]), ("fc1", &[1], &[0.5])];
    npz::write(&path("x.npz"), &arrays).unwrap();
    let metadata = safetensors::Metadata::from([("tau".into(), "30".into())]);
    safetensors::write(&path("x.safetensors"), &arrays, &metadata).unwrap();
    let read = |name: &str| std::fs::read(path(name)).unwrap();
    let header = "{'descr': '>f8', 'fortran_order': True, 'shape': (2, 1), }";
    let mut array = [&b"\x93NUMPY\x01\0"[..], &[header.len() as u8, 0], header.as_bytes()].concat();
    [1.0f64, 2.0].iter().for_each(|x| array.extend(x.to_be_bytes()));
    vec![
        ("nir", "small.nir", nir::to_bytes(&graph).unwrap()),
        ("npz", "fortran.npy", array),
        ("safetensors", "small", read("x.safetensors")),
        ("zip", "stored.npz", read("x.npz")),
        ("zip", "compressed.npz", include_bytes!("../../src/exchange/testdata/compressed.npz").to_vec()),
    ]
}
