//! `svhn`: Street View House Numbers, cropped digits, from the official `train_32x32.mat` and
//! `test_32x32.mat`.
//!
//! `X` is 32x32x3xN bytes. `y` is Nx1, with 10 for the digit 0, which is class 0 here. Separate record files
//! as in [`super::cifar10`] are read too.

use super::matlab::{self, Array, Numbers};
use super::{DataError, Dataset, Flaw, Info, Split, TEST_SAMPLES, budget, cifar10};
use std::path::Path;

const SIDE: usize = 32;
const IMAGE: usize = 3 * SIDE * SIDE;
/// Limit for the number of images of a file; the official files have at most 73,257.
const MOST: usize = 100_000;

/// Loads SVHN from `folder`, or from `svhn` in `folder`.
pub(super) fn load(info: &Info, folder: &Path, _name: &str) -> Result<Dataset, DataError> {
    for place in [folder.join("svhn"), folder.to_owned()] {
        let files = ["train_32x32.mat", "test_32x32.mat"].map(|name| place.join(name));
        if files.iter().any(|file| file.is_file()) {
            let [train, test] = &files;
            return Ok(info.dataset(read(train, 0)?, read(test, TEST_SAMPLES)?));
        }
    }
    match cifar10::loose(info, folder)? {
        Some(dataset) => Ok(dataset),
        None => Err(info.missing(folder)),
    }
}

fn read(path: &Path, first: u32) -> Result<Split, DataError> {
    let bytes = budget::read_file(path, 2 * (MOST * IMAGE) as u64).map_err(DataError::io(path))?;
    let (images, labels) = parse(&bytes).map_err(|flaw| flaw.of(path))?;
    Ok(Split::new(images, labels, first))
}

/// Images `[image][channel][row][column]` and labels 0 to 9.
pub fn parse(bytes: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Flaw> {
    let arrays = matlab::parse(bytes, MOST * IMAGE)?;
    let named = |name: &str| -> Result<&Array, Flaw> {
        arrays.iter().find(|array| array.name == name).ok_or_else(|| {
            let found: Vec<&str> = arrays.iter().map(|array| array.name.as_str()).collect();
            Flaw::new(bytes.len(), format!("there is no array '{name}'; the file has {found:?}"))
        })
    };
    let (x, y) = (named("X")?, named("y")?);
    let count = match (&x.dimensions[..], &x.data) {
        ([SIDE, SIDE, 3], Numbers::Bytes(_)) => 1,
        (&[SIDE, SIDE, 3, count], Numbers::Bytes(_)) if count > 0 => count,
        (dimensions, _) => {
            return Err(Flaw::new(
                x.offset,
                format!("X has dimensions {dimensions:?}, not 32x32x3xN of bytes"),
            ));
        }
    };
    if y.data.len() != count {
        let reason = format!("y has {} labels, but X has {count} images", y.data.len());
        return Err(Flaw::new(y.offset, reason));
    }
    let mut labels = Vec::with_capacity(count);
    for i in 0..count {
        let label = y.data.get(i);
        if !(1.0..=10.0).contains(&label) || label.fract() != 0.0 {
            return Err(Flaw::new(
                y.offset,
                format!("label {label} of image {i} is not one of 1 to 10 (10 is the digit 0)"),
            ));
        }
        labels.push((label as u8) % 10);
    }
    let Numbers::Bytes(columns) = &x.data else { unreachable!("matched above") };
    let mut images = vec![0; columns.len()];
    for (plane, out) in columns.chunks_exact(SIDE * SIDE).zip(images.chunks_exact_mut(SIDE * SIDE)) {
        for row in 0..SIDE {
            for column in 0..SIDE {
                out[row * SIDE + column] = plane[column * SIDE + row];
            }
        }
    }
    Ok((images, labels))
}
