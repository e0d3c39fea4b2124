//! NumPy's `.npz`: a zip archive of `.npy` arrays.
//!
//! Written here in full, since the two formats together are smaller than the crates that would bring them
//! (and those bring C code). Archives are written stored, as `numpy.savez` does; compressed ones are read
//! too.

use super::{ExchangeError, NamedArray, elements};
use crate::data::budget::{self, Budget, LARGEST_FILE};
use leaklab_record::{RecordError, atomic};
use std::io::Read;
use std::path::Path;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy's own limit.
const MOST_DIMENSIONS: usize = 64;
/// No deflate stream expands by more than this; a header that promises more is a lie.
const LARGEST_EXPANSION: u64 = 1032;

/// Reads every array of an archive, in its order. Float64 arrays are rounded to float32; other types are
/// errors.
pub fn read(path: &Path) -> Result<Vec<NamedArray>, ExchangeError> {
    let bytes = budget::read_file(path, LARGEST_FILE).map_err(RecordError::io(path, "cannot be read"))?;
    parse(&bytes, |_| true).map_err(|reason| ExchangeError::malformed(path, "npz", reason))
}

/// Reads the one array of that name, whatever the types of the others; `None` if there is none.
pub fn read_array(path: &Path, name: &str) -> Result<Option<NamedArray>, ExchangeError> {
    let bytes = budget::read_file(path, LARGEST_FILE).map_err(RecordError::io(path, "cannot be read"))?;
    let found = parse(&bytes, |other| other == name);
    Ok(found.map_err(|reason| ExchangeError::malformed(path, "npz", reason))?.pop())
}

/// Writes the arrays atomically. The bytes depend on the arrays alone: entries carry no time of writing.
pub fn write(path: &Path, arrays: &[(&str, &[usize], &[f32])]) -> Result<(), ExchangeError> {
    let bytes = archive(arrays).map_err(|reason| ExchangeError::malformed(path, "npz", reason))?;
    atomic::write(path, &bytes).map_err(RecordError::io(path, "cannot be written"))?;
    Ok(())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Reads the arrays that are wanted, by name, from the bytes of an archive; the error is one clause.
pub fn parse(bytes: &[u8], wanted: impl Fn(&str) -> bool) -> Result<Vec<NamedArray>, String> {
    // The end record is the last thing in the file, followed only by a comment of up to 65535 bytes.
    let first = bytes.len().saturating_sub(22 + 65535);
    let end = (first..=bytes.len().saturating_sub(22))
        .rev()
        .find(|&at| u32_at(bytes, at) == Some(END))
        .ok_or("it has no zip directory")?;
    let cut = || "its zip directory is cut off".to_owned();
    let count = u16_at(bytes, end + 10).ok_or_else(cut)?;
    let mut at = u32_at(bytes, end + 16).ok_or_else(cut)? as usize;
    let mut arrays = Vec::new();
    // For all entries together: nothing keeps a directory from naming the same bytes many times.
    let mut budget = Budget::of_weights(bytes.len());
    for _ in 0..count {
        if u32_at(bytes, at) != Some(CENTRAL) {
            return Err("its zip directory is damaged".into());
        }
        let field = |offset| u16_at(bytes, at + offset).ok_or_else(cut);
        let word = |offset| u32_at(bytes, at + offset).ok_or_else(cut);
        let (name_len, extra_len, comment_len) =
            (field(28)? as usize, field(30)? as usize, field(32)? as usize);
        let name = bytes.get(at + 46..at + 46 + name_len).ok_or_else(cut)?;
        let name = std::str::from_utf8(name).map_err(|_| "an entry's name is not UTF-8".to_owned())?;
        let entry = Entry {
            method: field(10)?,
            crc: word(16)?,
            packed: word(20)?,
            size: word(24)?,
            local: word(42)? as usize,
        };
        at += 46 + name_len + extra_len + comment_len;
        let name = name.strip_suffix(".npy").unwrap_or(name);
        if !wanted(name) {
            continue;
        }
        // Its bytes, and its values beside them.
        let size = 2 * u64::from(entry.size);
        budget.take(size).map_err(|exceeded| format!("entry '{name}': {exceeded}"))?;
        let data = entry.data(bytes).map_err(|reason| format!("entry '{name}': {reason}"))?;
        let (shape, values) = parse_npy(&data).map_err(|reason| format!("array '{name}': {reason}"))?;
        arrays.push((name.to_owned(), shape, values));
    }
    Ok(arrays)
}

struct Entry {
    method: u16,
    crc: u32,
    packed: u32,
    size: u32,
    local: usize,
}

impl Entry {
    fn data(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        if u32_at(bytes, self.local) != Some(LOCAL) {
            return Err("its local header is not where the directory says".into());
        }
        if self.packed == u32::MAX || self.size == u32::MAX {
            return Err("arrays of 4 GiB and more are not supported".into());
        }
        let cut = "its data is cut off";
        let name_len = u16_at(bytes, self.local + 26).ok_or(cut)? as usize;
        let extra_len = u16_at(bytes, self.local + 28).ok_or(cut)? as usize;
        let start = self.local + 30 + name_len + extra_len;
        let packed = bytes.get(start..start.saturating_add(self.packed as usize)).ok_or(cut)?;
        let data = match self.method {
            0 => packed.to_vec(),
            8 if u64::from(self.size) <= u64::from(self.packed).saturating_mul(LARGEST_EXPANSION) => {
                let mut data = Vec::new();
                flate2::read::DeflateDecoder::new(packed)
                    .take(u64::from(self.size) + 1)
                    .read_to_end(&mut data)
                    .map_err(|e| format!("it does not decompress: {e}"))?;
                data
            }
            8 => return Err("its directory entry promises more than its data can hold".into()),
            other => {
                return Err(format!("compression method {other} is not supported, only stored and deflate"));
            }
        };
        if data.len() != self.size as usize {
            return Err(format!("it holds {} bytes where {} were promised", data.len(), self.size));
        }
        let mut crc = flate2::Crc::new();
        crc.update(&data);
        if crc.sum() != self.crc {
            return Err("its checksum does not match".into());
        }
        Ok(data)
    }
}

/// The text between `'key':` and the end of its value in a NumPy header, which is a Python dict literal.
fn header_value<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let rest = &header[header.find(&format!("'{key}'"))? + key.len() + 2..];
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = match rest.chars().next()? {
        '(' => rest.find(')')? + 1,
        quote @ ('\'' | '"') => rest[1..].find(quote)? + 2,
        _ => rest.find([',', '}'])?,
    };
    Some(&rest[..end])
}

fn parse_npy(bytes: &[u8]) -> Result<(Vec<usize>, Vec<f32>), String> {
    if !bytes.starts_with(MAGIC) {
        return Err("it is not a NumPy array".into());
    }
    let cut = "its header is cut off";
    let (len, start): (usize, usize) = match bytes.get(6).ok_or(cut)? {
        1 => (u16_at(bytes, 8).ok_or(cut)? as usize, 10),
        2 | 3 => (u32_at(bytes, 8).ok_or(cut)? as usize, 12),
        version => return Err(format!("version {version} of the npy format is not supported, only 1 to 3")),
    };
    let header = bytes.get(start..start.saturating_add(len)).ok_or(cut)?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is not UTF-8")?;
    let value = |key| header_value(header, key).ok_or_else(|| format!("its header has no '{key}'"));
    let shape_text = value("shape")?;
    let shape = shape_text
        .trim_matches(['(', ')'])
        .split(',')
        .map(str::trim)
        .filter(|n| !n.is_empty())
        .map(|n| n.parse::<usize>().map_err(|_| format!("its shape is {shape_text}")))
        .collect::<Result<Vec<_>, _>>()?;
    if shape.len() > MOST_DIMENSIONS {
        return Err(format!("it has {} dimensions, where NumPy has at most {MOST_DIMENSIONS}", shape.len()));
    }
    let data = &bytes[start + len..];
    let count =
        elements(&shape).filter(|&n| n <= data.len()).ok_or_else(|| format!("its shape is {shape_text}"))?;
    let width = match value("descr")?.trim_matches(['\'', '"']) {
        "<f4" | ">f4" => 4,
        "<f8" | ">f8" => 8,
        other => return Err(format!("its type is {other}, float32 ('<f4') is expected")),
    };
    if data.len() != count * width {
        return Err(format!("{} bytes of data where shape {shape_text} needs {}", data.len(), count * width));
    }
    let big_endian = value("descr")?.contains('>');
    let values: Vec<f32> = data
        .chunks_exact(width)
        .map(|chunk| {
            let mut word = [0u8; 8];
            word[..width].copy_from_slice(chunk);
            if big_endian {
                word[..width].reverse();
            }
            if width == 4 {
                f32::from_le_bytes([word[0], word[1], word[2], word[3]])
            } else {
                f64::from_le_bytes(word) as f32
            }
        })
        .collect();
    match value("fortran_order")? {
        "False" => Ok((shape, values)),
        "True" => Ok((shape.clone(), row_major(&shape, &values))),
        other => Err(format!("its fortran_order is {other}")),
    }
}

/// Column-major values (first index fastest) in row-major order.
fn row_major(shape: &[usize], values: &[f32]) -> Vec<f32> {
    (0..values.len())
        .map(|position| {
            let mut rest = position;
            let mut index = vec![0; shape.len()];
            for (i, &n) in shape.iter().enumerate().rev() {
                index[i] = rest % n;
                rest /= n;
            }
            values[index.iter().zip(shape).rev().fold(0, |at, (&i, &n)| at * n + i)]
        })
        .collect()
}

fn npy(shape: &[usize], values: &[f32]) -> Vec<u8> {
    let mut text = String::new();
    for n in shape {
        text.push_str(&format!("{n}, "));
    }
    let shape_text = if shape.len() == 1 { text.trim_end() } else { text.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape_text}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = Vec::with_capacity(10 + header.len() + 4 * values.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    for value in values {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes
}

/// The fields that a local header and a directory entry share, from "version needed" to "extra length".
fn entry_fields(name: &str, crc: u32, size: u32) -> Vec<u8> {
    let mut fields = Vec::new();
    // Version 2.0, UTF-8 names, stored; 1980-01-01 00:00, the earliest time zip can say.
    for value in [20u16, 0x0800, 0, 0, 0x21] {
        fields.extend_from_slice(&value.to_le_bytes());
    }
    for value in [crc, size, size] {
        fields.extend_from_slice(&value.to_le_bytes());
    }
    for value in [name.len() as u16, 0] {
        fields.extend_from_slice(&value.to_le_bytes());
    }
    fields
}

fn archive(arrays: &[(&str, &[usize], &[f32])]) -> Result<Vec<u8>, String> {
    let too_large = "4 GiB and more cannot be written";
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for &(name, shape, values) in arrays {
        if elements(shape) != Some(values.len()) {
            return Err(format!("array '{name}' has {} values for shape {shape:?}", values.len()));
        }
        let name = format!("{name}.npy");
        let data = npy(shape, values);
        let mut crc = flate2::Crc::new();
        crc.update(&data);
        let fields = entry_fields(&name, crc.sum(), u32::try_from(data.len()).map_err(|_| too_large)?);
        let offset = u32::try_from(bytes.len()).map_err(|_| too_large)?;
        bytes.extend_from_slice(&LOCAL.to_le_bytes());
        bytes.extend_from_slice(&fields);
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&data);
        directory.extend_from_slice(&CENTRAL.to_le_bytes());
        directory.extend_from_slice(&20u16.to_le_bytes());
        directory.extend_from_slice(&fields);
        directory.extend_from_slice(&[0; 10]); // no comment, first disk, no attributes
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
    }
    let start = u32::try_from(bytes.len()).map_err(|_| too_large)?;
    let count = u16::try_from(arrays.len()).map_err(|_| "more than 65535 arrays cannot be written")?;
    bytes.extend_from_slice(&directory);
    bytes.extend_from_slice(&END.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&start.to_le_bytes());
    bytes.extend_from_slice(&[0; 2]);
    Ok(bytes)
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
                // A changed name still reads, but the checksum lets no changed value through.
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
