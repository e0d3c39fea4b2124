//! Which process this is among all that may share a folder, and whether another one still lives.
//!
//! A process number means something only within one running kernel and one namespace of process numbers, and
//! only until the number is used again. So a process is named by the kernel's boot, its namespace, its number
//! and its starting time. Host names are for people: containers may share one.

use serde::{Deserialize, Serialize};
use std::fs;
use std::sync::OnceLock;

/// A process, as others on the same file system can know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Name of its host, for people.
    pub host: String,
    /// Its number.
    pub pid: u32,
    /// Identifies the running kernel; new at each boot. Empty where the system does not tell.
    boot: String,
    /// The namespace that its number belongs to. Empty where the system does not tell.
    namespace: String,
    /// When it started, in the kernel's ticks since boot; 0 where the system does not tell.
    started: u64,
}

/// What the system tells of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Alive,
    /// It has ended.
    Dead,
    /// It belongs to another machine, or the system does not tell.
    Unknown,
}

impl Process {
    /// This process.
    pub fn this() -> &'static Process {
        static THIS: OnceLock<Process> = OnceLock::new();
        THIS.get_or_init(|| {
            let line = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned());
            let namespace = fs::read_link("/proc/self/ns/pid").map(|link| link.display().to_string());
            Process {
                host: host(),
                pid: std::process::id(),
                boot: line("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
                namespace: namespace.unwrap_or_default(),
                started: line("/proc/self/stat").ok().and_then(|stat| state_of(&stat)).map_or(0, |s| s.1),
            }
        })
    }

    /// Whether it runs, or ran, under the same kernel as this process.
    pub fn is_here(&self) -> bool {
        let this = Process::this();
        if self.boot.is_empty() && this.boot.is_empty() {
            return self.host == this.host && !self.host.is_empty();
        }
        self.boot == this.boot
    }

    /// What this machine's table of processes tells of it.
    pub fn life(&self) -> Life {
        let this = Process::this();
        let told = !self.boot.is_empty() && !self.namespace.is_empty() && self.started > 0;
        if !told || self.boot != this.boot || self.namespace != this.namespace {
            return Life::Unknown;
        }
        match fs::read_to_string(format!("/proc/{}/stat", self.pid)) {
            Ok(stat) => match state_of(&stat) {
                Some((state, started)) if started == self.started && !matches!(state, 'Z' | 'X') => {
                    Life::Alive
                }
                Some(_) => Life::Dead,
                None => Life::Unknown,
            },
            // The first process always lives: where it cannot be seen, others are hidden too.
            Err(_) if fs::metadata("/proc/1").is_ok() => Life::Dead,
            Err(_) => Life::Unknown,
        }
    }

    /// Eight hexadecimal digits that machines differ in.
    pub fn machine_digits(&self) -> String {
        // FNV-1a: short, and the same in every build.
        let key = if self.boot.is_empty() { &self.host } else { &self.boot };
        let hash =
            key.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
        format!("{hash:08x}")
    }
}

impl std::fmt::Display for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(
            f,
            "process {} on host {}",
            self.pid,
            if self.host.is_empty() { "unknown" } else { &self.host }
        )
    }
}

/// State and starting time in a line of `/proc/PID/stat`. The second field is a name in parentheses, which
/// may hold anything.
fn state_of(stat: &str) -> Option<(char, u64)> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// The host's name; empty where the system does not tell.
fn host() -> String {
    let from_kernel = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let from_program = || std::process::Command::new("uname").arg("-n").output().ok().map(|o| o.stdout);
    let from_program = || from_program().and_then(|bytes| String::from_utf8(bytes).ok());
    let name = from_kernel.or_else(|| std::env::var("COMPUTERNAME").ok()).or_else(from_program);
    name.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
impl Process {
    /// A process of this machine that has ended: its number is another's now.
    pub(crate) fn ended() -> Self {
        let this = Process::this();
        Process { started: this.started - 1, ..this.clone() }
    }

    /// A process of another machine.
    pub(crate) fn elsewhere() -> Self {
        Process { host: "node7".into(), boot: "another".into(), ..Process::this().clone() }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_line_of_the_table_of_processes() {
        let line = "42 (odd) name (x) R 1 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 98765 4096 1 2";
        assert_eq!(state_of(line), Some(('R', 98765)));
        assert_eq!(state_of("42 (cut) R 1"), None);
        assert_eq!(state_of(""), None);
    }

    #[test]
    fn life_and_death_are_told_apart() {
        let this = Process::this();
        assert_eq!(this.life(), Life::Alive);
        assert!(this.is_here());
        // The same number, used again by a later process.
        assert_eq!(Process { started: this.started - 1, ..this.clone() }.life(), Life::Dead);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let process = Process { pid: child.id(), started: state_of(&stat).unwrap().1, ..this.clone() };
        assert_eq!(process.life(), Life::Alive);
        child.kill().unwrap();
        // Killed, whether or not anybody has asked how it ended.
        while process.life() == Life::Alive {
            std::thread::yield_now();
        }
        assert_eq!(process.life(), Life::Dead);
        child.wait().unwrap();
        assert_eq!(process.life(), Life::Dead);
        // What another kernel or another namespace counts is not in this table.
        for other in [
            Process { boot: "another".into(), ..process.clone() },
            Process { namespace: "another".into(), ..process.clone() },
            Process { started: 0, ..process.clone() },
        ] {
            assert_eq!(other.life(), Life::Unknown);
        }
        assert!(!Process { boot: "another".into(), ..process.clone() }.is_here());
        assert_ne!(Process { boot: "another".into(), ..process }.machine_digits(), this.machine_digits());
    }
}
