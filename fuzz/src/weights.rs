//! Targets for files of weights: NIR (HDF5), NumPy's npz and its zip archive, safetensors.

use super::records::refused;
use leaklab_lab::data::zip::pack;
use leaklab_lab::exchange::{ImportOptions, NamedArray, import, nir, npz, safetensors};

fn check(arrays: &[NamedArray]) -> bool {
    for (name, shape, values) in arrays {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "{name}");
    }
    !arrays.is_empty()
}

/// A NIR file, and its import as a network.
pub fn nir(bytes: &[u8]) -> bool {
    match nir::parse(bytes.to_vec()) {
        Ok(graph) => {
            for integrate_output in [false, true] {
                let options = ImportOptions { integrate_output, ..ImportOptions::default() };
                if let Err(error) = import(&graph, &options) {
                    refused(&error);
                }
            }
            true
        }
        Err(reason) => refused(&reason),
    }
}

/// A safetensors file.
pub fn safetensors(bytes: &[u8]) -> bool {
    match safetensors::parse(bytes) {
        Ok((arrays, _)) => check(&arrays),
        Err(reason) => refused(&reason),
    }
}

/// A whole npz archive.
pub fn zip(bytes: &[u8]) -> bool {
    match npz::parse(bytes, |_| true) {
        Ok(arrays) => check(&arrays),
        Err(reason) => refused(&reason),
    }
}

/// One NumPy array, packed into an archive with correct checksums.
pub fn npz(bytes: &[u8]) -> bool {
    let files = [("a.npy".to_owned(), bytes.to_vec())];
    zip(&pack(&files).expect("one file of at most 4 GiB"))
}
