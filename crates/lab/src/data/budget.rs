//! One budget of bytes for each file that is read. It limits how much memory and time an untrusted file can
//! take.
//!
//! A compressed file can unpack to a thousand times its size, and an archive can refer to the same bytes many
//! times. All parts of a file therefore share one budget. Readers take from it before memory is allocated,
//! and refuse the file with a message when the budget is used up.

use leaklab_record::file;
use std::fmt;
use std::io::{self, Read};
use std::path::Path;

/// The largest file of weights that is read.
pub const LARGEST_FILE: u64 = 4 << 30;

/// Bytes that any file of weights may unpack to, however small it is: neuron constants compress well.
const FLOOR: u64 = 384 << 20;

/// Bytes that may still be allocated for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    left: u64,
    most: u64,
}

/// A file would become larger than its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct Exceeded {
    most: u64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it unpacks to more than {} MB, the limit for files of this kind", self.most / 1_000_000)
    }
}

impl From<Exceeded> for io::Error {
    fn from(exceeded: Exceeded) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, exceeded)
    }
}

impl Budget {
    /// A budget of `most` bytes.
    pub fn of(most: u64) -> Self {
        Budget { left: most, most }
    }

    /// The budget for weights in a file of that length. Weights hardly compress. Float32 values are in memory
    /// as in the file, as a chunk and as float64 at the same time, which takes four times their length; the
    /// budget is twice that, to be safe.
    pub fn of_weights(length: usize) -> Self {
        Budget::of((length as u64).saturating_mul(8).saturating_add(FLOOR))
    }

    /// Takes bytes, before memory is allocated for them.
    pub fn take(&mut self, bytes: u64) -> Result<(), Exceeded> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Exceeded { most: self.most }),
        }
    }

    /// Reads `reader` to its end, if the budget allows it.
    pub fn read_to_end(&mut self, reader: impl Read) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        reader.take(self.left.saturating_add(1)).read_to_end(&mut bytes)?;
        self.take(bytes.len() as u64)?;
        Ok(bytes)
    }
}

/// A reader that fails if there are more bytes than its budget.
pub struct Limited<R> {
    reader: R,
    budget: Budget,
}

impl<R: Read> Limited<R> {
    /// Reads from `reader`, up to `most` bytes.
    pub fn new(reader: R, most: u64) -> Self {
        Limited { reader, budget: Budget::of(most) }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.budget.take(read as u64)?;
        Ok(read)
    }
}

/// The bytes of a regular file of at most `most` bytes.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    file::read(path, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_can_be_used_up() {
        let mut budget = Budget::of(10);
        assert_eq!(budget.read_to_end(&[1u8; 4][..]).unwrap(), [1; 4]);
        assert_eq!(budget.take(6), Ok(()));
        let message = budget.take(1).unwrap_err().to_string();
        assert!(message.contains("unpacks to more than 0 MB"), "{message}");
        assert!(budget.read_to_end(&[1u8][..]).is_err() && budget.read_to_end(io::empty()).is_ok());
    }

    #[test]
    fn a_reader_reads_its_budget_and_no_more() {
        let mut out = Vec::new();
        Limited::new(&[7u8; 10][..], 10).read_to_end(&mut out).unwrap();
        assert_eq!(out, [7; 10]);
        assert!(Limited::new(&[7u8; 11][..], 10).read_to_end(&mut out).is_err());
    }
}
