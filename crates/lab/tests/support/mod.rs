//! What several tests need: a small file system in memory, messages for skipped tests, and damaged files.
//!
//! A test that passes because it could not run proves nothing. The output must show this, and continuous
//! integration must not count it as a pass: with `CI` set, [`skip`] fails the test. The tests of the `cli`
//! crate use this file too.

use leaklab_engine::philox::Stream;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Instant;

/// Reports that a test did not run, bypassing the capture of the test harness; fails it in continuous
/// integration.
pub fn skip(what: &str, why: &str) {
    report_skipped(what, why);
    assert!(std::env::var_os("CI").is_none(), "{what}: {why}, and CI skips nothing");
}

/// Reports that a test did not run because of something that continuous integration cannot be expected to
/// have, such as whole data sets.
pub fn report_skipped(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}: {why}");
}

/// Processor seconds of this process, on all threads, so that other work on the machine does not count; wall
/// time if the system does not report them.
#[allow(dead_code)]
pub fn worked() -> f64 {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let begun = *BEGUN;
    let stat = std::fs::read_to_string("/proc/self/stat").ok();
    // After the name in brackets: the eleventh and twelfth number, in hundredths of a second.
    let ticks = stat.and_then(|text| {
        let numbers: Vec<f64> = text.rsplit(')').next()?.split(' ').filter_map(|n| n.parse().ok()).collect();
        Some(numbers.get(10)? + numbers.get(11)?)
    });
    ticks.map_or_else(|| begun.elapsed().as_secs_f64(), |ticks| ticks / 100.0)
}

/// Factor on the default effort of the attacks: 1, or what `tools/attack/run` sets.
#[allow(dead_code)]
pub fn attack_times() -> u32 {
    std::env::var("LEAKLAB_ATTACK_TIMES").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// A small file system in memory, unmounted when dropped.
#[allow(dead_code)] // not every test file that uses this module mounts one
pub struct SmallDisk(PathBuf);

#[allow(dead_code)]
impl SmallDisk {
    /// Mounts one at an empty folder; skips the test `what` if this user may not.
    pub fn mount(what: &str, folder: &Path, options: &str) -> Option<Self> {
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(SmallDisk(folder.to_owned()));
        }
        skip(what, "this user may not mount a small file system");
        None
    }

    /// Changes its options, such as its size.
    pub fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Damages a file in one of these ways: truncation, a few bytes changed at random or four bytes made extreme
/// (mostly in the first 200 bytes, where the lengths are), a piece inserted or removed, a number in a text
/// made extreme, everything after the first bytes random.
#[allow(dead_code)] // not every test file that uses this module damages files
pub fn mutate(good: &[u8], stream: Stream) -> Vec<u8> {
    let mut at = 0;
    let mut draw = |bound: usize| {
        at += 1;
        stream.below_at(at, bound.max(1) as u64) as usize
    };
    let mut bytes = good.to_vec();
    let near = |draw: &mut dyn FnMut(usize) -> usize| {
        let end = if draw(4) > 0 { good.len().min(200) } else { good.len() };
        draw(end)
    };
    match draw(7) {
        0 => bytes.truncate(draw(good.len())),
        1 => {
            for _ in 0..1 + draw(8) {
                let i = near(&mut draw);
                bytes[i] = draw(256) as u8;
            }
        }
        2 => {
            let i = near(&mut draw);
            let huge = [[0xFF; 4], [0x7F, 0xFF, 0xFF, 0xFF], [0; 4], [0xFF, 0xFF, 0xFF, 0x7F]][draw(4)];
            bytes.iter_mut().skip(i).zip(huge).for_each(|(byte, new)| *byte = new);
        }
        3 => {
            let (from, length) = (draw(good.len()), draw(64));
            let piece: Vec<u8> = good[from..].iter().take(length).copied().collect();
            let to = draw(good.len());
            bytes.splice(to..to, piece);
        }
        4 => {
            let from = draw(good.len());
            bytes.drain(from..(from + 1 + draw(64)).min(good.len()));
        }
        5 => {
            let start = draw(good.len());
            let digits = |from: usize| good[from..].iter().take_while(|b| b.is_ascii_digit()).count();
            let at = (start..good.len()).find(|&at| digits(at) > 0).unwrap_or(start);
            let extreme =
                ["0", "-1", "1e999", "1e-300", "18446744073709551616", "4294967297", "65536", "nan", "null"];
            bytes.splice(at..at + digits(at), extreme[draw(extreme.len())].bytes());
        }
        _ => {
            let keep = draw(40).min(good.len());
            let end = keep + draw(600);
            bytes = good[..keep].to_vec();
            bytes.extend((keep..end).map(|_| draw(256) as u8));
        }
    }
    bytes
}
