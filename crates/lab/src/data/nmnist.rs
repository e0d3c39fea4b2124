//! `n-mnist`: MNIST digits recorded by a moving event camera (Orchard et al. 2015), 34x34 pixels, two
//! polarities.
//!
//! It is read from the publisher's folders `Train` and `Test`, or from `Train.zip` and `Test.zip`, which have
//! a folder per digit and a file per recording. An event is five bytes: x, y, then one bit of polarity and 23
//! bits of microseconds, most significant bit first.

use super::binning::{Binning, Event};
use super::budget::{self, Budget};
use super::zip::Archive;
use super::{Content, DataError, Dataset, Flaw, Info, Recordings, Split, TEST_SAMPLES};
use leaklab_engine::Shape;
use std::path::{Path, PathBuf};

/// Bytes of an event.
const EVENT: usize = 5;
/// The largest file of a recording that is read: 13 million events; those of the publisher have some
/// thousands.
const LARGEST_FILE: u64 = 64 << 20;
/// Limit for the number of recordings in a folder; an archive has at most 65534.
const MOST_FILES: usize = 1 << 20;

/// Reads the events of one file.
pub fn parse(bytes: &[u8], sensor: Shape) -> Result<Vec<Event>, Flaw> {
    if bytes.is_empty() {
        return Err(Flaw::new(0, "the file is empty; events are expected"));
    }
    let whole = bytes.len() / EVENT * EVENT;
    if whole != bytes.len() {
        let rest = bytes.len() - whole;
        let reason = format!("the last event has {rest} bytes instead of {EVENT}: the file is truncated");
        return Err(Flaw::new(whole, reason));
    }
    let mut events = Vec::with_capacity(bytes.len() / EVENT);
    let mut last = 0;
    for (i, event) in bytes.chunks_exact(EVENT).enumerate() {
        let (x, y) = (usize::from(event[0]), usize::from(event[1]));
        let time = u64::from(u32::from_be_bytes([0, event[2] & 0x7f, event[3], event[4]]));
        if x >= sensor.width || y >= sensor.height {
            let (width, height) = (sensor.width, sensor.height);
            return Err(Flaw::new(
                EVENT * i,
                format!("event {i} is at ({x}, {y}), outside of {width}x{height} pixels"),
            ));
        }
        if time < last {
            let reason = format!("event {i} is at {time} us, before the previous one at {last} us");
            return Err(Flaw::new(EVENT * i + 2, reason));
        }
        last = time;
        events.push(Event { time, x, y, polarity: usize::from(event[2] >> 7) });
    }
    Ok(events)
}

/// Loads the recordings.
pub(super) fn load(info: &Info, folder: &Path, _name: &str, binning: &Binning) -> Result<Dataset, DataError> {
    let shape = binning.shape(info.shape).map_err(DataError::Request)?;
    let places = [folder.join(info.name), folder.to_owned()];
    let find = |which: &str| {
        let names = [which.to_owned(), format!("{which}.zip")];
        let paths = places.iter().flat_map(|place| names.iter().map(move |name| place.join(name)));
        paths.into_iter().find(|path| path.exists()).ok_or_else(|| DataError::Missing {
            name: info.name.to_owned(),
            folder: folder.to_owned(),
            remedy: format!(
                "download Train.zip and Test.zip from {} into a folder and give its path with --data-dir",
                info.homepage
            ),
        })
    };
    let split = |which: &str, first: u32| -> Result<Split, DataError> {
        let path = find(which)?;
        let mut made = Recordings::new(binning.time_steps, shape).map_err(DataError::Request)?;
        let mut labels = Vec::new();
        let mut add = |label: u8, events: &[Event]| {
            binning.add(events, Some(0), shape, &mut made);
            labels.push(label);
        };
        if path.is_dir() {
            folders(&path, info.shape, MOST_FILES, &mut add)?
        } else {
            archive(&path, info.shape, &mut add)?
        }
        if labels.is_empty() {
            return Err(
                Flaw::new(0, "it has no recordings; folders 0 to 9 of .bin files are expected").of(&path)
            );
        }
        Ok(Split::of(Content::Events(made), labels, first))
    };
    let (train, test) = (split("Train", 0)?, split("Test", TEST_SAMPLES)?);
    Ok(Dataset { shape, ..info.dataset(train, test) })
}

/// Recordings of a folder, by digit and then by name; an error if there are more than `most`.
fn folders(
    path: &Path,
    sensor: Shape,
    most: usize,
    add: &mut impl FnMut(u8, &[Event]),
) -> Result<(), DataError> {
    let mut left = most;
    for digit in 0..10u8 {
        let folder = path.join(digit.to_string());
        if !folder.is_dir() {
            continue;
        }
        let entries = std::fs::read_dir(&folder).map_err(DataError::io(&folder))?;
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in entries {
            let file = entry.map_err(DataError::io(&folder))?.path();
            if file.extension().is_some_and(|ending| ending == "bin") {
                left = left.checked_sub(1).ok_or_else(|| {
                    DataError::Request(format!("{}: it has more than {most} recordings", path.display()))
                })?;
                files.push(file);
            }
        }
        files.sort();
        for file in files {
            let bytes = budget::read_file(&file, LARGEST_FILE).map_err(DataError::io(&file))?;
            add(digit, &parse(&bytes, sensor).map_err(|flaw| flaw.of(&file))?);
        }
    }
    Ok(())
}

/// Recordings of an archive whose paths end in `DIGIT/NUMBER.bin`, in the same order.
fn archive(path: &Path, sensor: Shape, add: &mut impl FnMut(u8, &[Event])) -> Result<(), DataError> {
    let file = leaklab_record::file::open(path).map_err(DataError::io(path))?;
    // One budget for all recordings, since a directory may list the same bytes many times. Events compress to
    // about half their size.
    let mut budget = Budget::of_weights(file.metadata().map_err(DataError::io(path))?.len() as usize);
    let mut archive = Archive::open(std::io::BufReader::new(file)).map_err(|flaw| flaw.of(path))?;
    let mut entries = Vec::new();
    for entry in &archive.entries {
        let mut parts = entry.name.rsplit('/');
        let (name, folder) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let digit = folder.parse::<u8>().ok().filter(|digit| *digit < 10);
        if let (Some(digit), true) = (digit, name.ends_with(".bin")) {
            entries.push((digit, name.to_owned(), entry.clone()));
        }
    }
    entries.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    // An archive that is too large as a whole is refused before the first recording is read.
    let mut ahead = budget.clone();
    entries.iter().try_for_each(|(_, _, entry)| entry.charge(&mut ahead)).map_err(|flaw| flaw.of(path))?;
    for (digit, _, entry) in entries {
        if entry.size() > LARGEST_FILE {
            let reason = format!("entry '{}' has more than {LARGEST_FILE} bytes", entry.name);
            return Err(Flaw { offset: entry.offset, reason }.of(path));
        }
        let bytes = archive.read(&entry, &mut budget).map_err(|flaw| flaw.of(path))?;
        let within = |flaw: Flaw| {
            let reason = format!("entry '{}', offset {}: {}", entry.name, flaw.offset, flaw.reason);
            Flaw { offset: entry.offset, reason }.of(path)
        };
        add(digit, &parse(&bytes, sensor).map_err(within)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENSOR: Shape = Shape { channels: 2, height: 34, width: 34 };

    #[test]
    fn five_bytes_an_event() {
        let bytes = [3, 33, 0x80, 0x01, 0x02, 0, 0, 0x01, 0, 0];
        let events = parse(&bytes, SENSOR).unwrap();
        assert_eq!(events[0], Event { time: 0x102, x: 3, y: 33, polarity: 1 });
        assert_eq!(events[1], Event { time: 0x1_0000, x: 0, y: 0, polarity: 0 });
    }

    #[test]
    fn recordings_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("3")).unwrap();
        for name in ["a.bin", "b.bin", "not a recording"] {
            std::fs::write(folder.path().join("3").join(name), [0; 5]).unwrap();
        }
        let mut found = Vec::new();
        let mut add = |digit: u8, events: &[Event]| found.push((digit, events.len()));
        folders(folder.path(), SENSOR, 2, &mut add).unwrap();
        let message = folders(folder.path(), SENSOR, 1, &mut add).unwrap_err().to_string();
        assert!(message.ends_with("it has more than 1 recordings"), "{message}");
        assert_eq!(found, [(3, 1), (3, 1)]);
    }

    #[test]
    fn errors_have_an_offset() {
        let flaw = |bytes: &[u8]| parse(bytes, SENSOR).unwrap_err();
        assert_eq!(flaw(&[1, 1, 0, 0, 1, 34, 0, 0, 0, 2]).offset, 5);
        assert!(flaw(&[1, 1, 0, 0, 1, 0, 34, 0, 0, 2]).reason.contains("(0, 34), outside of 34x34"));
        assert!(flaw(&[1, 1, 0, 0, 9, 1, 1, 0, 0, 8]).reason.contains("8 us, before"));
        assert_eq!(flaw(&[1, 1, 0, 0, 9, 1, 1]).offset, 5);
    }
}
