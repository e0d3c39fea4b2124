//! One function for each parser, which accepts any bytes and returns whether they could be read.
//!
//! The fuzz targets call these functions, and so does the test `crates/lab/tests/fuzz.rs`, which runs them on
//! mutations of the corpus with a stable compiler. A function fails by panicking: if the parser panics, or if
//! the result violates an invariant, such as being the same after it is written and read again.
//!
//! If a checksum would reject every mutation, the function also corrects the checksum, as an attacker would.

pub mod files;
pub mod records;
pub mod weights;

/// A target: its name, which is that of its file and of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]) -> bool);

/// Every target.
pub const TARGETS: [Target; 22] = [
    ("notation", records::notation),
    ("settings", records::settings),
    ("checkpoint", records::checkpoint),
    ("metrics", records::metrics),
    ("health", records::health),
    ("machines", records::machines),
    ("tensorboard", records::tensorboard),
    ("lock", records::lock),
    ("passes", records::passes),
    ("tables", records::tables),
    ("idx", files::idx),
    ("cifar", files::cifar),
    ("matlab", files::matlab),
    ("tar", files::tar),
    ("nmnist", files::nmnist),
    ("image", files::image),
    ("images", files::images),
    ("events", files::events),
    ("nir", weights::nir),
    ("npz", weights::npz),
    ("safetensors", weights::safetensors),
    ("zip", weights::zip),
];

/// Runs the target of this name on some bytes.
///
/// # Panics
/// If there is no target of this name, or the target fails.
#[allow(dead_code)] // the test uses `TARGETS` directly
pub fn run(name: &str, bytes: &[u8]) -> bool {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("a target of this name");
    target(bytes)
}
