//! Reads a `.tar.gz` entry by entry, up to its last byte, within a budget.
//!
//! The checksum of gzip is at the end of the file. A tar reader stops before it, at the end mark of the
//! archive. The rest is therefore read too, so that damage anywhere in the file is detected.

use super::budget::Limited;
use super::{DataError, Flaw};
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

/// One entry, whose contents can be read.
pub type Entry<'a, 'b> = tar::Entry<'a, Limited<flate2::bufread::GzDecoder<Box<dyn BufRead + 'b>>>>;

/// Passes every entry of an archive, of any type, to `each`, with its name. An archive that unpacks to more
/// than `most` bytes is refused, and so are names that need an extension of the format: no data set has such
/// names. `path` is used in messages.
pub fn walk<'b>(
    bytes: Box<dyn BufRead + 'b>,
    path: &Path,
    most: u64,
    mut each: impl FnMut(Entry<'_, 'b>, PathBuf) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let damaged = |error: io::Error| {
        Flaw::new(0, format!("the archive is damaged or truncated: {error}; fetch it again")).of(path)
    };
    let mut archive = tar::Archive::new(Limited::new(flate2::bufread::GzDecoder::new(bytes), most));
    // Raw, since the library would read a long name into memory, however long it claims to be.
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let entry = entry.map_err(damaged)?;
        let name = entry.path().map_err(damaged)?.into_owned();
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() || kind.is_gnu_longlink() {
            let reason = format!("entry '{}' has a name of more than 100 bytes", name.display());
            return Err(Flaw::new(entry.raw_header_position() as usize, reason).of(path));
        }
        // Entries of these types only store times and owners that are too long for the header.
        if !kind.is_pax_global_extensions() && !kind.is_pax_local_extensions() {
            each(entry, name)?;
        }
    }
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(damaged)?;
    Ok(())
}

/// The contents of an entry; `path` is used in messages.
pub fn contents(entry: Entry, most: u64, path: &Path) -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::new();
    entry.take(most + 1).read_to_end(&mut bytes).map_err(DataError::io(path))?;
    Ok(bytes)
}
