//! Damaged files: 30,000 mutations of valid ones, over all readers, in a process with little memory.
//!
//! An error is correct, and so is success if only pixels are damaged; a panic or a huge allocation is not.

mod samples;
mod support;
#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use leaklab_engine::Shape;
use leaklab_engine::philox::{Purpose, Stream};
use leaklab_lab::data::{
    Binning, Flaw, Limits, cifar10, event_file, idx, image_folder, load, nmnist, svhn, zip,
};
use samples::{event_frames, event_lists, event_lists_until, picture, recording};
use std::io::{Cursor, Write};
use support::mutate;
use targets::files::{members, pack};

const GREY: Shape = Shape { channels: 1, height: 28, width: 28 };
const COLOUR: Shape = Shape { channels: 3, height: 32, width: 32 };
const SENSOR: Shape = Shape { channels: 2, height: 34, width: 34 };
const BINNING: Binning = Binning { time_steps: 10, step_us: None, downsample: 1 };
const MUTATIONS: usize = 2500;

fn records() -> Vec<u8> {
    (0..3 * 3073).map(|i| if i % 3073 == 0 { 7 } else { (i % 256) as u8 }).collect()
}

fn idx_images(count: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> = [0x803, count, 28, 28].iter().flat_map(|x: &u32| x.to_be_bytes()).collect();
    bytes.extend((0..count * 784).map(|i| (i % 199) as u8));
    bytes
}

fn idx_labels(count: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> = [0x801, count].iter().flat_map(|x: &u32| x.to_be_bytes()).collect();
    bytes.extend((0..count).map(|i| (i % 10) as u8));
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Reads what [`members`] laid out as events.
fn read_members(bytes: &[u8]) -> Result<(), Flaw> {
    let packed = pack(bytes).map_err(|reason| Flaw::new(0, reason))?;
    event_file::read(Cursor::new(&packed), packed.len() as u64, &BINNING).map(drop)
}

type Reader = fn(&[u8]) -> Result<(), Flaw>;

/// Every reader with a valid file.
fn readers() -> Vec<(&'static str, Vec<u8>, Reader)> {
    let unzipped = |bytes: &[u8]| idx::parse_images(&idx::decompress(bytes.to_vec())?, GREY).map(drop);
    vec![
        ("cifar10", records(), |b| cifar10::parse(b, &mut Vec::new(), &mut Vec::new())),
        ("idx images", idx_images(3), |b| idx::parse_images(b, GREY).map(drop)),
        ("idx labels", idx_labels(60), |b| idx::parse_labels(b, 10).map(drop)),
        ("idx gzip", gzip(&idx_images(3)), unzipped),
        ("svhn compressed", include_bytes!("fixtures/svhn-compressed.mat").to_vec(), |b| {
            svhn::parse(b).map(drop)
        }),
        ("svhn plain", include_bytes!("fixtures/svhn-plain.mat").to_vec(), |b| svhn::parse(b).map(drop)),
        ("png", picture(24, image::ImageFormat::Png), |b| image_folder::parse(b, COLOUR).map(drop)),
        ("jpeg", picture(24, image::ImageFormat::Jpeg), |b| image_folder::parse(b, COLOUR).map(drop)),
        ("n-mnist", recording(400), |b| nmnist::parse(b, SENSOR).map(drop)),
        ("events npz", event_lists(), |b| {
            event_file::read(Cursor::new(b), b.len() as u64, &BINNING).map(drop)
        }),
        ("event lists", members(&event_lists()), read_members),
        ("event frames", members(&event_frames()), read_members),
    ]
}

/// Events that belong to no recording would be lost unnoticed.
#[test]
fn events_after_the_last_offset_are_refused() {
    let read = |last| {
        let file = event_lists_until(last);
        event_file::read(Cursor::new(&file), file.len() as u64, &BINNING).map(drop)
    };
    read(60).unwrap();
    let flaw = read(55).unwrap_err();
    assert!(flaw.reason.contains("last element is 55; 60, the number of events"), "{flaw:?}");
}

/// The next test runs this in a separate process.
#[test]
#[ignore = "run by mutated_files_give_errors in a process with little memory"]
fn mutated_files_in_little_memory() {
    for (number, (name, good, read)) in readers().into_iter().enumerate() {
        read(&good).unwrap_or_else(|flaw| panic!("{name}: {flaw:?}"));
        let mut errors = 0;
        for i in 0..MUTATIONS {
            let bad = mutate(&good, Stream::new(17, Purpose::Benchmark, number as u32, i as u32));
            if let Err(flaw) = read(&bad) {
                assert!(flaw.reason.len() > 10, "{name}: {flaw:?}");
                assert!(flaw.offset <= 16 * bad.len() as u64 + 100_000, "{name}: {flaw:?}");
                errors += 1;
            }
        }
        println!("{name}: {errors} errors in {MUTATIONS} mutated files");
        assert!(errors > MUTATIONS / 4, "{name}: only {errors} errors, the mutations are too weak");
        for empty in [&[][..], &[0], &good[..1]] {
            assert!(read(empty).is_err(), "{name}");
        }
    }
}

#[test]
fn mutated_files_give_errors() {
    let program = std::env::current_exe().unwrap();
    // With half a gigabyte of address space, a reader that trusts a huge length ends the process.
    let script = if cfg!(unix) { "ulimit -v 524288 && exec \"$0\" \"$@\"" } else { "exec \"$0\" \"$@\"" };
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(program)
        .args(["--ignored", "--exact", "mutated_files_in_little_memory", "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches("mutated files").count(), 12, "{text}");
}

/// If data are loaded from files, the message names the file and the offset.
#[test]
fn messages_name_the_file_and_the_offset() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let message = |name: &str| load(name, Some(folder.path()), &Limits::NONE).unwrap_err().to_string();

    let mut bad = records();
    bad[3073] = 10;
    std::fs::write(at("train.bin"), &bad).unwrap();
    std::fs::write(at("test.bin"), records()).unwrap();
    assert!(
        message("cifar10").contains("train.bin, offset 3073: label 10 of record 1"),
        "{}",
        message("cifar10")
    );
    std::fs::write(at("train.bin"), &records()[..5000]).unwrap();
    assert!(
        message("cifar10").contains("train.bin, offset 3073: the last record has 1927 bytes"),
        "{}",
        message("cifar10")
    );
    std::fs::write(at("train.bin"), []).unwrap();
    assert!(message("svhn").contains("train.bin, offset 0: the file is empty"), "{}", message("svhn"));

    for part in ["train", "t10k"] {
        std::fs::write(at(&format!("{part}-images-idx3-ubyte.gz")), gzip(&idx_images(4))).unwrap();
        std::fs::write(at(&format!("{part}-labels-idx1-ubyte")), idx_labels(4)).unwrap();
    }
    assert_eq!(load("mnist", Some(folder.path()), &Limits::NONE).unwrap().train.labels, [0, 1, 2, 3]);
    std::fs::write(at("t10k-labels-idx1-ubyte"), idx_labels(5)).unwrap();
    assert!(
        message("mnist").contains("t10k-labels-idx1-ubyte, offset 4: it has 5 labels"),
        "{}",
        message("mnist")
    );
    let mut bad = idx_labels(4);
    bad[10] = 200;
    std::fs::write(at("train-labels-idx1-ubyte"), bad).unwrap();
    assert!(
        message("mnist").contains("train-labels-idx1-ubyte, offset 10: label 200"),
        "{}",
        message("mnist")
    );
    let whole = gzip(&idx_images(4));
    std::fs::write(at("train-images-idx3-ubyte.gz"), &whole[..whole.len() - 9]).unwrap();
    assert!(message("mnist").contains("train-images-idx3-ubyte.gz, offset"), "{}", message("mnist"));

    let mut bad = include_bytes!("fixtures/svhn-plain.mat").to_vec();
    let last = bad.len() - 8;
    bad[last] = 11;
    std::fs::write(at("train_32x32.mat"), &bad).unwrap();
    std::fs::write(at("test_32x32.mat"), &bad).unwrap();
    assert!(message("svhn").contains("train_32x32.mat, offset"), "{}", message("svhn"));
}

/// The same for recordings, in folders, in archives and in arrays.
#[test]
fn damaged_recordings_are_named_and_placed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let message = |name: &str| load(name, Some(folder.path()), &Limits::NONE).unwrap_err().to_string();
    for part in ["Train", "Test"] {
        std::fs::create_dir_all(at(part).join("3")).unwrap();
        std::fs::write(at(part).join("3/00001.bin"), recording(400)).unwrap();
    }
    assert_eq!(load("n-mnist", Some(folder.path()), &Limits::NONE).unwrap().train.labels, [3]);
    let mut bad = recording(400);
    bad[50] = 34;
    std::fs::write(at("Train/3/00001.bin"), &bad).unwrap();
    assert!(
        message("n-mnist").contains("00001.bin, offset 50: event 10 is at (34,"),
        "{}",
        message("n-mnist")
    );
    std::fs::remove_dir_all(at("Train")).unwrap();
    let files = [("Train/3/00002.bin".to_owned(), recording(400)), ("Train/4/00001.bin".to_owned(), bad)];
    std::fs::write(at("Train.zip"), zip::pack(&files).unwrap()).unwrap();
    let text = message("n-mnist");
    assert!(text.contains("Train.zip, offset ") && text.contains("'Train/4/00001.bin', offset 50"), "{text}");

    // An archive that declares 2^31 events, and has none of them.
    let mut arrays = members(&event_lists());
    let place = arrays.windows(4).position(|w| w == b"(60,").unwrap();
    arrays.splice(place..place + 3, *b"(2147483648");
    assert!(
        read_members(&arrays).unwrap_err().reason.contains("array 'train_t'"),
        "{:?}",
        read_members(&arrays)
    );
    std::fs::write(at("data.npz"), &event_lists()[..700]).unwrap();
    let text = message("events");
    assert!(text.contains("data.npz, offset 700: it has no zip directory"), "{text}");
}

/// A compressed file that unpacks to more bytes than a data set can have is refused.
#[test]
fn a_compressed_bomb_is_refused() {
    // 100 MB of zeros in 100 kB, where a data set has 78 MB at most.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..100 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let flaw = idx::decompress(encoder.finish().unwrap()).unwrap_err();
    assert!(flaw.reason.contains("unpacks to more than 78 MB"), "{flaw:?}");
}
