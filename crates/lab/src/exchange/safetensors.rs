//! Weights as safetensors: float32 arrays with a header of text values. Both are untrusted.

use super::{ExchangeError, NamedArray};
use crate::data::budget::{self, LARGEST_FILE};
use ::safetensors::tensor::{Dtype, SafeTensors, TensorView};
use leaklab_record::{RecordError, atomic};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The text values of a file's header.
pub type Metadata = BTreeMap<String, String>;

/// Reads every array of a file, sorted by name. Float64 arrays are rounded to float32; other types are
/// errors.
pub fn read(path: &Path) -> Result<Vec<NamedArray>, ExchangeError> {
    Ok(read_with_metadata(path)?.0)
}

/// Reads every array and the header's text values.
pub fn read_with_metadata(path: &Path) -> Result<(Vec<NamedArray>, Metadata), ExchangeError> {
    let bytes = budget::read_file(path, LARGEST_FILE).map_err(RecordError::io(path, "cannot be read"))?;
    parse(&bytes).map_err(|reason| ExchangeError::malformed(path, "safetensors", reason))
}

/// Reads every array and the header's text values from the bytes of a file; the error is one clause.
pub fn parse(bytes: &[u8]) -> Result<(Vec<NamedArray>, Metadata), String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| e.to_string())?;
    let file = SafeTensors::deserialize(bytes).map_err(|e| e.to_string())?;
    let mut arrays = Vec::new();
    for (name, view) in file.iter() {
        let data = view.data();
        let values = match view.dtype() {
            Dtype::F32 => data.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect(),
            Dtype::F64 => data.as_chunks::<8>().0.iter().map(|&b| f64::from_le_bytes(b) as f32).collect(),
            other => return Err(format!("array '{name}' has type {other:?}; F32 is expected")),
        };
        arrays.push((name.to_owned(), view.shape().to_vec(), values));
    }
    arrays.sort_by(|a, b| a.0.cmp(&b.0));
    Ok((arrays, header.metadata().clone().unwrap_or_default().into_iter().collect()))
}

/// Writes the arrays and the header's text values atomically.
pub fn write(
    path: &Path,
    arrays: &[(&str, &[usize], &[f32])],
    metadata: &Metadata,
) -> Result<(), ExchangeError> {
    let malformed = |reason: String| ExchangeError::malformed(path, "safetensors", reason);
    let bytes: Vec<Vec<u8>> =
        arrays.iter().map(|(_, _, values)| values.iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
    let views = arrays
        .iter()
        .zip(&bytes)
        .map(|(&(name, shape, _), bytes)| Ok((name, TensorView::new(Dtype::F32, shape.to_vec(), bytes)?)))
        .collect::<Result<Vec<_>, ::safetensors::SafeTensorError>>()
        .map_err(|e| malformed(e.to_string()))?;
    let header: HashMap<String, String> = metadata.clone().into_iter().collect();
    let file = ::safetensors::serialize(views, Some(header)).map_err(|e| malformed(e.to_string()))?;
    atomic::write(path, &file).map_err(RecordError::io(path, "cannot be written"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        let metadata = Metadata::from([("tau".into(), "30".into())]);
        write(&path, &[("fc1", &[2, 1], &[1.5, -0.0]), ("conv1", &[1], &[f32::MIN_POSITIVE])], &metadata)
            .unwrap();
        let (arrays, read) = read_with_metadata(&path).unwrap();
        assert_eq!(arrays[0], ("conv1".into(), vec![1], vec![f32::MIN_POSITIVE]));
        assert_eq!((arrays[1].0.as_str(), arrays[1].2[1].to_bits()), ("fc1", (-0.0f32).to_bits()));
        assert_eq!(read, metadata);
    }

    #[test]
    fn any_bytes_are_an_error_and_never_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        write(&path, &[("fc1", &[2, 1], &[1.5, 2.0])], &Metadata::new()).unwrap();
        let good = std::fs::read(&path).unwrap();
        for cut in 0..good.len() {
            assert!(parse(&good[..cut]).is_err());
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0xff;
            let _ = parse(&bad);
        }
        let message = read(&folder.path().join("absent")).unwrap_err().to_string();
        assert!(message.contains("absent"), "{message}");
    }
}
