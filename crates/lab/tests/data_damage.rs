//! Damaged files: 30,000 mutations of good ones through every reader, in a process that may use little
//! memory.
//!
//! An error is fine, and so is success where the damage hit only pixels; a panic or a huge allocation is not.

mod support;

use leaklab_engine::Shape;
use leaklab_engine::philox::{Purpose, Stream};
use leaklab_lab::data::{
    Binning, Flaw, Limits, cifar10, event_file, idx, image_folder, load, nmnist, npy, svhn,
    zip::{self, Archive},
};
use std::io::{Cursor, Write};
use support::mutate;

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

fn picture(format: image::ImageFormat) -> Vec<u8> {
    let image =
        image::RgbImage::from_fn(24, 18, |x, y| image::Rgb([x as u8 * 9, y as u8 * 11, (x * y) as u8]));
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn recording() -> Vec<u8> {
    (0..400u32)
        .flat_map(|i| {
            let [_, high, middle, low] = (700 * i).to_be_bytes();
            [(i % 34) as u8, (i / 12) as u8, high | if i % 3 == 0 { 0x80 } else { 0 }, middle, low]
        })
        .collect()
}

/// An archive of arrays of 32-bit numbers.
fn archive(arrays: &[(String, Vec<usize>, Vec<i32>)]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    let plain = arrays.iter().map(|(name, shape, values)| {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        (name.as_str(), "<i4", shape.clone(), bytes)
    });
    npy::write(&path, plain.collect()).unwrap();
    std::fs::read(path).unwrap()
}

fn event_lists() -> Vec<u8> {
    let mut arrays = Vec::new();
    for part in ["train", "test"] {
        let row = |name: &str, values: Vec<i32>| (format!("{part}_{name}"), vec![values.len()], values);
        arrays.push(row("t", (0..60).map(|i| i % 20 * 50).collect()));
        arrays.push(row("x", (0..60).map(|i| i % 8).collect()));
        arrays.push(row("y", (0..60).map(|i| i % 6).collect()));
        arrays.push(row("p", (0..60).map(|i| i % 2).collect()));
        arrays.push(row("offsets", vec![0, 20, 40, 60]));
        arrays.push(row("labels", vec![0, 1, 0]));
    }
    archive(&arrays)
}

fn event_frames() -> Vec<u8> {
    let mut arrays = Vec::new();
    for part in ["train", "test"] {
        let frames = (0..2 * 3 * 2 * 2 * 2).map(|i| i % 2).collect();
        arrays.push((format!("{part}_events"), vec![2, 3, 2, 2, 2], frames));
        arrays.push((format!("{part}_labels"), vec![2], vec![0, 1]));
    }
    archive(&arrays)
}

/// The files of an archive one after the other, each behind its length: damage to these passes every checksum
/// and reaches the arrays themselves.
fn bare(archive: &[u8]) -> Vec<u8> {
    let mut opened = Archive::open(Cursor::new(archive)).unwrap();
    let mut bytes = Vec::new();
    for entry in opened.entries.clone() {
        let data = opened.read(&entry, &mut zip::generous()).unwrap();
        for part in [entry.name.as_bytes(), &data] {
            bytes.extend((part.len() as u16).to_le_bytes());
            bytes.extend(part);
        }
    }
    bytes
}

/// Packs what [`bare`] laid out and reads it as events.
fn read_bare(bytes: &[u8]) -> Result<(), Flaw> {
    let (mut parts, mut rest) = (Vec::new(), bytes);
    while rest.len() >= 2 && parts.len() < 40 {
        let length = usize::from(u16::from_le_bytes([rest[0], rest[1]])).min(rest.len() - 2);
        parts.push(rest[2..2 + length].to_vec());
        rest = &rest[2 + length..];
    }
    let files =
        parts.chunks_exact(2).map(|pair| (String::from_utf8_lossy(&pair[0]).into_owned(), pair[1].clone()));
    let packed = zip::pack(&files.collect::<Vec<_>>()).map_err(|reason| Flaw::new(0, reason))?;
    event_file::read(Cursor::new(&packed), packed.len() as u64, &BINNING).map(drop)
}

type Reader = fn(&[u8]) -> Result<(), Flaw>;

/// Every reader with a good file.
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
        ("png", picture(image::ImageFormat::Png), |b| image_folder::parse(b, COLOUR).map(drop)),
        ("jpeg", picture(image::ImageFormat::Jpeg), |b| image_folder::parse(b, COLOUR).map(drop)),
        ("n-mnist", recording(), |b| nmnist::parse(b, SENSOR).map(drop)),
        ("events npz", event_lists(), |b| {
            event_file::read(Cursor::new(b), b.len() as u64, &BINNING).map(drop)
        }),
        ("event lists", bare(&event_lists()), read_bare),
        ("event frames", bare(&event_frames()), read_bare),
    ]
}

/// What the next test runs in a process of its own.
#[test]
#[ignore = "run by mutated_files_give_errors in a process of little memory"]
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
        assert!(errors > MUTATIONS / 4, "{name}: only {errors} errors, the mutations are too tame");
        for empty in [&[][..], &[0], &good[..1]] {
            assert!(read(empty).is_err(), "{name}");
        }
    }
}

#[test]
fn mutated_files_give_errors() {
    let program = std::env::current_exe().unwrap();
    // Half a gigabyte of addresses: a length that is believed ends the process.
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

/// Through the files: the message names the file and the offset.
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
        message("cifar10").contains("train.bin, offset 3073: a record of 1927 bytes"),
        "{}",
        message("cifar10")
    );
    std::fs::write(at("train.bin"), []).unwrap();
    assert!(message("svhn").contains("train.bin, offset 0: an empty file"), "{}", message("svhn"));

    for part in ["train", "t10k"] {
        std::fs::write(at(&format!("{part}-images-idx3-ubyte.gz")), gzip(&idx_images(4))).unwrap();
        std::fs::write(at(&format!("{part}-labels-idx1-ubyte")), idx_labels(4)).unwrap();
    }
    assert_eq!(load("mnist", Some(folder.path()), &Limits::NONE).unwrap().train.labels, [0, 1, 2, 3]);
    std::fs::write(at("t10k-labels-idx1-ubyte"), idx_labels(5)).unwrap();
    assert!(message("mnist").contains("t10k-labels-idx1-ubyte, offset 4: 5 labels"), "{}", message("mnist"));
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

/// Recordings, too: in folders, in archives and in arrays.
#[test]
fn damaged_recordings_are_named_and_placed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let message = |name: &str| load(name, Some(folder.path()), &Limits::NONE).unwrap_err().to_string();
    for part in ["Train", "Test"] {
        std::fs::create_dir_all(at(part).join("3")).unwrap();
        std::fs::write(at(part).join("3/00001.bin"), recording()).unwrap();
    }
    assert_eq!(load("n-mnist", Some(folder.path()), &Limits::NONE).unwrap().train.labels, [3]);
    let mut bad = recording();
    bad[50] = 34;
    std::fs::write(at("Train/3/00001.bin"), &bad).unwrap();
    assert!(
        message("n-mnist").contains("00001.bin, offset 50: event 10 is at (34,"),
        "{}",
        message("n-mnist")
    );
    std::fs::remove_dir_all(at("Train")).unwrap();
    let files = [("Train/3/00002.bin".to_owned(), recording()), ("Train/4/00001.bin".to_owned(), bad)];
    std::fs::write(at("Train.zip"), zip::pack(&files).unwrap()).unwrap();
    let said = message("n-mnist");
    assert!(said.contains("Train.zip, offset ") && said.contains("'Train/4/00001.bin', offset 50"), "{said}");

    // An archive that declares 2^31 events, and has none of them.
    let mut arrays = bare(&event_lists());
    let place = arrays.windows(4).position(|w| w == b"(60,").unwrap();
    arrays.splice(place..place + 3, *b"(2147483648");
    assert!(read_bare(&arrays).unwrap_err().reason.contains("array 'train_t'"), "{:?}", read_bare(&arrays));
    std::fs::write(at("data.npz"), &event_lists()[..700]).unwrap();
    let said = message("events");
    assert!(said.contains("data.npz, offset 700: it has no zip directory"), "{said}");
}

/// Each byte that a compressed file claims to hold is refused past what a data set can have.
#[test]
fn a_bomb_is_defused() {
    // 100 MB of zeros in 100 kB, where a data set has 78 MB at most.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..100 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let flaw = idx::decompress(encoder.finish().unwrap()).unwrap_err();
    assert!(flaw.reason.contains("unpacks to more than 78 MB"), "{flaw:?}");
}
