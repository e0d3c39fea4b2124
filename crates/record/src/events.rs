//! Scalars for TensorBoard: a file of framed records, each an `Event` protocol buffer.
//!
//! The format is written without a library, since a scalar event has only four fields. A resumed run
//! truncates the file after its checkpoint's epoch and appends to it, so that a curve has one point per epoch
//! however often the run was stopped.

use crate::error::RecordError;
use crate::file;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// An open event file.
#[derive(Debug)]
pub struct Events {
    path: PathBuf,
    file: File,
}

impl Events {
    /// Opens a file and truncates it after the last complete record of a step up to `last`. A new file gets
    /// its version record.
    pub fn open(path: &Path, last: u64) -> Result<Self, RecordError> {
        let failed = "cannot be written";
        let old = match file::read(path, file::LARGEST_TEXT) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            other => other.map_err(RecordError::io(path, "cannot be read"))?,
        };
        let kept = kept_length(&old, last);
        let open = || -> std::io::Result<File> {
            let mut file = file::open_for_writing(path, File::options().write(true))?;
            file.set_len(kept as u64)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        let file = open().map_err(RecordError::io(path, failed))?;
        let mut events = Events { path: path.to_owned(), file };
        if kept == 0 {
            let mut version = event(0);
            bytes_field(&mut version, 3, b"brain.Event:2");
            events.record(&version)?;
        }
        Ok(events)
    }

    /// Appends scalars of one step. Values that are not finite are omitted.
    pub fn scalars(&mut self, step: u64, values: &[(String, f64)]) -> Result<(), RecordError> {
        let mut summary = Vec::new();
        for (tag, x) in values.iter().filter(|(_, x)| x.is_finite()) {
            let mut value = Vec::new();
            bytes_field(&mut value, 1, tag.as_bytes());
            value.push(2 << 3 | 5);
            value.extend_from_slice(&(*x as f32).to_le_bytes());
            bytes_field(&mut summary, 1, &value);
        }
        let mut message = event(step);
        bytes_field(&mut message, 5, &summary);
        self.record(&message)
    }

    /// Appends a record: length, checksum of the length, data, checksum of the data.
    fn record(&mut self, data: &[u8]) -> Result<(), RecordError> {
        let length = (data.len() as u64).to_le_bytes();
        let mut bytes = length.to_vec();
        bytes.extend_from_slice(&masked_crc(&length).to_le_bytes());
        bytes.extend_from_slice(data);
        bytes.extend_from_slice(&masked_crc(data).to_le_bytes());
        self.file.write_all(&bytes).map_err(RecordError::io(&self.path, "cannot be written"))
    }
}

/// The beginning of an event: wall time and step.
fn event(step: u64) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64());
    let mut message = vec![1 << 3 | 1];
    message.extend_from_slice(&now.to_le_bytes());
    message.push(2 << 3);
    varint(&mut message, step);
    message
}

fn varint(out: &mut Vec<u8>, mut x: u64) {
    while x >= 0x80 {
        out.push(x as u8 | 0x80);
        x >>= 7;
    }
    out.push(x as u8);
}

fn bytes_field(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Length of the complete records at the beginning of the file whose step is at most `last`.
fn kept_length(bytes: &[u8], last: u64) -> usize {
    let mut kept = 0;
    while let Some(rest) = bytes.get(kept..).filter(|rest| rest.len() >= 16) {
        let length = u64::from_le_bytes(rest[..8].try_into().expect("eight bytes"));
        let Some(end) = usize::try_from(length).ok().and_then(|n| n.checked_add(12)) else { break };
        let Some(check) = end.checked_add(4).and_then(|stop| rest.get(end..stop)) else { break };
        let data = &rest[12..end];
        if check != masked_crc(data).to_le_bytes() || data.len() < 11 {
            break;
        }
        let step = data[10..].iter().take_while(|&&b| b >= 0x80).count() + 1;
        let step = data[10..].iter().take(step).rev().fold(0u64, |x, &b| x << 7 | u64::from(b & 0x7f));
        if step > last {
            break;
        }
        kept += end + 4;
    }
    kept
}

/// The checksum of the record format: CRC-32C, rotated and offset.
fn masked_crc(bytes: &[u8]) -> u32 {
    let crc = !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ (crc & 1) * 0x82f6_3b78)
    });
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_castagnoli() {
        // RFC 3720, appendix B.4: 32 bytes of zeros give 0x8a9136aa.
        assert_eq!(masked_crc(&[0; 32]), 0x8a91_36aa_u32.rotate_right(15).wrapping_add(0xa282_ead8));
    }

    #[test]
    fn a_resumed_run_has_one_record_per_epoch() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let scalars = [("test/accuracy".to_owned(), 0.5), ("nothing".to_owned(), f64::NAN)];
        let mut events = Events::open(&path, 0).unwrap();
        for step in 1..=300 {
            events.scalars(step, &scalars).unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(kept_length(&whole, 300), whole.len());
        let after = kept_length(&whole, 200);
        assert!(after < whole.len());
        std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let mut events = Events::open(&path, 200).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), after as u64);
        events.scalars(201, &scalars).unwrap();
        let again = std::fs::read(&path).unwrap();
        assert_eq!(again.len(), kept_length(&whole, 201));
        assert_eq!(again[..after], whole[..after]);
    }
}
