//! Downloads a data set from its publisher, or from a mirror if the publisher cannot be reached.
//!
//! A download is written to `NAME.partial` next to its final place, and renamed only if the SHA-256 of that
//! file, as it is on the disk, is right. After a broken connection the partial file stays, and the next
//! attempt resumes it; after a wrong checksum or a full disk it is removed. A process holds the lock
//! `NAME.lock` from the first byte until the file is unpacked, so only one at a time writes these files.

use super::verify::file_digest;
use super::{DataError, Info, unpack};
use leaklab_record::file::open_for_writing;
use leaklab_record::lock::{Lock, Refused};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Progress of a download, reported to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The file exists already, complete and correct.
    Present {
        /// The file.
        path: PathBuf,
    },
    /// A download starts, or resumes after `have` bytes.
    Start {
        /// The address.
        address: String,
        /// Bytes that exist already.
        have: u64,
        /// Size of the complete file in bytes.
        size: u64,
    },
    /// More bytes have arrived.
    Progress {
        /// Bytes of the file so far.
        have: u64,
    },
    /// The download from an address failed; the next one is tried.
    Skipped {
        /// The address.
        address: String,
        /// Why it failed.
        reason: String,
    },
    /// An archive is being unpacked.
    Unpack {
        /// The folder that it is unpacked to.
        path: PathBuf,
    },
    /// A file is complete and correct.
    Done {
        /// The file or folder.
        path: PathBuf,
    },
}

/// A file to download: a [`super::table::Remote`] with any addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// Its path in the folder of data sets.
    pub path: String,
    /// The addresses to try, in order.
    pub addresses: Vec<String>,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
    /// Its size in bytes.
    pub size: u64,
    /// The folder that it is unpacked to, if it is an archive.
    pub unpacks_to: Option<String>,
}

/// Number of broken connections after which a server is given up. Without a limit, a server could send one
/// byte per connection.
const MOST_BREAKS: usize = 50;

/// Why a download from an address failed.
enum Failure {
    /// Try another address, and keep the bytes that have arrived.
    Address(String),
    /// Try another address, from the start.
    Content(String),
    /// Trying another address would not help.
    Fatal(DataError),
}

/// Fetches a data set into `folder`.
pub fn fetch(info: &Info, folder: &Path, watch: &mut dyn FnMut(Event)) -> Result<(), DataError> {
    for remote in info.files() {
        let download = Download {
            path: remote.path.to_owned(),
            addresses: remote.addresses.iter().map(|&a| a.to_owned()).collect(),
            sha256: remote.sha256.to_owned(),
            size: remote.size,
            unpacks_to: remote.unpacks_to.map(str::to_owned),
        };
        fetch_file(&download, folder, watch)?;
    }
    Ok(())
}

/// Fetches one file into `folder` and unpacks it if it is an archive.
pub fn fetch_file(download: &Download, folder: &Path, watch: &mut dyn FnMut(Event)) -> Result<(), DataError> {
    if let Some(path) = complete(download, folder)? {
        watch(Event::Present { path });
        return Ok(());
    }
    let target = folder.join(&download.path);
    let parent = target.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(DataError::io(parent))?;
    let _lock = lock(&target)?;
    // Another process may have completed it before the lock was taken.
    if let Some(path) = complete(download, folder)? {
        watch(Event::Present { path });
        return Ok(());
    }
    if is_right(&target, download)? {
        watch(Event::Present { path: target.clone() });
    } else {
        from_any(download, &target, watch)?;
        watch(Event::Done { path: target.clone() });
    }
    if let Some(name) = &download.unpacks_to {
        let to = folder.join(name);
        watch(Event::Unpack { path: to.clone() });
        unpack::unpack(&target, name, &to)?;
        fs::remove_file(&target).map_err(DataError::io(&target))?;
        watch(Event::Done { path: to });
    }
    Ok(())
}

/// The file or the unpacked folder, if it is complete.
fn complete(download: &Download, folder: &Path) -> Result<Option<PathBuf>, DataError> {
    let target = folder.join(&download.path);
    match &download.unpacks_to {
        Some(name) => Ok(Some(folder.join(name)).filter(|path| path.is_dir())),
        None => Ok(is_right(&target, download)?.then_some(target)),
    }
}

fn is_right(target: &Path, download: &Download) -> Result<bool, DataError> {
    Ok(target.is_file() && file_digest(target)? == download.sha256)
}

/// A path with another ending after its own.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Takes the lock on the files of a download.
fn lock(target: &Path) -> Result<Lock, DataError> {
    let path = with_ending(target, ".lock");
    Lock::take(&path).map_err(|refused| match refused {
        Refused::Held(holder) => DataError::Request(format!(
            "{}: another process is fetching it ({holder}); wait until it has finished",
            target.display()
        )),
        Refused::Io(error) => DataError::io(&path)(error),
    })
}

/// Downloads from the first address that works.
fn from_any(download: &Download, target: &Path, watch: &mut dyn FnMut(Event)) -> Result<(), DataError> {
    let partial = with_ending(target, ".partial");
    let options = &mut OpenOptions::new();
    let mut file =
        open_for_writing(&partial, options.read(true).write(true)).map_err(DataError::io(&partial))?;
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .timeout_recv_body(Some(Duration::from_secs(6 * 3600)))
        .user_agent(concat!("leaklab/", env!("CARGO_PKG_VERSION")))
        .http_status_as_error(false)
        .build()
        .into();
    let mut reasons = Vec::new();
    for address in &download.addresses {
        // A broken connection is tried again as long as each attempt makes progress, up to a limit.
        let (mut before, mut breaks) = (None, 0);
        let failure = loop {
            match from_one(&agent, address, download, (&partial, &mut file), watch) {
                Ok(()) => return fs::rename(&partial, target).map_err(DataError::io(target)),
                Err(Failure::Address(reason)) => {
                    let now = file.metadata().map(|m| m.len()).unwrap_or(0);
                    breaks += 1;
                    let progress = before.replace(now).is_none_or(|before| now > before) && now > 0;
                    if progress && breaks < MOST_BREAKS {
                        continue;
                    }
                    break reason;
                }
                Err(Failure::Content(reason)) => {
                    file.set_len(0).map_err(DataError::io(&partial))?;
                    break reason;
                }
                Err(Failure::Fatal(error)) => {
                    let _ = fs::remove_file(&partial);
                    return Err(error);
                }
            }
        };
        watch(Event::Skipped { address: address.clone(), reason: failure.clone() });
        reasons.push(format!("{address}: {failure}"));
    }
    let stored = match file.metadata() {
        Ok(found) if found.len() > 0 => {
            format!(" ({} bytes are stored; the next fetch resumes there)", found.len())
        }
        _ => {
            let _ = fs::remove_file(&partial);
            String::new()
        }
    };
    let (path, reasons) = (&download.path, reasons.join("; "));
    Err(DataError::Request(format!("{path} could not be downloaded from any address{stored}: {reasons}")))
}

fn from_one(
    agent: &ureq::Agent,
    address: &str,
    download: &Download,
    (partial, file): (&Path, &mut File),
    watch: &mut dyn FnMut(Event),
) -> Result<(), Failure> {
    let on_disk = |error: std::io::Error| Failure::Fatal(DataError::io(partial)(error));
    let mut have = file.metadata().map_err(on_disk)?.len();
    if have > download.size {
        file.set_len(0).map_err(on_disk)?;
        have = 0;
    }
    if have < download.size {
        let mut request = agent.get(address);
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
        }
        let mut response = request.call().map_err(|error| Failure::Address(error.to_string()))?;
        match response.status().as_u16() {
            206 if have > 0 && resumes_at(&response, have) => {}
            200 | 206 => {
                // The server does not resume, or resumes at another offset: start again.
                file.set_len(0).map_err(on_disk)?;
                if response.status().as_u16() == 206 {
                    return Err(Failure::Content(
                        "the server resumed at another offset than requested".to_owned(),
                    ));
                }
                have = 0;
            }
            status => return Err(Failure::Address(format!("the server answered {status}"))),
        }
        watch(Event::Start { address: address.to_owned(), have, size: download.size });
        file.seek(SeekFrom::Start(have)).map_err(on_disk)?;
        let mut body = response.body_mut().as_reader();
        let mut buffer = vec![0; 1 << 16];
        while have < download.size {
            let read = match body.read(&mut buffer) {
                Ok(0) => 0,
                Ok(n) => n,
                Err(error) => {
                    return Err(Failure::Address(format!("the connection broke at byte {have}: {error}")));
                }
            };
            if read == 0 {
                return Err(Failure::Address(format!(
                    "the connection ended at byte {have} of {}",
                    download.size
                )));
            }
            let wanted = (download.size - have).min(read as u64) as usize;
            if wanted < read {
                return Err(Failure::Content(format!(
                    "it is larger than the {} bytes it should have",
                    download.size
                )));
            }
            file.write_all(&buffer[..read]).map_err(on_disk)?;
            have += read as u64;
            watch(Event::Progress { have });
        }
    }
    file.sync_all().map_err(on_disk)?;
    let found = file_digest(partial).map_err(Failure::Fatal)?;
    if found != download.sha256 {
        return Err(Failure::Content(format!("its SHA-256 is {found}, not {}", download.sha256)));
    }
    Ok(())
}

/// Whether a partial response starts at the requested byte.
fn resumes_at(response: &ureq::http::Response<ureq::Body>, have: u64) -> bool {
    let range = response.headers().get("content-range").and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.trim_start().starts_with(&format!("bytes {have}-")))
}
