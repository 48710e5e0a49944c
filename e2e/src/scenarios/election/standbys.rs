//! Faults on the side of a replica that waits: it must not miss its turn, and it must not hammer the API server.

use std::time::Duration;

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use super::ledger::{Ledger, holder_of};
use super::stage::{Player, SOON, leader_and_standby};
use super::{Body, TAKE_OVER, judge};
use crate::clock::pause;
use crate::proxy::{Fault, Network, lease, watches};

/// How long a process may take to end.
const END: Duration = Duration::from_secs(15);

/// Watches that cannot be resumed, a watch that has died without a word, requests that are never answered.
pub(super) const SCENARIO: Body = |context| {
    let ledger = Ledger::of(context);
    let (leader, standby) = leader_and_standby(context, &ledger)?;

    standby.network.inject(watches, Fault::status(410, "Expired", &[]));
    standby.network.set(Network::Closed);
    standby.network.set(Network::Open);
    let since = standby.network.now();
    pause(Duration::from_secs(10));
    let requests = standby.lease_requests(since);
    ensure!(
        requests <= 15,
        "{requests} requests about the Lease in 10 s of refused watches"
    );
    follow(&ledger, leader, &standby)?;
    standby.network.heal();

    let (leader, mut standby) = (standby, Player::start(context, "replica-0")?);
    standby.wait_until_it_watches(context)?;
    standby.network.inject(watches, Fault::Mute);
    follow(&ledger, leader, &standby)?;
    standby.network.heal();

    let mut leader = standby;
    let mut deaf = Player::start(context, "replica-1")?;
    let mut other = Player::start(context, "replica-2")?;
    deaf.wait_until_it_watches(context)?;
    other.wait_until_it_watches(context)?;
    deaf.network.inject(lease, Fault::Swallow);
    let before = ledger.acquisitions()?.len();
    leader.replica.signal(Signal::SIGKILL)?;
    leader.replica.wait(END)?;
    let acquired = ledger.wait_for_acquisition("the standby that hears follows", TAKE_OVER, before)?;
    ensure!(
        holder_of(&acquired) == other.name(),
        "a replica whose requests are swallowed follows: {}",
        acquired.line()
    );
    deaf.network.heal();
    let since = deaf.network.now();
    context.wait_for("the deaf standby watches again", TAKE_OVER, || {
        let hears = |entry: &crate::proxy::Entry| {
            lease(&entry.target) && watches(&entry.target) && entry.status == Some(200) && entry.first_byte > since
        };
        Ok((deaf.network.journal().count(hears) > 0).then_some(()))
    })?;
    deaf.replica.must_run()?;
    other.replica.must_run()?;
    judge::election(&ledger)
};

/// For a minute every request of a standby about the Lease fails.
pub(super) const FAILING: Body = |context| {
    let ledger = Ledger::of(context);
    let (_leader, mut standby) = leader_and_standby(context, &ledger)?;
    standby.network.inject(lease, Fault::status(500, "InternalError", &[]));
    standby.network.set(Network::Closed);
    standby.network.set(Network::Open);
    let (since, processor_time) = (standby.network.now(), standby.processor_time()?);
    pause(Duration::from_mins(1));
    let requests = standby.lease_requests(since);
    ensure!(
        requests <= 60,
        "{requests} requests about the Lease in a minute of failures"
    );
    let lists = standby.network.journal().count(|entry| {
        let target = &entry.target;
        lease(target) && target.uri.contains("leases?") && !watches(target) && entry.first_byte >= since
    });
    ensure!(lists <= 15, "{lists} lists of the Lease in a minute of failures");
    let used = standby.processor_time()?.saturating_sub(processor_time);
    ensure!(
        used < Duration::from_secs(2),
        "{used:?} of processor time in a minute of failures"
    );
    standby.replica.must_run()?;
    standby.network.heal();
    ledger.wait_for_renewal("replica-0", SOON)?;
    judge::election(&ledger)
};

/// The leader ends in good order, and the standby follows, whatever it suffers from.
fn follow(ledger: &Ledger<'_>, mut leader: Player, standby: &Player) -> Result<()> {
    let before = ledger.acquisitions()?.len();
    leader.replica.signal(Signal::SIGTERM)?;
    let status = leader.replica.wait(END)?;
    ensure!(status.code() == Some(0), "the leader ended with {status}");
    let acquired = ledger.wait_for_acquisition("the standby follows", TAKE_OVER, before)?;
    ensure!(
        holder_of(&acquired) == standby.name(),
        "not the standby followed: {}",
        acquired.line()
    );
    Ok(())
}
