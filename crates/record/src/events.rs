//! Scalars for TensorBoard: a file of framed records, each an `Event` protocol buffer.
//!
//! The format is written without a library, since a scalar event has only four fields. A resumed run
//! truncates the file after its checkpoint's epoch and appends to it, so that a curve has one point per epoch
//! however often the run was stopped. Everything in the file except for wall times is also in the metrics, so
//! a damaged file is written again from them.

use crate::atomic;
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

/// Values of one step, each with its tag.
pub type Scalars = Vec<(String, f64)>;

impl Events {
    /// Opens a file that then has a record for each of the steps 1, 2, .. of `steps`, and nothing after them.
    /// If a record of these is missing or damaged, the file is written again from `steps`; the second value
    /// is the damage, if there was a file.
    pub fn open(path: &Path, steps: &[Scalars]) -> Result<(Self, Option<RecordError>), RecordError> {
        let failed = "cannot be written";
        let old = match file::read(path, file::LARGEST_TEXT) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            other => other.map_err(RecordError::io(path, "cannot be read"))?,
        };
        let mut damage = None;
        let kept = match kept_length(&old, steps.len() as u64) {
            Ok(kept) => kept,
            Err(place) => {
                let reason = format!("the record at byte {place} is not complete or not as it was written");
                damage = (!old.is_empty()).then(|| RecordError::Damaged { path: path.to_owned(), reason });
                let records = (1..).zip(steps).map(|(step, values)| frame(&scalars(step, values)));
                let whole: Vec<u8> = std::iter::once(frame(&version())).chain(records).flatten().collect();
                atomic::write(path, &whole).map_err(RecordError::io(path, failed))?;
                whole.len()
            }
        };
        let open = || -> std::io::Result<File> {
            let mut file = file::open_for_writing(path, File::options().write(true))?;
            file.set_len(kept as u64)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        let file = open().map_err(RecordError::io(path, failed))?;
        Ok((Events { path: path.to_owned(), file }, damage))
    }

    /// Appends the record of one step. Values that are not finite are omitted.
    pub fn append(&mut self, step: u64, values: &Scalars) -> Result<(), RecordError> {
        let record = frame(&scalars(step, values));
        self.file.write_all(&record).map_err(RecordError::io(&self.path, "cannot be written"))
    }
}

/// A record: length, checksum of the length, data, checksum of the data.
pub fn frame(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let checks = [masked_crc(&length), masked_crc(data)].map(u32::to_le_bytes);
    [&length[..], &checks[0], data, &checks[1]].concat()
}

/// The first event of a file.
fn version() -> Vec<u8> {
    let mut message = event(0);
    bytes_field(&mut message, 3, b"brain.Event:2");
    message
}

/// The event of one step.
fn scalars(step: u64, values: &Scalars) -> Vec<u8> {
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
    message
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

/// Length of the records of the version and of the steps 1 to `last`, with which a file begins. An error is
/// the position of the first of them that is missing or damaged.
pub fn kept_length(bytes: &[u8], last: u64) -> Result<usize, usize> {
    let mut kept = 0;
    for step in 0..=last {
        kept += record_length(&bytes[kept..], step).ok_or(kept)?;
    }
    Ok(kept)
}

/// Length of the record with which some bytes begin, if it is complete and intact and belongs to a step.
fn record_length(bytes: &[u8], step: u64) -> Option<usize> {
    let length = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let data = bytes.get(12..usize::try_from(length).ok()?.checked_add(12)?)?;
    let record = frame(data);
    let mut field = vec![2 << 3];
    varint(&mut field, step);
    (bytes.starts_with(&record) && data.get(9..)?.starts_with(&field)).then_some(record.len())
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

    fn values(step: u64) -> Scalars {
        vec![("test/accuracy".to_owned(), 1.0 / step as f64), ("nothing".to_owned(), f64::NAN)]
    }

    fn history(steps: u64) -> Vec<Scalars> {
        (1..=steps).map(values).collect()
    }

    /// A file of some steps without their wall times.
    fn timeless(mut bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            records.push(bytes[12 + 9..12 + length].to_vec());
            bytes.drain(..length + 16);
        }
        records
    }

    #[test]
    fn a_resumed_run_has_one_record_per_epoch() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let (mut events, damage) = Events::open(&path, &[]).unwrap();
        assert!(damage.is_none());
        for step in 1..=300 {
            events.append(step, &values(step)).unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(kept_length(&whole, 300), Ok(whole.len()));
        let after = kept_length(&whole, 200).unwrap();
        assert!(after < whole.len());
        std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let (mut events, damage) = Events::open(&path, &history(200)).unwrap();
        assert!(damage.is_none());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), after as u64);
        events.append(201, &values(201)).unwrap();
        let again = std::fs::read(&path).unwrap();
        assert_eq!(Ok(again.len()), kept_length(&whole, 201));
        assert_eq!(again[..after], whole[..after]);
        // The file was removed.
        std::fs::remove_file(&path).unwrap();
        assert!(Events::open(&path, &history(201)).unwrap().1.is_none());
        assert_eq!(timeless(std::fs::read(&path).unwrap()), timeless(again));
    }

    #[test]
    fn no_flipped_bit_and_no_truncation_loses_an_epoch() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        Events::open(&path, &history(3)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let flipped = (0..8 * whole.len()).map(|bit| {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        });
        let truncated = (1..whole.len()).map(|length| whole[..length].to_vec());
        for (number, bytes) in flipped.chain(truncated).enumerate() {
            assert!(kept_length(&bytes, 3).is_err(), "change {number} is not noticed");
            if number % 50 > 0 {
                continue; // writing files takes time
            }
            std::fs::write(&path, &bytes).unwrap();
            let (_, damage) = Events::open(&path, &history(3)).unwrap();
            assert!(damage.unwrap().to_string().contains("events: damaged: the record at byte "));
            assert_eq!(timeless(std::fs::read(&path).unwrap()), timeless(whole.clone()));
        }
    }
}
