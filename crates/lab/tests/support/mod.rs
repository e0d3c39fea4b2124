//! What tests need that not every machine gives: a small file system in memory, and saying aloud that a test
//! did not run.
//!
//! A test that passes because it could not run proves nothing. Whoever reads the output must see that, and
//! continuous integration must not take it for a pass: with `CI` set, [`skip`] fails the test. The tests of
//! the `cli` crate use this file too.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Says that a test did not run, past the capture of the test harness; fails it in continuous integration.
pub fn skip(what: &str, why: &str) {
    say_skipped(what, why);
    assert!(std::env::var_os("CI").is_none(), "{what}: {why}, and CI skips nothing");
}

/// Says that a test did not run, for what continuous integration cannot be expected to have, such as whole
/// data sets.
pub fn say_skipped(what: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}: {why}");
}

/// A small file system in memory, unmounted when dropped.
#[allow(dead_code)] // not every test file that uses this module mounts one
pub struct SmallDisk(PathBuf);

#[allow(dead_code)]
impl SmallDisk {
    /// Mounts one at an empty folder; skips the test `what` where this user may not.
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
