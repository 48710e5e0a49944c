//! Control groups, of version 1 (one tree per controller) and version 2 (one tree).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::process::Identity;
use crate::clock::{Deadline, poll};

/// Where the trees are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// The controllers a kubelet wants of version 1.
const CONTROLLERS: [&str; 8] = [
    "cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids",
];

/// Whether the machine has one tree only.
pub(crate) fn is_unified() -> bool {
    Path::new(ROOT).join("cgroup.controllers").exists()
}

/// The roots of all trees.
fn trees() -> Vec<PathBuf> {
    if is_unified() {
        return vec![PathBuf::from(ROOT)];
    }
    let Ok(entries) = fs::read_dir(ROOT) else {
        return Vec::new();
    };
    // Links like `cpu,cpuacct` lead to trees that are in the list anyway.
    entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Makes a group in every tree, with usable cpusets (children of version 1 start without any CPU) and, in version 2, with all controllers passed down.
pub(crate) fn create(group: &str) -> Result<()> {
    for tree in trees() {
        let mut path = tree.clone();
        for part in group.split('/') {
            if is_unified() {
                pass_down_controllers(&path)?;
            }
            let parent = path.clone();
            path.push(part);
            fs::create_dir_all(&path).with_context(|| format!("making the control group {}", path.display()))?;
            for file in ["cpuset.cpus", "cpuset.mems"] {
                if tree.ends_with("cpuset") {
                    let value = fs::read_to_string(parent.join(file))
                        .with_context(|| format!("reading {file} of {}", parent.display()))?;
                    fs::write(path.join(file), value)
                        .with_context(|| format!("writing {file} of {}", path.display()))?;
                }
            }
        }
    }
    Ok(())
}

/// Puts the calling process into a group of every tree that takes it.
pub(crate) fn join(group: &str) {
    for tree in trees() {
        // A tree may refuse (version 2 beside version 1, a controller that is off); the kubelet finds its own figures in the others.
        let _ = fs::write(tree.join(group).join("cgroup.procs"), "0");
    }
}

/// The processes in groups whose top name begins with `prefix`.
pub(crate) fn members(prefix: &str) -> Vec<Identity> {
    let mut found: Vec<Identity> = Vec::new();
    for top in tops(prefix) {
        for folder in folders(&top) {
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            found.extend(
                text.lines()
                    .filter_map(|line| line.parse().ok())
                    .filter_map(Identity::of),
            );
        }
    }
    found
}

/// Removes all groups whose top name begins with `prefix`; they must be without processes, and some need a moment after the last one has ended.
pub(crate) fn remove(prefix: &str) -> Result<()> {
    let gone = poll(
        Deadline::after(Duration::from_secs(10)),
        Duration::from_millis(25),
        || {
            for top in tops(prefix) {
                for folder in folders(&top) {
                    let _ = fs::remove_dir(folder);
                }
            }
            Ok::<_, anyhow::Error>(tops(prefix).is_empty().then_some(()))
        },
    )?;
    if gone.is_none() {
        bail!(
            "control groups stay busy: {:?}; run `cargo e2e down` again",
            tops(prefix)
        );
    }
    Ok(())
}

/// The top groups whose names begin with `prefix`, in all trees.
pub(crate) fn tops(prefix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for tree in trees() {
        let Ok(entries) = fs::read_dir(tree) else { continue };
        found.extend(
            entries
                .flatten()
                .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
                .map(|entry| entry.path())
                .filter(|path| path.is_dir()),
        );
    }
    found
}

/// Checks that a kubelet finds what it needs.
pub(crate) fn require() -> Result<()> {
    let missing: Vec<&str> = if is_unified() {
        let offered = fs::read_to_string(Path::new(ROOT).join("cgroup.controllers")).unwrap_or_default();
        ["cpu", "cpuset", "memory", "pids"]
            .into_iter()
            .filter(|controller| !offered.split_whitespace().any(|name| name == *controller))
            .collect()
    } else {
        CONTROLLERS
            .into_iter()
            .filter(|controller| !Path::new(ROOT).join(controller).join("cgroup.procs").exists())
            .collect()
    };
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "no control group controllers {} under {ROOT}: the level `cluster` needs them mounted and writable; `--level api` does without",
        missing.join(", ")
    )
}

/// A folder and all below it, the deepest first.
fn folders(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Ok(entries) = fs::read_dir(top) {
        for entry in entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        {
            found.extend(folders(&entry.path()));
        }
    }
    found.push(top.to_path_buf());
    found
}

/// Version 2: lets children of a group use every controller the group has.
fn pass_down_controllers(group: &Path) -> Result<()> {
    let offered = fs::read_to_string(group.join("cgroup.controllers"))
        .with_context(|| format!("reading the controllers of {}", group.display()))?;
    for controller in offered.split_whitespace() {
        // Some (rdma, misc) refuse; `require` has checked those that matter.
        let _ = fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"));
    }
    Ok(())
}
