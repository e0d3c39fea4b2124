//! Estimates how much memory work will take, before it begins.
//!
//! A network that does not fit would end the process without a message. Before a network, a batch or an
//! encoding of a size that the user chose is allocated, its size is therefore checked here, and refused with
//! a message if it does not fit. Estimates count only the large arrays: what is refused cannot work, and what
//! passes works in most cases. If the system does not report its memory, nothing is refused.

use leaklab_engine::optimiser::Optimiser;
use leaklab_engine::{Architecture, LayerKind, batch};
use std::path::{Component, Path, PathBuf};

/// Bytes of a weight.
const WEIGHT: u64 = 4;
/// Images that are processed together, on each thread.
pub(crate) const GROUP: u64 = batch::GROUP as u64;
/// Number of groups whose gradients are in memory at the same time.
const WAVE: u64 = batch::WAVE as u64;

/// Work that needs more memory than is available.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(
    "{what} needs about {} of memory, but only {} is available; {remedy}",
    text(*needed),
    text(*available)
)]
pub struct TooLarge {
    what: String,
    needed: u64,
    available: u64,
    remedy: &'static str,
}

/// A number of bytes as text.
fn text(bytes: u64) -> String {
    match bytes {
        u64::MAX => "more than 18 EB".to_owned(),
        1_000_000_000.. => format!("{:.1} GB", bytes as f64 / 1e9),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Refuses work that needs more memory than is available.
pub fn check(what: impl Into<String>, needed: u64, remedy: &'static str) -> Result<(), TooLarge> {
    check_against(what, needed, remedy, available())
}

fn check_against(
    what: impl Into<String>,
    needed: u64,
    remedy: &'static str,
    available: Option<u64>,
) -> Result<(), TooLarge> {
    match available {
        Some(available) if needed > available => {
            Err(TooLarge { what: what.into(), needed, available, remedy })
        }
        _ => Ok(()),
    }
}

/// Refuses a network if its weights and the copy of them for the kernels do not fit.
pub fn check_network(architecture: &Architecture) -> Result<(), TooLarge> {
    let weights = architecture.parameter_count() as u64;
    let what = format!("the network {architecture} with {weights} weights");
    check(what, weights.saturating_mul(2 * WEIGHT), "choose a smaller network")
}

/// Refuses to run a network if its weights and the traces of the images in progress do not fit.
pub fn check_inference(
    architecture: &Architecture,
    time_steps: usize,
    images: usize,
    threads: usize,
) -> Result<(), TooLarge> {
    let weights = architecture.parameter_count() as u64;
    let images = (images as u64).div_ceil(GROUP).min(threads as u64).saturating_mul(GROUP);
    let needed = weights.saturating_mul(2 * WEIGHT).saturating_add(traces(architecture, time_steps, images));
    let what = format!("running the network {architecture} with {weights} weights");
    check(what, needed, "choose a smaller network or fewer time_steps")
}

/// Refuses a training run that does not fit.
pub fn check_training(
    architecture: &Architecture,
    optimiser: Optimiser,
    time_steps: usize,
    batch: usize,
    threads: usize,
) -> Result<(), TooLarge> {
    let weights = architecture.parameter_count();
    let what = format!("training the network {architecture} with {weights} weights");
    let needed = training(architecture, optimiser, time_steps, batch, threads);
    check(what, needed, "choose a smaller network, fewer time_steps or a smaller batch")
}

/// Bytes that a training run takes: weights, gradients, optimiser, a checkpoint while it is written, and the
/// traces of the images in progress.
pub fn training(
    architecture: &Architecture,
    optimiser: Optimiser,
    time_steps: usize,
    batch: usize,
    threads: usize,
) -> u64 {
    let weights = architecture.parameter_count() as u64;
    let moments = optimiser.moments() as u64;
    // Weights, the copy for the kernels, and gradients. A checkpoint is copied three times while it is
    // written.
    let whole = weights.saturating_mul(WEIGHT).saturating_mul(3 + moments + 3 * (1 + moments));
    let groups = (batch as u64).div_ceil(GROUP);
    let convs = architecture.layers().iter().filter(|layer| layer.kind == LayerKind::Conv);
    let convs: u64 = convs
        .filter_map(|layer| layer.parameter)
        .map(|parameter| architecture.parameters()[parameter].len as u64)
        .sum();
    let gradients = convs.saturating_mul(WEIGHT).saturating_mul(groups.min(WAVE));
    let images = groups.min(threads as u64).saturating_mul(GROUP);
    whole.saturating_add(gradients).saturating_add(traces(architecture, time_steps, images))
}

/// Bytes of the traces of `images` images: one bit for each hidden neuron and step, and two for each input.
pub fn traces(architecture: &Architecture, time_steps: usize, images: u64) -> u64 {
    let neurons: u64 = architecture.hidden().iter().map(|layer| layer.output.neurons() as u64).sum();
    let bits = neurons.saturating_add(2 * architecture.input().neurons() as u64);
    bits.saturating_mul(time_steps as u64).div_ceil(8).saturating_mul(images)
}

/// Bytes that this process may still allocate: the smallest of the machine's free memory, the rest of the
/// limit of its control groups (of a container or a batch job) and the rest of the shell's limit
/// (`ulimit -v`). `None` if the system does not report them.
pub fn available() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| kilobytes_of(&text, "MemAvailable:"));
    let groups = read("/proc/self/cgroup").and_then(|text| left_of(&text, Path::new("/sys/fs/cgroup")));
    [machine, groups, free_address_space()].into_iter().flatten().min()
}

/// Bytes of address space that this process may still use, if the shell limits them (`ulimit -v`).
pub(crate) fn free_address_space() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    address_space_of(&limits, &std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// The bytes of a line such as `MemAvailable:   24000 kB` in a Linux system file.
pub(crate) fn kilobytes_of(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// How one version of control groups reports memory.
struct Version {
    /// Files of the limit and of what is used.
    files: [&'static str; 2],
    /// The line of `memory.stat` with the page cache that can be reclaimed, which is part of what is used.
    cache: &'static str,
}

const V1: Version =
    Version { files: ["memory.limit_in_bytes", "memory.usage_in_bytes"], cache: "total_inactive_file" };
const V2: Version = Version { files: ["memory.max", "memory.current"], cache: "inactive_file" };

/// The smallest rest of a limit of the process's control groups and of those that contain them, in bytes.
/// `groups` is the text of `/proc/self/cgroup`, with lines such as `0::/a/b` and `4:memory:/a/b`, and `root`
/// is the folder in which the groups are mounted.
fn left_of(groups: &str, root: &Path) -> Option<u64> {
    let of_line = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let (mount, version) = match controllers {
            "" => (root.to_owned(), V2),
            _ if controllers.split(',').any(|name| name == "memory") => (root.join("memory"), V1),
            _ => return None,
        };
        // A path outside of a container begins with `/..`; what is mounted is then the container's own group.
        let parts = Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)));
        let group = mount.join(parts.collect::<PathBuf>());
        let all = group.ancestors().take_while(|folder| folder.starts_with(&mount));
        all.filter_map(|folder| left_in(folder, &version)).min()
    };
    groups.lines().filter_map(of_line).min()
}

/// The rest of the limit of one control group, if it has a limit.
fn left_in(folder: &Path, version: &Version) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let [limit, used] = version.files.map(|name| read(name)?.trim().parse::<u64>().ok());
    let stat = read("memory.stat").unwrap_or_default();
    let cache = stat.lines().find_map(|line| line.strip_prefix(version.cache)?.strip_prefix(' '));
    let cache = cache.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0);
    Some(limit?.saturating_sub(used.unwrap_or(0).saturating_sub(cache)))
}

/// The soft limit of the address space in `/proc/self/limits`, minus what is used by `/proc/self/status`, in
/// bytes.
fn address_space_of(limits: &str, status: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(kilobytes_of(status, "VmSize:").unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_files_are_parsed() {
        let free = |text: &str| kilobytes_of(text, "MemAvailable:");
        assert_eq!(free("MemTotal:  100 kB\nMemAvailable:   24000 kB\nBuffers: 1 kB\n"), Some(24_576_000));
        assert_eq!(free("MemTotal:  100 kB\n"), None);
        let limits =
            "Max file size   unlimited  unlimited bytes\nMax address space   2147483648  unlimited bytes\n";
        assert_eq!(address_space_of(limits, ""), Some(2 << 30));
        assert_eq!(address_space_of(limits, "VmPeak:  9 kB\nVmSize:\t 1048576 kB\n"), Some(1 << 30));
        assert_eq!(address_space_of(limits, "VmSize: 4194304 kB\n"), Some(0));
        assert_eq!(address_space_of("Max address space   unlimited  unlimited bytes", ""), None);
        #[cfg(target_os = "linux")]
        assert!(available().unwrap() > 1 << 20);
    }

    #[test]
    fn the_limits_of_control_groups_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let write = |group: &str, name: &str, text: &str| {
            std::fs::create_dir_all(root.join(group)).unwrap();
            std::fs::write(root.join(group).join(name), text).unwrap();
        };
        // Version 2: a job of a user; the limit of the job is larger than the rest of the user's.
        write("user/job", "memory.max", "900\n");
        write("user/job", "memory.current", "100\n");
        write("user", "memory.max", "1000\n");
        write("user", "memory.current", "700\n");
        write("user", "memory.stat", "anon 500\ninactive_file 150\nactive_file 50\n");
        assert_eq!(left_of("0::/user/job\n", root), Some(1000 - (700 - 150)));
        write("user", "memory.max", "max\n");
        assert_eq!(left_of("0::/user/job\n", root), Some(800));
        assert_eq!(left_of("0::/user\n", root), None);
        write("user/job", "memory.current", "901\n");
        assert_eq!(left_of("0::/user/job/step\n", root), Some(0));
        // In a container: its own group is mounted at the root.
        write("", "memory.max", "5000");
        assert_eq!(left_of("0::/\n", root), Some(5000));
        assert_eq!(left_of("0::/../../elsewhere\n", root), Some(5000));
        // Version 1, beside a version 2 without memory.
        std::fs::remove_file(root.join("memory.max")).unwrap();
        write("memory/docker/a", "memory.limit_in_bytes", "400\n");
        write("memory/docker/a", "memory.usage_in_bytes", "250\n");
        write("memory/docker/a", "memory.stat", "inactive_file 1\ntotal_inactive_file 50\n");
        write("memory", "memory.limit_in_bytes", "9223372036854771712\n");
        let lines = "12:cpu,cpuacct:/user/job\n4:memory:/docker/a\n0::/init.scope\n";
        assert_eq!(left_of(lines, root), Some(200));
        assert_eq!(left_of("", root), None);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_a_message() {
        assert!(check_against("it", 10, "make it less", Some(10)).is_ok());
        assert!(check_against("it", u64::MAX, "make it less", None).is_ok());
        let message =
            check_against("it", 84_000_000_000, "make it less", Some(22_100_000)).unwrap_err().to_string();
        assert_eq!(message, "it needs about 84.0 GB of memory, but only 22.1 MB is available; make it less");
    }

    /// The paper's CIFAR-10 model with batch 64 is documented to take less than 0.5 GiB, so it must pass on
    /// any machine with that much memory.
    #[test]
    fn the_estimate_is_no_more_than_what_is_used() {
        let notation = "32x32-64C3-64C3-2P-128C3-128C3-2P-256C3-256C3-256C3-2s-1024FC-10o";
        let architecture = Architecture::parse(notation).unwrap();
        assert!(traces(&architecture, 100, 1) < 6 << 20);
        #[cfg(target_os = "linux")]
        {
            check_training(&architecture, Optimiser::SGD, 100, 64, 2).unwrap();
            // 671 million weights, and 65535 channels of 1024 neurons: 6.7 TB of traces at this number of
            // steps.
            let wide = Architecture::parse("32x32-65535C3-10o").unwrap();
            assert!(check_inference(&wide, 65_535, 64, 2).is_err());
            assert!(check_training(&wide, Optimiser::SGD, 65_535, 64, 2).is_err());
        }
    }
}
