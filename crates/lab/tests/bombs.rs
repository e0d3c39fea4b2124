//! Malicious and damaged files: small ones that unpack to gigabytes, archives with a flipped bit, pipes in
//! place of images.
//!
//! The bombs are read in a process with two gigabytes of address space; each must be refused with a message
//! of one line, within seconds.
#![cfg(unix)]

mod archive;
mod support;

use flate2::{Compress, Compression, FlushCompress};
use image::{GrayImage, ImageFormat};
use leaklab_lab::data::{Limits, cifar10, load};
use leaklab_lab::exchange::{Model, nir, npz};
use leaklab_lab::run::Weights;
use std::fs;
use std::io::Write;
use std::path::Path;
use support::worked;

const MB: usize = 1 << 20;
const SLOWEST: f64 = 5.0;

/// `megabytes` of zeros as raw deflate blocks that do not end: one megabyte's blocks, repeated.
fn zeros(megabytes: usize) -> Vec<u8> {
    let mut compress = Compress::new(Compression::best(), false);
    let mut block = Vec::with_capacity(64 * 1024);
    compress.compress_vec(&vec![0; MB], &mut block, FlushCompress::Full).unwrap();
    assert_eq!(compress.total_in(), MB as u64);
    block.repeat(megabytes)
}

/// The end of a raw deflate stream: an empty last block.
const LAST_BLOCK: [u8; 2] = [0x03, 0x00];

/// A file of an archive: its name, some bytes, megabytes of zeros after them, and how often the directory
/// lists it.
type Packed<'a> = (&'a str, Vec<u8>, usize, u16);

/// An archive of files that are mostly zeros.
fn zip_bomb(files: &[Packed]) -> Vec<u8> {
    let (mut bytes, mut directory, mut count) = (Vec::new(), Vec::new(), 0);
    for (name, start, megabytes, times) in files {
        let mut compress = Compress::new(Compression::best(), false);
        let mut data = Vec::with_capacity(4096);
        compress.compress_vec(start, &mut data, FlushCompress::Full).unwrap();
        data.extend(zeros(*megabytes));
        data.extend(LAST_BLOCK);
        let mut crc = flate2::Crc::new();
        crc.update(start);
        let block = vec![0; MB];
        (0..*megabytes).for_each(|_| crc.update(&block));
        let mut fields = Vec::new();
        for value in [20u16, 0, 8, 0, 0x21] {
            fields.extend(value.to_le_bytes());
        }
        for value in [crc.sum(), data.len() as u32, (start.len() + megabytes * MB) as u32] {
            fields.extend(value.to_le_bytes());
        }
        fields.extend([name.len() as u8, 0, 0, 0]); // nothing extra
        let offset = (bytes.len() as u32).to_le_bytes();
        bytes.extend([&0x0403_4b50u32.to_le_bytes()[..], &fields, name.as_bytes(), &data].concat());
        let entry =
            [&0x0201_4b50u32.to_le_bytes()[..], &[20, 0], &fields, &[0; 10], &offset, name.as_bytes()];
        directory.extend(entry.concat().repeat(usize::from(*times)));
        count += times;
    }
    let (start, length) = (bytes.len() as u32, directory.len() as u32);
    bytes.extend(directory);
    bytes.extend([&0x0605_4b50u32.to_le_bytes()[..], &[0; 4]].concat());
    bytes.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    bytes.extend([length.to_le_bytes(), start.to_le_bytes()].concat());
    bytes.extend([0; 2]);
    bytes
}

/// The header of a NumPy array.
fn header(kind: &str, shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    [&b"\x93NUMPY\x01\x00"[..], &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat()
}

/// An archive whose directory lists one array of 100 MB many times.
fn npz_bomb() -> Vec<u8> {
    zip_bomb(&[("a", header("<f4", &format!("{},", 100 * MB / 4)), 100, 60)])
}

/// Images of one byte per value, whose values would take eight times their size as float64.
fn images_bomb() -> Vec<u8> {
    let labels = [header("|u1", "380,"), vec![0; 380]].concat();
    let images = header("|i1", &format!("380, {MB}"));
    zip_bomb(&[("train_images.npy", images, 380, 1), ("train_labels.npy", labels, 0, 1)])
}

/// One recording of 90 million events, each of four bytes in the file and 32 in memory.
fn events_bomb() -> Vec<u8> {
    let (one, events) = (header("|u1", &format!("{},", 90 * MB)), (90 * MB) as u32);
    let offsets = [header("<u4", "2,"), vec![0; 4], events.to_le_bytes().to_vec()].concat();
    let labels = [header("|u1", "1,"), vec![0]].concat();
    let names = ["t", "x", "y", "p"].map(|column| format!("train_{column}.npy"));
    let mut files: Vec<Packed> = names.iter().map(|name| (name.as_str(), one.clone(), 90, 1)).collect();
    files.extend([("train_offsets.npy", offsets.clone(), 0, 1), ("train_labels.npy", labels.clone(), 0, 1)]);
    let few = [header("|u1", "5,"), vec![0; 5]].concat();
    let end = [header("|u1", "2,"), vec![0, 5]].concat();
    files.extend(
        ["test_t.npy", "test_x.npy", "test_y.npy", "test_p.npy"].map(|name| (name, few.clone(), 0, 1)),
    );
    files.extend([("test_offsets.npy", end, 0, 1), ("test_labels.npy", labels, 0, 1)]);
    zip_bomb(&files)
}

/// An archive whose directory lists one recording of 50 MB many times.
fn recordings_bomb() -> Vec<u8> {
    zip_bomb(&[("Train/0/1.bin", Vec::new(), 50, 60_000)])
}

/// The checksum of zlib for some bytes followed by `zeros` zeros.
fn adler32(bytes: &[u8], zeros: u32) -> u32 {
    let (a, b) = bytes.iter().fold((1u64, 0u64), |(a, b), &byte| {
        let a = (a + u64::from(byte)) % 65521;
        (a, (b + a) % 65521)
    });
    let b = (b + a * u64::from(zeros)) % 65521;
    (b << 16 | a) as u32
}

/// A MATLAB file of twenty compressed arrays of 250 MB.
fn mat_bomb() -> Vec<u8> {
    let mut bytes = vec![0; 124];
    bytes.extend([0, 1, b'I', b'M']);
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let size = (250 * MB) as u32;
    let matrix = words(&[14, 48 + size, 6, 8, 9, 0, 5, 8, size, 1, 1 | 1 << 16, u32::from(b'Z'), 2, size]);
    let mut compress = Compress::new(Compression::best(), true);
    let mut data = Vec::with_capacity(4096);
    compress.compress_vec(&matrix, &mut data, FlushCompress::Full).unwrap();
    data.extend(zeros(250));
    data.extend(LAST_BLOCK);
    data.extend(adler32(&matrix, size).to_be_bytes());
    for _ in 0..20 {
        bytes.extend(words(&[15, data.len() as u32]));
        bytes.extend(&data);
    }
    bytes
}

/// An archive whose one entry is a name of three gigabytes.
fn tar_bomb() -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_path("././@LongLink").unwrap();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_size(3 << 30);
    header.set_cksum();
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut compress = Compress::new(Compression::best(), false);
    let mut start = Vec::with_capacity(4096);
    compress.compress_vec(header.as_bytes(), &mut start, FlushCompress::Full).unwrap();
    bytes.extend(start);
    bytes.extend(zeros(3 * 1024 + 1));
    bytes.extend(LAST_BLOCK);
    bytes
}

/// An archive of 20 GiB of zeros, which a reader must not unpack to the end.
fn padded_bomb() -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    bytes.extend(zeros(20 * 1024));
    bytes
}

/// An HDF5 file with three data sets of 64 MB of zeros.
fn nir_bomb() -> Vec<u8> {
    let mut file = hdf5_pure::FileBuilder::new();
    let values = vec![0.0f32; 16 * MB];
    for name in ["a", "b", "c"] {
        file.create_dataset(name).with_f32_data(&values).with_shape(&[values.len() as u64]).with_deflate(1);
    }
    file.finish().unwrap()
}

/// `config.json` of a model of two billion weights, which take 8 GB, without a file of weights.
const MODEL_BOMB: &str = r#"{"format": 1, "model_type": "leaklab", "network": "4x4-15000C3-15000C3-10o",
    "tau": "30", "v_th": 1.0}"#;

fn write_bombs(folder: &Path) {
    fs::write(folder.join("bomb.npz"), npz_bomb()).unwrap();
    fs::write(folder.join("bomb.nir"), nir_bomb()).unwrap();
    let data = |name: &str| {
        let path = folder.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    };
    fs::write(data("model").join("config.json"), MODEL_BOMB).unwrap();
    fs::write(folder.join("images.npz"), images_bomb()).unwrap();
    fs::write(folder.join("events.npz"), events_bomb()).unwrap();
    for name in ["Train.zip", "Test.zip"] {
        fs::write(data("n-mnist").join(name), recordings_bomb()).unwrap();
    }
    for name in ["train_32x32.mat", "test_32x32.mat"] {
        fs::write(data("svhn").join(name), mat_bomb()).unwrap();
    }
    fs::write(data("tar").join(cifar10::ARCHIVE), tar_bomb()).unwrap();
    fs::write(data("padded").join(cifar10::ARCHIVE), padded_bomb()).unwrap();
    let mut png = std::io::Cursor::new(Vec::new());
    GrayImage::new(12_000, 12_000).write_to(&mut png, ImageFormat::Png).unwrap();
    for class in ["images/a", "images/b"] {
        (0..6).for_each(|i| fs::write(data(class).join(format!("{i}.png")), png.get_ref()).unwrap());
    }
}

/// The next test runs this in a separate process.
#[test]
#[ignore = "run by bombs_are_refused_in_a_sentence in a process with little memory"]
fn bombs_in_little_memory() {
    let folder = std::env::var_os("BOMBS").map(std::path::PathBuf::from).unwrap();
    let set = |name: &str, within: &str| {
        load(name, Some(&folder.join(within)), &Limits::NONE).unwrap_err().to_string()
    };
    type Read<'a> = Box<dyn Fn() -> String + 'a>;
    let bombs: [(&str, &str, Read); 10] = [
        (
            "npz",
            "unpacks to more than",
            Box::new(|| npz::read(&folder.join("bomb.npz")).unwrap_err().to_string()),
        ),
        (
            "nir",
            "unpacks to more than",
            Box::new(|| nir::read(&folder.join("bomb.nir")).unwrap_err().to_string()),
        ),
        (
            "model",
            "choose a smaller network",
            Box::new(|| Model::open(&folder.join("model"), Weights::Last).unwrap_err().to_string()),
        ),
        ("images", "'train_images': it unpacks to more than", Box::new(|| set("npz:images", ""))),
        ("events", "'train_t': it unpacks to more than", Box::new(|| set("events:events", ""))),
        ("recordings", "unpacks to more than", Box::new(|| set("n-mnist", "n-mnist"))),
        ("mat", "unpacks to more than", Box::new(|| set("svhn", "svhn"))),
        ("tar", "a name of more than 100 bytes", Box::new(|| set("cifar10", "tar"))),
        ("padded tar", "unpacks to more than", Box::new(|| set("cifar10", "padded"))),
        ("png", "144000000 pixels", Box::new(|| set("image-folder", "images"))),
    ];
    for (name, words, read) in bombs {
        let timed = || {
            let started = worked();
            (read(), worked() - started)
        };
        let (message, mut seconds) = timed();
        // Processor time too grows if other programs use the caches and the other half of a core.
        for _ in 0..2 {
            if seconds >= SLOWEST {
                seconds = seconds.min(timed().1);
            }
        }
        println!("refused {name} after {seconds:.1} s: {message}");
        assert!(message.contains(words) && !message.contains('\n'), "{name}: {message}");
        assert!(seconds < SLOWEST, "{name} took {seconds} s");
    }
}

#[test]
fn bombs_are_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    write_bombs(folder.path());
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -v 2097152 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "bombs_in_little_memory", "--nocapture", "--test-threads=1"])
        .env("BOMBS", folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches("refused").count(), 10, "{text}");
}

/// A small `cifar-10-binary.tar.gz`: two records in each of its files.
fn cifar_archive() -> Vec<u8> {
    archive::cifar_archive(Compression::default(), |number| {
        let mut record: Vec<u8> = (0..2 * 3073).map(|i| (i * i / (7 + number)) as u8).collect();
        (record[0], record[3073]) = (number as u8, 9);
        record
    })
}

#[test]
fn no_flipped_bit_of_an_archive_changes_a_pixel_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(cifar10::ARCHIVE);
    let good = cifar_archive();
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        load("cifar10", Some(folder.path()), &Limits::NONE)
    };
    let expected = read(&good).unwrap();
    assert_eq!((expected.train.len(), expected.test.len()), (10, 2));
    let mut refused = 0;
    for step in 0..1000 {
        // A thousand bits spread over the file, including the last ones, which are the checksum itself.
        let bit = (good.len() * 8 - 1) * step / 999;
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        match read(&bad) {
            Ok(dataset) => assert_eq!(dataset, expected, "bit {bit} changed the images unnoticed"),
            Err(error) => {
                assert!(error.to_string().contains(cifar10::ARCHIVE), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 950, "{refused}");
    for cut in [1, 7, 8, 9, 300] {
        assert!(read(&good[..good.len() - cut]).is_err(), "{cut} bytes cut off");
    }
}

#[test]
fn a_pipe_among_images_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    for class in ["a", "b"] {
        fs::create_dir(folder.path().join(class)).unwrap();
        for i in 0..5 {
            let mut png = std::io::Cursor::new(Vec::new());
            GrayImage::new(8, 8).write_to(&mut png, ImageFormat::Png).unwrap();
            fs::File::create(folder.path().join(format!("{class}/{i}.png")))
                .unwrap()
                .write_all(png.get_ref())
                .unwrap();
        }
    }
    assert_eq!(load("image-folder", Some(folder.path()), &Limits::NONE).unwrap().train.len(), 8);
    let pipe = folder.path().join("a/pipe.png");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let message = load("image-folder", Some(folder.path()), &Limits::NONE).unwrap_err().to_string();
    assert!(message.contains("pipe.png: it is not a regular file"), "{message}");
}
