//! Checks whether a data set is identical to the published one.
//!
//! The loaded content counts: the SHA-256 of all labels and pixels is the same for an archive, its unpacked
//! folder, and a recompressed copy.

use super::{DataError, Dataset, Info, Limits, Split, load};
use leaklab_record::{file, hexadecimal};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::path::Path;

/// SHA-256 of a split in hexadecimal: all labels, then all images.
pub fn digest(split: &Split) -> String {
    let mut hash = Sha256::new();
    hash.update(&split.labels);
    split.content.hash(&mut hash);
    hexadecimal(hash)
}

/// SHA-256 of a file in hexadecimal.
pub fn file_digest(path: &Path) -> Result<String, DataError> {
    let mut file = file::open(path).map_err(DataError::io(path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(DataError::io(path))? {
            0 => return Ok(hexadecimal(hash)),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// Result of one check of a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was checked.
    pub what: String,
    /// The value found.
    pub found: String,
    /// The expected value; `None` if it is not known.
    pub expected: Option<String>,
}

impl Finding {
    /// Whether the value is the expected one; `None` if no value is known.
    pub fn right(&self) -> Option<bool> {
        self.expected.as_ref().map(|expected| *expected == self.found)
    }
}

/// Loads a data set and compares the numbers of images and the contents with the published ones. If no digest
/// of the contents is known, the publisher's files are compared.
pub fn verify(info: &Info, name: &str, folder: &Path) -> Result<(Dataset, Vec<Finding>), DataError> {
    let mut findings = Vec::new();
    // If the digest of the contents is known, files are not compared: they may have been recompressed.
    for remote in info.files().iter().filter(|_| info.content[0].is_empty()) {
        let name = Path::new(remote.path).file_name().unwrap_or_default();
        if let Some(path) =
            [folder.join(remote.path), folder.join(name)].into_iter().find(|path| path.is_file())
        {
            let what = format!("SHA-256 of {}", remote.path);
            findings.push(Finding {
                what,
                found: file_digest(&path)?,
                expected: Some(remote.sha256.to_owned()),
            });
        }
    }
    let dataset = load(name, Some(folder), &Limits::NONE)?;
    let splits = [("train", &dataset.train, info.train), ("test", &dataset.test, info.test)];
    for ((which, split, count), content) in splits.into_iter().zip(info.content) {
        let number = |n: usize| n.to_string();
        let expected = (count > 0).then(|| number(count));
        findings.push(Finding { what: format!("{which} images"), found: number(split.len()), expected });
        let expected = (!content.is_empty()).then(|| content.to_owned());
        findings.push(Finding { what: format!("{which} content"), found: digest(split), expected });
    }
    Ok((dataset, findings))
}
