//! What people and other programs do to a Lease that is held.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;

use super::ledger::{Ledger, holder_of, transitions_of};
use super::stage::{SOON, leader_and_standby, wait_for_gauges};
use super::{Body, Context, LEASE_DURATION, TAKE_OVER, judge};

/// How soon a leader notices that its Lease is gone: a retry period, and what a busy machine needs. In microseconds.
const NOTICED: i128 = 8_000_000;

/// Another holder is written into the Lease, twice; it is deleted; it is deleted while its holder ends.
pub(super) const SCENARIO: Body = |context| {
    let ledger = Ledger::of(context);
    let (mut leader, mut standby) = leader_and_standby(context, &ledger)?;
    for _ in 0..2 {
        usurp(context, &ledger)?;
        if ledger.writes()?.last().map(holder_of) != Some(leader.name()) {
            std::mem::swap(&mut leader, &mut standby);
        }
        wait_for_gauges(context, &[&leader, &standby], leader.name())?;
        leader.replica.must_run()?;
        standby.replica.must_run()?;
    }
    judge::election(&ledger)?;

    let before = ledger.acquisitions()?.len();
    let deleted = delete(context, &ledger)?;
    let acquired = ledger.wait_for_acquisition("the deleted Lease is made anew", SOON, before)?;
    ensure!(
        holder_of(&acquired) == leader.name() && transitions_of(&acquired) == Some(0),
        "it was not made anew by its holder: {}",
        acquired.line()
    );
    ensure!(
        acquired.received()? - deleted <= NOTICED,
        "the holder took {} µs to notice that its Lease was deleted",
        acquired.received()? - deleted
    );
    wait_for_gauges(context, &[&leader, &standby], leader.name())?;

    delete(context, &ledger)?;
    leader.replica.signal(Signal::SIGTERM)?;
    let status = leader.replica.wait(Duration::from_secs(15))?;
    ensure!(
        status.code() == Some(0),
        "a leader whose Lease was deleted ended with {status}"
    );
    ledger.wait_for_holder("the standby follows", TAKE_OVER, |holder| holder == standby.name())?;
    standby.replica.must_run()?;
    judge::election(&ledger)
};

/// Writes a holder that runs nowhere into the Lease. It is waited out like any other.
fn usurp(context: &Context, ledger: &Ledger<'_>) -> Result<()> {
    let before = ledger.acquisitions()?;
    let transitions = before.last().and_then(transitions_of).unwrap_or_default();
    let patch = r#"{"spec":{"holderIdentity":"not-a-real-candidate"}}"#;
    let namespace = &context.namespace;
    context.kubectl(&[
        "patch",
        "lease",
        "orchestratord",
        "--namespace",
        namespace,
        "--type=merge",
        "-p",
        patch,
    ])?;
    let written = last_by_an_outsider(ledger)?;
    let acquired = ledger.wait_for_acquisition("a replica leads again", TAKE_OVER, before.len())?;
    let waited = acquired.received()? - written;
    ensure!(
        waited >= LEASE_DURATION,
        "a foreign holder was left alone for only {waited} µs"
    );
    ensure!(
        transitions_of(&acquired) > Some(transitions),
        "leaseTransitions did not grow: {}",
        acquired.line()
    );
    Ok(())
}

fn delete(context: &Context, ledger: &Ledger<'_>) -> Result<i128> {
    context.kubectl(&["delete", "lease", "orchestratord", "--namespace", &context.namespace])?;
    last_by_an_outsider(ledger)
}

/// When the last write of the Lease by somebody else arrived.
fn last_by_an_outsider(ledger: &Ledger<'_>) -> Result<i128> {
    let writes = ledger.writes()?;
    let last = writes.iter().rfind(|event| ledger.replica(event).is_none());
    last.context("the outsider's write is not in the audit log")?.received()
}
