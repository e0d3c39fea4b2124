//! Atomic writes: a reader sees either the old content of a file or the new content, never a part of one.
//!
//! Until it is complete, a file has a temporary name in the same folder: `NAME.DIGITS.partial`, with 16
//! hexadecimal digits. The first eight identify the machine and the others are random, so that no two
//! writers, whether processes or threads, share a name. The writer holds the operating system's lock on the
//! file. Whoever obtains this lock on the same machine knows that the writer is dead, and may remove the file
//! ([`sweep`]). Such locks are not reliable between machines, so a file of another machine is removed when it
//! is a day old.
//!
//! Only regular files are replaced. Devices are refused, and symbolic links are neither followed nor
//! replaced.

use crate::file;
use crate::process::Process;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Extension of a file that is not complete.
pub const PARTIAL: &str = "partial";
/// Age at which an incomplete file of another machine is removed.
const FORGOTTEN: Duration = Duration::from_secs(24 * 3600);

/// Writes `bytes` to `path` atomically: writes and syncs a temporary file in the same folder, then renames
/// it. On an error the temporary file is removed, and an existing file at `path` is unchanged.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    file::check_place(path)?;
    let own = path.file_name().and_then(|name| name.to_str());
    sweep_names(path.parent(), |name| partial_of(name).is_some_and(|(target, _)| Some(target) == own));
    let (partial, mut file) = create(path)?;
    let result =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&partial, path));
    if result.is_err() {
        let _ = fs::remove_file(&partial);
        return result;
    }
    // The rename is durable once the folder is synced; not every file system supports this.
    if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty())
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Removes the incomplete files of dead writers from a folder. Files that cannot be removed stay.
pub fn sweep(folder: &Path) {
    sweep_names(Some(folder), |name| partial_of(name).is_some());
}

/// Creates a temporary file for `path` in the same folder. It is locked as long as it is open.
pub(crate) fn create(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path does not name a file"))?;
    loop {
        let mut partial = name.to_os_string();
        partial.push(format!(".{}{:08x}.{PARTIAL}", Process::this().machine_digits(), random() as u32));
        let partial = path.with_file_name(partial);
        let file = match File::options().write(true).create_new(true).open(&partial) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            other => other?,
        };
        match file.try_lock() {
            Ok(()) if partial.exists() => return Ok((partial, file)),
            // On a file system without locks, nothing is swept either.
            Err(TryLockError::Error(_)) => return Ok((partial, file)),
            // Between the two calls, a sweep mistook the file for that of a dead writer.
            Ok(()) | Err(TryLockError::WouldBlock) => {}
        }
    }
}

/// A random number that differs between processes, threads and calls.
pub(crate) fn random() -> u64 {
    // Only a system without a source of random numbers needs the hash.
    let hash =
        || RandomState::new().hash_one((std::process::id(), std::thread::current().id(), SystemTime::now()));
    getrandom::u64().unwrap_or_else(|_| hash())
}

/// The final name of a temporary file and the digits of its writer's machine; `None` if [`create`] does not
/// make such a name.
pub(crate) fn partial_of(name: &str) -> Option<(&str, &str)> {
    let (target, digits) = name.strip_suffix(PARTIAL)?.strip_suffix('.')?.rsplit_once('.')?;
    is_unique(digits).then(|| (target, &digits[..8]))
}

/// Whether a text is 16 hexadecimal digits, as in the names of temporary files and in locks.
pub(crate) fn is_unique(digits: &str) -> bool {
    digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

fn sweep_names(folder: Option<&Path>, wanted: impl Fn(&str) -> bool) {
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else { return };
    let here = Process::this().machine_digits();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| wanted(name)) else { continue };
        let ours = partial_of(name).is_some_and(|(_, machine)| machine == here);
        let age = || entry.metadata().and_then(|found| found.modified()).ok()?.elapsed().ok();
        if ours || age().is_some_and(|age| age > FORGOTTEN) {
            remove_if_dead(&entry.path());
        }
    }
}

/// Removes a temporary file unless its writer is alive. The lock is held until the file is removed.
pub(crate) fn remove_if_dead(path: &Path) {
    let regular = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    if regular
        // Opened for writing, because NFS requires this for an exclusive lock.
        && let Ok(file) = File::options().write(true).open(path)
        && file.try_lock().is_ok()
    {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn threads_that_write_one_file_do_not_collide() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        std::thread::scope(|scope| {
            for thread in 0..8u8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..25 {
                        write(path, &[thread; 5000]).unwrap();
                        let found = fs::read(path).unwrap();
                        assert!(found.len() == 5000 && found.iter().all(|&byte| byte == found[0]));
                    }
                });
            }
        });
        assert_eq!(names(folder.path()), ["table.csv"]);
    }

    #[test]
    fn the_dead_are_swept_and_the_living_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let here = Process::this().machine_digits();
        let left = ["a", "b"].map(|name| format!("{name}.csv.{here}89abcdef.partial"));
        left.iter().for_each(|name| fs::write(path(name), "half").unwrap());
        // A file of another machine is left alone until it is so old that nobody can be writing it any more.
        let digits = if here == "01234567" { "11234567" } else { "01234567" };
        let [elsewhere, forgotten] =
            ["89abcdef", "00000000"].map(|random| format!("a.csv.{digits}{random}.partial"));
        fs::write(path(&elsewhere), "half").unwrap();
        let file = File::create(path(&forgotten)).unwrap();
        file.set_modified(SystemTime::now() - 2 * FORGOTTEN).unwrap();
        drop(file);
        // A download keeps its partial file in order to resume.
        fs::write(path("data.gz.partial"), "half").unwrap();
        let (alive, _file) = create(&path("a.csv")).unwrap();
        let alive = alive.file_name().unwrap().to_str().unwrap();
        write(&path("a.csv"), b"whole").unwrap();
        let mut expected = vec!["a.csv", alive, &left[1], &elsewhere, "data.gz.partial"];
        expected.sort();
        assert_eq!(names(folder.path()), expected);
        sweep(folder.path());
        let mut expected = vec!["a.csv", alive, &elsewhere, "data.gz.partial"];
        expected.sort();
        assert_eq!(names(folder.path()), expected);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let message = write(&link, b"new").unwrap_err().to_string();
        assert!(message.contains("symbolic link"), "{message}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        // A named pipe stands for a device, because a test that could replace `/dev/null` would be dangerous.
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let message = write(&pipe, b"new").unwrap_err().to_string();
        assert!(message.contains("not a regular file"), "{message}");
        assert!(write(&pipe.join("within"), b"new").is_err() && write(Path::new(".."), b"new").is_err());
        assert_eq!(names(folder.path()), ["link", "pipe", "target"]);
    }
}
