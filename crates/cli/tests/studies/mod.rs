//! Running `leaklab study` as a user would: a small study, and its results.
#![allow(dead_code)] // each test uses a part

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A study of four runs that takes a second or two.
pub const SMALL: &str = "name = \"small\"\ndataset = \"digits\"\nnetwork = \"1x8x8-8C3-2P-24FC-10o\"\n\
    tau = [30, inf]\nseeds = [1, 2]\nepochs = 3\nbatch = 32\ntrain_limit = 160\ntest_limit = 60\n\
    time_steps = 12\nnoise = [\"gaussian/pixel\"]\n";

/// The program with some arguments.
pub fn leaklab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaklab"));
    command.args(arguments);
    command
}

/// The program's output for some arguments.
pub fn output(arguments: &[&str]) -> Output {
    leaklab(arguments).output().unwrap()
}

/// Output as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A study file in a new folder.
pub fn small() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    fs::write(&file, SMALL).unwrap();
    let file = file.to_string_lossy().into_owned();
    (folder, file)
}

/// Writes the theory's tables into the folder of a study that will be started, with a short simulation. They
/// do not depend on the study, and with the default simulation they would take longer than a small study.
pub fn with_short_theory(study: &Path) {
    use leaklab_lab::theory_tables::{Simulation, tables};
    let folder = leaklab_record::StudyFolder::at(study).theory();
    fs::create_dir_all(&folder).unwrap();
    for table in tables(Some(Simulation { segments: 8, ..Simulation::default() })) {
        table.write(&folder).unwrap();
    }
    fs::write(folder.join("complete"), "").unwrap();
}

/// Everything that must be reproducible: tables, metrics without their times, the page without its line of
/// times.
pub fn results(study: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![study.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = match name.as_str() {
                "report.html" => {
                    let text = fs::read_to_string(&path).unwrap();
                    text.lines()
                        .filter(|line| !line.starts_with("<p id=\"times\""))
                        .collect::<Vec<_>>()
                        .join("\n")
                }
                "metrics.jsonl" => {
                    let text = fs::read_to_string(&path).unwrap();
                    let lines = text.lines().map(|line| {
                        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
                        value["seconds"] = 0.into();
                        value["images_per_second"] = 0.into();
                        value.to_string()
                    });
                    lines.collect::<Vec<_>>().join("\n")
                }
                name if name.ends_with(".csv") || name.ends_with(".json") || name.ends_with(".toml") => {
                    fs::read_to_string(&path).unwrap()
                }
                _ => continue,
            };
            found.insert(path.strip_prefix(study).unwrap().to_owned(), text);
        }
    }
    found
}

/// Asserts that two studies gave the same results, byte for byte.
pub fn assert_same(a: &Path, b: &Path) {
    let (a, b) = (results(a), results(b));
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (path, text) in &a {
        assert!(*text == b[path], "{} differs", path.display());
    }
}
