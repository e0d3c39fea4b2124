//! Fetching from a server that this test runs on the loopback address.

mod support;

use leaklab_lab::data::fetch::{Download, Event, fetch_file};
use leaklab_lab::data::unpack::unpack;
use leaklab_record::hexadecimal;
use leaklab_record::lock::Lock;
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// How the server responds to a request.
#[derive(Clone)]
enum Behaviour {
    /// Serves these bytes and honours ranges.
    Serve(Vec<u8>),
    /// Serves all of these bytes, whatever range is requested.
    ServeWhole(Vec<u8>),
    /// Serves these bytes, but closes the connection after this many bytes of each answer.
    HangUp(Vec<u8>, usize),
    /// Answers with a status.
    Status(u16),
}

/// Starts a server that responds to every connection in the same way; returns its address and the starts of
/// the ranges that were requested.
fn server(behaviour: Behaviour) -> (String, Arc<Mutex<Vec<u64>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/file.bin", listener.local_addr().unwrap());
    let starts = Arc::new(Mutex::new(Vec::new()));
    let log = starts.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = answer(stream.unwrap(), &behaviour, &log);
        }
    });
    (address, starts)
}

fn answer(mut stream: TcpStream, behaviour: &Behaviour, log: &Mutex<Vec<u64>>) -> std::io::Result<()> {
    let mut start = 0;
    for line in BufReader::new(stream.try_clone()?).lines() {
        let line = line?.to_ascii_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            start = range.trim_end_matches('-').parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    log.lock().unwrap().push(start);
    let (bytes, start, most) = match behaviour {
        Behaviour::Serve(bytes) => (bytes, start as usize, usize::MAX),
        Behaviour::ServeWhole(bytes) => (bytes, 0, usize::MAX),
        Behaviour::HangUp(bytes, most) => (bytes, start as usize, *most),
        Behaviour::Status(status) => {
            return write!(stream, "HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    };
    let body = &bytes[start..];
    let status = if start > 0 {
        format!("206 Partial Content\r\nContent-Range: bytes {start}-{}/{}", bytes.len() - 1, bytes.len())
    } else {
        "200 OK".to_owned()
    };
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())?;
    stream.write_all(&body[..body.len().min(most)])
}

/// An address at which no server listens.
fn dead() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/file.bin", listener.local_addr().unwrap())
}

fn content() -> Vec<u8> {
    (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn download(addresses: Vec<String>, bytes: &[u8]) -> Download {
    let sha256 = hexadecimal(Sha256::new_with_prefix(bytes));
    Download {
        path: "set/file.bin".to_owned(),
        addresses,
        sha256,
        size: bytes.len() as u64,
        unpacks_to: None,
    }
}

/// Files under a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

fn run(download: &Download, folder: &Path) -> (Result<(), String>, Vec<Event>) {
    let mut events = Vec::new();
    let result = fetch_file(download, folder, &mut |event| events.push(event));
    (result.map_err(|error| error.to_string()), events)
}

#[test]
fn fetches_a_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let (address, starts) = server(Behaviour::Serve(content()));
    let wanted = download(vec![address], &content());
    let (result, events) = run(&wanted, folder.path());
    result.unwrap();
    assert_eq!(std::fs::read(folder.path().join("set/file.bin")).unwrap(), content());
    assert_eq!(files(folder.path()), ["file.bin"]);
    assert!(events.contains(&Event::Progress { have: 300_000 }));
    let (result, events) = run(&wanted, folder.path());
    result.unwrap();
    assert!(matches!(events[..], [Event::Present { .. }]), "{events:?}");
    assert_eq!(*starts.lock().unwrap(), [0], "the second fetch sent no request");
    // A damaged file is fetched again.
    std::fs::write(folder.path().join("set/file.bin"), "damaged").unwrap();
    run(&wanted, folder.path()).0.unwrap();
    assert_eq!(std::fs::read(folder.path().join("set/file.bin")).unwrap(), content());
}

#[test]
fn resumes_where_it_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    // The first attempt ends early, because the server does not have the rest.
    let (broken, _) = server(Behaviour::HangUp(content(), 100_000));
    let mut wanted = download(vec![broken], &content());
    wanted.size += 1_000_000;
    let (result, _) = run(&wanted, folder.path());
    let message = result.unwrap_err();
    assert!(message.contains("the next fetch resumes there"), "{message}");
    assert_eq!(files(folder.path()), ["file.bin.partial"]);
    let have = std::fs::metadata(folder.path().join("set/file.bin.partial")).unwrap().len();
    assert!(have >= 100_000, "{have}");
    std::fs::OpenOptions::new()
        .write(true)
        .open(folder.path().join("set/file.bin.partial"))
        .unwrap()
        .set_len(123_457)
        .unwrap();

    let (address, starts) = server(Behaviour::Serve(content()));
    let (result, events) = run(&download(vec![address], &content()), folder.path());
    result.unwrap();
    assert_eq!(*starts.lock().unwrap(), [123_457]);
    assert!(events.iter().any(|e| matches!(e, Event::Start { have: 123_457, .. })), "{events:?}");
    assert_eq!(std::fs::read(folder.path().join("set/file.bin")).unwrap(), content());
}

#[test]
fn a_broken_connection_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let (address, starts) = server(Behaviour::HangUp(content(), 100_000));
    run(&download(vec![address], &content()), folder.path()).0.unwrap();
    assert_eq!(*starts.lock().unwrap(), [0, 100_000, 200_000]);
    assert_eq!(std::fs::read(folder.path().join("set/file.bin")).unwrap(), content());
}

#[test]
fn a_server_that_gives_a_byte_at_a_time_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let (address, starts) = server(Behaviour::HangUp(content(), 1));
    let message = run(&download(vec![address], &content()), folder.path()).0.unwrap_err();
    assert!(message.contains("the next fetch resumes there"), "{message}");
    assert!(starts.lock().unwrap().len() <= 50, "{}", starts.lock().unwrap().len());
}

#[test]
fn a_server_that_cannot_resume_starts_over() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("set")).unwrap();
    std::fs::write(folder.path().join("set/file.bin.partial"), &content()[..5000]).unwrap();
    let (address, _) = server(Behaviour::ServeWhole(content()));
    run(&download(vec![address], &content()), folder.path()).0.unwrap();
    assert_eq!(std::fs::read(folder.path().join("set/file.bin")).unwrap(), content());
}

#[test]
fn a_wrong_checksum_is_refused_and_leaves_nothing() {
    let mut wrong = content();
    wrong[77] ^= 1;
    let longer: Vec<u8> = content().into_iter().chain([0]).collect();
    for bytes in [wrong, longer] {
        let folder = tempfile::tempdir().unwrap();
        let (address, _) = server(Behaviour::Serve(bytes));
        let (result, _) = run(&download(vec![address.clone()], &content()), folder.path());
        let message = result.unwrap_err();
        assert!(message.contains("SHA-256") || message.contains("larger"), "{message}");
        assert!(message.contains(&address), "{message}");
        assert!(files(folder.path()).is_empty(), "{:?}", files(folder.path()));
    }
    // A partial file with other bytes is discarded, and the next address starts from the beginning.
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("set")).unwrap();
    std::fs::write(folder.path().join("set/file.bin.partial"), [1; 500]).unwrap();
    let (address, starts) = server(Behaviour::Serve(content()));
    run(&download(vec![address.clone(), address], &content()), folder.path()).0.unwrap();
    assert_eq!(*starts.lock().unwrap(), [500, 0]);
}

#[test]
fn a_dead_mirror_is_skipped_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let (gone, _) = server(Behaviour::Status(404));
    let (good, _) = server(Behaviour::Serve(content()));
    let dead = dead();
    let (result, events) = run(&download(vec![dead.clone(), gone.clone(), good], &content()), folder.path());
    result.unwrap();
    let skipped: Vec<(String, String)> = events
        .into_iter()
        .filter_map(
            |e| if let Event::Skipped { address, reason } = e { Some((address, reason)) } else { None },
        )
        .collect();
    assert_eq!(skipped.len(), 2);
    assert_eq!(skipped[0].0, dead);
    assert_eq!(skipped[1], (gone, "the server answered 404".to_owned()));

    let folder = tempfile::tempdir().unwrap();
    let message = run(&download(vec![dead.clone()], &content()), folder.path()).0.unwrap_err();
    assert!(message.contains(&dead) && message.contains("set/file.bin could not be downloaded"), "{message}");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_file_is_fetched_by_one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    std::fs::create_dir(&set).unwrap();
    std::fs::write(set.join("file.bin.partial"), &content()[..5000]).unwrap();
    let (address, starts) = server(Behaviour::Serve(content()));
    let wanted = download(vec![address], &content());
    let lock = Lock::take(&set.join("file.bin.lock")).unwrap();
    let message = run(&wanted, folder.path()).0.unwrap_err();
    assert!(message.contains("file.bin: another process is fetching it (process "), "{message}");
    assert_eq!(std::fs::read(set.join("file.bin.partial")).unwrap(), content()[..5000]);
    assert!(starts.lock().unwrap().is_empty(), "no request was sent");
    drop(lock);
    std::thread::scope(|scope| {
        let fetches: Vec<_> = (0..4).map(|_| scope.spawn(|| run(&wanted, folder.path()).0)).collect();
        for fetch in fetches {
            let result = fetch.join().unwrap();
            assert!(result.as_ref().err().is_none_or(|e| e.contains("another process")), "{result:?}");
        }
    });
    run(&wanted, folder.path()).0.unwrap();
    assert_eq!(*starts.lock().unwrap(), [5000], "one of them fetched it");
    assert_eq!(std::fs::read(set.join("file.bin")).unwrap(), content());
    assert_eq!(files(folder.path()), ["file.bin"]);
}

/// Bytes that arrived intact, and were changed on the disk before the file was complete.
#[test]
fn the_checksum_is_that_of_the_file_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (address, _) = server(Behaviour::Serve(content()));
    let partial = folder.path().join("set/file.bin.partial");
    let result = fetch_file(&download(vec![address], &content()), folder.path(), &mut |event| {
        if matches!(event, Event::Progress { .. }) {
            let mut file = std::fs::OpenOptions::new().write(true).open(&partial).unwrap();
            file.write_all(b"another writer").unwrap();
        }
    });
    let message = result.unwrap_err().to_string();
    assert!(message.contains("its SHA-256 is"), "{message}");
    assert!(files(folder.path()).is_empty(), "{:?}", files(folder.path()));
}

#[cfg(unix)]
#[test]
fn a_link_in_place_of_the_partial_file_is_refused_and_left() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("set/file.bin.partial");
    std::fs::create_dir(folder.path().join("set")).unwrap();
    std::fs::write(folder.path().join("mine"), "do not touch").unwrap();
    std::os::unix::fs::symlink(folder.path().join("mine"), &link).unwrap();
    let (address, _) = server(Behaviour::Serve(content()));
    let message = run(&download(vec![address], &content()), folder.path()).0.unwrap_err();
    assert!(message.contains("file.bin.partial: it is a symbolic link"), "{message}");
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(folder.path().join("mine")).unwrap(), "do not touch");
}

/// A `.tar.gz` of entries: name, type, contents.
fn archive(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut builder =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (name, kind, contents) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        // The builder itself refuses bad names, so they are written as bytes.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        if matches!(kind, tar::EntryType::Symlink | tar::EntryType::Link) {
            header.as_gnu_mut().unwrap().linkname[..11].copy_from_slice(b"/etc/passwd");
        }
        header.set_cksum();
        builder.append(&header, *contents).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

#[test]
fn an_archive_is_fetched_and_unpacked() {
    use tar::EntryType::{Directory, Regular};
    let bytes = archive(&[
        ("set/", Directory, b""),
        ("set/a.bin", Regular, b"A"),
        ("./set/deep/b.bin", Regular, b"BB"),
        ("readme.txt", Regular, b"not in the folder"),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let (address, _) = server(Behaviour::Serve(bytes.clone()));
    let wanted = Download {
        path: "set.tar.gz".into(),
        unpacks_to: Some("set".into()),
        ..download(vec![address], &bytes)
    };
    run(&wanted, folder.path()).0.unwrap();
    let mut found = files(folder.path());
    found.sort();
    assert_eq!(found, ["a.bin", "b.bin"]);
    assert_eq!(std::fs::read(folder.path().join("set/deep/b.bin")).unwrap(), b"BB");
    assert!(matches!(run(&wanted, folder.path()).1[..], [Event::Present { .. }]));
}

#[test]
fn an_archive_that_reaches_out_is_refused_whole() {
    use tar::EntryType::{Char, Link, Regular, Symlink};
    for (name, kind) in [
        ("../evil", Regular),
        ("set/../../evil", Regular),
        ("/tmp/leaklab-evil", Regular),
        ("set/link", Symlink),
        ("set/hard", Link),
        ("set/device", Char),
        ("set", Regular),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let path = folder.path().join("archive.tar.gz");
        let contents: &[u8] = if kind == Regular { b"evil" } else { b"" };
        std::fs::write(&path, archive(&[("set/good", Regular, b"good"), (name, kind, contents)])).unwrap();
        let message = unpack(&path, "set", &home.join("set")).unwrap_err().to_string();
        assert!(message.contains(name) && message.contains("nothing was unpacked"), "{message}");
        assert_eq!(files(folder.path()), ["archive.tar.gz"], "{name}");
        assert!(!Path::new("/tmp/leaklab-evil").exists());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive.tar.gz");
    std::fs::write(&path, &archive(&[("set/good", Regular, &[7; 90_000])])[..120]).unwrap();
    assert!(unpack(&path, "set", &folder.path().join("set")).is_err(), "cut short");
    assert_eq!(files(folder.path()), ["archive.tar.gz"]);
}

/// On a file system of 128 KiB, which requires the right to mount one.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_and_nothing_is_half_written() {
    let place = tempfile::tempdir().unwrap();
    let disk = place.path();
    let Some(_mounted) = support::SmallDisk::mount("full disk", disk, "size=128k") else { return };
    let (address, _) = server(Behaviour::Serve(content()));
    let message = run(&download(vec![address], &content()), disk).0.unwrap_err();
    assert!(message.contains("file.bin.partial") && message.contains("No space left"), "{message}");
    assert!(files(disk).is_empty());

    // There is space for the archive, but not for its contents.
    let bytes = archive(&[("big/file", tar::EntryType::Regular, &[0; 500_000])]);
    let (address, _) = server(Behaviour::Serve(bytes.clone()));
    let wanted = Download {
        path: "big.tar.gz".into(),
        unpacks_to: Some("big".into()),
        ..download(vec![address], &bytes)
    };
    let message = run(&wanted, disk).0.unwrap_err();
    assert!(message.contains("No space left"), "{message}");
    assert_eq!(files(disk), ["big.tar.gz"]);
}
