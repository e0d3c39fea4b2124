//! Events that training reports to a watcher: a terminal, a study or a Python callback. The lab itself prints
//! nothing.

use leaklab_record::health::Notice;
use leaklab_record::metrics::Epoch;
use std::path::PathBuf;

/// An event.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// Training is about to start or to continue.
    Started {
        /// Training images.
        images: usize,
        /// Test images, or the images held out in their place.
        test_images: usize,
        /// Whether images of the training set are held out to choose settings; see `validation`.
        validation: bool,
        /// Updates per epoch.
        batches: u64,
        /// Epochs in all.
        epochs: u64,
        /// Epochs completed before.
        epoch: u64,
        /// Batches of the current epoch completed before.
        batch: u64,
        /// Number of threads.
        threads: usize,
    },
    /// A notice for the user, such as a damaged checkpoint or changed settings.
    Notice(&'a str),
    /// A batch was trained.
    Batch(&'a Batch),
    /// Test images were evaluated.
    Evaluated {
        /// Images done.
        done: usize,
        /// Images in all.
        total: usize,
    },
    /// Something is wrong with the run.
    Health(&'a Notice),
    /// An epoch is complete and recorded.
    Epoch(&'a Epoch),
    /// A checkpoint was written.
    Checkpoint {
        /// Epochs completed.
        epoch: u64,
        /// Batches of the current epoch completed.
        batch: u64,
    },
}

/// Progress of an epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Epochs in all.
    pub epochs: u64,
    /// Batches completed in the epoch.
    pub batch: u64,
    /// Batches in an epoch.
    pub batches: u64,
    /// Mean SSE per sample in the epoch so far.
    pub sse: f64,
    /// Accuracy in the epoch so far.
    pub accuracy: f64,
    /// Images per second since the epoch (or the process) began.
    pub images_per_second: f64,
    /// Seconds that the rest of the run's training will take at this speed, evaluation not included.
    pub seconds_to_go: f64,
}

/// The answer of a watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Continue.
    Continue,
    /// Finish the batch, write a checkpoint and stop.
    Stop,
}

/// How training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All epochs are done.
    Finished,
    /// The watcher asked to stop; the run can be resumed.
    Interrupted,
    /// The run diverged and was to stop in that case, or a value is no longer finite.
    Diverged,
}

/// Summary at the end of training.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The run.
    pub run: PathBuf,
    /// How training ended.
    pub outcome: Outcome,
    /// Epochs completed.
    pub epochs: u64,
    /// The metrics of the last epoch, if there is one.
    pub last: Option<Epoch>,
    /// Epoch with the highest test accuracy, 0 if none was evaluated.
    pub best_epoch: u64,
    /// That accuracy.
    pub best_accuracy: f64,
    /// All health notices.
    pub notices: Vec<Notice>,
    /// Share of the training images that was used in place of the test images; 0 if none was.
    pub validation: f32,
}
