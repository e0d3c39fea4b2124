//! Whole data sets through their readers.
//!
//! The complete sets are read from the folder `LEAKLAB_DATA`, excerpts of real data from `shared/data` next
//! to the project. Tests of missing data are skipped with a message.

mod support;

use leaklab_lab::data::{Dataset, Limits, TEST_SAMPLES, load, svhn, table, verify};
use std::path::{Path, PathBuf};

/// The complete data set, if `LEAKLAB_DATA` has it.
fn complete(name: &str) -> Option<Dataset> {
    let folder = std::env::var_os("LEAKLAB_DATA").map(PathBuf::from);
    let Some(folder) = folder else {
        support::report_skipped(&format!("complete {name}"), "LEAKLAB_DATA is not set");
        return None;
    };
    match load(name, Some(&folder), &Limits::NONE) {
        Ok(dataset) => Some(dataset),
        Err(leaklab_lab::data::DataError::Missing { .. }) => {
            support::report_skipped(&format!("complete {name}"), &format!("not in {}", folder.display()));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The folder of an excerpt of real data. If continuous integration has the folder `shared/data`, the test
/// must not be skipped.
fn excerpt(name: &str) -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = shared.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    let missing = format!("{} is not there", folder.display());
    if shared.is_dir() {
        support::skip(name, &missing)
    } else {
        support::report_skipped(name, &missing)
    }
    None
}

fn agrees_with_the_table(name: &str, dataset: &Dataset) {
    let info = table::find(name).unwrap();
    assert_eq!((dataset.train.len(), dataset.test.len()), (info.train, info.test));
    let digests = [verify::digest(&dataset.train), verify::digest(&dataset.test)];
    assert_eq!(digests, info.content, "{name}");
    assert_eq!((dataset.train.sample(3), dataset.test.sample(3)), (3, TEST_SAMPLES + 3));
}

fn near(found: &[f64], published: &[f64], tolerance: f64) {
    assert_eq!(found.len(), published.len());
    for (x, y) in found.iter().zip(published) {
        assert!((x - y).abs() < tolerance, "{found:?} {published:?}");
    }
}

#[test]
fn complete_cifar10_agrees_with_what_is_published() {
    let Some(cifar10) = complete("cifar10") else { return };
    assert_eq!(cifar10.train.class_counts(10), [5000; 10]);
    assert_eq!(cifar10.test.class_counts(10), [1000; 10]);
    near(&cifar10.train.channel_means(cifar10.shape), &[0.49139968, 0.48215841, 0.44653091], 5e-9);
    agrees_with_the_table("cifar10", &cifar10);
}

#[test]
fn complete_mnist_agrees_with_what_is_published() {
    let Some(mnist) = complete("mnist") else { return };
    let train = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949];
    assert_eq!(mnist.train.class_counts(10), train);
    assert_eq!(mnist.test.class_counts(10), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
    near(&mnist.train.channel_means(mnist.shape), &[0.1307], 5e-5);
    agrees_with_the_table("mnist", &mnist);
}

#[test]
fn complete_fashion_mnist_agrees_with_what_is_published() {
    let Some(fashion) = complete("fashion-mnist") else { return };
    assert_eq!(fashion.train.class_counts(10), [6000; 10]);
    assert_eq!(fashion.test.class_counts(10), [1000; 10]);
    near(&fashion.train.channel_means(fashion.shape), &[0.2860], 5e-5);
    agrees_with_the_table("fashion-mnist", &fashion);
}

/// The fixtures are made by scipy with `tools/svhn_fixture.py`.
#[test]
fn svhn_of_scipy_is_byte_equal() {
    let compressed = svhn::parse(include_bytes!("fixtures/svhn-compressed.mat")).unwrap();
    let plain = svhn::parse(include_bytes!("fixtures/svhn-plain.mat")).unwrap();
    let mut images = Vec::new();
    for n in 0..5 {
        for c in 0..3 {
            for y in 0..32 {
                (0..32).for_each(|x| images.push((n * 50 + c * 20 + y * 3 + x / 4) as u8));
            }
        }
    }
    assert_eq!(compressed.1, [0, 1, 9, 5, 0]);
    assert!(compressed.0 == images && compressed == plain);
}

/// The same data in MATLAB's other byte order: the bytes of every word of the plain file are reversed.
#[test]
fn svhn_in_the_other_byte_order() {
    let plain = include_bytes!("fixtures/svhn-plain.mat");
    let mut reversed = plain.to_vec();
    reversed[124..128].chunks_exact_mut(2).for_each(<[u8]>::reverse);
    let mut at = 128;
    while at < reversed.len() {
        // A matrix: its own tag, then flags, dimensions, name and entries, each a tag and its contents.
        let size = u32::from_le_bytes(plain[at + 4..at + 8].try_into().unwrap()) as usize;
        let (mut inner, end) = (at + 8, at + 8 + size);
        reversed[at..at + 8].chunks_exact_mut(4).for_each(<[u8]>::reverse);
        while inner < end {
            let tag = u32::from_le_bytes(plain[inner..inner + 4].try_into().unwrap());
            let (kind, short) = (tag & 0xFFFF, tag >> 16);
            let length = if short > 0 {
                0
            } else {
                u32::from_le_bytes(plain[inner + 4..inner + 8].try_into().unwrap())
            };
            reversed[inner..inner + 4].reverse();
            if short == 0 {
                reversed[inner + 4..inner + 8].reverse();
            }
            let contents =
                if short > 0 { inner + 4..inner + 8 } else { inner + 8..inner + 8 + length as usize };
            if kind == 5 || kind == 6 {
                reversed[contents].chunks_exact_mut(4).for_each(<[u8]>::reverse);
            }
            inner += 8 + (length as usize).next_multiple_of(8);
        }
        at = end;
    }
    assert!(svhn::parse(&reversed).unwrap() == svhn::parse(plain).unwrap());
}

#[test]
fn excerpts_of_real_svhn_and_cifar10_load() {
    if let Some(folder) = excerpt("svhn-small") {
        let svhn = load("svhn", Some(&folder), &Limits::NONE).unwrap();
        assert_eq!((svhn.train.len(), svhn.test.len()), (1083, 949));
        assert!(svhn.train.class_counts(10).iter().all(|&n| n > 30));
        let part = load(
            "svhn",
            Some(&folder),
            &Limits { train: Some(100), test: Some(55), seed: 1, ..Limits::NONE },
        )
        .unwrap();
        assert_eq!(part.train.class_counts(10), [10; 10]);
        assert_eq!(part.test.class_counts(10), [6, 6, 6, 6, 6, 5, 5, 5, 5, 5]);
    }
    if let Some(folder) = excerpt("cifar10-small") {
        let cifar10 = load("cifar10", Some(&folder), &Limits::NONE).unwrap();
        assert_eq!((cifar10.train.len(), cifar10.test.len()), (2000, 1000));
        near(&cifar10.train.channel_means(cifar10.shape), &[0.4914, 0.4822, 0.4465], 0.02);
        // The first image of the data set is a frog.
        assert_eq!(cifar10.class_names[cifar10.train.label(0)], "frog");
        if let Some(complete) = complete("cifar10") {
            assert!(complete.train.pixels().starts_with(cifar10.train.pixels()));
            assert!(complete.test.pixels().starts_with(cifar10.test.pixels()));
        }
    }
}

/// The archive gives the same data as its unpacked folder.
#[test]
fn cifar10_from_its_archive() {
    let folder = tempfile::tempdir().unwrap();
    let record = |label: u8| std::iter::once(label).chain((0..3072).map(move |i| (i % 251) as u8 ^ label));
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut archive = tar::Builder::new(gzip);
    let unpacked = folder.path().join("unpacked/cifar-10-batches-bin");
    std::fs::create_dir_all(&unpacked).unwrap();
    for (i, name) in
        ["test_batch", "data_batch_5", "data_batch_1", "data_batch_2", "data_batch_4", "data_batch_3"]
            .into_iter()
            .enumerate()
    {
        let bytes: Vec<u8> = record(i as u8).chain(record(9)).collect();
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        let path = format!("cifar-10-batches-bin/{name}.bin");
        archive.append_data(&mut header, path, &bytes[..]).unwrap();
        std::fs::write(unpacked.join(format!("{name}.bin")), bytes).unwrap();
    }
    let bytes = archive.into_inner().unwrap().finish().unwrap();
    std::fs::write(folder.path().join("cifar-10-binary.tar.gz"), &bytes).unwrap();
    let from_archive = load("cifar10", Some(folder.path()), &Limits::NONE).unwrap();
    assert_eq!(from_archive.train.labels, [2, 9, 3, 9, 5, 9, 4, 9, 1, 9]);
    assert!(from_archive == load("cifar10", Some(&folder.path().join("unpacked")), &Limits::NONE).unwrap());
    // The message for a truncated archive names it.
    std::fs::write(folder.path().join("cifar-10-binary.tar.gz"), &bytes[..bytes.len() / 2]).unwrap();
    let message = load("cifar10", Some(folder.path()), &Limits::NONE).unwrap_err().to_string();
    assert!(message.contains("cifar-10-binary.tar.gz"), "{message}");
}

#[test]
fn own_images() {
    let folder = tempfile::tempdir().unwrap();
    for (class, colour) in [("blue", [0, 0, 200]), ("red", [200, 0, 0])] {
        std::fs::create_dir(folder.path().join(class)).unwrap();
        for i in 0..5 {
            let ending = if i == 4 { "jpg" } else { "png" };
            let image = image::RgbImage::from_pixel(20 + i, 10, image::Rgb(colour));
            image.save(folder.path().join(class).join(format!("{i}.{ending}"))).unwrap();
        }
        std::fs::write(folder.path().join(class).join("notes.txt"), "not an image").unwrap();
    }
    let own = load("image-folder:12x16", Some(folder.path()), &Limits::NONE).unwrap();
    assert_eq!((own.shape.channels, own.shape.height, own.shape.width), (3, 12, 16));
    assert_eq!(own.class_names, ["blue", "red"]);
    assert_eq!(
        (own.train.labels.as_slice(), own.test.labels.as_slice()),
        (&[0, 0, 0, 0, 1, 1, 1, 1][..], &[0, 1][..])
    );
    assert!(
        own.train.image(0)[..384].iter().all(|&x| x == 0)
            && own.train.image(0)[384..].iter().all(|&x| x == 200)
    );
    assert!(own.test.image(1)[..192].iter().all(|&x| x.abs_diff(200) < 4), "a JPEG is nearly red");

    std::fs::write(folder.path().join("red/2.png"), b"\x89PNG\r\n\x1a\nnonsense").unwrap();
    let message = load("image-folder", Some(folder.path()), &Limits::NONE).unwrap_err().to_string();
    assert!(message.contains("2.png, offset 0"), "{message}");
    let message = load("image-folder:0x9", Some(folder.path()), &Limits::NONE).unwrap_err().to_string();
    assert!(message.contains("32x32"), "{message}");
}

#[test]
fn messages_for_missing_data_state_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["cifar10", "svhn", "mnist", "fashion-mnist"] {
        let message = load(name, Some(folder.path()), &Limits::NONE).unwrap_err().to_string();
        assert!(message.contains(&format!("leaklab data fetch {name}")), "{message}");
        assert!(message.contains("--data-dir"), "{message}");
    }
    let message = load("cifar11", None, &Limits::NONE).unwrap_err().to_string();
    assert!(message.contains("digits, cifar10, svhn, mnist, fashion-mnist, image-folder"), "{message}");
    let message = load("image-folder", None, &Limits::NONE).unwrap_err().to_string();
    assert!(message.contains("--data-dir"), "{message}");
    let none = Limits { train: Some(0), ..Limits::NONE };
    assert!(load("digits", None, &none).unwrap_err().to_string().contains("train limit of 0"));
}
