//! Files with one JSON object per line, appended to during a run.
//!
//! A killed process leaves at most an incomplete (torn) last line. Readers skip it; a run that resumes
//! removes it, together with the lines of epochs that will be trained again. Any other line that cannot be
//! read is damage: an error names it, and the file is not changed.

use crate::atomic;
use crate::error::RecordError;
use crate::file;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Appends one line and waits until it is on the disk.
pub fn append(path: &Path, value: &impl Serialize) -> Result<(), RecordError> {
    let mut line = serde_json::to_vec(value).map_err(|e| RecordError::malformed(path, "record", e))?;
    line.push(b'\n');
    file::open_for_writing(path, File::options().append(true))
        .and_then(|mut file| file.write_all(&line).and_then(|()| file.sync_data()))
        .map_err(RecordError::io(path, "cannot be written"))
}

/// All complete lines of a file in the given format; none if the file does not exist.
pub fn read<T: DeserializeOwned>(
    path: &Path,
    what: &'static str,
    format: u32,
) -> Result<Vec<T>, RecordError> {
    let bytes = bytes_of(path)?;
    let lines = parse(path, &bytes, what, format)?;
    Ok(lines.into_iter().map(|(_, value)| value).collect())
}

/// Keeps the lines that `keep` accepts, with the same bytes, and removes the others and a torn last line. If
/// a line cannot be read, an error names it and the file is not changed.
pub fn retain<T: DeserializeOwned>(
    path: &Path,
    what: &'static str,
    format: u32,
    keep: impl Fn(&T) -> bool,
) -> Result<(), RecordError> {
    let bytes = bytes_of(path)?;
    let lines = parse::<T>(path, &bytes, what, format)?;
    let kept: Vec<&[u8]> = lines.iter().filter(|(_, value)| keep(value)).map(|(line, _)| *line).collect();
    let kept = kept.concat();
    if kept == bytes {
        return Ok(());
    }
    atomic::write(path, &kept).map_err(RecordError::io(path, "cannot be written"))
}

/// The one field that every version of a line has.
#[derive(Deserialize)]
struct Format {
    #[serde(default)]
    format: u64,
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, RecordError> {
    match file::read(path, file::LARGEST_TEXT) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(RecordError::io(path, "cannot be read")),
    }
}

/// The complete lines, each with its bytes and its value; `path` is for the message. A last line without its
/// newline is torn, and is skipped.
pub(crate) fn parse<'a, T: DeserializeOwned>(
    path: &Path,
    bytes: &'a [u8],
    what: &'static str,
    format: u32,
) -> Result<Vec<(&'a [u8], T)>, RecordError> {
    let mut values = Vec::new();
    for (i, line) in bytes.split_inclusive(|&b| b == b'\n').enumerate() {
        if !line.ends_with(b"\n") || line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let malformed =
            |e: serde_json::Error| RecordError::malformed(path, what, format!("line {}: {e}", i + 1));
        // Read without a tree of the whole line in between, which can be twenty times as large as its text.
        let found: Format = serde_json::from_slice(line).map_err(malformed)?;
        RecordError::check_format(path, what, found.format, format)?;
        values.push((line, serde_json::from_slice(line).map_err(malformed)?));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Line {
        format: u32,
        epoch: u64,
    }

    #[test]
    fn a_torn_line_is_passed_over_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        assert_eq!(read::<Line>(&path, "metrics", 1).unwrap(), []);
        for epoch in 1..=3 {
            append(&path, &Line { format: 1, epoch }).unwrap();
        }
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 4]).unwrap();
        assert_eq!(read::<Line>(&path, "metrics", 1).unwrap().len(), 2);
        retain::<Line>(&path, "metrics", 1, |line| line.epoch <= 1).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"format\":1,\"epoch\":1}\n");
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        (1..=4).for_each(|epoch| append(&path, &Line { format: 1, epoch }).unwrap());
        let whole = fs::read(&path).unwrap();
        let line = whole.len() / 4;
        // Every bit of every line, except for the last newline: without it, the last line would be torn.
        for bit in 0..8 * (whole.len() - 1) {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &bytes).unwrap();
            match retain::<Line>(&path, "metrics", 1, |line| line.epoch <= 100) {
                // The flip changed the epoch to another number.
                Ok(()) => assert_eq!(bit / 8 % line, line - 3, "bit {bit}"),
                Err(RecordError::Format { found, .. }) => assert_ne!(found, 1),
                Err(error) => {
                    // A line without its newline is joined to the next.
                    let place = format!("line {}:", bit / 8 / line + 1);
                    assert!(error.to_string().contains(&place), "bit {bit}: {error}");
                }
            }
            assert_eq!(fs::read(&path).unwrap(), bytes, "bit {bit}: the file was changed");
        }
    }

    #[test]
    fn another_format_and_rubbish_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        append(&path, &Line { format: 2, epoch: 1 }).unwrap();
        let message = read::<Line>(&path, "metrics", 1).unwrap_err().to_string();
        assert!(message.contains("format 2") && message.contains("update leaklab"), "{message}");
        fs::write(&path, "{\"format\":1,\"epoch\":1}\nrubbish\n").unwrap();
        let message = read::<Line>(&path, "metrics", 1).unwrap_err().to_string();
        assert!(message.contains("line 2"), "{message}");
    }
}
