//! Digests as text.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// A finished hash in hexadecimal: 64 digits.
pub fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes every byte");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answer() {
        // The example of FIPS 180-2.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hexadecimal(Sha256::new_with_prefix("abc")), expected);
    }
}
