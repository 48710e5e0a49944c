//! Removing a cluster: processes, namespaces, control groups, mounts, files, and the kernel settings a kubelet has changed.
//!
//! It needs no record: everything is found by its name. A process is killed only if the record proves it to be ours (pid and start time), or if it lives in
//! one of our namespaces or control groups.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::level::{Level, base};
use super::record::{Phase, Record};
use crate::clock::{Deadline, poll};
use crate::machine::process::Identity;
use crate::machine::{cgroups, mounts, sysctl};

/// Whether anything of a level exists.
pub(crate) fn is_there(level: Level) -> bool {
    level.record().exists()
        || level.folder().exists()
        || !level.existing_namespaces().is_empty()
        || !cgroups::tops(&level.prefix()).is_empty()
}

/// Removes a level; everything that is gone already is fine.
pub(crate) fn down(level: Level) -> Result<()> {
    let mut record = Record::read(level)?;
    if let Some(record) = &mut record {
        record.phase = Phase::Stopping;
        // Only a note; with a full disk the rest must still happen.
        let _ = record.write(level);
    }
    end_processes(level, record.as_ref())?;
    for netns in level.existing_namespaces() {
        netns.delete()?;
    }
    cgroups::remove(&level.prefix())?;
    if let Some(record) = &record {
        sysctl::restore(&record.sysctls)?;
    }
    mounts::unmount_below(&level.folder())?;
    if level.folder().exists() {
        fs::remove_dir_all(level.folder()).with_context(|| format!("removing {}", level.folder().display()))?;
    }
    for file in [level.record(), level.record().with_extension("json.new")] {
        if file.exists() {
            fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
        }
    }
    // Only if the other level is not there.
    let _ = fs::remove_dir(base());
    Ok(())
}

/// Kills until none is left: while some end, others may still be starting.
fn end_processes(level: Level, record: Option<&Record>) -> Result<()> {
    let mut killed = HashSet::new();
    let gone = poll(
        Deadline::after(Duration::from_secs(20)),
        Duration::from_millis(20),
        || {
            let alive = processes(level, record);
            for process in &alive {
                process.kill();
            }
            let none = alive.is_empty();
            killed.extend(alive);
            anyhow::Ok(none.then_some(()))
        },
    )?;
    // Their parent, mostly the machine's first process, buries them when it comes to it; a moment's patience leaves not even zombies.
    poll(
        Deadline::after(Duration::from_secs(3)),
        Duration::from_millis(20),
        || anyhow::Ok((!killed.iter().any(|process| process.is_unburied())).then_some(())),
    )?;
    if gone.is_none() {
        let pids: Vec<i32> = processes(level, record).iter().map(|process| process.pid()).collect();
        bail!(
            "processes of the cluster of level {level} do not end although they were killed: {pids:?}; run `cargo e2e down` again"
        );
    }
    Ok(())
}

/// The processes that live in a level's namespaces or control groups.
pub(crate) fn members(level: Level) -> HashSet<Identity> {
    let in_namespaces = level
        .existing_namespaces()
        .into_iter()
        .flat_map(|netns| netns.members());
    in_namespaces.chain(cgroups::members(&level.prefix())).collect()
}

/// All that are provably ours.
fn processes(level: Level, record: Option<&Record>) -> HashSet<Identity> {
    let recorded = record.into_iter().flat_map(|record| record.daemons.values().copied());
    recorded
        .filter(|process| process.is_alive())
        .chain(members(level))
        .collect()
}
