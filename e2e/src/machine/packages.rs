//! Debian packages the cluster is made of.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::clock::Deadline;
use crate::command::run;
use crate::progress;

/// One package and a file that shows it is installed.
type Package = (&'static str, &'static str);

/// What both levels need.
const BASE: &[Package] = &[("iproute2", "/sbin/ip")];

/// What nodes need besides. `catatonit` is the pause image's only program.
const NODES: &[Package] = &[
    ("containerd", "/usr/bin/containerd"),
    ("runc", "/usr/sbin/runc"),
    ("containernetworking-plugins", "/usr/lib/cni/ptp"),
    ("nftables", "/usr/sbin/nft"),
    ("catatonit", "/usr/bin/catatonit"),
    ("procps", "/usr/bin/ps"),
];

/// Installs what is missing. The package lists are refreshed once, and only if something is.
pub(crate) fn install_missing(with_nodes: bool) -> Result<()> {
    let wanted = BASE.iter().chain(if with_nodes { NODES } else { &[] });
    let missing: Vec<&str> = wanted
        .filter(|(_, file)| !Path::new(file).exists())
        .map(|(name, _)| *name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if !Path::new("/usr/bin/apt-get").exists() {
        bail!(
            "this machine lacks {names} and has no apt-get: install them with its own package manager (names are those of Debian)"
        );
    }
    progress::line(&format!("         installing Debian packages: {names}"));
    let deadline = Deadline::after(Duration::from_mins(10));
    run(Command::new("apt-get").arg("update"), deadline)
        .with_context(|| format!("refreshing the package lists to install {names}"))?;
    run(
        Command::new("apt-get")
            .args(["install", "-y", "--no-install-recommends"])
            .args(&missing)
            .env("DEBIAN_FRONTEND", "noninteractive"),
        deadline,
    )
    .with_context(|| format!("installing {names}"))?;
    Ok(())
}
