//! Unpacks an untrusted archive. It may contain only regular files and folders within its own folder;
//! otherwise nothing is unpacked.

use super::{DataError, archive};
use leaklab_record::file;
use std::fs;
use std::io::{self, BufReader, Read};
use std::path::{Component, Path, PathBuf};

/// Limit for the size of the unpacked archive.
const LARGEST: u64 = 1 << 30;

/// Unpacks the folder `inside` of a `.tar.gz` to `target`. After an error, nothing is left there.
pub fn unpack(archive: &Path, inside: &str, target: &Path) -> Result<(), DataError> {
    let mut partial = target.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let result = unpack_into(archive, inside, &partial).and_then(|()| {
        if target.exists() {
            fs::remove_dir_all(target).map_err(DataError::io(target))?;
        }
        fs::rename(&partial, target).map_err(DataError::io(target))
    });
    if result.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    result
}

fn unpack_into(archive: &Path, inside: &str, folder: &Path) -> Result<(), DataError> {
    let refuse = |entry: &Path, why: &str| {
        DataError::Request(format!(
            "{}: entry '{}' {why}; nothing was unpacked",
            archive.display(),
            entry.display()
        ))
    };
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(DataError::io(folder))?;
    }
    fs::create_dir_all(folder).map_err(DataError::io(folder))?;
    let mut files = 0;
    let file = file::open(archive).map_err(DataError::io(archive))?;
    archive::walk(Box::new(BufReader::new(file)), archive, LARGEST, |mut entry, path| {
        if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(refuse(&path, "points outside the archive's folder"));
        }
        let kind = entry.header().entry_type();
        if !kind.is_file() && !kind.is_dir() {
            return Err(refuse(&path, "is neither a file nor a folder"));
        }
        let clean: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let Ok(below) = clean.strip_prefix(inside) else { return Ok(()) };
        let to = folder.join(below);
        if kind.is_dir() {
            return fs::create_dir_all(&to).map_err(DataError::io(&to));
        }
        if below.as_os_str().is_empty() {
            return Err(refuse(&path, "is a file where a folder is expected"));
        }
        if entry.size() > LARGEST {
            return Err(refuse(&path, "makes the archive unpack to more than 1 GiB"));
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(DataError::io(parent))?;
        }
        write(&mut entry, &to)?;
        files += 1;
        Ok(())
    })?;
    if files == 0 {
        return Err(DataError::Request(format!(
            "{}: there is no folder '{inside}' in the archive",
            archive.display()
        )));
    }
    Ok(())
}

fn write(from: &mut impl Read, to: &Path) -> Result<(), DataError> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(to).map_err(DataError::io(to))?;
    io::copy(from, &mut file).map_err(DataError::io(to))?;
    file.sync_all().map_err(DataError::io(to))
}
