//! Mounts of this program's own mount namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::clock::{Deadline, poll};

/// Mounts a tmpfs of at most `mebibytes`.
pub(crate) fn mount_tmpfs(at: &Path, mebibytes: u64) -> Result<()> {
    let options = format!("mode=755,size={mebibytes}m");
    mount(
        Some("orchestratord-e2e"),
        at,
        Some("tmpfs"),
        MsFlags::MS_NOSUID,
        Some(options.as_str()),
    )
    .with_context(|| format!("mounting a tmpfs of {mebibytes} MiB on {}", at.display()))
}

/// Binds one folder or file over another.
pub(crate) fn bind(what: &Path, over: &Path) -> Result<()> {
    mount(Some(what), over, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        .with_context(|| format!("binding {} over {}", what.display(), over.display()))
}

/// Changes how mounts below `/` are shared with other mount namespaces.
pub(crate) fn set_propagation(flag: MsFlags) -> Result<()> {
    mount(None::<&str>, "/", None::<&str>, flag | MsFlags::MS_REC, None::<&str>)
        .context("changing the propagation of mounts")
}

/// Whether something is mounted exactly here.
pub(crate) fn is_mount_point(path: &Path) -> bool {
    below(path).iter().any(|point| point == path)
}

/// Every mount point at or below a folder, the deepest first.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut found: Vec<PathBuf> = points(&table).filter(|point| point.starts_with(folder)).collect();
    found.reverse();
    found
}

/// Unmounts everything at or below a folder. A mount that stays busy for two seconds (a shell sits in it) is detached: it goes away with its last user.
pub(crate) fn unmount_below(folder: &Path) -> Result<()> {
    for point in below(folder) {
        let gone = poll(
            Deadline::after(Duration::from_secs(2)),
            Duration::from_millis(50),
            || Ok::<_, anyhow::Error>(umount2(&point, MntFlags::empty()).is_ok().then_some(())),
        )?;
        if gone.is_none() {
            umount2(&point, MntFlags::MNT_DETACH).with_context(|| format!("unmounting {}", point.display()))?;
        }
    }
    Ok(())
}

/// The mount points of a mount table; blanks in names stand there as `\040`.
fn points(table: &str) -> impl Iterator<Item = PathBuf> + '_ {
    table
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .map(|point| PathBuf::from(point.replace("\\040", " ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_the_second_column_with_blanks_decoded() {
        let table = "proc /proc proc rw 0 0\ntmpfs /a\\040b tmpfs rw 0 0\n";
        assert_eq!(
            points(table).collect::<Vec<_>>(),
            [PathBuf::from("/proc"), PathBuf::from("/a b")]
        );
    }
}
