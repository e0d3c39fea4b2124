//! The user's own images or features, as arrays of a file (`npz.rs`) or passed by a caller.
//!
//! The arrays are `train_images`, `train_labels`, `test_images`, `test_labels` and, if the classes have
//! names, `class_names`. Images are `[N, C, H, W]` or `[N, H, W]`; features are `[N, F]` and become an image
//! of one row. Bytes (uint8) are used as pixels without change. Other numbers, and booleans as 0 and 1, are
//! scaled to bytes, from the smallest to the largest value of the training images; for `[N, F]`, each feature
//! has its own range. Test values beyond the range are clipped. Without test arrays, every fifth image of a
//! class is used for testing. Files and callers use the same function, so the results are bit-identical.

use super::npy::Array;
use super::{Content, Dataset, Split, TEST_SAMPLES};
use leaklab_engine::Shape;

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

/// Names of a part's arrays.
#[derive(Clone, Copy)]
pub(super) struct Names {
    pub images: &'static str,
    pub labels: &'static str,
    /// Sample numbers.
    pub samples: &'static str,
}

pub(super) const TRAIN: Names =
    Names { images: "train_images", labels: "train_labels", samples: "train_samples" };
pub(super) const TEST: Names =
    Names { images: "test_images", labels: "test_labels", samples: "test_samples" };
pub(super) const CLASSES: &str = "class_names";
/// Limit for the number of classes, since labels are bytes.
pub(super) const MOST_CLASSES: usize = 256;
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
            return fault(
                TEST.images,
                format!("its images are {other}, those of {} are {shape}", TRAIN.images),
            );
        }
        if test.values.are_bytes() != train.values.are_bytes() {
            return fault(
                TEST.images,
                format!("it and {} must both be uint8, or both other numbers", TRAIN.images),
            );
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
        let array = if class_names.is_some() { CLASSES } else { TRAIN.labels };
        return fault(array, format!("there are {classes} classes; 2 to {MOST_CLASSES} are possible"));
    }
    for (part, names) in &parts {
        let wrong = part.labels.iter().position(|&label| !(0..classes as i64).contains(&label));
        if let Some(at) = wrong {
            let label = part.labels[at];
            return fault(
                names.labels,
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
            return fault(names.images, format!("its shape is {dimensions:?}; {expected}"));
        }
    };
    if dimensions.contains(&0) {
        return fault(names.images, format!("its shape is {dimensions:?}, so it is empty"));
    }
    if channels_last(shape) {
        let expected = "[N, C, H, W] is expected; transpose it with (0, 3, 1, 2)";
        return fault(names.images, format!("its shape {dimensions:?} looks like [N, H, W, C]; {expected}"));
    }
    if part.labels.len() != dimensions[0] {
        let (labels, images) = (part.labels.len(), dimensions[0]);
        return fault(names.labels, format!("{labels} labels for {images} images"));
    }
    if let Some(samples) = part.samples.as_ref().filter(|samples| samples.len() != dimensions[0]) {
        return fault(
            names.samples,
            format!("{} sample numbers for {} images", samples.len(), dimensions[0]),
        );
    }
    let numbers = if part.values.are_bytes() { 0 } else { part.values.len() };
    if let Some(at) = (0..numbers).find(|&at| !part.values.number(at).is_finite()) {
        let found = part.values.number(at);
        return fault(names.images, format!("element {at} is {found}; finite numbers are expected"));
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
        return fault(TEST.images, reason);
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
}
