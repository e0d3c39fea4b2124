//! `npz`: the user's own images or features, as NumPy arrays in an `.npz` file, read and written.
//!
//! `arrays.rs` defines the arrays and makes a data set from them. Here they are found in a file, checked for
//! their types and charged to its byte budget.

use super::arrays::{CLASSES, MOST_CLASSES, Names, Part, TEST, TRAIN, Values, dataset};
use super::npy::{self, Array, Arrays};
use super::{Content, DataError, Dataset, Flaw, Info};
use leaklab_engine::Shape;
use std::io::{Read, Seek};
use std::path::Path;

/// Present in a file that LeakLab wrote as a copy of a data set; it has no values.
const COPY: &str = "leaklab_copy";
/// Bytes that an image takes in addition to its pixels: its label in two forms, its sample number in two
/// forms, and its number in the list of images to train on or to test with.
const PER_IMAGE: u64 = 8 + 1 + 4 + 4 + 8;

/// Loads the file.
pub(super) fn load(_info: &Info, path: &Path, name: &str) -> Result<Dataset, DataError> {
    let arrays = npy::read(name, path, is_wanted)?;
    of_arrays(name, arrays).map_err(|flaw| flaw.of(path))
}

/// The data set of an archive of so many bytes.
pub fn read(reader: impl Read + Seek, length: u64) -> Result<Dataset, Flaw> {
    of_arrays("npz", npy::read_from(reader, length, is_wanted)?)
}

/// Names of all arrays that are read.
fn all_names() -> impl Iterator<Item = &'static str> + Clone {
    [TRAIN, TEST].into_iter().flat_map(|names| [names.images, names.labels, names.samples]).chain([CLASSES])
}

fn is_wanted(array: &str) -> Result<bool, String> {
    npy::is_among(array, all_names().map(str::to_owned))
}

/// The data set of a file's arrays.
fn of_arrays(name: &str, mut arrays: Arrays) -> Result<Dataset, Flaw> {
    let offsets: Vec<(&str, u64)> =
        all_names().filter_map(|name| Some((name, arrays.find(name)?.offset))).collect();
    let class_names = class_names(&arrays)?;
    let Some(train) = part(&mut arrays, TRAIN)? else {
        return Err(Flaw::new(0, format!("it has no arrays {} and {}", TRAIN.images, TRAIN.labels)));
    };
    let test = part(&mut arrays, TEST)?;
    dataset(name, train, test, class_names).map_err(|fault| {
        let offset = offsets.iter().find(|(name, _)| *name == fault.array).map_or(0, |found| found.1);
        Flaw { offset, reason: fault.to_string() }
    })
}

/// Removes a part from a file's arrays; `None` if the file does not have it.
fn part(arrays: &mut Arrays, names: Names) -> Result<Option<Part>, Flaw> {
    let (images, labels) = match (arrays.remove(names.images), arrays.remove(names.labels)) {
        (None, None) => return Ok(None),
        (Some(images), Some(labels)) => (images, labels),
        (Some(single), None) | (None, Some(single)) => {
            return Err(single.flaw(format!("{} and {} belong together", names.images, names.labels)));
        }
    };
    if images.is_text() {
        return Err(images.flaw("numbers are expected"));
    }
    let (pixels, count) = (images.len() as u64, labels.len() as u64);
    let bytes = count.saturating_mul(PER_IMAGE).saturating_add(pixels);
    arrays.budget.take(bytes).map_err(|exceeded| images.flaw(exceeded))?;
    let labels = whole(&labels)?;
    let samples = arrays.find(names.samples).map(whole::<u32>).transpose()?;
    let dimensions = images.shape.clone();
    let values = images.into_bytes().map_or_else(Values::Array, Values::Bytes);
    Ok(Some(Part { dimensions, values, labels, samples }))
}

/// The names of the classes of a file, if it has them.
pub(super) fn class_names(arrays: &Arrays) -> Result<Option<Vec<String>>, Flaw> {
    let Some(array) = arrays.find(CLASSES) else { return Ok(None) };
    if array.len() > MOST_CLASSES {
        let found = array.len();
        return Err(array.flaw(format!("there are {found} classes; 2 to {MOST_CLASSES} are possible")));
    }
    let texts = (0..array.len()).map(|i| array.text(i).or_else(|| Some(array.whole(i)?.to_string())));
    let names: Option<Vec<String>> = texts.collect();
    names.map(Some).ok_or_else(|| array.flaw("names are expected, as text"))
}

/// Labels or sample numbers.
fn whole<T: TryFrom<i64>>(array: &Array) -> Result<Vec<T>, Flaw> {
    if array.shape.len() != 1 {
        return Err(array.flaw(format!("its shape is {:?}; one number per image is expected", array.shape)));
    }
    if array.is_bool() {
        return Err(array.flaw("its type is bool; whole numbers are expected"));
    }
    let number = |i: usize| {
        let value = array.whole(i).and_then(|n| T::try_from(n).ok());
        value.ok_or_else(|| array.flaw(format!("element {i} is not a whole number in range")))
    };
    (0..array.len()).map(number).collect()
}

/// Whether a file was written by [`save`].
pub fn is_copy(path: &Path) -> bool {
    npy::read("npz", path, |array| Ok(array == COPY)).is_ok_and(|arrays| arrays.find(COPY).is_some())
}

/// Writes a data set of images as an `.npz` file, from which `load` reads a bit-identical data set.
pub fn save(dataset: &Dataset, path: &Path) -> Result<(), DataError> {
    let Shape { channels, height, width } = dataset.shape;
    let mut arrays: Vec<npy::Plain> = Vec::new();
    for (split, names) in [(&dataset.train, TRAIN), (&dataset.test, TEST)] {
        let Content::Images(pixels) = &split.content else {
            return Err(DataError::Request(format!("data set {} contains events, not images", dataset.name)));
        };
        let count = split.len();
        arrays.push((names.images, "|u1", vec![count, channels, height, width], pixels.clone()));
        arrays.push((names.labels, "|u1", vec![count], split.labels.clone()));
        let samples = split.samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        arrays.push((names.samples, "<u4", vec![count], samples));
    }
    let (kind, data) = npy::texts(&dataset.class_names);
    arrays.push((CLASSES, &kind, vec![dataset.class_names.len()], data));
    arrays.push((COPY, "|u1", vec![0], Vec::new()));
    npy::write(path, arrays)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(dimensions: &[usize], values: &[f64], labels: &[i64]) -> Part {
        let values = Values::Numbers(values.to_vec());
        Part { dimensions: dimensions.to_vec(), values, labels: labels.to_vec(), samples: None }
    }

    fn file(arrays: &[(&str, &str, &[usize], &[u8])]) -> Result<Dataset, Flaw> {
        let files: Vec<(String, Vec<u8>)> = arrays
            .iter()
            .map(|(name, kind, shape, data)| (format!("{name}.npy"), npy::file_of(kind, shape, data)))
            .collect();
        let bytes = crate::data::zip::pack(&files).unwrap();
        read(std::io::Cursor::new(&bytes), bytes.len() as u64)
    }

    /// As from Python, whose booleans are 0.0 and 1.0.
    #[test]
    fn booleans_are_black_and_white() {
        let bits = [1, 0, 0, 1, 1, 1, 0, 0];
        let images = ("train_images", "|b1", &[2, 2, 2][..], &bits[..]);
        let test = [("test_images", "|b1", &[1, 2, 2][..], &bits[..4]), ("test_labels", "|u1", &[1], &[1])];
        let made = file(&[images, ("train_labels", "|u1", &[2], &[0, 1]), test[0], test[1]]).unwrap();
        assert_eq!(made.train.pixels(), bits.map(|bit| 255 * bit));
        let number = |bit: &u8| f64::from(*bit);
        let [train, other] = [&bits[..], &bits[..4]].map(|bits| bits.iter().map(number).collect::<Vec<_>>());
        let (train, other) = (numbers(&[2, 2, 2], &train, &[0, 1]), numbers(&[1, 2, 2], &other, &[1]));
        assert_eq!(made, dataset("npz", train, Some(other), None).unwrap());
        let labels = ("train_labels", "|b1", &[2][..], &[0, 1][..]);
        let reason = file(&[images, labels, test[0], test[1]]).unwrap_err().reason;
        assert_eq!(reason, "array 'train_labels': its type is bool; whole numbers are expected");
    }

    /// Numbers of a file are converted one at a time, and give the pixels that a list of them gives.
    #[test]
    fn numbers_of_a_file_are_those_of_a_list() {
        let values: Vec<i16> = (0..60).map(|i| (i * i * 7 % 1000 - 500) as i16).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let labels: Vec<u8> = (0..10).map(|i| i % 2).collect();
        let list: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
        for shape in [&[10, 6][..], &[10, 2, 3]] {
            let images = ("train_images", "<i2", shape, &bytes[..]);
            let made = file(&[images, ("train_labels", "|u1", &[10], &labels)]).unwrap();
            let labels: Vec<i64> = labels.iter().map(|&label| i64::from(label)).collect();
            assert_eq!(made, dataset("npz", numbers(shape, &list, &labels), None, None).unwrap());
            assert_eq!((made.train.len(), made.test.len()), (8, 2));
        }
    }

    /// Without its test arrays, a file would be tested with a part of its training images.
    #[test]
    fn misspelt_arrays_are_refused() {
        let pixels: Vec<u8> = (0..40).collect();
        let arrays = |test: &'static str| {
            let images = ("train_images", "|u1", &[10, 4][..], &pixels[..]);
            let labels = ("train_labels", "|u1", &[10][..], &[0, 1, 0, 1, 0, 1, 0, 1, 0, 1][..]);
            file(&[images, labels, (test, "|u1", &[2, 4], &pixels[..8])])
        };
        assert!(arrays("note").is_ok());
        let reason = arrays("test_imgs").unwrap_err().reason;
        assert!(
            reason.starts_with("test_imgs is none of the arrays that are read: train_images"),
            "{reason}"
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["npz:wine", "events:wine"] {
            let message = crate::data::load(name, Some(folder.path()), &crate::data::Limits::NONE);
            let (message, path) = (message.unwrap_err().to_string(), folder.path().join("wine.npz"));
            assert!(message.starts_with(&format!("there is no file {}: ", path.display())), "{message}");
        }
    }

    #[test]
    fn a_file_gives_a_bit_identical_data_set() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        let digits = crate::data::load("digits", None, &crate::data::Limits::NONE).unwrap();
        save(&digits, &path).unwrap();
        assert!(is_copy(&path) && !is_copy(folder.path()));
        let again = crate::data::load_complete("npz:x", Some(folder.path()), &Default::default()).unwrap();
        assert_eq!(again.digest(), digits.digest());
        assert_eq!((again.train, again.test), (digits.train, digits.test));
    }
}
