//! Damaged NIR files: 10,000 mutations of files by Python's `nir` and by LeakLab, none of which may panic.

use leaklab_lab::exchange::nir;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

fn position(bytes: &[u8], rng: &mut TestRng) -> usize {
    let at = rng.next_u64() as usize % bytes.len().max(1);
    bytes[at..].iter().position(|&b| b != 0).map_or(at, |skip| at + skip)
}

/// One to eight edits at bytes in use: flipped bits, random bytes, runs of one byte, copied blocks,
/// truncation. (Most of a file by h5py is empty tables; edits there would test nothing.)
fn damage(good: &[u8], rng: &mut TestRng) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..1 + rng.next_u32() % 8 {
        let len = bytes.len().max(1);
        let (at, other) = (position(&bytes, rng), position(&bytes, rng));
        let run = (1 + rng.next_u32() as usize % 16).min(len - at).min(len - other);
        match rng.next_u32() % 8 {
            0..=2 => bytes[at] ^= 1 << (rng.next_u32() % 8),
            3 => bytes[at] = rng.next_u32() as u8,
            4 => bytes[at..at + run].fill([0x00, 0xff, 0x7f][rng.next_u32() as usize % 3]),
            5 => bytes.copy_within(other..other + run, at),
            6 => bytes.truncate(at),
            _ => bytes.extend_from_within(at..at + run),
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

#[test]
fn ten_thousand_mutations_are_errors_and_never_panics() {
    let python = include_bytes!("data/python.nir").to_vec();
    let own = nir::to_bytes(&nir::parse(python.clone()).unwrap()).unwrap();
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let (mut refused, mut read) = (0, 0);
    for round in 0..10_000 {
        let good = if round % 4 == 0 { &own } else { &python };
        match nir::parse(damage(good, &mut rng)) {
            Ok(_) => read += 1,
            Err(reason) => {
                assert!(!reason.is_empty() && !reason.contains('\n'), "{reason:?}");
                refused += 1;
            }
        }
    }
    // Edits that fall into unused bytes of the file change nothing; the rest must be noticed.
    assert!(refused > 2_000 && read > 0, "{refused} refused, {read} read");
}

#[test]
fn foreign_files_are_errors() {
    for bytes in [&b""[..], b"\x89HDF\r\n\x1a\n", b"PK\x03\x04", b"{}", &[0; 4096]] {
        assert!(nir::parse(bytes.to_vec()).is_err());
    }
}
