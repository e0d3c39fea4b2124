//! The origin of results: version, commit, processor and instruction set.
//!
//! A run stores it in `machines.jsonl`, separately from everything that must be reproducible: apart from
//! times, two runs with the same settings may differ in this file only. It has a line for each machine that
//! trained a part of the run, so it shows whether a run was moved to another machine.

use crate::error::RecordError;
use crate::lines;
use leaklab_engine::Isa;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Version of the format, raised when a reader of the old one would misread the new one.
pub const FORMAT: u32 = 1;

/// A program on a processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Version of LeakLab.
    pub version: String,
    /// Commit that it was built from, if the build knew it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Name of the processor, as the system reports it.
    pub cpu: String,
    /// Instruction set that the kernels use.
    pub isa: String,
    /// Operating system and architecture, such as `linux x86_64`.
    pub system: String,
}

impl Machine {
    /// This program on this processor, with an instruction set.
    pub fn here(isa: Isa) -> Self {
        use std::env::consts::{ARCH, OS};
        Machine {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("LEAKLAB_COMMIT").filter(|commit| !commit.is_empty()).map(str::to_owned),
            cpu: processor().unwrap_or_else(|| ARCH.to_owned()),
            isa: isa.to_string(),
            system: format!("{OS} {ARCH}"),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LeakLab {}", self.version)?;
        if let Some(commit) = &self.commit {
            write!(f, " ({})", commit.get(..12).unwrap_or(commit))?;
        }
        write!(f, " on {}, {}, {}", self.cpu, self.isa, self.system)
    }
}

/// Name of the processor, if a file or variable of the system contains it.
pub fn processor() -> Option<String> {
    if let Ok(text) = std::fs::read_to_string("/proc/cpuinfo") {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        return Some(line.split_once(':')?.1.trim().to_owned());
    }
    std::env::var("PROCESSOR_IDENTIFIER").ok()
}

/// A line of `machines.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trainer {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// Epochs that were complete when this machine began.
    pub after_epoch: u64,
    /// The machine.
    #[serde(flatten)]
    pub machine: Machine,
}

const WHAT: &str = "list of machines";

/// The machines that trained a run, in order; none if the run was trained before this file was introduced.
pub fn read(path: &Path) -> Result<Vec<Trainer>, RecordError> {
    lines::read(path, WHAT, FORMAT)
}

/// Like [`read`], for the bytes of a file; `path` is for the message.
pub fn parse(bytes: &[u8], path: &Path) -> Result<Vec<Trainer>, RecordError> {
    let lines = lines::parse(path, bytes, WHAT, FORMAT)?;
    Ok(lines.into_iter().map(|(_, trainer)| trainer).collect())
}

/// Records that a machine continues the run, unless it is the one that trained it last.
pub fn note(path: &Path, machine: &Machine, after_epoch: u64) -> Result<(), RecordError> {
    // Remove a torn last line, which a killed process leaves.
    lines::retain::<Trainer>(path, WHAT, FORMAT, |_| true)?;
    if read(path)?.last().is_some_and(|last| last.machine == *machine) {
        return Ok(());
    }
    lines::append(path, &Trainer { format: FORMAT, after_epoch, machine: machine.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_noted_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machines.jsonl");
        assert_eq!(read(&path).unwrap(), []);
        let here = Machine::here(Isa::Portable);
        let other =
            Machine { cpu: "another".into(), commit: Some("0123456789abcdef".into()), ..here.clone() };
        for (machine, epoch) in [(&here, 0), (&here, 3), (&other, 5), (&here, 8)] {
            note(&path, machine, epoch).unwrap();
        }
        let noted = read(&path).unwrap();
        let epochs: Vec<u64> = noted.iter().map(|trainer| trainer.after_epoch).collect();
        assert_eq!(epochs, [0, 5, 8]);
        assert_eq!(noted[1].machine, other);
        assert!(other.to_string().contains("(0123456789ab) on another, portable, "), "{other}");
    }

    #[test]
    fn a_torn_line_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machines.jsonl");
        std::fs::write(&path, "{\"format\":1,\"after_ep").unwrap();
        note(&path, &Machine::here(Isa::Portable), 2).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1);
    }
}
