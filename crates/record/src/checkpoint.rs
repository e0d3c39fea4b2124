//! Checkpoints: weights, optimiser state and position in a safetensors file with a checksum.
//!
//! The file is ordinary safetensors: tensors `conv1`.., `fc1`.., then `optimiser.*`. The header's `leaklab`
//! entry is a JSON text ([`Header`]). Its `checksum` is the SHA-256 of the whole file with the checksum's 64
//! digits as zeros, so that any flipped bit is detected. The file contains no clock time: equal runs write
//! equal files.

use crate::atomic;
use crate::digest::hexadecimal;
use crate::error::RecordError;
use crate::file;
use crate::folder::{RunFolder, RunLock};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Version of the format, raised when a reader of the old one would misread the new one. The rule for the
/// checksum is the same in every version.
pub const FORMAT: u32 = 2;

const ENTRY: &str = "leaklab";
const UNSIGNED: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const WHAT: &str = "checkpoint";
/// Size limit of files that are read: twice the size of a billion weights with Adam's state.
const LARGEST: u64 = 24 << 30;
/// Size limit of headers that are read, which is that of safetensors.
const LARGEST_HEADER: u64 = 100_000_000;

/// What the weights belong to, and the position in training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// SHA-256 of the file, computed with these digits as zeros. Set by [`Checkpoint::to_bytes`].
    pub checksum: String,
    /// Position of the run in training.
    pub position: Position,
    /// The settings that the weights belong to, as text by key. Commands that open the run detect from them
    /// whether `run.toml` was edited.
    pub settings: BTreeMap<String, String>,
    /// SHA-256 of the training images and labels.
    pub data: String,
}

impl Header {
    /// The header of a run's last checkpoint, or of the previous one if that of the last is damaged or
    /// missing; `None` if neither exists. The tensors are not read, so the checksum is not verified.
    pub fn of_run(folder: &RunFolder) -> Result<Option<Self>, RecordError> {
        let mut trouble = None;
        for path in [folder.checkpoint(), folder.previous_checkpoint()] {
            match Self::read(&path) {
                Ok(header) => return Ok(Some(header)),
                Err(RecordError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {}
                Err(error) => trouble = trouble.or(Some(error)),
            }
        }
        trouble.map_or(Ok(None), Err)
    }

    /// Reads the JSON text at the beginning of a safetensors file, which follows its length.
    fn read(path: &Path) -> Result<Self, RecordError> {
        let mut bytes = Vec::new();
        let mut read = || {
            let mut file = file::open(path)?;
            let mut length = [0; 8];
            file.read_exact(&mut length)?;
            file.take(u64::from_le_bytes(length).min(LARGEST_HEADER)).read_to_end(&mut bytes)
        };
        read().map_err(RecordError::io(path, "cannot be read"))?;
        #[derive(Deserialize)]
        struct File {
            #[serde(rename = "__metadata__", default)]
            entries: HashMap<String, String>,
        }
        let damaged = |_| RecordError::Damaged {
            path: path.to_owned(),
            reason: "its header is not readable".to_owned(),
        };
        let file: File = serde_json::from_slice(&bytes).map_err(damaged)?;
        let text = file.entries.get(ENTRY);
        let text =
            text.ok_or_else(|| RecordError::malformed(path, WHAT, "its header has no `leaklab` entry"))?;
        Self::of_value(serde_json::from_str(text).map_err(damaged)?, path)
    }

    /// Reads the `leaklab` entry, of which every version has the format.
    fn of_value(value: serde_json::Value, path: &Path) -> Result<Self, RecordError> {
        let found = value.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
        RecordError::check_format(path, WHAT, found, FORMAT)?;
        serde_json::from_value(value).map_err(|e| RecordError::malformed(path, WHAT, e))
    }
}

/// Position of a run in training. Every random number is a function of the seed and these counters, so this
/// is also the state of the random generator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Position {
    /// The run's seed.
    pub seed: u64,
    /// Epochs completed.
    pub epoch: u64,
    /// Batches completed in the current epoch.
    pub batch: u64,
    /// Updates of the weights so far.
    pub updates: u64,
    /// Training samples seen in the current epoch.
    pub samples: u64,
    /// Those classified correctly.
    pub correct: u64,
    /// Sum of their squared errors.
    pub squared_error: f64,
    /// Mean squared error of the run's first batch, relative to which divergence is judged; 0 before that
    /// batch.
    pub first_squared_error: f64,
    /// Epoch with the highest test accuracy so far (the earliest of several equal ones); 0 if none was
    /// evaluated.
    pub best_epoch: u64,
    /// That accuracy.
    pub best_accuracy: f64,
    /// Steps of the optimiser since its state was the initial one, if they are not all `updates`: there are
    /// fewer after a change of the optimiser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimiser_steps: Option<u64>,
}

/// A named array.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Name, such as `conv1` or `optimiser.velocity`.
    pub name: String,
    /// Size of each dimension.
    pub shape: Vec<usize>,
    /// Values in row-major order.
    pub values: Vec<f32>,
}

/// A checkpoint in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// What the weights belong to, and the position in training.
    pub header: Header,
    /// Weights, then optimiser state.
    pub tensors: Vec<Tensor>,
}

impl Checkpoint {
    /// The tensor with a name.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// The file's bytes, signed with their checksum. Equal checkpoints give equal bytes.
    ///
    /// # Panics
    /// If a tensor's shape and values disagree in size or a number of the header is not finite.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Position { squared_error, first_squared_error, best_accuracy, .. } = self.header.position;
        let numbers = [squared_error, first_squared_error, best_accuracy];
        // JSON has no text for other numbers: they would be written as null.
        assert!(numbers.iter().all(|x| x.is_finite()), "the header's numbers are finite: {numbers:?}");
        let header = Header { checksum: UNSIGNED.to_owned(), ..self.header.clone() };
        let header = serde_json::to_string(&header).expect("a header has a JSON form");
        let data: Vec<Vec<u8>> = self
            .tensors
            .iter()
            .map(|tensor| tensor.values.iter().flat_map(|x| x.to_le_bytes()).collect())
            .collect();
        let views = self.tensors.iter().zip(&data).map(|(tensor, data)| {
            let view = TensorView::new(Dtype::F32, tensor.shape.clone(), data);
            (tensor.name.as_str(), view.expect("a tensor's shape matches its values"))
        });
        // One entry only: the library writes a hash map, whose order would differ from process to process.
        let entries = HashMap::from([(ENTRY.to_owned(), header)]);
        let mut bytes =
            safetensors::serialize(views, Some(entries)).expect("tensors of matching size can be written");
        assert!(sign(&mut bytes), "the header holds its checksum");
        bytes
    }

    /// Reads a file and verifies its checksum and format.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let bytes = file::read(path, LARGEST).map_err(RecordError::io(path, "cannot be read"))?;
        Self::from_bytes(bytes, path)
    }

    /// Reads a file's bytes; `path` is for the error message.
    pub fn from_bytes(mut bytes: Vec<u8>, path: &Path) -> Result<Self, RecordError> {
        let damaged =
            |reason: &str| RecordError::Damaged { path: path.to_owned(), reason: reason.to_owned() };
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|e| damaged(&e.to_string()))?;
        let Some(text) = metadata.metadata().as_ref().and_then(|entries| entries.get(ENTRY)).cloned() else {
            return Err(RecordError::malformed(path, WHAT, "its header has no `leaklab` entry"));
        };
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|_| damaged("its header is not readable"))?;
        let signed = value.get("checksum").and_then(|v| v.as_str()).unwrap_or_default();
        let place = match checksum_place(&bytes, signed) {
            Some(place) if signed.len() == UNSIGNED.len() => place,
            _ => return Err(damaged("its header has no checksum")),
        };
        bytes[place..place + UNSIGNED.len()].copy_from_slice(UNSIGNED.as_bytes());
        if hexadecimal(Sha256::new_with_prefix(&bytes)) != signed {
            return Err(damaged("its checksum does not match"));
        }
        let header = Header::of_value(value, path)?;
        let file = SafeTensors::deserialize(&bytes).map_err(|e| damaged(&e.to_string()))?;
        let mut tensors = Vec::new();
        for (name, view) in file.tensors() {
            if view.dtype() != Dtype::F32 {
                return Err(RecordError::malformed(path, WHAT, format!("tensor {name} is not float32")));
            }
            let values = view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            tensors.push(Tensor { values: values.collect(), shape: view.shape().to_vec(), name });
        }
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Checkpoint { header, tensors })
    }

    /// Writes the file atomically.
    pub fn write(&self, path: &Path) -> Result<(), RecordError> {
        atomic::write(path, &self.to_bytes()).map_err(RecordError::io(path, "cannot be written"))
    }

    /// Makes this the run's checkpoint; the checkpoint so far becomes the previous one. At any time at least
    /// one of the two is complete.
    pub fn save(&self, folder: &RunFolder, lock: &RunLock) -> Result<(), RecordError> {
        lock.check()?;
        let (path, previous) = (folder.checkpoint(), folder.previous_checkpoint());
        if path.is_file() {
            let link = folder.rotation();
            let _ = fs::remove_file(&link);
            fs::hard_link(&path, &link)
                .or_else(|_| fs::copy(&path, &link).map(|_| ()))
                .and_then(|()| fs::rename(&link, &previous))
                .map_err(RecordError::io(&previous, "cannot be written"))?;
            // If a process is killed after this rename and before the `write` below, both names refer to one
            // file. The next rename from one of them to the other then does nothing, and the link would stay.
            let _ = fs::remove_file(&link);
        }
        self.write(&path)
    }
}

/// The checkpoint that was found in a run folder.
#[derive(Debug)]
pub struct Found {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Why the last checkpoint could not be used, if this is the previous one.
    pub instead_of: Option<RecordError>,
}

/// The run's last intact checkpoint: the previous one if the last is damaged or missing, none if neither
/// exists. An error of the system says nothing about the file, so it is returned.
pub fn find(folder: &RunFolder) -> Result<Option<Found>, RecordError> {
    let trouble = match Checkpoint::read(&folder.checkpoint()) {
        Ok(checkpoint) => return Ok(Some(Found { checkpoint, instead_of: None })),
        Err(trouble) if is_damage(&trouble) || is_missing(&trouble) => trouble,
        Err(trouble) => return Err(trouble),
    };
    match Checkpoint::read(&folder.previous_checkpoint()) {
        Ok(checkpoint) => Ok(Some(Found { checkpoint, instead_of: Some(trouble) })),
        Err(error) if is_missing(&trouble) => {
            if is_missing(&error) {
                Ok(None)
            } else {
                Err(error)
            }
        }
        Err(_) => Err(trouble),
    }
}

fn is_damage(error: &RecordError) -> bool {
    matches!(error, RecordError::Damaged { .. } | RecordError::Malformed { .. })
}

fn is_missing(error: &RecordError) -> bool {
    matches!(error, RecordError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

/// Like [`find`], for a process that will write checkpoints: a damaged checkpoint is renamed, so that it does
/// not become the previous one.
pub fn recover(folder: &RunFolder, lock: &RunLock) -> Result<Option<Found>, RecordError> {
    let found = find(folder)?;
    if found.as_ref().and_then(|found| found.instead_of.as_ref()).is_some_and(is_damage) {
        lock.check()?;
        let (path, aside) = (folder.checkpoint(), folder.path().join("checkpoint.damaged.safetensors"));
        fs::rename(&path, &aside).map_err(RecordError::io(&path, "cannot be moved aside"))?;
    }
    Ok(found)
}

/// Writes the checksum over the 64 zeros in a file's header. Returns whether the header contains them.
pub fn sign(bytes: &mut [u8]) -> bool {
    let Some(place) = checksum_place(bytes, UNSIGNED) else { return false };
    let digits = hexadecimal(Sha256::new_with_prefix(&*bytes));
    bytes[place..place + digits.len()].copy_from_slice(digits.as_bytes());
    true
}

/// Position of the checksum's digits in the file.
fn checksum_place(bytes: &[u8], digits: &str) -> Option<usize> {
    let length = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?) as usize;
    let header = bytes.get(8..8usize.checked_add(length)?)?;
    if digits.is_empty() {
        return None;
    }
    header.windows(digits.len()).position(|window| window == digits.as_bytes()).map(|place| place + 8)
}
