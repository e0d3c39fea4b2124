//! Targets for files of data sets: idx, CIFAR's records, MATLAB's arrays, archives, recordings, arrays of
//! images.

use super::records::refused;
use leaklab_engine::Shape;
use leaklab_lab::data::binning::Binning;
use leaklab_lab::data::{Dataset, Flaw, cifar10, event_file, image_folder, matlab, nmnist, npz, svhn, zip};
use std::io::{Cursor, Write};
use std::path::Path;

fn flawed(flaw: &Flaw) -> bool {
    refused(&flaw.reason)
}

/// An idx file of images or of labels, plain or compressed.
pub fn idx(bytes: &[u8]) -> bool {
    use leaklab_lab::data::idx::{decompress, parse_images, parse_labels};
    let shape = Shape { channels: 1, height: 4, width: 4 };
    let plain = match decompress(bytes.to_vec()) {
        Ok(plain) => plain,
        Err(flaw) => return flawed(&flaw),
    };
    let images = match parse_images(&plain, shape) {
        Ok(images) => {
            assert!(!images.is_empty() && images.len() % 16 == 0);
            true
        }
        Err(flaw) => flawed(&flaw),
    };
    let labels = match parse_labels(&plain, 10) {
        Ok(labels) => {
            assert!(labels.iter().all(|&label| label < 10));
            true
        }
        Err(flaw) => flawed(&flaw),
    };
    images || labels
}

/// CIFAR's records. All pixels of an image in the corpus are equal, so a file of the corpus has only a label
/// and a pixel for each image.
pub fn cifar(bytes: &[u8]) -> bool {
    let records = |bytes: &[u8]| {
        let (mut images, mut labels) = (Vec::new(), Vec::new());
        match cifar10::parse(bytes, &mut images, &mut labels) {
            Ok(()) => {
                assert_eq!(images.len(), 3072 * labels.len());
                assert!(!labels.is_empty() && labels.iter().all(|&label| label < 10));
                true
            }
            Err(flaw) => flawed(&flaw),
        }
    };
    let whole: Vec<u8> = bytes
        .chunks(2)
        .flat_map(|pair| std::iter::once(pair[0]).chain(pair[1..].iter().copied().cycle().take(3072)))
        .collect();
    records(bytes) | records(&whole)
}

/// A MATLAB file, read as SVHN and as any arrays.
pub fn matlab(bytes: &[u8]) -> bool {
    let svhn = match svhn::parse(bytes) {
        Ok((images, labels)) => {
            assert_eq!(images.len(), 3072 * labels.len());
            assert!(labels.iter().all(|&label| label < 10));
            true
        }
        Err(flaw) => flawed(&flaw),
    };
    match matlab::parse(bytes, 1 << 20) {
        Ok(arrays) => {
            for array in &arrays {
                assert_eq!(array.data.len(), array.dimensions.iter().product::<usize>());
            }
            svhn || !arrays.is_empty()
        }
        Err(flaw) => flawed(&flaw) || svhn,
    }
}

/// A `.tar.gz` of CIFAR-10; the bytes are read as they are, and as a tar that is compressed first.
pub fn tar(bytes: &[u8]) -> bool {
    let read = |bytes: &[u8]| match cifar10::parse_archive(Box::new(bytes), Path::new("fuzz.tar.gz")) {
        Ok((train, test)) => {
            assert!(!train.is_empty() && !test.is_empty());
            true
        }
        Err(error) => refused(&error),
    };
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    read(bytes) | read(&encoder.finish().unwrap())
}

/// A recording of N-MNIST.
pub fn nmnist(bytes: &[u8]) -> bool {
    let sensor = Shape { channels: 2, height: 34, width: 34 };
    match nmnist::parse(bytes, sensor) {
        Ok(events) => {
            assert_eq!(events.len(), bytes.len() / 5);
            assert!(events.is_sorted_by_key(|event| event.time));
            assert!(events.iter().all(|event| event.x < 34 && event.y < 34 && event.polarity < 2));
            true
        }
        Err(flaw) => flawed(&flaw),
    }
}

/// A PNG or JPEG image.
pub fn image(bytes: &[u8]) -> bool {
    let shape = Shape { channels: 3, height: 4, width: 4 };
    match image_folder::parse(bytes, shape) {
        Ok(pixels) => {
            assert_eq!(pixels.len(), shape.neurons());
            true
        }
        Err(flaw) => flawed(&flaw),
    }
}

/// An archive of arrays of images, as it is and as the members that [`members`] lays out.
pub fn images(bytes: &[u8]) -> bool {
    either_layout(bytes, |archive| npz::read(Cursor::new(archive), archive.len() as u64))
}

/// An archive of recordings, in the same two layouts.
pub fn events(bytes: &[u8]) -> bool {
    let read = |binning: Binning| {
        move |archive: &[u8]| event_file::read(Cursor::new(archive), archive.len() as u64, &binning)
    };
    let parts = Binning { time_steps: 5, ..Binning::default() };
    let steps = Binning { time_steps: 5, step_us: Some(100), downsample: 2 };
    either_layout(bytes, read(parts)) | either_layout(bytes, read(steps))
}

fn either_layout(bytes: &[u8], read: impl Fn(&[u8]) -> Result<Dataset, Flaw>) -> bool {
    let check = |archive: &[u8]| match read(archive) {
        Ok(data) => {
            for split in [&data.train, &data.test] {
                assert!(split.labels.iter().all(|&label| usize::from(label) < data.classes));
                match split.recordings() {
                    Some(recordings) => assert_eq!(recordings.len(), split.len()),
                    None => assert_eq!(split.pixels().len(), split.len() * data.shape.neurons()),
                }
            }
            true
        }
        Err(flaw) => flawed(&flaw),
    };
    check(bytes) | pack(bytes).is_ok_and(|archive| check(&archive))
}

/// The members of an archive one after the other, name and contents, each behind its length. Mutations of
/// these bytes get past the checksums of an archive and reach the arrays.
#[allow(dead_code)] // the tests write the corpus with it
pub fn members(archive: &[u8]) -> Vec<u8> {
    let mut opened = zip::Archive::open(Cursor::new(archive)).expect("a valid archive");
    let mut bytes = Vec::new();
    for entry in opened.entries.clone() {
        let data = opened.read(&entry, &mut zip::generous()).expect("a valid member");
        for part in [entry.name.as_bytes(), &data] {
            bytes.extend((part.len() as u16).to_le_bytes());
            bytes.extend(part);
        }
    }
    bytes
}

/// The archive of what [`members`] lays out.
pub fn pack(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let (mut parts, mut rest) = (Vec::new(), bytes);
    while rest.len() >= 2 && parts.len() < 40 {
        let length = usize::from(u16::from_le_bytes([rest[0], rest[1]])).min(rest.len() - 2);
        parts.push(rest[2..2 + length].to_vec());
        rest = &rest[2 + length..];
    }
    let files =
        parts.chunks_exact(2).map(|pair| (String::from_utf8_lossy(&pair[0]).into_owned(), pair[1].clone()));
    zip::pack(&files.collect::<Vec<_>>())
}
