//! What is measured at the end of every epoch: one line of `metrics.jsonl`.

use crate::error::RecordError;
use crate::lines;
use leaklab_engine::LayerKind;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the format, raised when a reader of the old one would misread the new one.
pub const FORMAT: u32 = 1;

/// One epoch. Accuracies are fractions. Test figures are empty if the epoch was not evaluated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// Epochs trained, counted from 1.
    pub epoch: u64,
    /// Learning rate of the epoch.
    pub learning_rate: f64,
    /// Accuracy during training, with dropout and augmentation.
    pub train_accuracy: f64,
    /// Mean over samples of the sum over outputs of (p - onehot)^2, during training. Empty if not finite.
    pub train_sse: Option<f64>,
    /// Accuracy on a fixed part of the training images after the epoch, in evaluation: without dropout and
    /// augmentation.
    #[serde(default)]
    pub train_accuracy_evaluated: Option<f64>,
    /// Mean squared error on these images, summed over outputs. Empty if not finite.
    #[serde(default)]
    pub train_sse_evaluated: Option<f64>,
    /// Accuracy on the test set.
    pub test_accuracy: Option<f64>,
    /// Mean squared error on the test set, summed over outputs. Empty if not finite.
    pub test_sse: Option<f64>,
    /// Spikes / (neurons * steps) over all hidden conv and FC layers, on the test set.
    pub spike_rate: Option<f64>,
    /// Synaptic operations per image over all layers and steps, on the test set.
    pub synops: Option<f64>,
    /// The layers in order, on the test set; empty if the epoch was not evaluated.
    pub layers: Vec<LayerEpoch>,
    /// Wall time of the epoch, including evaluation.
    pub seconds: f64,
    /// Training images per second, including encoding and augmentation, but not evaluation.
    pub images_per_second: f64,
}

/// One layer in one epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayerEpoch {
    /// Name, such as `conv1`.
    pub name: String,
    /// `conv`, `pool`, `full` or `output`.
    #[serde(with = "kind")]
    pub kind: LayerKind,
    /// Spikes / (neurons * steps); empty for the output layer, which does not fire.
    pub spike_rate: Option<f64>,
    /// Synaptic operations per image; empty for pools.
    pub synops: Option<f64>,
    /// Mean over images and steps of the Euclidean norm of `(W O_in)[t]`; empty for the output layer.
    pub weighted_input_norm: Option<f64>,
}

/// The kind of a layer as its name.
mod kind {
    use super::{Deserialize, LayerKind};
    use serde::de::{Deserializer, Error};
    use serde::ser::Serializer;

    pub fn serialize<S: Serializer>(kind: &LayerKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(kind.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LayerKind, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(|()| D::Error::custom(format!("unknown kind of layer {name:?}")))
    }
}

const WHAT: &str = "metrics file";

/// Reads all complete lines, whose epochs must be 1, 2, 3 and so on; none if the file does not exist.
pub fn read(path: &Path) -> Result<Vec<Epoch>, RecordError> {
    check(lines::read(path, WHAT, FORMAT)?, path)
}

/// Like [`read`], for the bytes of a file; `path` is for the message.
pub fn parse(bytes: &[u8], path: &Path) -> Result<Vec<Epoch>, RecordError> {
    let lines = lines::parse(path, bytes, WHAT, FORMAT)?;
    check(lines.into_iter().map(|(_, epoch)| epoch).collect(), path)
}

fn check(epochs: Vec<Epoch>, path: &Path) -> Result<Vec<Epoch>, RecordError> {
    for (line, expected) in epochs.iter().zip(1..) {
        if line.epoch != expected {
            let reason = format!("epoch {} where epoch {expected} should be", line.epoch);
            return Err(RecordError::malformed(path, WHAT, reason));
        }
    }
    Ok(epochs)
}

/// Like [`read`], for a run whose checkpoint was written after `last` epochs: all of them must be present,
/// because they are written before it.
pub fn read_through(path: &Path, last: u64) -> Result<Vec<Epoch>, RecordError> {
    let complete = read(path)?;
    if (complete.len() as u64) < last {
        let reason = format!(
            "{} epochs where the checkpoint has {last}; put the missing lines back, or train a new run",
            complete.len()
        );
        return Err(RecordError::Damaged { path: path.to_owned(), reason });
    }
    Ok(complete)
}

/// Appends an epoch.
pub fn append(path: &Path, epoch: &Epoch) -> Result<(), RecordError> {
    lines::append(path, epoch)
}

/// Removes a torn last line and every epoch after `last`, and returns the rest; see [`read_through`].
pub fn cut_after(path: &Path, last: u64) -> Result<Vec<Epoch>, RecordError> {
    let complete = read_through(path, last)?;
    lines::retain::<Epoch>(path, WHAT, FORMAT, |line| line.epoch <= last)?;
    Ok(complete.into_iter().take_while(|epoch| epoch.epoch <= last).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(number: u64) -> Epoch {
        Epoch {
            format: FORMAT,
            epoch: number,
            learning_rate: 0.1,
            train_accuracy: 0.5,
            train_sse: None,
            train_accuracy_evaluated: None,
            train_sse_evaluated: None,
            test_accuracy: None,
            test_sse: None,
            spike_rate: None,
            synops: None,
            layers: Vec::new(),
            seconds: 1.0,
            images_per_second: 1.0,
        }
    }

    #[test]
    fn layers_are_written_as_their_kind() {
        let text =
            r#"{"name":"conv1","kind":"conv","spike_rate":0.5,"synops":null,"weighted_input_norm":null}"#;
        let layer: LayerEpoch = serde_json::from_str(text).unwrap();
        assert_eq!(layer.kind, LayerKind::Conv);
        assert_eq!(serde_json::to_string(&layer).unwrap(), text);
        let message = serde_json::from_str::<LayerEpoch>(&text.replace("\"conv\"", "\"cone\"")).unwrap_err();
        assert!(message.to_string().contains("unknown kind of layer \"cone\""), "{message}");
    }

    #[test]
    fn epochs_are_numbered_from_one() {
        let folder = tempfile::tempdir().unwrap();
        for (numbers, expected) in [
            (&[1, 2, u64::MAX][..], "epoch 18446744073709551615 where epoch 3 should be"),
            (&[2, 3], "epoch 2 where epoch 1 should be"),
            (&[1, 2, 2], "epoch 2 where epoch 3 should be"),
            (&[1, 3], "epoch 3 where epoch 2 should be"),
        ] {
            let path = folder.path().join("metrics.jsonl");
            numbers.iter().for_each(|&number| append(&path, &epoch(number)).unwrap());
            let message = read(&path).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_checkpoint_finds_its_epochs_or_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        (1..=3).for_each(|number| append(&path, &epoch(number)).unwrap());
        assert_eq!(cut_after(&path, 2).unwrap().len(), 2);
        assert_eq!(read(&path).unwrap().len(), 2);
        let message = cut_after(&path, 3).unwrap_err().to_string();
        assert!(message.contains("2 epochs where the checkpoint has 3"), "{message}");
        assert_eq!(cut_after(&folder.path().join("none"), 0).unwrap(), []);
    }
}
