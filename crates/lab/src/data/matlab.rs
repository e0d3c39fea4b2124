//! A reader for MATLAB 5 files, as far as SVHN uses them: named numeric arrays, compressed or not, in either
//! byte order.
//!
//! The file is untrusted: every length is compared with the bytes in the file before it is used, and all
//! arrays together are decompressed only up to a size that the caller needs.

use super::Flaw;
use super::budget::Budget;

/// A numeric array in column-major order, as MATLAB stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Its name.
    pub name: String,
    /// Offset of its element in the file.
    pub offset: usize,
    /// Sizes of its dimensions.
    pub dimensions: Vec<usize>,
    /// Its entries.
    pub data: Numbers,
}

/// Entries of an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// Stored as bytes.
    Bytes(Vec<u8>),
    /// Stored as any other type.
    Doubles(Vec<f64>),
}

const COMPRESSED: u32 = 15;
const MATRIX: u32 = 14;

/// The byte order of a file.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

impl Order {
    fn number<const N: usize>(self, bytes: &[u8]) -> u64 {
        let mut value = 0;
        for i in 0..N {
            let byte = bytes[if self.big { i } else { N - 1 - i }];
            value = value << 8 | u64::from(byte);
        }
        value
    }
}

/// A tagged element: its type, its contents, and the offset of the next one.
struct Element<'a> {
    kind: u32,
    data: &'a [u8],
    next: usize,
}

fn element(bytes: &[u8], at: usize, order: Order) -> Result<Element<'_>, Flaw> {
    let ends = || Flaw::new(at, "the file ends where an element is expected");
    let tag = bytes.get(at..at + 8).ok_or_else(ends)?;
    let first = order.number::<4>(tag) as u32;
    let short = (first >> 16) as usize;
    if short > 0 {
        // Up to four bytes are stored in the tag itself.
        let data = tag[4..]
            .get(..short)
            .ok_or_else(|| Flaw::new(at, format!("a short element has {short} bytes; 4 is the limit")))?;
        return Ok(Element { kind: first & 0xFFFF, data, next: at + 8 });
    }
    let size = order.number::<4>(&tag[4..]) as usize;
    let data = (at + 8).checked_add(size).and_then(|end| bytes.get(at + 8..end)).ok_or_else(|| {
        Flaw::new(
            at,
            format!(
                "the file has only {} bytes of an element of {size} bytes: it is truncated",
                bytes.len() - at - 8
            ),
        )
    })?;
    let padded = if first == COMPRESSED { size } else { size.next_multiple_of(8) };
    Ok(Element { kind: first, data, next: at + 8 + padded })
}

/// The arrays of a file, none of more than `largest` bytes.
pub fn parse(bytes: &[u8], largest: usize) -> Result<Vec<Array>, Flaw> {
    if bytes.len() < 128 {
        return Err(Flaw::new(bytes.len(), "it is shorter than the 128 bytes of a MATLAB 5 header"));
    }
    let order = match (&bytes[126..128], &bytes[124..126]) {
        (b"IM", [0, 1]) => Order { big: false },
        (b"MI", [1, 0]) => Order { big: true },
        _ => return Err(Flaw::new(124, "it is not a MATLAB 5 file (save it as version 5, not 7.3)")),
    };
    // Room for each array twice, decompressed and converted, and for some small arrays.
    let mut budget = Budget::of(2 * largest as u64 + (1 << 20));
    let mut arrays = Vec::new();
    let mut at = 128;
    while at < bytes.len() {
        let part = element(bytes, at, order)?;
        match part.kind {
            MATRIX => arrays.extend(array(part.data, at, order, largest, &mut budget)?),
            COMPRESSED => {
                let inner = budget
                    .read_to_end(flate2::read::ZlibDecoder::new(part.data))
                    .map_err(|error| Flaw::new(at, format!("the compressed element is damaged: {error}")))?;
                let within = |flaw: Flaw| {
                    Flaw::new(
                        at,
                        format!("at byte {} of the compressed element: {}", flaw.offset, flaw.reason),
                    )
                };
                let part = element(&inner, 0, order).map_err(within)?;
                if part.kind == MATRIX {
                    arrays.extend(array(part.data, at, order, largest, &mut budget).map_err(within)?);
                }
            }
            _ => {}
        }
        at = part.next;
    }
    Ok(arrays)
}

/// The array in a matrix element; `None` if it is not real and numeric.
fn array(
    bytes: &[u8],
    offset: usize,
    order: Order,
    largest: usize,
    budget: &mut Budget,
) -> Result<Option<Array>, Flaw> {
    let flags = element(bytes, 0, order)?;
    if flags.data.len() != 8 {
        return Err(Flaw::new(0, format!("the array flags have {} bytes, not 8", flags.data.len())));
    }
    let word = order.number::<4>(flags.data) as u32;
    let (class, complex) = (word & 0xFF, word >> 11 & 1 == 1);
    // Classes 6 to 13 are double, single and the integers.
    if !(6..=13).contains(&class) || complex {
        return Ok(None);
    }
    let sizes = element(bytes, flags.next, order)?;
    let dimensions: Vec<usize> = sizes.data.chunks_exact(4).map(|b| order.number::<4>(b) as usize).collect();
    let name = element(bytes, sizes.next, order)?;
    let part = element(bytes, name.next, order)?;
    let width = match part.kind {
        1 | 2 => 1,
        3 | 4 => 2,
        5..=7 => 4,
        9 | 12 | 13 => 8,
        kind => return Err(Flaw::new(name.next, format!("the entries have the unknown type {kind}"))),
    };
    let count = dimensions.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).filter(|&n| n <= largest);
    if sizes.data.len() % 4 != 0
        || dimensions.len() < 2
        || count.and_then(|n| n.checked_mul(width)) != Some(part.data.len())
    {
        let reason =
            format!("{} bytes of entries do not fill the dimensions {dimensions:?}", part.data.len());
        return Err(Flaw::new(name.next, reason));
    }
    let needed = if part.kind == 2 { part.data.len() } else { 8 * count.unwrap_or(0) };
    budget.take(needed as u64).map_err(|exceeded| Flaw::new(name.next, exceeded.to_string()))?;
    let data = if part.kind == 2 {
        Numbers::Bytes(part.data.to_vec())
    } else {
        if part.data.len() > largest / 8 {
            return Err(Flaw::new(
                name.next,
                format!("{} bytes of entries that are not uint8 are too many", part.data.len()),
            ));
        }
        Numbers::Doubles(part.data.chunks_exact(width).map(|b| double(b, part.kind, order)).collect())
    };
    let name = String::from_utf8_lossy(name.data).into_owned();
    Ok(Some(Array { name, offset, dimensions, data }))
}

/// One entry of the given type as a number.
fn double(bytes: &[u8], kind: u32, order: Order) -> f64 {
    match kind {
        1 => f64::from(bytes[0] as i8),
        2 => f64::from(bytes[0]),
        3 => f64::from(order.number::<2>(bytes) as i16),
        4 => f64::from(order.number::<2>(bytes) as u16),
        5 => f64::from(order.number::<4>(bytes) as i32),
        6 => f64::from(order.number::<4>(bytes) as u32),
        7 => f64::from(f32::from_bits(order.number::<4>(bytes) as u32)),
        9 => f64::from_bits(order.number::<8>(bytes)),
        12 => order.number::<8>(bytes) as i64 as f64,
        _ => order.number::<8>(bytes) as f64,
    }
}

impl Numbers {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Numbers::Bytes(bytes) => bytes.len(),
            Numbers::Doubles(numbers) => numbers.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One entry.
    pub fn get(&self, index: usize) -> f64 {
        match self {
            Numbers::Bytes(bytes) => f64::from(bytes[index]),
            Numbers::Doubles(numbers) => numbers[index],
        }
    }
}
