//! Files of weights: NIR (HDF5), NumPy's npz and the zip around it, safetensors.

use super::records::refused;
use leaklab_lab::exchange::{ImportOptions, NamedArray, import, nir, npz, safetensors};

fn check(arrays: &[NamedArray]) -> bool {
    for (name, shape, values) in arrays {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "{name}");
    }
    !arrays.is_empty()
}

/// A NIR file, and the network that it is, if it is one.
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

/// Safetensors.
pub fn safetensors(bytes: &[u8]) -> bool {
    match safetensors::parse(bytes) {
        Ok((arrays, _)) => check(&arrays),
        Err(reason) => refused(&reason),
    }
}

/// A whole archive of NumPy's.
pub fn zip(bytes: &[u8]) -> bool {
    match npz::parse(bytes, |_| true) {
        Ok(arrays) => check(&arrays),
        Err(reason) => refused(&reason),
    }
}

/// One NumPy array, put into an archive whose checksums are right.
pub fn npz(bytes: &[u8]) -> bool {
    zip(&stored(bytes))
}

/// A zip archive with one entry, `a.npy`, as it stands.
fn stored(data: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(data);
    let mut fields = Vec::new();
    [20u16, 0, 0, 0, 0x21].iter().for_each(|value| fields.extend(value.to_le_bytes()));
    let size = data.len() as u32;
    [crc.sum(), size, size].iter().for_each(|value| fields.extend(value.to_le_bytes()));
    [5u16, 0].iter().for_each(|value| fields.extend(value.to_le_bytes()));
    let mut archive = [&b"PK\x03\x04"[..], &fields, b"a.npy", data].concat();
    let start = archive.len() as u32;
    archive.extend([&b"PK\x01\x02\x14\0"[..], &fields, &[0; 10], &[0; 4], b"a.npy"].concat());
    let length = archive.len() as u32 - start;
    archive.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    archive.extend([length.to_le_bytes(), start.to_le_bytes()].concat());
    archive.extend([0; 2]);
    archive
}
