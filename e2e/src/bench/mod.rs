//! `cargo e2e bench`: what a cluster, or an election, costs on this machine. Figures to be read by people, without bounds: a busy machine is no failure.

mod leadership;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};

use crate::cache::Cache;
use crate::clock::{Stopwatch, pause};
use crate::cluster::{self, Cluster, Level, down, up};
use crate::machine::process::Identity;
use crate::progress::{line, seconds};

/// How long idle clusters are watched.
const IDLE: Duration = Duration::from_secs(30);

/// Ticks of a processor's time a second, as `/proc` counts them on every Linux of today.
const TICKS: f64 = 100.0;

/// The arguments of `cargo e2e bench`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// What to measure.
    #[arg(value_enum, default_value = "clusters")]
    subject: Subject,
    /// For `leadership`: how many hand-overs and crashes of the operator; its peers do a third of it.
    #[arg(long, default_value_t = 30)]
    runs: usize,
    /// For `leadership`: use this program instead of building the operator.
    #[arg(long, value_name = "PROGRAM")]
    operator: Option<PathBuf>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Subject {
    /// Start, removal and idling of clusters.
    Clusters,
    /// Elections of the operator and of its peers.
    Leadership,
}

/// The cost of all processes of one name.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    processes: u32,
    resident_kib: u64,
    shared_out_kib: u64,
    ticks: u64,
}

/// Measures.
pub(crate) fn bench(options: &Options, cache: &Cache) -> Result<()> {
    match options.subject {
        Subject::Clusters => clusters(cache),
        Subject::Leadership => leadership::bench(options.runs, options.operator.as_deref(), cache),
    }
}

/// Starts both levels from nothing, watches them idle, and removes them.
fn clusters(cache: &Cache) -> Result<()> {
    for level in Level::ALL {
        ensure!(
            !Cluster::is_up(level),
            "a cluster of level {level} runs: `cargo e2e down` first, so that its start can be measured"
        );
    }
    up::tools(cache)?;
    for level in Level::ALL {
        line(&format!("--- {level}"));
        let watch = Stopwatch::start();
        up::up(level, cache)?;
        let started = watch.elapsed();
        show(&idle(level));
        let watch = Stopwatch::start();
        cluster::remove(&[level])?;
        line(&format!(
            "started in {}, removed in {}",
            seconds(started),
            seconds(watch.elapsed())
        ));
    }
    Ok(())
}

/// What the level's processes use while nothing happens, by name.
fn idle(level: Level) -> BTreeMap<String, Cost> {
    let before: Vec<(Identity, u64)> = down::members(level)
        .into_iter()
        .map(|process| (process, ticks(process).unwrap_or_default()))
        .collect();
    pause(IDLE);
    let mut costs: BTreeMap<String, Cost> = BTreeMap::new();
    for (process, ticks_before) in before {
        let Some(name) = read(process, "comm") else { continue };
        let memory = read(process, "smaps_rollup").unwrap_or_default();
        let cost = costs.entry(name.trim().to_owned()).or_default();
        cost.processes += 1;
        cost.resident_kib += field(&memory, "Rss:");
        cost.shared_out_kib += field(&memory, "Pss:");
        cost.ticks += ticks(process).unwrap_or(ticks_before) - ticks_before;
    }
    costs
}

fn show(costs: &BTreeMap<String, Cost>) {
    line(&format!(
        "{:<18} {:>3} {:>9} {:>9} {:>7}",
        "process", "n", "RSS MiB", "PSS MiB", "CPU %"
    ));
    let mut total = Cost::default();
    for (name, cost) in costs {
        row(name, cost);
        total.processes += cost.processes;
        total.resident_kib += cost.resident_kib;
        total.shared_out_kib += cost.shared_out_kib;
        total.ticks += cost.ticks;
    }
    row("together", &total);
}

#[expect(clippy::cast_precision_loss, reason = "ticks of half a minute are far below 2^52")]
fn row(name: &str, cost: &Cost) {
    let percent = cost.ticks as f64 / TICKS / IDLE.as_secs_f64() * 100.0;
    let (resident, shared_out) = (cost.resident_kib / 1024, cost.shared_out_kib / 1024);
    line(&format!(
        "{name:<18} {:>3} {resident:>9} {shared_out:>9} {percent:>7.2}",
        cost.processes
    ));
}

fn read(process: Identity, file: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{}/{file}", process.pid())).ok()
}

/// Time on a processor, in user and kernel mode.
fn ticks(process: Identity) -> Option<u64> {
    let stat = read(process, "stat")?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_by_its_name() {
        assert_eq!(field("Rss:    10 kB\nPss:     7 kB\nPss_Anon: 3 kB\n", "Pss:"), 7);
        assert_eq!(field("", "Pss:"), 0);
    }
}
