//! `mnist` and `fashion-mnist`: the idx format of LeCun et al., plain or compressed with gzip.
//!
//! A file has a magic number that contains the number of dimensions, then the dimensions, then bytes. Numbers
//! are big-endian.

use super::budget::{self, Budget};
use super::{DataError, Dataset, Flaw, Info, Split, TEST_SAMPLES};
use leaklab_engine::Shape;
use std::path::{Path, PathBuf};

/// The largest file after decompression: a hundred thousand images of 28x28.
const LARGEST: u64 = 16 + 784 * 100_000;

/// Loads MNIST or Fashion-MNIST from `folder`, or from the folder of its name in `folder`.
pub(super) fn load(info: &Info, folder: &Path, _name: &str) -> Result<Dataset, DataError> {
    for place in [folder.join(info.name), folder.to_owned()] {
        if let Some(images) = file(&place, "train-images", 3) {
            let labels = file(&place, "train-labels", 1);
            let train = split(info, &images, labels, &place, 0)?;
            let images = file(&place, "t10k-images", 3).ok_or_else(|| info.missing(&place))?;
            let labels = file(&place, "t10k-labels", 1);
            return Ok(info.dataset(train, split(info, &images, labels, &place, TEST_SAMPLES)?));
        }
    }
    Err(info.missing(folder))
}

/// The file of a part, under one of its possible names.
fn file(place: &Path, part: &str, dimensions: usize) -> Option<PathBuf> {
    let names = ["-idx", ".idx"].map(|separator| format!("{part}{separator}{dimensions}-ubyte"));
    names
        .iter()
        .flat_map(|name| [name.clone(), format!("{name}.gz")])
        .map(|name| place.join(name))
        .find(|p| p.is_file())
}

fn split(
    info: &Info,
    images: &Path,
    labels: Option<PathBuf>,
    place: &Path,
    first: u32,
) -> Result<Split, DataError> {
    let labels = labels.ok_or_else(|| info.missing(place))?;
    let pixels = parse_images(&read(images)?, info.shape).map_err(|flaw| flaw.of(images))?;
    let classes = parse_labels(&read(&labels)?, info.class_names.len()).map_err(|flaw| flaw.of(&labels))?;
    let count = pixels.len() / info.shape.neurons();
    if classes.len() != count {
        let reason = format!("it has {} labels, but {} has {count} images", classes.len(), images.display());
        return Err(Flaw::new(4, reason).of(&labels));
    }
    Ok(Split::new(pixels, classes, first))
}

/// A file's bytes, decompressed if they are gzip.
fn read(path: &Path) -> Result<Vec<u8>, DataError> {
    let bytes = budget::read_file(path, LARGEST).map_err(DataError::io(path))?;
    decompress(bytes).map_err(|flaw| flaw.of(path))
}

/// The bytes, decompressed if they are gzip, up to the size that a data set can have.
pub fn decompress(bytes: Vec<u8>) -> Result<Vec<u8>, Flaw> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    Budget::of(LARGEST)
        .read_to_end(flate2::read::GzDecoder::new(&bytes[..]))
        .map_err(|error| Flaw::new(0, format!("the gzip data is damaged or truncated: {error}")))
}

/// The dimensions in an idx header and the bytes after it.
fn header<'a, const N: usize>(bytes: &'a [u8], what: &str) -> Result<([usize; N], &'a [u8]), Flaw> {
    let word = |i: usize| -> Result<u32, Flaw> {
        let four = bytes.get(4 * i..4 * i + 4).and_then(|b| b.try_into().ok());
        four.map(u32::from_be_bytes).ok_or_else(|| Flaw::new(bytes.len(), "the file ends within its header"))
    };
    let expected = 0x800 + N as u32;
    match word(0)? {
        found if found == expected => {}
        found => {
            let reason =
                format!("its magic number is {found:#010x}; an idx file of {what} has {expected:#010x}");
            return Err(Flaw::new(0, reason));
        }
    }
    let mut dimensions = [0; N];
    for (i, dimension) in dimensions.iter_mut().enumerate() {
        *dimension = word(i + 1)? as usize;
    }
    let body = &bytes[4 * (N + 1)..];
    let size = dimensions.iter().try_fold(1usize, |size, &d| size.checked_mul(d));
    match size {
        Some(size) if size > 0 && size == body.len() => Ok((dimensions, body)),
        _ => {
            let reason = format!("{} bytes of {what} do not fill the dimensions {dimensions:?}", body.len());
            Err(Flaw::new(bytes.len(), reason))
        }
    }
}

/// The images of an idx file, `[image][row][column]`.
pub fn parse_images(bytes: &[u8], shape: Shape) -> Result<Vec<u8>, Flaw> {
    let ([_, height, width], pixels) = header(bytes, "images")?;
    if (height, width) != (shape.height, shape.width) {
        let reason = format!("its images have {height}x{width} pixels, not {}x{}", shape.height, shape.width);
        return Err(Flaw::new(8, reason));
    }
    Ok(pixels.to_vec())
}

/// The labels of an idx file.
pub fn parse_labels(bytes: &[u8], classes: usize) -> Result<Vec<u8>, Flaw> {
    let ([_], labels) = header(bytes, "labels")?;
    match labels.iter().position(|&label| usize::from(label) >= classes) {
        Some(i) => Err(Flaw::new(8 + i, format!("label {} is not one of 0 to {}", labels[i], classes - 1))),
        None => Ok(labels.to_vec()),
    }
}
