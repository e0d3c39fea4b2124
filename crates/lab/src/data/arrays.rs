//! `npz`: the user's own images or features, as NumPy arrays in an `.npz` file or passed by a caller.
//!
//! The arrays are `train_images`, `train_labels`, `test_images`, `test_labels` and, if the classes have
//! names, `class_names`. Images are `[N, C, H, W]` or `[N, H, W]`; features are `[N, F]` and become an image
//! of one row. Bytes (uint8) are used as pixels without change. Other numbers, and booleans as 0 and 1, are
//! scaled to bytes, from the smallest to the largest value of the training images; for `[N, F]`, each feature
//! has its own range. Test values beyond the range are clipped. Without test arrays, every fifth image of a
//! class is used for testing. Files and callers use the same function, so the results are bit-identical.

use super::npy::{self, Array, Arrays};
use super::{Content, DataError, Dataset, Flaw, Info, Split, TEST_SAMPLES};
use leaklab_engine::Shape;
use std::io::{Read, Seek};
use std::path::Path;

/// Values of images.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Pixels from 0 to 255.
    Bytes(Vec<u8>),
    /// Any finite numbers.
    Numbers(Vec<f64>),
    /// The same as an array of a file, whose numbers are converted one at a time: as a list they could take
    /// eight times its memory.
    Array(Array),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Bytes(bytes) => bytes.len(),
            Values::Numbers(numbers) => numbers.len(),
            Values::Array(array) => array.len(),
        }
    }

    fn are_bytes(&self) -> bool {
        match self {
            Values::Bytes(_) => true,
            Values::Numbers(_) | Values::Array(_) => false,
        }
    }

    /// A value; NaN if it is not a number.
    fn number(&self, index: usize) -> f64 {
        match self {
            Values::Bytes(bytes) => f64::from(bytes[index]),
            Values::Numbers(numbers) => numbers[index],
            Values::Array(array) => array.real(index).unwrap_or(f64::NAN),
        }
    }

    /// The pixel that a value becomes.
    fn pixel(&self, index: usize, scale: &Scale) -> u8 {
        match self {
            Values::Bytes(bytes) => bytes[index],
            Values::Numbers(_) | Values::Array(_) => scale.byte(index, self.number(index)),
        }
    }
}

/// Images with their labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Dimensions of the array of images.
    pub dimensions: Vec<usize>,
    /// Its values, last index fastest.
    pub values: Values,
    /// One per image.
    pub labels: Vec<i64>,
    /// One per image: the number that its random numbers depend on; if not given, images are numbered in
    /// order.
    pub samples: Option<Vec<u32>>,
}

/// What is wrong with an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Name of the array.
    pub array: &'static str,
    /// What is wrong and what is expected.
    pub reason: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.array, self.reason)
    }
}

/// Names of a part's arrays: images, labels, sample numbers.
type Names = [&'static str; 3];
const TRAIN: Names = ["train_images", "train_labels", "train_samples"];
const TEST: Names = ["test_images", "test_labels", "test_samples"];
/// Present in a file that LeakLab wrote as a copy of a data set; it has no values.
const COPY: &str = "leaklab_copy";
pub(super) const CLASSES: &str = "class_names";
/// Limit for the number of classes, since labels are bytes.
pub(super) const MOST_CLASSES: usize = 256;
/// Bytes that an image takes in addition to its pixels: its label in two forms, its sample number in two
/// forms, and its number in the list of images to train on or to test with.
const PER_IMAGE: u64 = 8 + 1 + 4 + 4 + 8;
/// Without test arrays, every image of a class whose number is a multiple of this is used for testing.
const TEST_EVERY: usize = 5;

fn fault<T>(array: &'static str, reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { array, reason: reason.into() })
}

/// Makes a data set from arrays.
pub fn dataset(
    name: &str,
    train: Part,
    test: Option<Part>,
    class_names: Option<Vec<String>>,
) -> Result<Dataset, Fault> {
    let shape = check(&train, TRAIN)?;
    if let Some(test) = &test {
        let other = check(test, TEST)?;
        if other != shape {
            return fault(TEST[0], format!("its images are {other}, those of {} are {shape}", TRAIN[0]));
        }
        if test.values.are_bytes() != train.values.are_bytes() {
            return fault(TEST[0], format!("it and {} must both be uint8, or both other numbers", TRAIN[0]));
        }
    }
    let parts: Vec<(&Part, Names)> =
        std::iter::once((&train, TRAIN)).chain(test.as_ref().map(|test| (test, TEST))).collect();
    let largest = parts.iter().flat_map(|(part, _)| &part.labels).max().copied().unwrap_or(0);
    let classes = match &class_names {
        Some(names) => names.len(),
        None => usize::try_from(largest).unwrap_or(0).saturating_add(1).max(2),
    };
    if !(2..=MOST_CLASSES).contains(&classes) {
        let array = if class_names.is_some() { CLASSES } else { TRAIN[1] };
        return fault(array, format!("there are {classes} classes; 2 to {MOST_CLASSES} are possible"));
    }
    for (part, names) in &parts {
        let wrong = part.labels.iter().position(|&label| !(0..classes as i64).contains(&label));
        if let Some(at) = wrong {
            let label = part.labels[at];
            return fault(
                names[1],
                format!("label {label} of image {at} is not one of 0 to {}", classes - 1),
            );
        }
    }
    let size = shape.neurons();
    let features = if train.dimensions.len() == 2 { size } else { 1 };
    let class_names = class_names.unwrap_or_else(|| (0..classes).map(|class| class.to_string()).collect());
    let (train, test) = match test {
        Some(test) => {
            let scale = Scale::of(&train.values, 0..train.values.len(), features);
            (whole_split(train, &scale, 0), whole_split(test, &scale, TEST_SAMPLES))
        }
        None => {
            let [train_images, test_images] = divide(&train.labels)?;
            let values = train_images.iter().flat_map(|image| image * size..(image + 1) * size);
            let scale = Scale::of(&train.values, values, features);
            (
                split(&train, &train_images, size, &scale, 0),
                split(&train, &test_images, size, &scale, TEST_SAMPLES),
            )
        }
    };
    Ok(Dataset { name: name.to_owned(), shape, classes, class_names, train, test })
}

/// Whether images look as if their channels came last, such as 32x32x3: several channels and rows, but
/// columns as few as colours. Recordings of many channels and one column, `[N, C, T, 1]`, are not meant,
/// unless the first two sizes are equal, as in square grey images.
fn channels_last(shape: Shape) -> bool {
    let Shape { channels, height, width } = shape;
    let images = channels.min(height) >= 8;
    images && (matches!(width, 3 | 4) || (width == 1 && channels == height))
}

/// Checks that the arrays of a part match, and returns the size of its images.
fn check(part: &Part, names: Names) -> Result<Shape, Fault> {
    let dimensions = &part.dimensions;
    let shape = match dimensions[..] {
        [_, width] => Shape { channels: 1, height: 1, width },
        [_, height, width] => Shape { channels: 1, height, width },
        [_, channels, height, width] => Shape { channels, height, width },
        _ => {
            let expected = "[N, C, H, W], [N, H, W] or [N, F] is expected";
            return fault(names[0], format!("its shape is {dimensions:?}; {expected}"));
        }
    };
    if dimensions.contains(&0) {
        return fault(names[0], format!("its shape is {dimensions:?}, so it is empty"));
    }
    if channels_last(shape) {
        let expected = "[N, C, H, W] is expected; transpose it with (0, 3, 1, 2)";
        return fault(names[0], format!("its shape {dimensions:?} looks like [N, H, W, C]; {expected}"));
    }
    if part.labels.len() != dimensions[0] {
        let (labels, images) = (part.labels.len(), dimensions[0]);
        return fault(names[1], format!("{labels} labels for {images} images"));
    }
    if let Some(samples) = part.samples.as_ref().filter(|samples| samples.len() != dimensions[0]) {
        return fault(names[2], format!("{} sample numbers for {} images", samples.len(), dimensions[0]));
    }
    let numbers = if part.values.are_bytes() { 0 } else { part.values.len() };
    if let Some(at) = (0..numbers).find(|&at| !part.values.number(at).is_finite()) {
        let found = part.values.number(at);
        return fault(names[0], format!("element {at} is {found}; finite numbers are expected"));
    }
    Ok(shape)
}

/// Divides images into those to train on and those to test with: every fifth image of a class.
fn divide(labels: &[i64]) -> Result<[Vec<usize>; 2], Fault> {
    let mut seen = std::collections::BTreeMap::<i64, usize>::new();
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (i, label) in labels.iter().enumerate() {
        let count = seen.entry(*label).or_default();
        *count += 1;
        if count.is_multiple_of(TEST_EVERY) { test.push(i) } else { train.push(i) }
    }
    if test.is_empty() {
        let reason =
            format!("it is missing, and no class has {TEST_EVERY} images, of which one could be used");
        return fault(TEST[0], reason);
    }
    Ok([train, test])
}

/// How numbers become bytes: the smallest and largest value of each feature, or of all values together.
struct Scale(Vec<[f64; 2]>);

impl Scale {
    /// The ranges of the values at `indices`.
    fn of(values: &Values, indices: impl Iterator<Item = usize>, features: usize) -> Self {
        let mut ranges = vec![[f64::INFINITY, f64::NEG_INFINITY]; features];
        if values.are_bytes() {
            return Scale(ranges);
        }
        for i in indices {
            let x = values.number(i);
            let [low, high] = &mut ranges[i % features];
            (*low, *high) = (low.min(x), high.max(x));
        }
        Scale(ranges)
    }

    /// `round(255 (x - low) / (high - low))`, clipped to 0 to 255; 0 if all training values are equal.
    fn byte(&self, index: usize, x: f64) -> u8 {
        let [low, high] = self.0[index % self.0.len()];
        // Each number is halved first, since the difference of two large numbers may not be finite.
        let share = (x / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
        if share.is_finite() { (255.0 * share).round().clamp(0.0, 255.0) as u8 } else { 0 }
    }
}

/// All images of a part.
fn whole_split(part: Part, scale: &Scale, first: u32) -> Split {
    let pixels = match part.values {
        Values::Bytes(bytes) => bytes,
        values => (0..values.len()).map(|i| values.pixel(i, scale)).collect(),
    };
    let labels = part.labels.iter().map(|&label| label as u8).collect();
    let mut split = Split::of(Content::Images(pixels), labels, first);
    split.samples = part.samples.unwrap_or(split.samples);
    split
}

/// Some images of a part, each of `size` values.
fn split(part: &Part, images: &[usize], size: usize, scale: &Scale, first: u32) -> Split {
    let mut pixels = Vec::with_capacity(images.len() * size);
    for &image in images {
        pixels.extend((image * size..(image + 1) * size).map(|i| part.values.pixel(i, scale)));
    }
    let labels = images.iter().map(|&image| part.labels[image] as u8).collect();
    Split::of(Content::Images(pixels), labels, first)
}

/// Loads the file.
pub(super) fn load(_info: &Info, path: &Path, name: &str) -> Result<Dataset, DataError> {
    let arrays = npy::read(name, path, is_wanted)?;
    of_arrays(name, arrays).map_err(|flaw| flaw.of(path))
}

/// The data set of an archive of so many bytes.
pub fn read(reader: impl Read + Seek, length: u64) -> Result<Dataset, Flaw> {
    of_arrays("npz", npy::read_from(reader, length, is_wanted)?)
}

fn is_wanted(array: &str) -> bool {
    TRAIN.contains(&array) || TEST.contains(&array) || array == CLASSES
}

/// The data set of a file's arrays.
fn of_arrays(name: &str, mut arrays: Arrays) -> Result<Dataset, Flaw> {
    let offsets = [TRAIN, TEST].concat().into_iter().chain([CLASSES]);
    let offsets: Vec<(&str, u64)> =
        offsets.filter_map(|name| Some((name, arrays.find(name)?.offset))).collect();
    let class_names = class_names(&arrays)?;
    let Some(train) = part(&mut arrays, TRAIN)? else {
        return Err(Flaw::new(0, format!("it has no arrays {} and {}", TRAIN[0], TRAIN[1])));
    };
    let test = part(&mut arrays, TEST)?;
    dataset(name, train, test, class_names).map_err(|fault| {
        let offset = offsets.iter().find(|(name, _)| *name == fault.array).map_or(0, |found| found.1);
        Flaw { offset, reason: fault.to_string() }
    })
}

/// Removes a part from a file's arrays; `None` if the file does not have it.
fn part(arrays: &mut Arrays, names: Names) -> Result<Option<Part>, Flaw> {
    let (images, labels) = match (arrays.remove(names[0]), arrays.remove(names[1])) {
        (None, None) => return Ok(None),
        (Some(images), Some(labels)) => (images, labels),
        (Some(single), None) | (None, Some(single)) => {
            return Err(single.flaw(format!("{} and {} belong together", names[0], names[1])));
        }
    };
    if images.is_text() {
        return Err(images.flaw("numbers are expected"));
    }
    let (pixels, count) = (images.len() as u64, labels.len() as u64);
    let bytes = count.saturating_mul(PER_IMAGE).saturating_add(pixels);
    arrays.budget.take(bytes).map_err(|exceeded| images.flaw(exceeded))?;
    let labels = whole(&labels)?;
    let samples = arrays.find(names[2]).map(whole::<u32>).transpose()?;
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
    npy::read("npz", path, |array| array == COPY).is_ok_and(|arrays| arrays.find(COPY).is_some())
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
        arrays.push((names[0], "|u1", vec![count, channels, height, width], pixels.clone()));
        arrays.push((names[1], "|u1", vec![count], split.labels.clone()));
        let samples = split.samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        arrays.push((names[2], "<u4", vec![count], samples));
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

    #[test]
    fn features_are_scaled_each_by_its_own_range() {
        let train = numbers(&[2, 2], &[0.0, 10.0, 2.0, 30.0], &[0, 1]);
        let test = numbers(&[1, 2], &[1.0, 50.0], &[1]);
        let made = dataset("npz", train, Some(test), None).unwrap();
        assert_eq!(made.shape, Shape { channels: 1, height: 1, width: 2 });
        assert_eq!((made.train.pixels(), made.test.pixels()), (&[0, 0, 255, 255][..], &[128, 255][..]));
        assert_eq!((made.train.samples, made.test.samples), (vec![0, 1], vec![TEST_SAMPLES]));
        assert_eq!(made.class_names, ["0", "1"]);
    }

    #[test]
    fn images_share_one_range_and_are_divided_by_class() {
        let values: Vec<f64> = (0..12).map(|i| if i == 10 { 99.0 } else { f64::from(i) }).collect();
        let made = dataset("npz", numbers(&[6, 1, 2], &values, &[0, 0, 0, 0, 0, 1]), None, None).unwrap();
        assert_eq!((made.train.len(), made.test.len()), (5, 1));
        // The fifth image of class 0, scaled by the range of the others, 0 to 99.
        assert_eq!(made.test.pixels(), [8.0, 9.0].map(|x: f64| (255.0 * x / 99.0).round() as u8));
    }

    #[test]
    fn channels_come_first() {
        let part = |dimensions: &[usize]| {
            let values = vec![0.0; dimensions.iter().product()];
            numbers(dimensions, &values, &vec![0; dimensions[0]])
        };
        for last in [[1, 32, 32, 3], [1, 28, 28, 1], [1, 24, 30, 4]] {
            let wrong = check(&part(&last), TRAIN).unwrap_err().to_string();
            assert!(wrong.contains("looks like [N, H, W, C]") && wrong.contains("(0, 3, 1, 2)"), "{wrong}");
        }
        for first in [[1, 3, 32, 32], [1, 1, 8, 3], [1, 64, 256, 1], [1, 13, 1, 1], [1, 1, 1, 4]] {
            check(&part(&first), TRAIN).unwrap();
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let good = numbers(&[1, 2], &[0.0, 1.0], &[0]);
        let message = |train: Part, test: Option<Part>, names: Option<usize>| {
            let names = names.map(|n| vec![String::new(); n]);
            dataset("npz", train, test, names).unwrap_err().to_string()
        };
        let with = |change: fn(&mut Part)| {
            let mut part = good.clone();
            change(&mut part);
            part
        };
        assert!(message(with(|p| p.dimensions = vec![2]), None, None).contains("[N, F] is expected"));
        assert!(message(with(|p| p.labels.push(0)), None, None).contains("2 labels for 1 images"));
        let nan = with(|p| p.values = Values::Numbers(vec![0.0, f64::NAN]));
        assert!(message(nan, None, None).contains("element 1 is NaN"));
        assert!(message(with(|p| p.labels = vec![-1]), None, None).contains("label -1 of image 0"));
        assert!(message(with(|p| p.labels = vec![256]), None, None).contains("257 classes"));
        assert!(message(with(|p| p.labels = vec![3]), None, Some(3)).contains("not one of 0 to 2"));
        assert!(message(good.clone(), None, None).starts_with("test_images: it is missing"));
        let bytes = with(|p| p.values = Values::Bytes(vec![0, 1]));
        assert!(message(good.clone(), Some(bytes), None).contains("both be uint8"));
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
