//! Measurements that are kept on disk so that an interrupted analysis goes on where it stopped.
//!
//! A file holds a fingerprint of all that the measurement depends on and a digest of what it says. Anything
//! else in its place (another version's, other weights', half a file, one whose content does not have its own
//! digest) counts as not made.

use leaklab_record::{RecordError, atomic, file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;

#[derive(Serialize, Deserialize)]
struct Kept<T> {
    format: u32,
    fingerprint: String,
    digest: String,
    content: T,
}

/// What was kept at a path, if it still stands.
pub(super) fn read<T: Serialize + DeserializeOwned>(
    path: &Path,
    format: u32,
    fingerprint: &str,
) -> Option<T> {
    parse(&file::read_to_string(path).ok()?, format, fingerprint)
}

/// The same of a file's text.
pub(super) fn parse<T: Serialize + DeserializeOwned>(
    text: &str,
    format: u32,
    fingerprint: &str,
) -> Option<T> {
    let kept: Kept<T> = serde_json::from_str(text).ok()?;
    let same = kept.format == format && kept.fingerprint == fingerprint;
    (same && kept.digest == digest(&kept.content)).then_some(kept.content)
}

/// Keeps a measurement; its folder is made.
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

/// The text of a file that keeps a measurement.
pub(super) fn text<T: Serialize>(format: u32, fingerprint: String, content: &T) -> String {
    let kept = Kept { format, fingerprint, digest: digest(content), content };
    serde_json::to_string(&kept).expect("a measurement of finite numbers has a JSON form")
}

/// SHA-256 of what a measurement says.
fn digest<T: Serialize>(content: &T) -> String {
    let text = serde_json::to_string(content).expect("a measurement of finite numbers has a JSON form");
    hexadecimal(Sha256::new().chain_update(text))
}

/// A finished hash as text.
pub(super) fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
