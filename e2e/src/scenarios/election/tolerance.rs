//! Faults shorter than the renew deadline: none of them may cost the Lease.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::ledger::Ledger;
use super::stage::{SOON, leader_and_standby};
use super::{Body, Context, judge};
use crate::clock::pause;
use crate::proxy::{Fault, lease, lease_writes};

/// A series of short faults on a leader's requests about the Lease, each from a state in which the leader has just renewed.
pub(super) const SCENARIO: Body = |context| {
    let ledger = Ledger::of(context);
    let (mut leader, mut standby) = leader_and_standby(context, &ledger)?;
    let network = &leader.network;
    let seconds = Duration::from_secs;

    let step = |what: &str, fault: &dyn Fn()| -> Result<()> {
        let before = leader.network.now();
        fault();
        leader.network.heal();
        ledger
            .wait_for_renewal("replica-0", SOON)
            .with_context(|| format!("after {what}"))?;
        let acquisitions = ledger.acquisitions()?;
        ensure!(
            acquisitions.len() == 1,
            "{what} cost the Lease: {}",
            acquisitions[1].line()
        );
        let lasted = leader.network.now().saturating_sub(before);
        let requests = leader.lease_requests(before);
        ensure!(
            requests as u64 <= 8 + 2 * lasted.as_secs(),
            "{what}: {requests} requests about the Lease in {lasted:?}"
        );
        Ok(())
    };

    step("a request that was swallowed", &|| {
        network.inject_times(1, lease_writes, Fault::Swallow);
        pause(seconds(6));
    })?;
    step("resets of all connections for 6 s", &|| {
        network.inject(lease, Fault::Reset);
        pause(seconds(6));
    })?;
    step("three renewals delayed by 4 s each", &|| {
        network.inject_times(3, lease_writes, Fault::Delay(seconds(4)));
        pause(seconds(13));
    })?;
    step("a renewal delayed by 6 s", &|| {
        network.inject_times(1, lease_writes, Fault::Delay(seconds(6)));
        pause(seconds(8));
    })?;
    step("429 for 7 s with the advice to come back in 30", &|| {
        network.inject(lease, Fault::status(429, "TooManyRequests", &["Retry-After: 30"]));
        pause(seconds(7));
    })?;
    for (status, reason) in [(500, "InternalError"), (503, "ServiceUnavailable"), (504, "Timeout")] {
        step(&format!("{status} for 7 s"), &|| {
            network.inject(lease, Fault::status(status, reason, &[]));
            pause(seconds(7));
        })?;
    }
    step("three lost answers", &|| {
        network.inject_times(3, lease_writes, Fault::DropAnswer);
        pause(seconds(7));
    })?;
    let bump = bump(context);
    step("three conflicts with edits of the metadata", &|| {
        network.inject_times(3, lease_writes, Fault::Meanwhile(Arc::clone(&bump)));
        pause(seconds(7));
    })?;

    leader.replica.must_run()?;
    standby.replica.must_run()?;
    judge::election(&ledger)
};

/// For three minutes each request about the Lease takes 3 s.
pub(super) const SLOW: Body = |context| {
    let ledger = Ledger::of(context);
    let (leader, _standby) = leader_and_standby(context, &ledger)?;
    leader.network.inject(lease, Fault::Delay(Duration::from_secs(3)));
    pause(Duration::from_mins(3));
    ledger.wait_for_renewal("replica-0", SOON)?;
    let acquisitions = ledger.acquisitions()?;
    ensure!(
        acquisitions.len() == 1,
        "a slow API server cost the Lease: {}",
        acquisitions[1].line()
    );
    judge::election(&ledger)
};

/// Moves the version of the Lease on without touching its specification.
fn bump(context: &Context) -> Arc<dyn Fn() + Send + Sync> {
    let (kubectl, namespace) = (context.cluster.kubectl.clone(), context.namespace.clone());
    let count = std::sync::atomic::AtomicU32::new(0);
    Arc::new(move || {
        let value = format!("test/bump={}", count.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        // If it fails there is no conflict, and the renewal passes.
        let _ = kubectl.run(&[
            "annotate",
            "lease",
            "orchestratord",
            "--namespace",
            &namespace,
            "--overwrite",
            &value,
        ]);
    })
}
