//! A list of bits as a short text in a table cell: which images were classified correctly.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A list of bits, written `355:f0a3..`: their number, then hexadecimal digits of four bits each. The first
/// of the four bits is the lowest.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bits {
    bits: Vec<bool>,
}

impl Bits {
    /// Number of bits.
    pub fn len(&self) -> usize {
        self.bits.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// Number of ones.
    pub fn count(&self) -> u64 {
        self.bits.iter().filter(|&&bit| bit).count() as u64
    }

    /// The bits in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        self.bits.iter().copied()
    }

    /// Adds a bit at the end.
    pub fn push(&mut self, bit: bool) {
        self.bits.push(bit);
    }
}

impl FromIterator<bool> for Bits {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Self {
        Bits { bits: bits.into_iter().collect() }
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.len())?;
        for four in self.bits.chunks(4) {
            let digit = four.iter().enumerate().fold(0, |digit, (i, &bit)| digit | u8::from(bit) << i);
            write!(f, "{digit:x}")?;
        }
        Ok(())
    }
}

/// The text is not a list of bits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a list of bits such as 6:f3")]
pub struct NotBits;

impl TryFrom<String> for Bits {
    type Error = NotBits;

    fn try_from(text: String) -> Result<Self, NotBits> {
        text.parse()
    }
}

impl From<Bits> for String {
    fn from(bits: Bits) -> String {
        bits.to_string()
    }
}

impl FromStr for Bits {
    type Err = NotBits;

    fn from_str(text: &str) -> Result<Self, NotBits> {
        // Each list has exactly one text: no sign, no zeros in front, no capitals, and unused bits are 0.
        let (number, digits) = text.split_once(':').ok_or(NotBits)?;
        let len: usize = number.parse().map_err(|_| NotBits)?;
        if digits.len() != len.div_ceil(4) || number != len.to_string() {
            return Err(NotBits);
        }
        let mut bits = Vec::with_capacity(len);
        for digit in digits.chars() {
            let digit = digit.to_digit(16).filter(|_| !digit.is_ascii_uppercase()).ok_or(NotBits)?;
            bits.extend((0..4).map(|i| digit >> i & 1 == 1));
        }
        if bits.split_off(len).contains(&true) {
            return Err(NotBits);
        }
        Ok(Bits { bits })
    }
}

crate::text_field! { Bits: "bits such as 6:f3" }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_read_back() {
        for n in [0, 1, 4, 5, 355] {
            let bits: Bits = (0..n).map(|i| i % 3 == 1).collect();
            assert_eq!(bits.to_string().parse(), Ok(bits.clone()));
            assert_eq!((bits.len(), bits.count()), (n, ((n + 1) / 3) as u64));
        }
        assert_eq!("6:f3".parse::<Bits>().unwrap().count(), 6);
        for text in ["", "5:f", "5:ff", "3:g", "4:ff", "-1:", "+6:f3", "06:f3", "6:F3", "00:"] {
            assert!(text.parse::<Bits>().is_err(), "{text}");
        }
    }
}
