//! `cifar10`: the official binary version, as its folder, its `.tar.gz`, or separate record files.
//!
//! A record is a label byte and three planes of 32x32; a file consists only of records. Separate record files
//! are named `train*.bin` and `test*.bin`: parts of the official files in the same format, also of SVHN.

use super::{DataError, Dataset, Flaw, Info, Split, TEST_SAMPLES, archive, budget};
use leaklab_record::file;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

const PLANES: usize = 3 * 32 * 32;
const RECORD: usize = PLANES + 1;
/// The official files have 10,000 records; a file may have at most ten times as many.
const LARGEST: u64 = 100_000 * RECORD as u64;
/// The official archive unpacks to 184 MB; almost three times that is the limit.
const LARGEST_ARCHIVE: u64 = 512 << 20;

/// Name of the archive at its source.
pub const ARCHIVE: &str = "cifar-10-binary.tar.gz";
/// The folder in the archive.
pub const FOLDER: &str = "cifar-10-batches-bin";
const TRAIN: [&str; 5] =
    ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];
const TEST: &str = "test_batch.bin";

/// Loads CIFAR-10 from `folder`, from its own folder or archive in `folder`, or from separate record files.
pub(super) fn load(info: &Info, folder: &Path, _name: &str) -> Result<Dataset, DataError> {
    for place in [folder.join(FOLDER), folder.join("cifar10").join(FOLDER), folder.to_owned()] {
        if place.join(TEST).is_file() || place.join(TRAIN[0]).is_file() {
            let train = TRAIN.map(|name| place.join(name));
            return Ok(info.dataset(read(&train, 0)?, read(&[place.join(TEST)], TEST_SAMPLES)?));
        }
    }
    for archive in [folder.join(ARCHIVE), folder.join("cifar10").join(ARCHIVE)] {
        if archive.is_file() {
            let file = file::open(&archive).map_err(DataError::io(&archive))?;
            let (train, test) = parse_archive(Box::new(BufReader::new(file)), &archive)?;
            return Ok(info.dataset(train, test));
        }
    }
    match loose(info, folder)? {
        Some(dataset) => Ok(dataset),
        None => Err(info.missing(folder)),
    }
}

/// Loads `train*.bin` and `test*.bin` of a folder, if it has both.
pub(super) fn loose(info: &Info, folder: &Path) -> Result<Option<Dataset>, DataError> {
    let mut files: Vec<PathBuf> = match std::fs::read_dir(folder) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
        Err(_) => return Ok(None),
    };
    files.sort();
    let named = |start: &str| -> Vec<PathBuf> {
        let name =
            |path: &PathBuf| path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        files.iter().filter(|p| name(p).starts_with(start) && name(p).ends_with(".bin")).cloned().collect()
    };
    let (train, test) = (named("train"), named("test"));
    if train.is_empty() || test.is_empty() {
        return Ok(None);
    }
    Ok(Some(info.dataset(read(&train, 0)?, read(&test, TEST_SAMPLES)?)))
}

/// Reads record files, one after the other, into one split.
fn read(paths: &[PathBuf], first: u32) -> Result<Split, DataError> {
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for path in paths {
        let bytes = budget::read_file(path, LARGEST).map_err(DataError::io(path))?;
        parse(&bytes, &mut images, &mut labels).map_err(|flaw| flaw.of(path))?;
    }
    Ok(Split::new(images, labels, first))
}

/// Appends the records in `bytes`.
pub fn parse(bytes: &[u8], images: &mut Vec<u8>, labels: &mut Vec<u8>) -> Result<(), Flaw> {
    if bytes.len() as u64 > LARGEST {
        return Err(Flaw::new(
            LARGEST as usize,
            "the file has more than 100,000 records of 3,073 bytes; it must be of another format",
        ));
    }
    if bytes.is_empty() {
        return Err(Flaw::new(0, "the file is empty; records of 3,073 bytes are expected"));
    }
    let whole = bytes.len() / RECORD * RECORD;
    if whole != bytes.len() {
        let left = bytes.len() - whole;
        return Err(Flaw::new(
            whole,
            format!("the last record has {left} bytes instead of 3,073: the file is truncated"),
        ));
    }
    if let Some(index) = bytes.chunks_exact(RECORD).position(|record| record[0] > 9) {
        let label = bytes[index * RECORD];
        return Err(Flaw::new(
            index * RECORD,
            format!("label {label} of record {index} is not one of 0 to 9"),
        ));
    }
    images.reserve(bytes.len() / RECORD * PLANES);
    for record in bytes.chunks_exact(RECORD) {
        labels.push(record[0]);
        images.extend_from_slice(&record[1..]);
    }
    Ok(())
}

/// Reads the training and the test images of the official archive without unpacking it to disk. `path` is
/// used in messages.
pub fn parse_archive(bytes: Box<dyn BufRead + '_>, path: &Path) -> Result<(Split, Split), DataError> {
    let mut parts: [Option<(Vec<u8>, Vec<u8>)>; 6] = Default::default();
    archive::walk(bytes, path, LARGEST_ARCHIVE, |entry, inside| {
        let name = inside.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let place = TRAIN.iter().chain([&TEST]).position(|known| *known == name);
        if let Some(place) = place.filter(|_| entry.header().entry_type().is_file()) {
            let (images, labels) = parts[place].insert(Default::default());
            let inside = path.join(&inside);
            let bytes = archive::contents(entry, LARGEST, &inside)?;
            parse(&bytes, images, labels).map_err(|flaw| flaw.of(&inside))?;
        }
        Ok(())
    })?;
    if let Some(absent) = parts.iter().position(Option::is_none) {
        let name = TRAIN.get(absent).unwrap_or(&TEST);
        return Err(Flaw::new(0, format!("the archive has no file {FOLDER}/{name}")).of(path));
    }
    let [a, b, c, d, e, test] = parts.map(Option::unwrap_or_default);
    let (images, labels): (Vec<_>, Vec<_>) = [a, b, c, d, e].into_iter().unzip();
    let train = Split::new(images.concat(), labels.concat(), 0);
    Ok((train, Split::new(test.0, test.1, TEST_SAMPLES)))
}
