//! Weights in NumPy's `.npz` format: a zip archive of `.npy` arrays, which [`crate::data::npy`] reads and
//! writes.

use super::{ExchangeError, NamedArray, elements};
use crate::data::budget::{self, Budget, LARGEST_FILE};
use crate::data::zip::{self, Archive};
use crate::data::{Flaw, npy};
use leaklab_record::{RecordError, atomic};
use std::io::Cursor;
use std::path::Path;

/// Reads every array of an archive, in its order. Float64 arrays are rounded to float32; other types are
/// errors.
pub fn read(path: &Path) -> Result<Vec<NamedArray>, ExchangeError> {
    let bytes = budget::read_file(path, LARGEST_FILE).map_err(RecordError::io(path, "cannot be read"))?;
    parse(&bytes, |_| true).map_err(|reason| ExchangeError::malformed(path, "npz", reason))
}

/// Reads the array of that name, whatever the types of the others; `None` if there is none.
pub fn read_array(path: &Path, name: &str) -> Result<Option<NamedArray>, ExchangeError> {
    let bytes = budget::read_file(path, LARGEST_FILE).map_err(RecordError::io(path, "cannot be read"))?;
    let found = parse(&bytes, |other| other == name);
    Ok(found.map_err(|reason| ExchangeError::malformed(path, "npz", reason))?.pop())
}

/// Writes the arrays atomically. The bytes depend only on the arrays: entries do not contain the time of
/// writing.
pub fn write(path: &Path, arrays: &[(&str, &[usize], &[f32])]) -> Result<(), ExchangeError> {
    let bytes = archive(arrays).map_err(|reason| ExchangeError::malformed(path, "npz", reason))?;
    atomic::write(path, &bytes).map_err(RecordError::io(path, "cannot be written"))?;
    Ok(())
}

/// Reads the arrays whose names `wanted` accepts from the bytes of an archive; the error is one clause.
pub fn parse(bytes: &[u8], wanted: impl Fn(&str) -> bool) -> Result<Vec<NamedArray>, String> {
    let reason = |flaw: Flaw| flaw.reason;
    let mut archive = Archive::open(Cursor::new(bytes)).map_err(reason)?;
    let mut arrays = Vec::new();
    // One budget for all entries together, since a directory may list the same bytes many times.
    let mut budget = Budget::of_weights(bytes.len());
    for entry in archive.entries.clone() {
        let name = entry.name.strip_suffix(".npy").unwrap_or(&entry.name);
        if !wanted(name) {
            continue;
        }
        // The converted values, which take twice the memory of float16; `Archive::read` takes what it needs
        // itself.
        budget.take(2 * entry.size()).map_err(|exceeded| format!("entry '{name}': {exceeded}"))?;
        let data = archive.read(&entry, &mut budget).map_err(reason)?;
        let array = npy::parse(name, entry.offset, data).map_err(reason)?;
        let floats = array.floats().ok_or_else(|| reason(array.flaw("float32 ('<f4') is expected")))?;
        arrays.push((array.name, array.shape, floats));
    }
    Ok(arrays)
}

fn archive(arrays: &[(&str, &[usize], &[f32])]) -> Result<Vec<u8>, String> {
    let file = |&(name, shape, values): &(&str, &[usize], &[f32])| {
        if elements(shape) != Some(values.len()) {
            return Err(format!("array '{name}' has {} values for shape {shape:?}", values.len()));
        }
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Ok((format!("{name}.npy"), npy::file_of("<f4", shape, &data)))
    };
    zip::pack(&arrays.iter().map(file).collect::<Result<Vec<_>, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<u8> {
        archive(&[("conv1", &[2, 1, 1, 2], &[1.0, -2.5, 3.0e-8, f32::MAX]), ("fc1", &[3], &[0.0, 1.0, 2.0])])
            .unwrap()
    }

    #[test]
    fn survives_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        write(&path, &[("a", &[2, 2], &[1.0, 2.0, 3.0, 4.0]), ("s", &[], &[7.0]), ("e", &[0], &[])]).unwrap();
        let expected: Vec<NamedArray> = vec![
            ("a".into(), vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]),
            ("s".into(), vec![], vec![7.0]),
            ("e".into(), vec![0], vec![]),
        ];
        assert_eq!(read(&path).unwrap(), expected);
    }

    #[test]
    fn reads_what_numpy_writes() {
        // numpy.savez(f, a=np.asfortranarray(np.arange(6, dtype=">f4").reshape(2, 3)), b=np.array([.5, 2.]))
        // and savez_compressed(f, z=np.zeros((4, 5), "f4")), NumPy 2.4.
        let plain = parse(include_bytes!("testdata/plain.npz"), |_| true).unwrap();
        assert_eq!(plain[0], ("a".into(), vec![2, 3], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
        assert_eq!(plain[1], ("b".into(), vec![2], vec![0.5, 2.0]));
        let compressed = parse(include_bytes!("testdata/compressed.npz"), |_| true).unwrap();
        assert_eq!(compressed[0], ("z".into(), vec![4, 5], vec![0.0; 20]));
    }

    #[test]
    fn any_bytes_are_an_error_and_never_a_panic() {
        let good = example();
        let original = parse(&good, |_| true).unwrap();
        for cut in 0..good.len() {
            assert!(parse(&good[..cut], |_| true).is_err(), "{cut} bytes of {} were accepted", good.len());
        }
        for at in 0..good.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                // A changed name can still be read, but the checksum detects every changed value.
                for (name, shape, values) in parse(&bad, |_| true).unwrap_or_default() {
                    let same = original.iter().any(|(_, s, v)| *s == shape && *v == values);
                    assert!(same, "byte {at} changed array '{name}' unnoticed");
                }
            }
        }
    }

    #[test]
    fn names_the_array_and_what_is_right() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        let mut bytes = example();
        let at = bytes.windows(3).position(|w| w == b"<f4").unwrap();
        bytes[at + 1] = b'i';
        std::fs::write(&path, &bytes).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains("x.npz") && message.contains("conv1"), "{message}");
    }
}
