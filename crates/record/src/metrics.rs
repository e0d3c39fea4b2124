//! What is measured at the end of every epoch: one line of `metrics.jsonl`.

use crate::error::RecordError;
use crate::lines;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the format, raised when a reader of the old one would misread the new one.
pub const FORMAT: u32 = 1;

/// One epoch. Accuracies are fractions; test figures are empty where the epoch was not evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// Epochs trained, counted from 1.
    pub epoch: u64,
    /// Learning rate of the epoch.
    pub learning_rate: f64,
    /// Accuracy while training, dropout and augmentation on.
    pub train_accuracy: f64,
    /// Mean over samples of the sum over outputs of (p - onehot)^2, while training. Empty if not finite.
    pub train_sse: Option<f64>,
    /// Accuracy on the test set.
    pub test_accuracy: Option<f64>,
    /// Mean squared error on the test set, summed over outputs. Empty if not finite.
    pub test_sse: Option<f64>,
    /// Spikes / (neurons * steps) over all hidden conv and FC layers, on the test set.
    pub spike_rate: Option<f64>,
    /// Synaptic operations per image over all layers and steps, on the test set.
    pub synops: Option<f64>,
    /// The layers in order, on the test set; empty where the epoch was not evaluated.
    pub layers: Vec<LayerEpoch>,
    /// Wall time of the epoch, evaluation included.
    pub seconds: f64,
    /// Training images per second, encoding and augmentation included, evaluation not.
    pub images_per_second: f64,
}

/// One layer in one epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerEpoch {
    /// Such as `conv1`.
    pub name: String,
    /// `conv`, `pool`, `full` or `output`.
    pub kind: String,
    /// Spikes / (neurons * steps); empty for the output layer, which does not fire.
    pub spike_rate: Option<f64>,
    /// Synaptic operations per image; empty for pools.
    pub synops: Option<f64>,
    /// Mean over images and steps of the Euclidean norm of `(W O_in)[t]`; empty for the output layer.
    pub weighted_input_norm: Option<f64>,
}

/// Reads all complete lines; none if the file does not exist.
pub fn read(path: &Path) -> Result<Vec<Epoch>, RecordError> {
    lines::read(path, "metrics file", FORMAT)
}

/// Appends an epoch.
pub fn append(path: &Path, epoch: &Epoch) -> Result<(), RecordError> {
    lines::append(path, epoch)
}

/// Drops a torn last line and every epoch after `last`.
pub fn cut_after(path: &Path, last: u64) -> Result<(), RecordError> {
    lines::retain::<Epoch>(path, |line| line.epoch <= last)
}
