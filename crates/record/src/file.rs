//! Opening the files of a run, which may be untrusted: only regular files are accepted.
//!
//! Writing through a symbolic link would change a file elsewhere, opening a named pipe would block forever,
//! and a device is not a file at all. Each is refused with a message. Reading follows links, since it changes
//! nothing.
//!
//! This protects against what a folder contains, not against someone who changes the folder at the same time.

use crate::error::RecordError;
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Checks that a file may be written at `path`: nothing exists there, or a regular file that is not a link.
pub fn check_place(path: &Path) -> io::Result<()> {
    found(path).map(|_| ())
}

/// Opens a file for writing with `options`, and creates it if it does not exist. Links are refused.
pub fn open_for_writing(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    match found(path)? {
        Some(_) => options.open(path),
        None => options.create_new(true).open(path),
    }
}

/// Checks that files may be written in the folder at `path`: nothing exists there, or something that is not a
/// link.
pub fn check_folder(path: &Path) -> Result<(), RecordError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(through_link(path)),
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(RecordError::io(path, "cannot be read")(e)),
    }
}

/// Checks the folder at `path` and everything in it, at any depth, for links.
pub fn check_tree(path: &Path) -> Result<(), RecordError> {
    check_folder(path)?;
    for (within, kind) in entries(path)? {
        if kind.is_dir() {
            check_tree(&within)?;
        } else if kind.is_symlink() {
            return Err(through_link(&within));
        }
    }
    Ok(())
}

/// Everything in a folder, with its kind; links are not followed. Nothing if there is no folder.
pub fn entries(folder: &Path) -> Result<Vec<(PathBuf, FileType)>, RecordError> {
    let read = || -> io::Result<Vec<_>> {
        fs::read_dir(folder)?.map(|entry| entry.and_then(|e| Ok((e.path(), e.file_type()?)))).collect()
    };
    match read() {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        other => other.map_err(RecordError::io(folder, "cannot be read")),
    }
}

fn through_link(path: &Path) -> RecordError {
    let source = io::Error::other("it is a symbolic link, and nothing is written through one");
    RecordError::Io { path: path.to_owned(), action: "cannot be used", source }
}

/// Opens a regular file, or a link to one, for reading.
pub fn open(path: &Path) -> io::Result<File> {
    check_regular(&fs::metadata(path)?)?;
    File::open(path)
}

/// Size limit of text files that are read: settings, metrics, tables. The largest that LeakLab writes have a
/// tenth of this size.
pub const LARGEST_TEXT: u64 = 128 << 20;

/// The bytes of a regular file of at most `most` bytes. The size is checked before the file is read, and
/// again afterwards in case the file has grown.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    if length <= most {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length as usize + 1)?;
        file.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= most {
            return Ok(bytes);
        }
    }
    let reason = format!("it has more than {} MB, which no file of this kind has", most / 1_000_000);
    Err(io::Error::new(io::ErrorKind::InvalidData, reason))
}

/// The text of a regular file of at most [`LARGEST_TEXT`] bytes.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path, LARGEST_TEXT)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text in UTF-8"))
}

/// Metadata of the file at a path, if there is one. An error if the path must not be written.
fn found(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            Err(refused("it is a symbolic link, and nothing is written through one; name the file itself"))
        }
        Ok(found) => check_regular(&found).map(|()| Some(found)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn check_regular(found: &Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    Err(refused(if found.is_dir() { "it is a folder, not a file" } else { "it is not a regular file" }))
}

fn refused(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::events::Events;
    use crate::log::Log;
    use crate::{Checkpoint, Manifest, RunFolder, lines};
    use std::os::unix::fs::symlink;
    use std::time::SystemTime;

    #[test]
    fn a_strangers_run_folder_writes_nowhere_else() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("precious");
        fs::write(&target, "do not touch").unwrap();
        let folder = RunFolder::at(parent.path().join("run"));
        fs::create_dir(folder.path()).unwrap();
        let lock = folder.path().join("lock");
        for path in [folder.events(), folder.log(), folder.metrics(), lock] {
            symlink(&target, path).unwrap();
        }
        let messages = [
            Events::open(&folder.events(), &[]).unwrap_err().to_string(),
            Log::open(&folder.log()).unwrap_err().to_string(),
            lines::append(&folder.metrics(), &1).unwrap_err().to_string(),
            folder.lock().unwrap_err().to_string(),
        ];
        assert!(messages.iter().all(|message| message.contains("symbolic link")), "{messages:?}");
        // A lock file of an old lock, whose token is a path: the lock on its replacement is named after it.
        let lock = folder.path().join("lock");
        fs::remove_file(&lock).unwrap();
        fs::create_dir(folder.path().join("lock.x")).unwrap();
        let process = serde_json::to_string(&crate::Process::elsewhere()).unwrap();
        let text = format!("{{\"token\":\"x/../../precious\",{}", &process[1..]);
        fs::write(&lock, &text).unwrap();
        let past = SystemTime::now() - 2 * crate::lock::STALE;
        File::options().write(true).open(&lock).unwrap().set_modified(past).unwrap();
        // An old file that is not a lock counts as one of a dead holder: it would be replaced and removed.
        File::options().write(true).open(&target).unwrap().set_modified(past).unwrap();
        folder.lock().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "do not touch");
    }

    #[test]
    fn a_file_is_measured_before_it_is_read() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("sparse");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let messages = [
            read(&path, 5_000_000).unwrap_err().to_string(),
            read_to_string(&path).unwrap_err().to_string(),
            lines::read::<u64>(&path, "metrics file", 1).unwrap_err().to_string(),
            Checkpoint::read(&path).unwrap_err().to_string(),
            Manifest::read(&path).unwrap_err().to_string(),
            crate::Table::read(&path).unwrap_err().to_string(),
        ];
        assert!(messages.iter().all(|message| message.contains("it has more than")), "{messages:?}");
        assert!(messages[0].contains("more than 5 MB, which no file of this kind has"), "{}", messages[0]);
    }

    #[test]
    fn a_named_pipe_is_refused_and_not_waited_for() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let messages = [
            Events::open(&path, &[]).unwrap_err().to_string(),
            Log::open(&path).unwrap_err().to_string(),
            lines::append(&path, &1).unwrap_err().to_string(),
            lines::read::<u64>(&path, "metrics file", 1).unwrap_err().to_string(),
            Checkpoint::read(&path).unwrap_err().to_string(),
            Manifest::read(&path).unwrap_err().to_string(),
            crate::Table::read(&path).unwrap_err().to_string(),
        ];
        assert!(messages.iter().all(|message| message.contains("not a regular file")), "{messages:?}");
    }
}
