//! The table of data sets. To add one: write its file, declare it in `mod.rs`, add its row here.

use super::{DataError, Dataset, Split, cifar10, digits};
use leaklab_engine::Shape;
use std::path::Path;

/// Where a data set comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In the program.
    Embedded,
    /// Files of its publisher.
    Files,
}

/// What is known of a data set before it is loaded.
pub struct Info {
    /// Name in files and flags.
    pub name: &'static str,
    /// One line for a reader.
    pub title: &'static str,
    /// Size of an image.
    pub shape: Shape,
    /// Names of the classes, in the order of their labels.
    pub class_names: &'static [&'static str],
    /// Training images of the complete data set.
    pub train: usize,
    /// Test images of the complete data set.
    pub test: usize,
    /// Terms of use.
    pub licence: &'static str,
    /// Where it is described.
    pub homepage: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// Reads it: the row, the folder to look in, the name as it was given.
    pub(super) load: fn(&Info, &Path, &str) -> Result<Dataset, DataError>,
}

const DIGITS: &[&str] = &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// Every data set.
pub const DATASETS: &[Info] = &[
    Info {
        name: "digits",
        title: "handwritten digits of UCI, embedded in the program",
        shape: Shape { channels: 1, height: 8, width: 8 },
        class_names: DIGITS,
        train: 1442,
        test: 355,
        licence: "CC BY 4.0",
        homepage: "https://doi.org/10.24432/C50P49",
        source: Source::Embedded,
        load: digits::load,
    },
    Info {
        name: "cifar10",
        title: "small colour photographs of ten kinds of things",
        shape: Shape { channels: 3, height: 32, width: 32 },
        class_names: &[
            "airplane",
            "automobile",
            "bird",
            "cat",
            "deer",
            "dog",
            "frog",
            "horse",
            "ship",
            "truck",
        ],
        train: 50_000,
        test: 10_000,
        licence: "not stated by its source",
        homepage: "https://www.cs.toronto.edu/~kriz/cifar.html",
        source: Source::Files,
        load: cifar10::load,
    },
];

/// The row of a name.
pub fn find(name: &str) -> Result<&'static Info, DataError> {
    let base = name.split_once(':').map_or(name, |(base, _)| base);
    DATASETS.iter().find(|info| info.name == base).ok_or_else(|| DataError::Unknown {
        name: name.to_owned(),
        known: DATASETS.iter().map(|info| info.name).collect::<Vec<_>>().join(", "),
    })
}

impl Info {
    /// A data set of this row.
    pub(super) fn dataset(&self, train: Split, test: Split) -> Dataset {
        Dataset {
            name: self.name.to_owned(),
            shape: self.shape,
            classes: self.class_names.len(),
            class_names: self.class_names.iter().map(|&name| name.to_owned()).collect(),
            train,
            test,
        }
    }

    /// That its files are not in a folder.
    pub(super) fn missing(&self, folder: &Path) -> DataError {
        DataError::Missing {
            name: self.name.to_owned(),
            folder: folder.to_owned(),
            remedy: format!(
                "run `leaklab data fetch {}`, or give the folder that has it with --data-dir",
                self.name
            ),
        }
    }
}
