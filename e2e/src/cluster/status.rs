//! What `cargo e2e status` shows.

use anyhow::Result;

use super::level::Level;
use super::record::{Phase, Record};
use super::{down, up};
use crate::cache::Cache;
use crate::cluster::Cluster;
use crate::progress::line;

/// Prints the state of both levels; true if at least one works.
pub(crate) fn print(cache: &Cache) -> Result<bool> {
    let mut any = false;
    for level in Level::ALL {
        any |= print_level(level, cache)?;
    }
    line(&format!("cache: {}", cache.root().display()));
    Ok(any)
}

fn print_level(level: Level, cache: &Cache) -> Result<bool> {
    let Some(record) = Record::read(level)? else {
        if down::is_there(level) {
            line(&format!(
                "{level}: leftovers of an earlier start; `cargo e2e down` removes them"
            ));
        } else {
            line(&format!(
                "{level}: not running; `cargo e2e up --level {level}` starts it"
            ));
        }
        return Ok(false);
    };
    let state = match record.phase {
        Phase::Starting => "being started, or left by a start that was killed",
        Phase::Up => "up",
        Phase::Stopping => "being removed, or left by a removal that was killed",
    };
    line(&format!("{level}: {state}"));
    for (name, process) in &record.daemons {
        let state = if process.is_alive() { "running" } else { "ENDED" };
        line(&format!("  {name:<26} pid {:<8} {state}", process.pid()));
    }
    line(&format!("  network namespace          {}", level.netns().name()));
    line(&format!(
        "  logs                       {}  (`cargo e2e logs --level {level}`)",
        level.logs().display()
    ));
    line(&format!("  audit log                  {}", level.audit_log().display()));
    line(&format!(
        "  kubeconfig                 {}  (works inside the network namespace)",
        level.kubeconfig().display()
    ));
    line(&format!(
        "  kubectl                    cargo e2e kubectl --level {level} get pods -A"
    ));
    if record.phase != Phase::Up {
        return Ok(false);
    }
    let tools = up::tools(cache)?;
    if record.version != up::version(&tools) {
        line("  made of other versions of the programs than this clone has: `cargo e2e down`, then `cargo e2e up`");
    }
    let cluster = Cluster::new(level, &tools);
    if level.has_nodes() {
        for text in cluster.kubectl.run(&["get", "nodes", "-o", "wide"])?.lines() {
            line(&format!("  {text}"));
        }
    }
    Ok(record.daemons.values().all(|process| process.is_alive()))
}
