//! Files of one JSON object per line, appended to while a run goes on.
//!
//! A killed process leaves at most a torn last line. Readers pass over it; a run that resumes removes it, together
//! with the lines of epochs that will be trained again.

use crate::atomic;
use crate::error::RecordError;
use serde::{Serialize, de::DeserializeOwned};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Appends one line and waits until it is on the disk.
pub fn append(path: &Path, value: &impl Serialize) -> Result<(), RecordError> {
    let mut line = serde_json::to_vec(value).map_err(|e| RecordError::malformed(path, "record", e))?;
    line.push(b'\n');
    File::options()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(&line).and_then(|()| file.sync_data()))
        .map_err(RecordError::io(path, "cannot be written"))
}

/// All complete lines of a file in the given format; none if the file does not exist.
pub fn read<T: DeserializeOwned>(
    path: &Path,
    what: &'static str,
    format: u32,
) -> Result<Vec<T>, RecordError> {
    let bytes = match fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(RecordError::io(path, "cannot be read"))?,
    };
    let complete = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |end| end + 1);
    let mut values = Vec::new();
    for (i, line) in bytes[..complete].split(|&b| b == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let malformed =
            |e: serde_json::Error| RecordError::malformed(path, what, format!("line {}: {e}", i + 1));
        let value: serde_json::Value = serde_json::from_slice(line).map_err(malformed)?;
        let found = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
        RecordError::check_format(path, what, found, format)?;
        values.push(serde_json::from_value(value).map_err(malformed)?);
    }
    Ok(values)
}

/// Rewrites a file to the lines that `keep` accepts, and drops a torn last line. Lines that are kept keep their bytes.
pub fn retain<T: DeserializeOwned>(path: &Path, keep: impl Fn(&T) -> bool) -> Result<(), RecordError> {
    let bytes = match fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(RecordError::io(path, "cannot be read"))?,
    };
    let mut kept = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|&b| b == b'\n') {
        if line.ends_with(b"\n") && serde_json::from_slice::<T>(line).is_ok_and(|value| keep(&value)) {
            kept.extend_from_slice(line);
        }
    }
    if kept == bytes {
        return Ok(());
    }
    atomic::write(path, &kept).map_err(RecordError::io(path, "cannot be written"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

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
        retain::<Line>(&path, |line| line.epoch <= 1).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"format\":1,\"epoch\":1}\n");
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
