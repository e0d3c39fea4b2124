//! Runs the fuzz targets with a stable compiler, each on its corpus and on mutations of it.
//!
//! `fuzz/corpus/TARGET` contains small files. Those called `good-*` must be readable, so that a corpus stays
//! up to date with its format; `seeds/mod.rs` writes them again
//! (`cargo test --release -p leaklab-lab --test fuzz write_the_corpus -- --ignored`). The others once caused
//! a failure and must be refused.

mod archive;
mod samples;
mod seeds;
mod support;
#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use leaklab_engine::philox::{Purpose, Stream};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{attack_times, mutate, worked};
use targets::TARGETS;

/// Largest number of mutations of each target, and the time for them; both are multiplied by
/// [`attack_times`].
const MUTATIONS: u32 = 3000;
const TIME: Duration = Duration::from_millis(700);

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Names and bytes of a target's corpus, in order.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = fuzz().join("corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{target} has no corpus");
    files
}

#[test]
fn every_target_has_its_file_and_its_corpus() {
    let names = |folder: &str| -> BTreeSet<String> {
        let entries = fs::read_dir(fuzz().join(folder)).unwrap();
        entries.map(|e| e.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect()
    };
    let expected: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names("fuzz_targets"), expected);
    assert_eq!(names("corpus"), expected);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    for name in &expected {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
        let text = fs::read_to_string(fuzz().join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(text.contains(&format!("leaklab_fuzz::run(\"{name}\", bytes)")), "{name}: {text}");
    }
}

#[test]
fn the_corpus_is_read() {
    for (name, target) in TARGETS {
        let files = corpus(name);
        for (file, bytes) in &files {
            assert_eq!(target(bytes), file.starts_with("good-"), "{name}/{file}");
            let most = match name {
                "nir" => 65_536,  // HDF5 reserves space that it does not use
                "events" => 4096, // twelve arrays, each with a header
                _ => 2048,
            };
            assert!(bytes.len() <= most, "{name}/{file} has {} bytes: a seed is small", bytes.len());
        }
        assert!(files.iter().any(|(file, _)| file.starts_with("good-")), "{name}");
    }
}

/// The next test runs this in a separate process.
#[test]
#[ignore = "run by mutations_of_the_corpus_break_nothing in a process with little memory"]
fn mutations_in_little_memory() {
    for (number, (name, target)) in TARGETS.into_iter().enumerate() {
        let (files, started) = (corpus(name), Instant::now());
        let (mut tried, mut read) = (0, 0);
        while tried < MUTATIONS * attack_times() && started.elapsed() < TIME * attack_times() {
            let (_, good) = &files[tried as usize % files.len()];
            let bad = mutate(good, Stream::new(19, Purpose::Benchmark, number as u32, tried));
            let begun = worked();
            read += u32::from(target(&bad));
            assert!(worked() - begun < 5.0, "{name} took {} s: {bad:?}", worked() - begun);
            tried += 1;
        }
        println!("{name}: {read} of {tried} mutations were read");
        assert!(read < tried, "{name}: the mutations are too weak");
    }
}

#[test]
fn mutations_of_the_corpus_break_nothing() {
    // With two gigabytes of address space, a reader that trusts a huge length ends the process.
    let script = if cfg!(unix) { "ulimit -v 2097152 && exec \"$0\" \"$@\"" } else { "exec \"$0\" \"$@\"" };
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "mutations_in_little_memory", "--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches("mutations were read").count(), TARGETS.len(), "{text}");
}

/// Writes the files `good-*` of every corpus.
#[test]
#[ignore = "changes the tree; run it by hand if a format has changed"]
fn write_the_corpus() {
    for (target, name, bytes) in seeds::all() {
        let folder = fuzz().join("corpus").join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("good-{name}")), bytes).unwrap();
    }
}
