//! Data sets of labelled images and recordings.
//!
//! Each data set has a file here and a row in [`table`]. A reader turns bytes into a [`Split`] or reports
//! where they are wrong; it never trusts a length before it has compared it with the file. Before an image
//! reaches the network it is augmented, normalised and encoded. Each of these steps is a pure function of
//! (seed, epoch, sample) that writes into the caller's buffer.

mod error;

mod archive;
pub mod arrays;
pub mod augment;
pub mod binning;
pub(crate) mod budget;
pub mod camera;
pub mod cifar10;
pub mod content;
pub mod digits;
pub mod digits_events;
pub mod event_file;
pub mod event_sheet;
pub mod fetch;
pub mod idx;
pub mod image_folder;
pub mod lettering;
pub mod location;
pub mod matlab;
pub mod nmnist;
pub mod normalise;
pub mod npy;
pub mod npz;
pub mod present;
pub mod sheet;
pub mod subset;
pub mod svhn;
pub mod table;
pub mod unpack;
pub mod verify;
pub mod zip;

pub use augment::{Augmentation, augment};
pub use binning::Binning;
pub use content::{Content, Recordings};
pub use error::{DataError, Flaw};
pub use normalise::{Normalisation, Normaliser};
pub use present::Presentation;
pub use subset::Limits;
pub use table::{DATASETS, Info, Source};

use leaklab_engine::Shape;
use sha2::{Digest, Sha256};
use std::path::Path;

/// Added to the index of test samples to make their sample number, so that no test image shares random
/// numbers with a training image.
pub const TEST_SAMPLES: u32 = 1 << 31;

/// Images or recordings, and labels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Split {
    /// The images or recordings.
    pub content: Content,
    /// One per image.
    pub labels: Vec<u8>,
    /// One per image: the number that its random numbers depend on. It is the index in the complete data set
    /// (plus [`TEST_SAMPLES`] in the test split) and does not change when a limit excludes other images.
    pub samples: Vec<u32>,
}

impl Split {
    /// A split of a complete data set, with samples numbered from `first`.
    fn new(images: Vec<u8>, labels: Vec<u8>, first: u32) -> Self {
        Split::of(Content::Images(images), labels, first)
    }

    /// A split of any content, with samples numbered from `first`.
    fn of(content: Content, labels: Vec<u8>, first: u32) -> Self {
        let samples = (first..).take(labels.len()).collect();
        Split { content, labels, samples }
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Pixels of all images; empty if the split contains recordings.
    pub fn pixels(&self) -> &[u8] {
        match &self.content {
            Content::Images(pixels) => pixels,
            Content::Events(_) => &[],
        }
    }

    /// The recordings; `None` if the split contains images.
    pub fn recordings(&self) -> Option<&Recordings> {
        match &self.content {
            Content::Images(_) => None,
            Content::Events(recordings) => Some(recordings),
        }
    }

    /// Pixels of an image, `[channel][row][column]`; empty if the split contains recordings.
    pub fn image(&self, index: usize) -> &[u8] {
        let pixels = self.pixels();
        let size = pixels.len() / self.labels.len();
        &pixels[index * size..][..size]
    }

    /// Class of an image.
    pub fn label(&self, index: usize) -> usize {
        usize::from(self.labels[index])
    }

    /// Sample number of an image.
    pub fn sample(&self, index: usize) -> u32 {
        self.samples[index]
    }

    /// SHA-256 of labels, sample numbers and content.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update((self.len() as u64).to_le_bytes());
        hash.update(&self.labels);
        let samples: Vec<u8> = self.samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        hash.update(&samples);
        self.content.hash(&mut hash);
        leaklab_record::hexadecimal(hash)
    }

    /// Images per class.
    pub fn class_counts(&self, classes: usize) -> Vec<usize> {
        let mut counts = vec![0; classes];
        self.labels.iter().for_each(|&label| counts[usize::from(label)] += 1);
        counts
    }

    /// Mean of each channel, as a fraction of white; 0 if the split contains recordings.
    pub fn channel_means(&self, shape: Shape) -> Vec<f64> {
        let mut sums = vec![0u64; shape.channels];
        for plane in self.pixels().chunks_exact(shape.pixels()).enumerate() {
            sums[plane.0 % shape.channels] += plane.1.iter().map(|&x| u64::from(x)).sum::<u64>();
        }
        sums.iter().map(|&sum| sum as f64 / (255.0 * (self.len() * shape.pixels()) as f64)).collect()
    }
}

/// A data set in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// Its name in the table.
    pub name: String,
    /// Size of an image.
    pub shape: Shape,
    /// Number of classes.
    pub classes: usize,
    /// Names of the classes.
    pub class_names: Vec<String>,
    /// Images to train on.
    pub train: Split,
    /// Images to test on.
    pub test: Split,
}

impl Dataset {
    /// Whether it contains recordings of an event camera, and not images.
    pub fn has_events(&self) -> bool {
        self.test.recordings().or(self.train.recordings()).is_some()
    }

    /// SHA-256 of the whole content of the data set.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(format!("{} {:?}", self.shape, self.class_names));
        hash.update(self.train.digest());
        hash.update(self.test.digest());
        leaklab_record::hexadecimal(hash)
    }
}

/// Loads a data set by name.
///
/// It is searched in `data_dir` (the folder that contains it, or its own folder), or in [`location::folder`]
/// if `data_dir` is `None`. `digits` needs no folder.
pub fn load(name: &str, data_dir: Option<&Path>, limits: &Limits) -> Result<Dataset, DataError> {
    let mut dataset = load_complete(name, data_dir, &Binning::default())?;
    limits.apply(&mut dataset)?;
    Ok(dataset)
}

/// A thread pool for one load. The global pool is not used: in a forked process its threads do not exist.
fn own_pool() -> Result<rayon::ThreadPool, DataError> {
    let pool = rayon::ThreadPoolBuilder::new().build();
    pool.map_err(|e| DataError::Request(format!("no threads can be started: {e}")))
}

/// Loads a complete data set; recordings are divided into time steps by `binning`.
pub fn load_complete(name: &str, data_dir: Option<&Path>, binning: &Binning) -> Result<Dataset, DataError> {
    let info = table::find(name)?;
    let folder = match info.source {
        Source::Embedded => Default::default(),
        Source::Files(_) | Source::ByHand => location::folder(data_dir)?,
        Source::Own => location::own(name, data_dir)?,
    };
    match info.load {
        table::Loader::Images(load) => load(info, &folder, name),
        table::Loader::Events(load) => load(info, &folder, name, binning),
    }
}
