//! One function for each parser: it takes any bytes, and says whether they were read.
//!
//! The fuzz targets call these functions, and so does the test `crates/lab/tests/fuzz.rs`, which runs them on
//! mutations of the corpus with a stable compiler. A function fails by panicking: where the parser does, or
//! where what was read does not keep a promise, such as to be the same after it is written and read again.
//!
//! Where a checksum would turn away every mutation, the function also makes the checksum right: who damages a
//! file on purpose does that too.

pub mod files;
pub mod records;
pub mod weights;

/// A target: its name, which is that of its file and of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]) -> bool);

/// Every target.
pub const TARGETS: [Target; 14] = [
    ("notation", records::notation),
    ("settings", records::settings),
    ("checkpoint", records::checkpoint),
    ("metrics", records::metrics),
    ("passes", records::passes),
    ("tables", records::tables),
    ("idx", files::idx),
    ("cifar", files::cifar),
    ("matlab", files::matlab),
    ("tar", files::tar),
    ("nir", weights::nir),
    ("npz", weights::npz),
    ("safetensors", weights::safetensors),
    ("zip", weights::zip),
];

/// Runs the target of a name on some bytes.
///
/// # Panics
/// If there is no target of that name, or the target fails.
#[allow(dead_code)] // the test takes them from the list
pub fn run(name: &str, bytes: &[u8]) -> bool {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("a target of this name");
    target(bytes)
}
