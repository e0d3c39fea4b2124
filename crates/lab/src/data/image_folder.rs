//! `image-folder`: the user's own images, a folder of PNG or JPEG files per class.
//!
//! The folder is `--data-dir`. It contains either `train` and `test` with a folder per class in each, or the
//! class folders themselves; then every fifth file of a class, in the order of names, is for testing. Classes
//! are numbered in the order of their names. Images are scaled to 3x32x32, or to 3xHxW with
//! `image-folder:HxW`, whatever their proportions; transparent parts become black.

use super::{DataError, Dataset, Flaw, Info, Split, TEST_SAMPLES, budget, own_pool};
use image::imageops::FilterType;
use leaklab_engine::Shape;
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Limit for the sides of an image that is read, in pixels.
const LONGEST: u32 = 16_384;
/// Limit for the number of pixels of an image that is read: 64 million, which take 256 MB.
const MOST_PIXELS: u64 = 64 << 20;
/// Images of more pixels than this are decoded one at a time, whatever the number of threads.
const LARGE: u64 = 4 << 20;
/// The largest image file that is read.
const LARGEST_FILE: u64 = 256 << 20;
/// The largest side to scale to, in pixels.
const LARGEST: usize = 512;

/// Loads the class folders of `folder`.
pub(super) fn load(info: &Info, folder: &Path, name: &str) -> Result<Dataset, DataError> {
    let shape = size(info, name)?;
    let divided = folder.join("train").is_dir() && folder.join("test").is_dir();
    let train_folder = if divided { folder.join("train") } else { folder.to_owned() };
    let class_names = classes(&train_folder)?;
    if class_names.len() < 2 || class_names.len() > 256 {
        let found = match class_names.as_slice() {
            [] => "no class folder".to_owned(),
            [only] => format!("one class folder, {only}"),
            _ => format!("{} class folders", class_names.len()),
        };
        let needed = "2 to 256 are needed, either in the folder itself or in each of train and test";
        let remedy = format!("it has {found}; {needed}");
        return Err(DataError::Missing { name: name.to_owned(), folder: train_folder, remedy });
    }
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (class, class_name) in class_names.iter().enumerate() {
        let files = images(&train_folder.join(class_name))?;
        if divided {
            train.extend(files.into_iter().map(|file| (file, class as u8)));
            let files = images(&folder.join("test").join(class_name))?;
            test.extend(files.into_iter().map(|file| (file, class as u8)));
        } else {
            for (i, file) in files.into_iter().enumerate() {
                if i % 5 == 4 { &mut test } else { &mut train }.push((file, class as u8));
            }
        }
    }
    if let Some(other) = divided
        .then(|| classes(&folder.join("test")))
        .transpose()?
        .into_iter()
        .flatten()
        .find(|c| !class_names.contains(c))
    {
        return Err(DataError::Request(format!(
            "{}: there is no such class in {}",
            folder.join("test").join(other).display(),
            train_folder.display()
        )));
    }
    if train.is_empty() || test.is_empty() {
        return Err(DataError::Missing {
            name: name.to_owned(),
            folder: folder.to_owned(),
            remedy: "each class folder needs PNG or JPEG files, at least five if there is no test folder"
                .to_owned(),
        });
    }
    let dataset = Dataset {
        name: name.to_owned(),
        shape,
        classes: class_names.len(),
        class_names,
        train: split(&train, shape, 0)?,
        test: split(&test, shape, TEST_SAMPLES)?,
    };
    Ok(dataset)
}

/// The size of images that a name requests.
fn size(info: &Info, name: &str) -> Result<Shape, DataError> {
    let Some((_, size)) = name.split_once(':') else { return Ok(info.shape) };
    let side = |text: &str| text.parse().ok().filter(|side| (1..=LARGEST).contains(side));
    let sides = size.split_once('x').and_then(|(h, w)| Some((side(h)?, side(w)?)));
    let (height, width) = sides.ok_or_else(|| {
        DataError::Request(format!(
            "'{name}' does not end in a size like 32x32, each side from 1 to {LARGEST}"
        ))
    })?;
    Ok(Shape { channels: 3, height, width })
}

/// Sorted entries of a folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let read = std::fs::read_dir(folder).map_err(DataError::io(folder))?;
    let mut paths = read
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(DataError::io(folder))?;
    paths.retain(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')));
    paths.sort();
    Ok(paths)
}

fn classes(folder: &Path) -> Result<Vec<String>, DataError> {
    let name = |path: PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        let reason = "its name is not UTF-8, and it would be the name of a class; rename it";
        name.ok_or_else(|| DataError::Request(format!("{}: {reason}", path.display())))
    };
    entries(folder)?.into_iter().filter(|path| path.is_dir()).map(name).collect()
}

fn images(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let wanted = |path: &PathBuf| {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        ["png", "jpg", "jpeg"].contains(&ending.as_str())
    };
    Ok(entries(folder)?.into_iter().filter(wanted).collect())
}

fn split(files: &[(PathBuf, u8)], shape: Shape, first: u32) -> Result<Split, DataError> {
    let gate = Mutex::new(());
    let pool = own_pool()?;
    let read = |(path, _): &(PathBuf, u8)| {
        let bytes = budget::read_file(path, LARGEST_FILE).map_err(DataError::io(path))?;
        let large = pixels(&bytes).is_ok_and(|pixels| pixels > LARGE);
        let _one_at_a_time = large.then(|| gate.lock().unwrap_or_else(PoisonError::into_inner));
        parse(&bytes, shape).map_err(|flaw| flaw.of(path))
    };
    let images = pool.install(|| files.par_iter().map(read).collect::<Result<Vec<_>, _>>())?;
    Ok(Split::new(images.concat(), files.iter().map(|file| file.1).collect(), first))
}

/// Number of pixels according to the header of a file.
fn pixels(bytes: &[u8]) -> Result<u64, image::ImageError> {
    let reader = image::ImageReader::new(std::io::Cursor::new(bytes)).with_guessed_format()?;
    reader.into_dimensions().map(|(width, height)| u64::from(width) * u64::from(height))
}

/// Refuses a JPEG file that is cut off, which the decoder would fill with grey, and one whose header promises
/// more pixels than its bytes can hold, which would take seconds to decode. JPEG has no checksum.
fn check_jpeg(bytes: &[u8], pixels: u64) -> Result<(), Flaw> {
    if image::guess_format(bytes).ok() != Some(image::ImageFormat::Jpeg) {
        return Ok(());
    }
    // Every block of 8x8 pixels takes at least one bit.
    let most = bytes.len() as u64 * 8 * 64;
    if pixels > most {
        let reason = format!(
            "its header states {pixels} pixels, but {} bytes of JPEG hold at most {most}",
            bytes.len()
        );
        return Err(Flaw::new(0, reason));
    }
    // The last image of the file ends. Within its data, no other byte than 0 follows an 0xff, except markers.
    let last = |marker: u8| bytes.windows(2).rposition(|pair| pair == [0xff, marker]);
    if last(0xd9) < last(0xda) {
        return Err(Flaw::new(bytes.len(), "the JPEG file ends before its image does"));
    }
    Ok(())
}

/// An image file scaled to `shape`, `[channel][row][column]`.
pub fn parse(bytes: &[u8], shape: Shape) -> Result<Vec<u8>, Flaw> {
    let wrong = |error: image::ImageError| Flaw::new(0, format!("it cannot be read as PNG or JPEG: {error}"));
    let found = pixels(bytes).map_err(wrong)?;
    if found > MOST_PIXELS {
        return Err(Flaw::new(0, format!("the image has {found} pixels; {MOST_PIXELS} is the limit")));
    }
    check_jpeg(bytes, found)?;
    let mut reader = image::ImageReader::new(std::io::Cursor::new(bytes))
        .with_guessed_format()
        .map_err(|e| wrong(e.into()))?;
    let mut limits = image::Limits::default();
    limits.max_image_width = Some(LONGEST);
    limits.max_image_height = Some(LONGEST);
    limits.max_alloc = Some(256 << 20);
    reader.limits(limits);
    let image = reader.decode().map_err(wrong)?;
    let mut image = image.into_rgba8();
    for pixel in image.pixels_mut() {
        let [r, g, b, a] = pixel.0;
        let [r, g, b] = [r, g, b].map(|x| (u16::from(x) * u16::from(a) / 255) as u8);
        pixel.0 = [r, g, b, 255];
    }
    let (width, height) = (shape.width as u32, shape.height as u32);
    if image.dimensions() != (width, height) {
        image = image::imageops::resize(&image, width, height, FilterType::Triangle);
    }
    Ok((0..3).flat_map(|channel| image.pixels().map(move |pixel| pixel.0[channel])).collect())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    /// A valid JPEG file of a noisy picture.
    fn jpeg(width: u32, height: u32) -> Vec<u8> {
        let picture =
            image::RgbImage::from_fn(width, height, |x, y| image::Rgb([(x * 7) as u8, (y * 9) as u8, 80]));
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, image::ImageFormat::Jpeg).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn jpeg_files_that_are_cut_off_are_refused() {
        let shape = Shape { channels: 3, height: 8, width: 8 };
        let whole = jpeg(64, 48);
        parse(&whole, shape).unwrap();
        parse(&[&whole[..], b"trailing data"].concat(), shape).unwrap();
        for length in [whole.len() - 1, whole.len() - 40, whole.len() * 3 / 4] {
            let flaw = parse(&whole[..length], shape).unwrap_err();
            assert!(flaw.reason.contains("ends before its image does"), "{length}: {flaw:?}");
        }
        // The header alone states another size: 65,504 x 976 pixels are within the limit of all images.
        let mut vast = whole;
        let frame = vast.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
        vast[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xe0, 0x03, 0xd0]);
        let flaw = parse(&vast, shape).unwrap_err();
        assert!(flaw.reason.contains("its header states 63931904 pixels"), "{flaw:?}");
    }

    #[test]
    fn a_class_folder_whose_name_is_not_text_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in [&b"cat"[..], b"dog", b"caf\xe9"] {
            let class = folder.path().join(std::ffi::OsStr::from_bytes(name));
            std::fs::create_dir(&class).unwrap();
            (0..5).for_each(|i| image::GrayImage::new(8, 8).save(class.join(format!("{i}.png"))).unwrap());
        }
        let load = || crate::data::load("image-folder", Some(folder.path()), &crate::data::Limits::NONE);
        let message = load().unwrap_err().to_string();
        assert!(message.contains("/caf\u{fffd}: its name is not UTF-8"), "{message}");
        std::fs::remove_dir_all(folder.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"))).unwrap();
        assert_eq!(load().unwrap().class_names, ["cat", "dog"]);
    }
}
