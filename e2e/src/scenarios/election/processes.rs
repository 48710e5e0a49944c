//! Processes that are killed, told to end, and started again.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::ledger::{Ledger, holder_of};
use super::stage::{Player, SOON, leader_and_standby};
use super::{Body, Context, LEASE_DURATION, TAKE_OVER, judge};
use crate::clock::{Deadline, pause, poll};
use crate::proxy::Network;
use crate::scenarios::replica::Replica;

/// How long a shutdown may take, whatever the API server does.
const SHUTDOWN: Duration = Duration::from_secs(15);

/// How soon a released Lease is taken, in microseconds: a retry period, and what a busy machine needs.
const HAND_OVER: i128 = 5_000_000;

/// Two crashes and two shutdowns.
pub(super) const FAIL_OVERS: Body = |context| fail_overs(context, 4);

/// Five of each.
pub(super) const TEN_FAIL_OVERS: Body = |context| fail_overs(context, 10);

/// SIGTERM in every moment of a life, and without an API server.
pub(super) const TERMINATIONS: Body = |context| {
    for delay in [0, 50, 100, 500] {
        let mut replica = context.replica("replica-0").start()?;
        wait_for_exec(context, replica.pid())?;
        pause(Duration::from_millis(delay));
        replica.signal(Signal::SIGTERM)?;
        let status = replica.wait(SHUTDOWN)?;
        // Before its first instruction no process can have asked to be told.
        let too_early = delay == 0 && status.signal() == Some(Signal::SIGTERM as i32);
        ensure!(
            status.code() == Some(0) || too_early,
            "SIGTERM {delay} ms after exec ended it with {status}:\n{}",
            replica.output()?
        );
    }
    for delay in [100, 500] {
        let mut replica = context
            .replica("replica-0")
            .through(&["/usr/bin/unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .start()?;
        let pid = child(context, &replica)?;
        wait_for_exec(context, pid)?;
        pause(Duration::from_millis(delay));
        kill(Pid::from_raw(pid), Signal::SIGTERM).context("sending SIGTERM to the first process")?;
        let status = replica.wait(SHUTDOWN)?;
        ensure!(
            status.code() == Some(0),
            "SIGTERM {delay} ms after exec as process 1 ended it with {status}"
        );
    }

    let ledger = Ledger::of(context);
    let released = |ledger: &Ledger<'_>| -> Result<bool> {
        Ok(ledger.writes()?.last().is_none_or(|event| holder_of(event).is_empty()))
    };
    ensure!(released(&ledger)?, "one of them kept the Lease");

    let (mut leader, mut standby) = leader_and_standby(context, &ledger)?;
    end(&mut standby.replica, "a standby")?;
    ensure!(
        ledger
            .writes()?
            .iter()
            .all(|event| ledger.replica(event) != Some("replica-1")),
        "a standby that ended wrote the Lease"
    );
    leader.network.set(Network::Silent);
    end(&mut leader.replica, "a leader without an API server")?;

    // Its own name in the Lease is free at once for the next process of that name.
    let before = ledger.writes()?.len();
    let mut leader = Player::start(context, "replica-0")?;
    ledger.wait_for_a_leader("it leads again", SOON, before)?;
    leader.network.set(Network::Silent);
    leader.replica.signal(Signal::SIGTERM)?;
    pause(Duration::from_millis(500));
    leader.replica.signal(Signal::SIGTERM)?;
    let status = leader.replica.wait(Duration::from_secs(2))?;
    ensure!(status.code() == Some(143), "a second SIGTERM ended it with {status}");

    let network = crate::proxy::Proxy::open(context.cluster.level)?;
    network.set(Network::Silent);
    let mut starting = Player::start_behind(context, "replica-1", network, |builder| builder)?;
    pause(Duration::from_secs(2));
    end(&mut starting.replica, "a replica that starts without an API server")?;
    judge::election(&ledger)
};

fn fail_overs(context: &Context, times: u32) -> Result<()> {
    let ledger = Ledger::of(context);
    let (mut leader, mut standby) = leader_and_standby(context, &ledger)?;
    for round in 0..times {
        let before = ledger.acquisitions()?.len();
        let crash = round % 2 == 0;
        if crash {
            leader.replica.signal(Signal::SIGKILL)?;
            leader.replica.wait(SHUTDOWN)?;
        } else {
            end(&mut leader.replica, "a leader")?;
        }
        let acquired = ledger.wait_for_acquisition("the standby follows", TAKE_OVER, before)?;
        ensure!(
            holder_of(&acquired) == standby.name(),
            "not the standby followed: {}",
            acquired.line()
        );
        if !crash {
            released_last(&ledger, leader.name(), acquired.received()?)?;
        }
        let name = leader.name().to_owned();
        leader = standby;
        standby = Player::start(context, &name)?;
        standby.wait_until_it_watches(context)?;
    }
    leader.replica.must_run()?;
    judge::election(&ledger)
}

/// The release was the last thing the former leader wrote, and it was followed soon.
fn released_last(ledger: &Ledger<'_>, former: &str, followed: i128) -> Result<()> {
    let writes = ledger.writes()?;
    let release = writes
        .iter()
        .rfind(|event| ledger.replica(event) == Some(former))
        .context("the former leader never wrote the Lease")?;
    ensure!(
        holder_of(release).is_empty(),
        "the last write of the Lease by the former leader was no release: {}",
        release.line()
    );
    let spec = &release.request()["spec"];
    ensure!(
        spec["leaseDurationSeconds"].is_null() && spec["renewTime"].is_null(),
        "a release clears times and duration: {}",
        release.line()
    );
    let released = release.received()?;
    for event in ledger.events()?.iter() {
        let late = ledger.replica(event) == Some(former) && event.is_write() && event.received()? > released;
        ensure!(!late, "the leader wrote after its release: {}", event.line());
    }
    let gap = followed - released;
    ensure!(
        gap < HAND_OVER && HAND_OVER < LEASE_DURATION,
        "a released Lease was taken only after {gap} µs"
    );
    Ok(())
}

/// SIGTERM ends it with status 0 within the bound of a shutdown.
fn end(replica: &mut Replica, who: &str) -> Result<()> {
    replica.signal(Signal::SIGTERM)?;
    let status = replica.wait(SHUTDOWN)?;
    ensure!(status.code() == Some(0), "{who} ended with {status}");
    Ok(())
}

/// Waits until a process has become the operator.
fn wait_for_exec(context: &Context, pid: i32) -> Result<()> {
    let program = fs::canonicalize(&context.operator).context("looking for the operator's program")?;
    let link = format!("/proc/{pid}/exe");
    let found = poll(Deadline::after(SOON), Duration::from_micros(200), || {
        Ok::<_, anyhow::Error>(fs::read_link(&link).is_ok_and(|exe| exe == program).then_some(()))
    })?;
    found.context("the operator was not started")
}

/// The process that the launcher has started.
fn child(context: &Context, launcher: &Replica) -> Result<i32> {
    let path = format!("/proc/{0}/task/{0}/children", launcher.pid());
    context.wait_for("the launcher has a child", SOON, || {
        let children = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        Ok(children.split_whitespace().next().and_then(|pid| pid.parse().ok()))
    })
}
