//! `digits`: the 1,797 handwritten digits of UCI, 8x8 pixels, embedded in the program.
//!
//! These are real data that need no file and can be used offline. In each class every fifth image (the 5th,
//! 10th, ..) is for testing, 355 in total; the other 1,442 are for training. The images are in the order of
//! their thirteen writers, so every writer is in both splits: the test set has new digits, but no new
//! writers. Ink is white. Attribution and licence: `assets/digits.LICENCE.md`.

use super::{DataError, Dataset, Flaw, Info, Split, TEST_SAMPLES};
use std::io::Read;
use std::path::Path;

const BYTES: &[u8] = include_bytes!("../../assets/digits.bin.gz");
const PIXELS: usize = 64;
const IMAGES: usize = 1797;

/// Loads the digits; `_folder` is not used.
pub(super) fn load(info: &Info, _folder: &Path, _name: &str) -> Result<Dataset, DataError> {
    let mut records = Vec::new();
    let path = Path::new("(embedded digits)");
    flate2::read::GzDecoder::new(BYTES).read_to_end(&mut records).map_err(DataError::io(path))?;
    if records.len() != IMAGES * (PIXELS + 1) {
        return Err(Flaw::new(records.len(), "the embedded digits are damaged").of(path));
    }
    // Pixels and labels of the training and of the test images.
    let mut parts = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    let mut seen = [0; 256];
    for record in records.chunks_exact(PIXELS + 1) {
        let of_class = &mut seen[usize::from(record[0])];
        *of_class += 1;
        let (pixels, labels) = &mut parts[usize::from(*of_class % 5 == 0)];
        labels.push(record[0]);
        // Ink from 0 to 16 becomes 0 to 255.
        pixels.extend(record[1..].iter().map(|&ink| ((u32::from(ink) * 255 + 8) / 16) as u8));
    }
    let [train, test] = parts;
    Ok(info.dataset(Split::new(train.0, train.1, 0), Split::new(test.0, test.1, TEST_SAMPLES)))
}

#[cfg(test)]
mod tests {
    use crate::data::{Limits, load, table, verify};

    #[test]
    fn complete_and_balanced() {
        let digits = load("digits", None, &Limits::NONE).unwrap();
        assert_eq!((digits.train.len(), digits.test.len()), (1442, 355));
        let all: Vec<usize> = digits
            .train
            .class_counts(10)
            .iter()
            .zip(digits.test.class_counts(10))
            .map(|(a, b)| a + b)
            .collect();
        // These numbers are published with the data set.
        assert_eq!(all, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        let digests = [verify::digest(&digits.train), verify::digest(&digits.test)];
        assert_eq!(digests, table::find("digits").unwrap().content);
        assert_eq!(digits.train.pixels().iter().max(), Some(&255));
        // The first image of the original: a 0, with this second row.
        assert_eq!(digits.train.label(0), 0);
        assert_eq!(
            digits.train.image(0)[8..16],
            [0, 0, 13, 15, 10, 15, 5, 0].map(|v: u32| ((v * 255 + 8) / 16) as u8)
        );
    }
}
