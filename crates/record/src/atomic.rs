//! Writing a file so that a reader sees the old bytes or the new ones, never half of either.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The path that [`write`] uses until the file is complete.
fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.partial", std::process::id()));
    path.with_file_name(name)
}

/// Writes `bytes` to `path` atomically: into a temporary file beside it, synced, then renamed over it.
/// On an error the temporary file is removed and whatever stood at `path` is untouched.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = temporary(path);
    let result = (|| {
        let mut file = File::create(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&partial, path)
    })();
    if result.is_err() {
        let _ = fs::remove_file(&partial);
        return result;
    }
    // The rename itself is durable once the folder is synced; not every file system offers that.
    if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty())
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
    Ok(())
}
