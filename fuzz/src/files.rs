//! Files of data sets: idx, CIFAR's records, MATLAB's arrays, archives.

use super::records::refused;
use leaklab_engine::Shape;
use leaklab_lab::data::{Flaw, cifar10, matlab, svhn};
use std::io::Write;
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

/// CIFAR's records. The corpus has images of equal pixels, so a seed is a label and a pixel for each image.
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

/// A MATLAB file, as SVHN's and as any arrays.
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

/// A `.tar.gz` of CIFAR-10, as it stands and as a tar that is compressed first.
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
