//! Elections that are watched, handed over and robbed of their leaders. All times come from the API server's audit log, but those of signals and starts.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;

use super::figures::Figures;
use crate::clock::{pause, wall_clock};
use crate::scenarios::context::Context;
use crate::scenarios::election::ledger::{Ledger, holder_of};
use crate::scenarios::replica::Replica;

/// How long an idle election is watched.
const QUIET: Duration = Duration::from_mins(1);

/// For whatever is waited for.
const SOON: Duration = Duration::from_mins(1);

/// After its first look at the Lease a replica has settled.
const SETTLED: Duration = Duration::from_millis(1500);

/// An idle leader and an idle standby: requests, processor time, memory; and before that the time from start to leader.
pub(super) fn quiet(context: &Context, figures: &mut Figures) -> Result<()> {
    let ledger = Ledger::of(context);
    let started = wall_clock();
    let leader = context.replica("replica-0").start()?;
    let acquired = ledger.wait_for_acquisition("the first replica leads", SOON, 0)?;
    figures.start_to_leader.push(seconds(acquired.received()? - started));
    let standby = standby(context, &ledger, "replica-1")?;
    // What starts a replica causes is not idling.
    pause(Duration::from_secs(5));
    let already: HashSet<String> = ledger.events()?.iter().map(|event| event.id().to_owned()).collect();
    let before = ticks(&leader)? + ticks(&standby)?;
    pause(QUIET);
    let after = ticks(&leader)? + ticks(&standby)?;
    let mut seen = HashSet::new();
    let mut requests: BTreeMap<String, u64> = BTreeMap::new();
    for event in ledger.events()?.iter() {
        if ledger.replica(event).is_some() && !already.contains(event.id()) && seen.insert(event.id().to_owned()) {
            let of_what = if event.resource() == "leases" {
                "leases"
            } else {
                "others"
            };
            *requests.entry(format!("{of_what} {}", event.verb())).or_default() += 1;
        }
    }
    figures.requests_a_minute = requests;
    // Hundredths of a second in a minute, for two processes.
    figures.cpu_seconds_an_hour = f64::from(after - before) / 100.0 * 60.0 / 2.0;
    figures.leader_resident_mib = resident_mib(&leader)?;
    figures.standby_resident_mib = resident_mib(&standby)?;
    Ok(())
}

/// The leader ends in good order, again and again.
pub(super) fn hand_overs(context: &Context, runs: usize, figures: &mut Figures) -> Result<()> {
    let ledger = Ledger::of(context);
    // Whoever idled before has been killed; its Lease must expire first.
    let before = ledger.writes()?.len();
    let mut leader = context.replica("replica-0").start()?;
    ledger.wait_for_a_leader("the first replica leads", SOON, before)?;
    let mut waiting = standby(context, &ledger, "replica-1")?;
    for _ in 0..runs {
        let before = ledger.acquisitions()?.len();
        let told = wall_clock();
        leader.signal(Signal::SIGTERM)?;
        let acquired = ledger.wait_for_acquisition("the standby follows", SOON, before)?;
        let writes = ledger.writes()?;
        let release = writes
            .iter()
            .rfind(|event| ledger.replica(event).is_some() && holder_of(event).is_empty())
            .context("the Lease was never released")?;
        figures
            .graceful_hand_over
            .push(seconds(acquired.answered()? - release.answered()?));
        let first_work = context.wait_for("the next leader begins its work", Duration::from_secs(10), || {
            let events = ledger.events()?;
            let mut work = events.iter().filter(|event| {
                ledger.replica(event) == Some(waiting.name.as_str())
                    && event.resource() == "materializes"
                    && event.received().is_ok_and(|received| received > told)
            });
            Ok(work.next().map(crate::cluster::audit::Event::received))
        });
        // Peers have no work.
        if let Ok(received) = first_work {
            figures.signal_to_work.push(seconds(received? - told));
        }
        leader.wait(SOON)?;
        let name = leader.name.clone();
        leader = std::mem::replace(&mut waiting, standby(context, &ledger, &name)?);
    }
    Ok(())
}

/// The leader is killed, again and again; gives how long after its last renewal another had the Lease.
pub(super) fn crashes(context: &Context, runs: usize) -> Result<Vec<f64>> {
    let ledger = Ledger::of(context);
    let mut leader = context.replica("replica-0").start()?;
    ledger.wait_for_acquisition("the first replica leads", SOON, 0)?;
    let mut waiting = standby(context, &ledger, "replica-1")?;
    let mut taken = Vec::new();
    for _ in 0..runs {
        let before = ledger.acquisitions()?.len();
        leader.signal(Signal::SIGKILL)?;
        let acquired = ledger.wait_for_acquisition("the standby follows", SOON, before)?;
        let writes = ledger.writes()?;
        let last = writes
            .iter()
            .rfind(|event| holder_of(event) == leader.name)
            .context("the leader never held the Lease")?;
        taken.push(seconds(acquired.received()? - last.received()?));
        leader.wait(SOON)?;
        let name = leader.name.clone();
        leader = std::mem::replace(&mut waiting, standby(context, &ledger, &name)?);
    }
    Ok(taken)
}

/// Starts a replica and waits until it waits.
fn standby(context: &Context, ledger: &Ledger<'_>, name: &str) -> Result<Replica> {
    let looks = || -> Result<usize> {
        let requests = ledger.lease_requests()?;
        Ok(requests
            .iter()
            .filter(|event| ledger.replica(event) == Some(name) && !event.is_write())
            .count())
    };
    let before = looks()?;
    let mut replica = context.replica(name).start()?;
    context.wait_for(&format!("{name} looks at the Lease"), SOON, || {
        replica.must_run()?;
        Ok((looks()? > before).then_some(()))
    })?;
    pause(SETTLED);
    Ok(replica)
}

/// Time on a processor so far, in hundredths of a second.
fn ticks(replica: &Replica) -> Result<u32> {
    let path = format!("/proc/{}/stat", replica.pid());
    let stat = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let after_name = stat.rfind(')').map_or("", |end| &stat[end + 1..]);
    // Fields 14 and 15 of proc(5); the state is field 3.
    let ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
    ticks
        .sum::<Result<u32, _>>()
        .with_context(|| format!("understanding {path}"))
}

fn resident_mib(replica: &Replica) -> Result<f64> {
    let path = format!("/proc/{}/status", replica.pid());
    let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    Ok(kib.with_context(|| format!("{path} has no VmRSS"))? / 1024.0)
}

#[expect(clippy::cast_precision_loss, reason = "an hour has fewer microseconds than 2^52")]
fn seconds(microseconds: i128) -> f64 {
    microseconds as f64 / 1e6
}
