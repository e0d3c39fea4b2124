//! Problems that were noticed in a run: one line of `health.jsonl` per notice.

use crate::error::RecordError;
use crate::lines;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the format, raised when a reader of the old one would misread the new one.
pub const FORMAT: u32 = 1;

/// One notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// Epoch in which it was noticed, counted from 1.
    pub epoch: u64,
    /// Kind of problem.
    pub kind: Trouble,
    /// The layers concerned, if it is about layers.
    pub layers: Vec<String>,
    /// The problem, in one sentence.
    pub message: String,
    /// What to try.
    pub advice: String,
}

/// Kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// Layers that hardly fire: activity dies out on the way through the network.
    Silent,
    /// Layers that fire at almost every step.
    Saturated,
    /// Layers whose weighted input of one step is far above the threshold.
    Overdriven,
    /// The loss grew far beyond that of an untrained network.
    Diverged,
    /// The loss or the weights are no longer numbers.
    NonFinite,
    /// Accuracy stays at chance level.
    Chance,
    /// Accuracy has fallen far below an earlier value.
    Collapsed,
    /// The gradient of every weight is exactly zero.
    NoGradient,
}

const WHAT: &str = "health file";

/// Reads all complete lines; none if the file does not exist.
pub fn read(path: &Path) -> Result<Vec<Notice>, RecordError> {
    lines::read(path, WHAT, FORMAT)
}

/// Like [`read`], for the bytes of a file; `path` is for the message.
pub fn parse(bytes: &[u8], path: &Path) -> Result<Vec<Notice>, RecordError> {
    let lines = lines::parse(path, bytes, WHAT, FORMAT)?;
    Ok(lines.into_iter().map(|(_, notice)| notice).collect())
}

/// Appends a notice.
pub fn append(path: &Path, notice: &Notice) -> Result<(), RecordError> {
    lines::append(path, notice)
}

/// Removes a torn last line and every notice of an epoch after `last`.
pub fn cut_after(path: &Path, last: u64) -> Result<(), RecordError> {
    lines::retain::<Notice>(path, WHAT, FORMAT, |line| line.epoch <= last)
}
