//! Measurements that are stored on disk, so that an interrupted analysis continues where it stopped.
//!
//! A file contains a fingerprint of everything that the measurement depends on, and a digest of its content.
//! Any other file in its place (of another version or other weights, truncated, or with a digest that does
//! not match) is ignored, and the measurement is made again.

pub(super) use leaklab_record::hexadecimal;
use leaklab_record::{RecordError, atomic, file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;

#[derive(Serialize, Deserialize)]
struct Stored<T> {
    format: u32,
    fingerprint: String,
    digest: String,
    content: T,
}

/// The measurement stored at a path, if it is still valid.
pub(super) fn read<T: Serialize + DeserializeOwned>(
    path: &Path,
    format: u32,
    fingerprint: &str,
) -> Option<T> {
    parse(&file::read_to_string(path).ok()?, format, fingerprint)
}

/// The same, from the text of a file.
pub(super) fn parse<T: Serialize + DeserializeOwned>(
    text: &str,
    format: u32,
    fingerprint: &str,
) -> Option<T> {
    let stored: Stored<T> = serde_json::from_str(text).ok()?;
    let same = stored.format == format && stored.fingerprint == fingerprint;
    (same && stored.digest == digest(&stored.content)).then_some(stored.content)
}

/// Stores a measurement and creates its folder.
pub(super) fn write<T: Serialize>(
    path: &Path,
    format: u32,
    fingerprint: String,
    content: &T,
) -> Result<(), RecordError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(RecordError::io(folder, "cannot be written"))?;
    let text = text(format, fingerprint, content);
    atomic::write(path, text.as_bytes()).map_err(RecordError::io(path, "cannot be written"))
}

/// The text of the file of a measurement.
pub(super) fn text<T: Serialize>(format: u32, fingerprint: String, content: &T) -> String {
    let stored = Stored { format, fingerprint, digest: digest(content), content };
    serde_json::to_string(&stored).expect("a measurement of finite numbers has a JSON form")
}

/// SHA-256 of a measurement.
fn digest<T: Serialize>(content: &T) -> String {
    let text = serde_json::to_string(content).expect("a measurement of finite numbers has a JSON form");
    hexadecimal(Sha256::new().chain_update(text))
}
