//! The identity of a process among all that may share a folder, and whether another process is still alive.
//!
//! A process id is unique only within one running kernel and one pid namespace, and only until it is reused.
//! So a process is identified by the kernel's boot, its namespace, its id and its start time. Host names are
//! only for people: containers may share one.

use serde::{Deserialize, Serialize};
use std::fs;
use std::sync::OnceLock;

/// A process, as other processes on the same file system can identify it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Name of its host, for people.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// Identifies the running kernel; new at each boot. Empty if unknown.
    boot: String,
    /// The pid namespace. Empty if unknown.
    namespace: String,
    /// Start time in the kernel's ticks since boot; 0 if unknown.
    started: u64,
}

/// Whether a process is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Alive,
    /// It has ended.
    Dead,
    /// It belongs to another machine, or the system does not provide this information.
    Unknown,
}

impl Process {
    /// This process. It is not stored: a forked child would inherit the identity of its parent.
    pub fn this() -> Process {
        let line = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let namespace = fs::read_link("/proc/self/ns/pid").map(|link| link.display().to_string());
        Process {
            host: host(),
            pid: std::process::id(),
            boot: line("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
            namespace: namespace.unwrap_or_default(),
            started: line("/proc/self/stat").ok().and_then(|stat| state_of(&stat)).map_or(0, |s| s.1),
        }
    }

    /// Whether it runs, or ran, under the same kernel as this process.
    pub fn is_here(&self) -> bool {
        let this = Process::this();
        if self.boot.is_empty() && this.boot.is_empty() {
            return self.host == this.host && !self.host.is_empty();
        }
        self.boot == this.boot
    }

    /// Whether it is alive, according to this machine's process table.
    pub fn life(&self) -> Life {
        let this = Process::this();
        let known = !self.boot.is_empty() && !self.namespace.is_empty() && self.started > 0;
        if !known || self.boot != this.boot || self.namespace != this.namespace {
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
            // Process 1 is always alive: if it cannot be seen, other processes are hidden too.
            Err(_) if fs::metadata("/proc/1").is_ok() => Life::Dead,
            Err(_) => Life::Unknown,
        }
    }

    /// Eight hexadecimal digits that differ between machines.
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

/// State and start time in a line of `/proc/PID/stat`. The second field is a name in parentheses, which may
/// contain any character.
fn state_of(stat: &str) -> Option<(char, u64)> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// The host's name; empty if unknown. It is the same in a forked child.
fn host() -> String {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(find_host).clone()
}

fn find_host() -> String {
    let from_kernel = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let from_program = || std::process::Command::new("uname").arg("-n").output().ok().map(|o| o.stdout);
    let from_program = || from_program().and_then(|bytes| String::from_utf8(bytes).ok());
    let name = from_kernel.or_else(|| std::env::var("COMPUTERNAME").ok()).or_else(from_program);
    name.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
impl Process {
    /// A process of this machine that has ended: its id now belongs to another process.
    pub(crate) fn ended() -> Self {
        let this = Process::this();
        Process { started: this.started - 1, ..this }
    }

    /// A process of another machine.
    pub(crate) fn elsewhere() -> Self {
        Process { host: "node7".into(), boot: "another".into(), ..Process::this() }
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
        // The same id, reused by a later process.
        assert_eq!(Process { started: this.started - 1, ..this.clone() }.life(), Life::Dead);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let process = Process { pid: child.id(), started: state_of(&stat).unwrap().1, ..this.clone() };
        assert_eq!(process.life(), Life::Alive);
        child.kill().unwrap();
        // A killed process is dead even if its parent has not waited for it.
        while process.life() == Life::Alive {
            std::thread::yield_now();
        }
        assert_eq!(process.life(), Life::Dead);
        child.wait().unwrap();
        assert_eq!(process.life(), Life::Dead);
        // Processes of another kernel or another namespace are not in this table.
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
