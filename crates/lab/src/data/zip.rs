//! Reads zip archives entry by entry: NumPy's `.npz` files, and data sets as their publishers pack them.
//!
//! The directory at the end of the file is read first, then only the requested entries, so an archive of a
//! gigabyte takes no more memory than its largest entry. Every length is compared with the length of the file
//! before it is used, and every entry takes from a byte budget.

use super::Flaw;
use super::budget::Budget;
use std::io::{self, Read, Seek, SeekFrom};

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
/// Bytes of the end record, without its comment.
const END_BYTES: u64 = 22;
/// Bytes of a directory entry, without its name and extra fields.
const CENTRAL_BYTES: usize = 46;
/// Bytes of a local header, without its name and extra fields.
const LOCAL_BYTES: usize = 30;
/// Number of files that an archive states if it has this many or more; its number is then in a zip64 record.
const ZIP64: u16 = u16::MAX;
/// No deflate stream expands by more than this factor; a header that states more is false.
const LARGEST_EXPANSION: u64 = 1032;

/// One file of an archive, as the directory describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path in the archive.
    pub name: String,
    /// Offset of its local header in the archive.
    pub offset: u64,
    method: u16,
    crc: u32,
    packed: u32,
    size: u32,
}

impl Entry {
    /// Takes what the entry needs, packed and unpacked, from a budget.
    pub fn charge(&self, budget: &mut Budget) -> Result<(), Flaw> {
        budget.take(u64::from(self.packed) + self.size()).map_err(|exceeded| self.flaw(exceeded))
    }

    /// Unpacked size in bytes.
    pub fn size(&self) -> u64 {
        u64::from(self.size)
    }

    fn flaw(&self, reason: impl std::fmt::Display) -> Flaw {
        Flaw { offset: self.offset, reason: format!("entry '{}': {reason}", self.name) }
    }
}

/// An archive whose directory has been read.
#[derive(Debug)]
pub struct Archive<R> {
    reader: R,
    length: u64,
    /// Its files, in the order of the directory.
    pub entries: Vec<Entry>,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// `count` bytes at an offset, which the caller has compared with the file's length.
fn bytes_at<R: Read + Seek>(reader: &mut R, offset: u64, count: usize) -> io::Result<Vec<u8>> {
    reader.seek(SeekFrom::Start(offset))?;
    let mut bytes = vec![0; count];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

impl<R: Read + Seek> Archive<R> {
    /// Reads the directory.
    pub fn open(mut reader: R) -> Result<Self, Flaw> {
        let unreadable = |offset: u64| move |e: io::Error| Flaw { offset, reason: e.to_string() };
        let length = reader.seek(SeekFrom::End(0)).map_err(unreadable(0))?;
        // The end record is the last thing in the file, followed only by a comment of up to 65535 bytes.
        let tail = length.min(END_BYTES + 65_535);
        let start = length - tail;
        let bytes = bytes_at(&mut reader, start, tail as usize).map_err(unreadable(start))?;
        let end = (0..=bytes.len().saturating_sub(END_BYTES as usize))
            .rev()
            .find(|&at| bytes.len() >= END_BYTES as usize && u32_at(&bytes, at) == END)
            .ok_or_else(|| Flaw { offset: length, reason: "it has no zip directory".to_owned() })?;
        let count = u16_at(&bytes, end + 10);
        if count == ZIP64 {
            let reason = format!("it has {ZIP64} or more files (zip64), which is not supported");
            return Err(Flaw { offset: start + end as u64, reason });
        }
        let (size, at) = (u64::from(u32_at(&bytes, end + 12)), u64::from(u32_at(&bytes, end + 16)));
        let place = start + end as u64;
        if at.saturating_add(size) > place {
            return Err(Flaw { offset: place, reason: "its zip directory is not in the file".to_owned() });
        }
        let directory = bytes_at(&mut reader, at, size as usize).map_err(unreadable(at))?;
        let entries = parse_directory(&directory, at, count)?;
        Ok(Archive { reader, length, entries })
    }

    /// The unpacked bytes of an entry.
    pub fn read(&mut self, entry: &Entry, budget: &mut Budget) -> Result<Vec<u8>, Flaw> {
        if entry.packed == u32::MAX || entry.size == u32::MAX {
            return Err(entry.flaw("files of 4 GiB and more are not supported"));
        }
        let cut = || entry.flaw("its data is truncated");
        let (packed, size) = (u64::from(entry.packed), entry.size());
        if entry.offset + LOCAL_BYTES as u64 + packed > self.length {
            return Err(cut());
        }
        let header = bytes_at(&mut self.reader, entry.offset, LOCAL_BYTES).map_err(|e| entry.flaw(e))?;
        if u32_at(&header, 0) != LOCAL {
            return Err(entry.flaw("its local header is not at the offset in the directory"));
        }
        let names = u64::from(u16_at(&header, 26)) + u64::from(u16_at(&header, 28));
        let start = entry.offset + LOCAL_BYTES as u64 + names;
        if start + packed > self.length {
            return Err(cut());
        }
        if entry.method == 8 && size > packed.saturating_mul(LARGEST_EXPANSION) {
            return Err(entry.flaw("its directory entry states a larger size than its data can have"));
        }
        entry.charge(budget)?;
        let raw = bytes_at(&mut self.reader, start, packed as usize).map_err(|e| entry.flaw(e))?;
        let data = match entry.method {
            0 => raw,
            8 => {
                let mut data = Vec::new();
                flate2::read::DeflateDecoder::new(raw.as_slice())
                    .take(size + 1)
                    .read_to_end(&mut data)
                    .map_err(|e| entry.flaw(format!("it does not decompress: {e}")))?;
                data
            }
            other => {
                return Err(entry
                    .flaw(format!("compression method {other} is not supported, only stored and deflate")));
            }
        };
        if data.len() as u64 != size {
            return Err(entry.flaw(format!("it has {} bytes, but the directory states {size}", data.len())));
        }
        let mut crc = flate2::Crc::new();
        crc.update(&data);
        if crc.sum() != entry.crc {
            return Err(entry.flaw("its checksum does not match"));
        }
        Ok(data)
    }
}

/// The entries of a directory at `offset` of its file.
fn parse_directory(bytes: &[u8], offset: u64, count: u16) -> Result<Vec<Entry>, Flaw> {
    let mut entries = Vec::new();
    let mut at = 0;
    for _ in 0..count {
        let flaw = |reason: &str| Flaw { offset: offset + at as u64, reason: reason.to_owned() };
        let head = bytes.get(at..at + CENTRAL_BYTES).ok_or_else(|| flaw("its zip directory is truncated"))?;
        if u32_at(head, 0) != CENTRAL {
            return Err(flaw("its zip directory is damaged"));
        }
        let [name, extra, comment] = [28, 30, 32].map(|field| usize::from(u16_at(head, field)));
        let text = bytes.get(at + CENTRAL_BYTES..at + CENTRAL_BYTES + name);
        let text = text.ok_or_else(|| flaw("its zip directory is truncated"))?;
        let text = std::str::from_utf8(text).map_err(|_| flaw("an entry's name is not UTF-8"))?;
        entries.push(Entry {
            name: text.to_owned(),
            offset: u64::from(u32_at(head, 42)),
            method: u16_at(head, 10),
            crc: u32_at(head, 16),
            packed: u32_at(head, 20),
            size: u32_at(head, 24),
        });
        at += CENTRAL_BYTES + name + extra + comment;
    }
    if at != bytes.len() {
        let reason =
            format!("its zip directory has {} bytes, but its {count} entries take {at}", bytes.len());
        return Err(Flaw { offset, reason });
    }
    Ok(entries)
}

/// A budget for tests, large enough for any small archive.
pub fn generous() -> Budget {
    Budget::of(64 << 20)
}

/// Packs files without compression. The bytes depend only on the files: entries do not contain the time of
/// writing.
pub fn pack(files: &[(String, Vec<u8>)]) -> Result<Vec<u8>, String> {
    let too_large = |_| "4 GiB and more cannot be written".to_owned();
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in files {
        let mut crc = flate2::Crc::new();
        crc.update(data);
        let size = u32::try_from(data.len()).map_err(too_large)?;
        // Version 2.0, UTF-8 names, stored; 1980-01-01 00:00, the earliest time of the format.
        let mut fields: Vec<u8> = [20u16, 0x0800, 0, 0, 0x21].iter().flat_map(|n| n.to_le_bytes()).collect();
        fields.extend([crc.sum(), size, size].iter().flat_map(|n| n.to_le_bytes()));
        fields.extend([name.len() as u16, 0].iter().flat_map(|n| n.to_le_bytes()));
        directory.extend_from_slice(&CENTRAL.to_le_bytes());
        directory.extend_from_slice(&20u16.to_le_bytes());
        directory.extend_from_slice(&fields);
        directory.extend_from_slice(&[0; 10]); // no comment, first disk, no attributes
        directory.extend_from_slice(&u32::try_from(bytes.len()).map_err(too_large)?.to_le_bytes());
        directory.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&LOCAL.to_le_bytes());
        bytes.extend_from_slice(&fields);
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(data);
    }
    let start = u32::try_from(bytes.len()).map_err(too_large)?;
    let count = u16::try_from(files.len()).ok().filter(|&count| count < ZIP64);
    let count = count.ok_or_else(|| format!("{ZIP64} files and more cannot be written"))?;
    bytes.extend_from_slice(&directory);
    bytes.extend_from_slice(&END.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend([count, count].iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend([directory.len() as u32, start].iter().flat_map(|n| n.to_le_bytes()));
    bytes.extend_from_slice(&[0; 2]);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn unpack(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, Flaw> {
        let mut archive = Archive::open(Cursor::new(bytes))?;
        let mut budget = Budget::of(1 << 20);
        let entries = archive.entries.clone();
        entries.iter().map(|entry| Ok((entry.name.clone(), archive.read(entry, &mut budget)?))).collect()
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let files = vec![("a/b.bin".to_owned(), vec![1, 2, 3]), ("empty".to_owned(), Vec::new())];
        assert_eq!(unpack(&pack(&files).unwrap()).unwrap(), files);
        assert_eq!(unpack(include_bytes!("../exchange/testdata/compressed.npz")).unwrap()[0].0, "z.npy");
    }

    #[test]
    fn no_changed_byte_of_a_file_passes() {
        let files = vec![("one".to_owned(), (0..200).collect::<Vec<u8>>()), ("two".to_owned(), vec![9; 50])];
        let good = pack(&files).unwrap();
        for cut in 0..good.len() {
            assert!(unpack(&good[..cut]).is_err(), "{cut} bytes of {}", good.len());
        }
        for at in 0..good.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= flip;
                // A name may change, but no file is missing and none has other contents.
                let Ok(found) = unpack(&bad) else { continue };
                let contents = |files: &[(String, Vec<u8>)]| -> Vec<Vec<u8>> {
                    files.iter().map(|(_, data)| data.clone()).collect()
                };
                assert_eq!(contents(&found), contents(&files), "byte {at} was changed unnoticed");
            }
        }
    }

    #[test]
    fn an_archive_has_as_many_files_as_it_states() {
        let files: Vec<(String, Vec<u8>)> = (0..3).map(|i| (i.to_string(), vec![i; 9])).collect();
        let good = pack(&files).unwrap();
        let reason = |count: u16| {
            let mut bytes = good.clone();
            let at = bytes.len() - END_BYTES as usize + 10;
            bytes[at..at + 2].copy_from_slice(&count.to_le_bytes());
            Archive::open(Cursor::new(bytes)).unwrap_err().reason
        };
        assert_eq!(reason(2), "its zip directory has 141 bytes, but its 2 entries take 94");
        assert!(reason(4).contains("truncated") && reason(u16::MAX).contains("zip64"), "{}", reason(65535));
        let many = vec![(String::new(), Vec::new()); 65_535];
        assert!(unpack(&pack(&many[1..]).unwrap()).is_ok() && pack(&many).is_err());
    }

    #[test]
    fn a_directory_cannot_refer_to_the_same_bytes_without_limit() {
        let files = vec![("one".to_owned(), vec![7; 1000])];
        let bytes = pack(&files).unwrap();
        let mut archive = Archive::open(Cursor::new(&bytes)).unwrap();
        let (entry, mut budget) = (archive.entries[0].clone(), Budget::of(5000));
        let read: Vec<bool> = (0..4).map(|_| archive.read(&entry, &mut budget).is_ok()).collect();
        assert_eq!(read, [true, true, false, false]);
    }
}
