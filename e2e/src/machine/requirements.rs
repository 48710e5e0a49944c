//! What the machine must offer, checked before anything is changed, each with one message that says what to do.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use nix::unistd::geteuid;

use super::cgroups;

/// Memory that both levels together need, in KiB, with room for builds beside.
const MEMORY_KIB: u64 = 2 * 1024 * 1024;

/// Namespaces that must exist as files of a process.
const NAMESPACES: [&str; 3] = ["net", "mnt", "pid"];

/// Checks everything a level needs; `with_nodes` for the level `cluster`.
pub(crate) fn check(with_nodes: bool) -> Result<()> {
    root()?;
    let missing: Vec<&str> = NAMESPACES
        .into_iter()
        .filter(|name| !Path::new("/proc/self/ns").join(name).exists())
        .collect();
    if !missing.is_empty() {
        bail!(
            "the kernel has no namespaces of kind {}: use a kernel with CONFIG_NAMESPACES and its NET_NS, PID_NS",
            missing.join(", ")
        );
    }
    file_systems(if with_nodes { &["tmpfs", "overlay"] } else { &["tmpfs"] })?;
    memory()?;
    if with_nodes {
        cgroups::require()?;
    }
    Ok(())
}

/// Namespaces, mounts and control groups are root's.
pub(crate) fn root() -> Result<()> {
    if geteuid().is_root() {
        return Ok(());
    }
    bail!(
        "the local cluster needs root for namespaces, mounts and control groups: run the same command as root (for example with `sudo -E env PATH=$PATH`)"
    )
}

fn file_systems(wanted: &[&str]) -> Result<()> {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    for name in wanted {
        if !known.split_whitespace().any(|word| word == *name) {
            bail!(
                "the kernel does not know the file system {name}: load its module (`modprobe {name}`) or use a kernel that has it"
            );
        }
    }
    Ok(())
}

fn memory() -> Result<()> {
    let available = available_kib(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
    match available {
        Some(kib) if kib < MEMORY_KIB => bail!(
            "only {} MiB of memory are available and the cluster needs {}: end other programs first",
            kib / 1024,
            MEMORY_KIB / 1024
        ),
        _ => Ok(()),
    }
}

fn available_kib(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_in_kib() {
        assert_eq!(
            available_kib("MemTotal: 9 kB\nMemAvailable:    123456 kB\n"),
            Some(123_456)
        );
        assert_eq!(available_kib("MemTotal: 9 kB\n"), None);
    }
}
