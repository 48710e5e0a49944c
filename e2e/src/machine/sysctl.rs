//! Kernel settings of the whole machine that a kubelet changes, kept so that they can be put back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// What a kubelet writes when it starts.
const CHANGED_BY_KUBELET: [&str; 5] = [
    "vm/overcommit_memory",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
];

/// The values before a kubelet ran, by name.
pub(crate) fn save() -> BTreeMap<String, String> {
    CHANGED_BY_KUBELET
        .iter()
        .filter_map(|name| {
            Some((
                (*name).to_owned(),
                fs::read_to_string(path(name)).ok()?.trim().to_owned(),
            ))
        })
        .collect()
}

/// Puts saved values back.
pub(crate) fn restore(saved: &BTreeMap<String, String>) -> Result<()> {
    for (name, value) in saved {
        let now = fs::read_to_string(path(name)).unwrap_or_default();
        if now.trim() != value {
            fs::write(path(name), value)
                .with_context(|| format!("putting the kernel setting {name} back to {value}"))?;
        }
    }
    Ok(())
}

/// Sets one; those under `net` belong to the network namespace of the calling thread.
pub(crate) fn set(name: &str, value: &str) -> Result<()> {
    fs::write(path(name), value).with_context(|| format!("setting the kernel setting {name} to {value}"))
}

fn path(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name)
}
