//! What training tells whoever watches: a terminal, a study, a Python callback. The lab itself prints
//! nothing.

use leaklab_record::health::Notice;
use leaklab_record::metrics::Epoch;
use std::path::PathBuf;

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event<'a> {
    /// Training is about to begin or to go on.
    Started {
        /// Training images.
        images: usize,
        /// Test images.
        test_images: usize,
        /// Updates per epoch.
        batches: u64,
        /// Epochs in all.
        epochs: u64,
        /// Epochs completed before.
        epoch: u64,
        /// Batches completed before in the epoch under way.
        batch: u64,
        /// Threads at work.
        threads: usize,
    },
    /// Something the user must be told: a damaged checkpoint, changed settings.
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
        /// Batches completed in the epoch under way.
        batch: u64,
    },
}

/// Where an epoch stands.
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
    /// Mean squared error in the epoch so far.
    pub sse: f64,
    /// Accuracy in the epoch so far.
    pub accuracy: f64,
    /// Images per second since the epoch (or the process) began.
    pub images_per_second: f64,
    /// Seconds that the rest of the run's training will take at this speed, evaluation not included.
    pub seconds_to_go: f64,
}

/// What the watcher wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Go on.
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
    /// The run diverged and was to stop then, or nothing is a number any more.
    Diverged,
}

/// What there is to say in the end.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The run.
    pub run: PathBuf,
    /// How training ended.
    pub outcome: Outcome,
    /// Epochs completed.
    pub epochs: u64,
    /// The last epoch's figures, if there is one.
    pub last: Option<Epoch>,
    /// Epoch with the highest test accuracy, 0 if none was evaluated.
    pub best_epoch: u64,
    /// That accuracy.
    pub best_accuracy: f64,
    /// Everything that was wrong.
    pub notices: Vec<Notice>,
    /// Share of the training images that stood in place of the test images; 0 if none did.
    pub validation: f32,
}
