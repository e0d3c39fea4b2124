//! NumPy arrays of the plain types that data sets use: bytes, integers, floats, booleans and strings.
//!
//! Values are stored as their bytes in the file and converted one at a time, so an array of a hundred million
//! event times takes no more memory than in the file.

use super::budget::{self, Budget};
use super::zip::{self, Archive};
use super::{DataError, Flaw};
use leaklab_record::{atomic, file};
use std::path::Path;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy's own limit.
const MOST_DIMENSIONS: usize = 64;

/// Type of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Unsigned,
    Signed,
    Real,
    /// Strings with four bytes per character.
    Text,
}

/// An array in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// Its name in the archive.
    pub name: String,
    /// Its offset in the archive.
    pub offset: u64,
    /// Its dimensions.
    pub shape: Vec<usize>,
    kind: Kind,
    width: usize,
    big_endian: bool,
    column_major: bool,
    data: Vec<u8>,
}

impl Array {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.data.len() / self.width
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// An error in this array.
    pub fn flaw(&self, reason: impl std::fmt::Display) -> Flaw {
        Flaw { offset: self.offset, reason: format!("array '{}': {reason}", self.name) }
    }

    /// Whether its values are bytes from 0 to 255. Booleans are not: their 1 is not the 1 of a pixel.
    pub fn is_bytes(&self) -> bool {
        self.kind == Kind::Unsigned && self.width == 1
    }

    /// Whether its values are true or false.
    pub fn is_bool(&self) -> bool {
        self.kind == Kind::Bool
    }

    /// Whether its values are strings.
    pub fn is_text(&self) -> bool {
        self.kind == Kind::Text
    }

    /// The bytes of the value at a row-major index, least significant first.
    fn value(&self, index: usize) -> [u8; 8] {
        let at = if self.column_major { transposed(&self.shape, index) } else { index };
        let mut word = [0; 8];
        word[..self.width].copy_from_slice(&self.data[at * self.width..][..self.width]);
        if self.big_endian {
            word[..self.width].reverse();
        }
        word
    }

    /// A value as a number; `None` for strings.
    pub fn real(&self, index: usize) -> Option<f64> {
        let word = self.value_of_number(index)?;
        Some(match (self.kind, self.width) {
            (Kind::Real, 2) => half(u16::from_le_bytes([word[0], word[1]])),
            (Kind::Real, 4) => f64::from(f32::from_bits(u64::from_le_bytes(word) as u32)),
            (Kind::Real, _) => f64::from_le_bytes(word),
            (Kind::Unsigned, _) => u64::from_le_bytes(word) as f64,
            (Kind::Bool | Kind::Signed | Kind::Text, _) => self.whole(index)? as f64,
        })
    }

    /// All values as float32 (float64 values are rounded); `None` if they are not floats.
    pub fn floats(&self) -> Option<Vec<f32>> {
        if self.kind != Kind::Real {
            return None;
        }
        (0..self.len()).map(|index| self.real(index).map(|value| value as f32)).collect()
    }

    /// A value as a whole number; `None` if it is not whole or needs more than 63 bits.
    pub fn whole(&self, index: usize) -> Option<i64> {
        let word = self.value_of_number(index)?;
        let bits = 8 * self.width as u32;
        match self.kind {
            Kind::Bool => Some(i64::from(word[0] != 0)),
            Kind::Unsigned => i64::try_from(u64::from_le_bytes(word)).ok(),
            Kind::Signed => Some(i64::from_le_bytes(word) << (64 - bits) >> (64 - bits)),
            Kind::Real => {
                let x = self.real(index)?;
                (x.fract() == 0.0 && x.abs() < 9e15).then_some(x as i64)
            }
            Kind::Text => None,
        }
    }

    fn value_of_number(&self, index: usize) -> Option<[u8; 8]> {
        (self.kind != Kind::Text).then(|| self.value(index))
    }

    /// A value as a string; `None` if it is a number or the array is column-major.
    pub fn text(&self, index: usize) -> Option<String> {
        if self.kind != Kind::Text || self.column_major {
            return None;
        }
        let letters = self.data[index * self.width..][..self.width].chunks_exact(4).map(|letter| {
            let mut word = [letter[0], letter[1], letter[2], letter[3]];
            if self.big_endian {
                word.reverse();
            }
            u32::from_le_bytes(word)
        });
        letters.take_while(|&code| code != 0).map(char::from_u32).collect()
    }

    /// All values, if they are bytes; otherwise the array.
    pub fn into_bytes(self) -> Result<Vec<u8>, Self> {
        if !self.is_bytes() {
            return Err(self);
        }
        if !self.column_major {
            return Ok(self.data);
        }
        Ok((0..self.len()).map(|i| self.value(i)[0]).collect())
    }
}

/// The value of a float16 (IEEE 754 binary16), exactly.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let fraction = f64::from(bits & 0x3ff);
    sign * match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    }
}

/// Index in column-major order (first index fastest) of the value at a row-major index.
fn transposed(shape: &[usize], index: usize) -> usize {
    let (mut rest, mut at, mut stride) = (index, 0, shape.iter().product::<usize>());
    for &n in shape.iter().rev() {
        stride /= n;
        at += rest % n * stride;
        rest /= n;
    }
    at
}

/// The value of a key in a NumPy header, which is the literal of a Python dict.
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

/// Kind, width in bytes and byte order (whether big-endian) of a NumPy type such as `<f4`.
fn parse_type(text: &str) -> Result<(Kind, usize, bool), String> {
    let expected = || format!("its type is {text}; numbers of at most 64 bits, bool or str are expected");
    let (order, rest) = text.split_at_checked(1).ok_or_else(expected)?;
    let (letter, width) = rest.split_at_checked(1).ok_or_else(expected)?;
    let width: usize = width.parse().map_err(|_| expected())?;
    let (kind, width, widths): (_, _, &[usize]) = match letter {
        "u" => (Kind::Unsigned, width, &[1, 2, 4, 8]),
        "b" => (Kind::Bool, width, &[1]),
        "i" => (Kind::Signed, width, &[1, 2, 4, 8]),
        "f" => (Kind::Real, width, &[2, 4, 8]),
        "U" => (Kind::Text, width.checked_mul(4).ok_or_else(expected)?, &[]),
        _ => return Err(expected()),
    };
    let good = if kind == Kind::Text { (4..=4096).contains(&width) } else { widths.contains(&width) };
    if good && ["<", ">", "|", "="].contains(&order) {
        Ok((kind, width, order == ">"))
    } else {
        Err(expected())
    }
}

/// Reads the bytes of a `.npy` file at `offset` of its archive.
pub(crate) fn parse(name: &str, offset: u64, mut bytes: Vec<u8>) -> Result<Array, Flaw> {
    let header =
        read_header(&bytes).map_err(|reason| Flaw { offset, reason: format!("array '{name}': {reason}") });
    let (shape, (kind, width, big_endian), column_major, start) = header?;
    let data = bytes.split_off(start);
    let mut array =
        Array { name: name.to_owned(), offset, shape, kind, width, big_endian, column_major, data };
    let needed = array.shape.iter().try_fold(width, |product, &n| product.checked_mul(n));
    if needed != Some(array.data.len()) {
        let found = array.data.len();
        return Err(array.flaw(format!("{found} bytes of data do not fill its shape {:?}", array.shape)));
    }
    array.column_major &= array.shape.len() > 1;
    Ok(array)
}

type Header = (Vec<usize>, (Kind, usize, bool), bool, usize);

/// Shape, type and order of the array, and the offset of its data.
fn read_header(bytes: &[u8]) -> Result<Header, String> {
    if !bytes.starts_with(MAGIC) {
        return Err("it is not a NumPy array".to_owned());
    }
    let cut = || "its header is truncated".to_owned();
    let (length, start) = match bytes.get(6) {
        Some(1) => (bytes.get(8..10).map(|b| usize::from(u16::from_le_bytes([b[0], b[1]]))), 10),
        Some(2 | 3) => (bytes.get(8..12).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize), 12),
        _ => return Err("its version of the npy format is not one of 1 to 3".to_owned()),
    };
    let end = length.and_then(|length| length.checked_add(start)).ok_or_else(cut)?;
    let text = bytes.get(start..end).ok_or_else(cut)?;
    let text = std::str::from_utf8(text).map_err(|_| "its header is not UTF-8".to_owned())?;
    let value = |key: &str| header_value(text, key).ok_or_else(|| format!("its header has no '{key}'"));
    let shape_text = value("shape")?;
    let sizes = shape_text.trim_matches(['(', ')']).split(',').map(str::trim).filter(|n| !n.is_empty());
    let shape: Result<Vec<usize>, _> = sizes.map(str::parse).collect();
    let shape = shape.ok().filter(|shape| shape.len() <= MOST_DIMENSIONS);
    let shape = shape
        .ok_or_else(|| format!("its shape {shape_text} is not a tuple of at most {MOST_DIMENSIONS} sizes"))?;
    let column_major = match value("fortran_order")? {
        "False" => false,
        "True" => true,
        other => return Err(format!("its fortran_order is {other}, not True or False")),
    };
    Ok((shape, parse_type(value("descr")?.trim_matches(['\'', '"']))?, column_major, end))
}

/// Arrays of one file, and the rest of its budget, for what is made from them.
#[derive(Debug)]
pub struct Arrays {
    list: Vec<Array>,
    /// Bytes that may still be allocated for the file.
    pub(crate) budget: Budget,
}

impl Arrays {
    /// The array of that name.
    pub fn find(&self, name: &str) -> Option<&Array> {
        self.list.iter().find(|array| array.name == name)
    }

    /// Removes the array of that name.
    pub fn remove(&mut self, name: &str) -> Option<Array> {
        let at = self.list.iter().position(|array| array.name == name)?;
        Some(self.list.remove(at))
    }
}

/// Whether a data set reads an array of this name. Arrays of its own that have another name are skipped, but
/// one that begins with `train_` or `test_` is probably misspelt: without it, other images would be used.
pub(super) fn is_among(name: &str, known: impl Iterator<Item = String> + Clone) -> Result<bool, String> {
    if known.clone().any(|known| known == name) {
        return Ok(true);
    }
    match name.starts_with("train_") || name.starts_with("test_") {
        true => {
            let known: Vec<String> = known.collect();
            Err(format!("{name} is none of the arrays that are read: {}", known.join(", ")))
        }
        false => Ok(false),
    }
}

/// The arrays of the `.npz` file of a data set whose names `wanted` accepts; the others are not read.
pub fn read(
    dataset: &str,
    path: &Path,
    wanted: impl Fn(&str) -> Result<bool, String>,
) -> Result<Arrays, DataError> {
    if !path.exists() {
        return Err(DataError::NoFile { name: dataset.to_owned(), path: path.to_owned() });
    }
    let file = file::open(path).map_err(DataError::io(path))?;
    let length = file.metadata().map_err(DataError::io(path))?.len();
    if length > budget::LARGEST_FILE {
        return Err(Flaw::new(0, "it is larger than 4 GiB, the limit for npz files").of(path));
    }
    read_from(std::io::BufReader::new(file), length, wanted).map_err(|flaw| flaw.of(path))
}

/// The arrays of an archive of `length` bytes whose names `wanted` accepts.
pub fn read_from<R: std::io::Read + std::io::Seek>(
    reader: R,
    length: u64,
    wanted: impl Fn(&str) -> Result<bool, String>,
) -> Result<Arrays, Flaw> {
    let mut archive = Archive::open(reader)?;
    let mut budget = Budget::of_weights(length as usize);
    let mut list: Vec<Array> = Vec::new();
    for entry in archive.entries.clone() {
        let name = entry.name.strip_suffix(".npy").unwrap_or(&entry.name);
        if !wanted(name).map_err(|reason| Flaw::new(entry.offset as usize, reason))? {
            continue;
        }
        let array = parse(name, entry.offset, archive.read(&entry, &mut budget)?)?;
        if list.iter().any(|other| other.name == array.name) {
            return Err(array.flaw("it is in the archive twice"));
        }
        list.push(array);
    }
    Ok(Arrays { list, budget })
}

/// An array to be written: its name, a NumPy type such as `|u1`, its shape and the bytes of its values.
pub type Plain<'a> = (&'a str, &'a str, Vec<usize>, Vec<u8>);

/// Writes arrays as an `.npz` file, atomically.
pub fn write(path: &Path, arrays: Vec<Plain>) -> Result<(), DataError> {
    let files: Vec<(String, Vec<u8>)> = arrays
        .into_iter()
        .map(|(name, kind, shape, data)| (format!("{name}.npy"), file_of(kind, &shape, &data)))
        .collect();
    let bytes = zip::pack(&files).map_err(|reason| Flaw::new(0, reason).of(path))?;
    atomic::write(path, &bytes).map_err(DataError::io(path))
}

/// A `.npy` file.
pub(crate) fn file_of(kind: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let sizes = if shape.len() == 1 { sizes.trim_end() } else { sizes.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({sizes}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// NumPy type and bytes of strings: four bytes per character, and all strings as wide as the longest.
pub fn texts(words: &[String]) -> (String, Vec<u8>) {
    let longest = words.iter().map(|word| word.chars().count()).max().unwrap_or(0).max(1);
    let mut data = Vec::new();
    for word in words {
        let codes = word.chars().map(u32::from).chain(std::iter::repeat(0)).take(longest);
        data.extend(codes.flat_map(u32::to_le_bytes));
    }
    (format!("<U{longest}"), data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(kind: &str, shape: &[usize], data: &[u8]) -> Result<Array, Flaw> {
        parse("a", 0, file_of(kind, shape, data))
    }

    #[test]
    fn numbers_of_every_type() {
        let whole = |kind: &str, data: &[u8]| array(kind, &[1], data).unwrap().whole(0);
        assert_eq!(whole("|u1", &[200]), Some(200));
        assert_eq!(whole("|i1", &[200]), Some(-56));
        assert_eq!((whole("|b1", &[1]), whole("|b1", &[0]), whole("|b1", &[7])), (Some(1), Some(0), Some(1)));
        assert!(array("|b1", &[1], &[1]).unwrap().is_bool() && !array("|b1", &[1], &[1]).unwrap().is_bytes());
        assert_eq!(whole("<i2", &[0xfe, 0xff]), Some(-2));
        assert_eq!(whole(">i4", &[0, 0, 1, 0]), Some(256));
        assert_eq!(whole("<i8", &(-5i64).to_le_bytes()), Some(-5));
        assert_eq!(whole("<u8", &u64::MAX.to_le_bytes()), None);
        assert_eq!(array("<u8", &[1], &u64::MAX.to_le_bytes()).unwrap().real(0), Some(2f64.powi(64)));
        assert_eq!(whole("<f8", &3.0f64.to_le_bytes()), Some(3));
        assert_eq!(whole("<f8", &3.5f64.to_le_bytes()), None);
        assert_eq!(array("<f4", &[1], &0.5f32.to_le_bytes()).unwrap().real(0), Some(0.5));
        for (bits, value) in [
            (0x3c00u16, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333251953125),
            (0x7bff, 65504.0),
            (0x0001, 5.960464477539063e-8),
            (0x03ff, 6.097555160522461e-5),
            (0x8000, 0.0),
            (0xfc00, f64::NEG_INFINITY),
        ] {
            assert_eq!(array("<f2", &[1], &bits.to_le_bytes()).unwrap().real(0), Some(value), "{bits:x}");
        }
        assert!(array("<f2", &[1], &[0x01, 0x7c]).unwrap().real(0).unwrap().is_nan());
        assert!(array("|O", &[1], &[0; 8]).unwrap_err().reason.contains("its type is |O"));
        assert!(array("<f8", &[2], &[0; 8]).is_err() && array("<f8", &[usize::MAX, 3], &[0; 8]).is_err());
    }

    #[test]
    fn columns_first_and_texts() {
        let mut turned = array("|u1", &[2, 3], &[0, 3, 1, 4, 2, 5]).unwrap();
        turned.column_major = true;
        assert_eq!(turned.into_bytes().unwrap(), [0, 1, 2, 3, 4, 5]);
        let (kind, data) = texts(&["wine".to_owned(), "é".to_owned()]);
        let words = array(&kind, &[2], &data).unwrap();
        assert_eq!((words.text(0).as_deref(), words.text(1).as_deref()), (Some("wine"), Some("é")));
        assert_eq!(words.whole(0), None);
    }
}
