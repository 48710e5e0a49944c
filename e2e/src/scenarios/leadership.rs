//! Area `leadership`: exactly one replica reconciles.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::context::Context;
use super::proxy::Proxy;
use super::replica::Replica;
use super::{Scenario, Sharing};
use crate::cluster::Level;
use crate::cluster::audit::Event;

/// For this long a silent holder's Lease must be left alone, in microseconds.
const LEASE_DURATION: i128 = 15_000_000;

/// The scenarios of this area.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "leadership::two_replicas_lead_at_once",
        level: Level::Api,
        sharing: Sharing::Shared,
        long: false,
        limit: Duration::from_mins(2),
        body: two_replicas_lead_at_once,
    },
    Scenario {
        name: "leadership::a_stopped_leader_keeps_the_lease",
        level: Level::Api,
        sharing: Sharing::Shared,
        long: false,
        limit: Duration::from_mins(2),
        body: a_stopped_leader_keeps_the_lease,
    },
    Scenario {
        name: "leadership::a_killed_leader_is_robbed_too_early_or_never_replaced",
        level: Level::Api,
        sharing: Sharing::Shared,
        long: false,
        limit: Duration::from_secs(150),
        body: a_killed_leader_is_robbed_too_early_or_never_replaced,
    },
    Scenario {
        name: "leadership::a_leader_that_is_cut_off_goes_on_or_ends",
        level: Level::Api,
        sharing: Sharing::Shared,
        long: false,
        limit: Duration::from_mins(3),
        body: a_leader_that_is_cut_off_goes_on_or_ends,
    },
];

/// Of two replicas that start at the same moment one leads, and its gauge and the Lease name the same one.
fn two_replicas_lead_at_once(context: &mut Context) -> Result<()> {
    let replicas = [context.ready_replica("replica-0")?, context.ready_replica("replica-1")?];
    let holder = context.holder(None, Duration::from_secs(30))?;
    context.wait_for("exactly the holder's gauge is 1", Duration::from_secs(20), || {
        let leading = replicas
            .iter()
            .map(|replica| is_leader(context, replica))
            .collect::<Result<Vec<bool>>>()?;
        Ok(replicas
            .iter()
            .zip(leading)
            .all(|(replica, leads)| leads == (replica.name == holder))
            .then_some(()))
    })?;
    let writers: Vec<Event> = context.lease_writes()?;
    let account = format!("system:serviceaccount:{}:{holder}", context.namespace);
    ensure!(!writers.is_empty(), "nobody wrote the Lease");
    ensure!(
        writers.iter().all(|event| event.user() == account),
        "others than the holder {holder} wrote the Lease: {:?}",
        writers.iter().map(Event::user).collect::<Vec<_>>()
    );
    Ok(())
}

/// On SIGTERM the leader gives the Lease back as the last thing it writes, and the other takes it without waiting for it to expire.
fn a_stopped_leader_keeps_the_lease(context: &mut Context) -> Result<()> {
    let (mut leader, follower) = leader_and_follower(context)?;
    leader.signal(Signal::SIGTERM)?;
    let status = leader.wait(Duration::from_secs(16))?;
    ensure!(status.code() == Some(0), "the leader ended with {status}");
    context.holder(Some(&leader.name), Duration::from_secs(30))?;

    let writes = context.lease_writes()?;
    let release = writes
        .iter()
        .position(|event| holder_of(event).is_empty())
        .context("the Lease was never released")?;
    let takeover = writes
        .get(release + 1)
        .context("the Lease was not taken after its release")?;
    ensure!(
        holder_of(takeover) == follower.name,
        "after the release the Lease went to {:?}",
        holder_of(takeover)
    );
    let transitions = |event: &Event| event.response()["spec"]["leaseTransitions"].as_i64();
    ensure!(
        transitions(takeover) == transitions(&writes[release]).map(|count| count + 1),
        "the release left {:?} transitions and the take-over {:?}",
        transitions(&writes[release]),
        transitions(takeover)
    );
    ensure!(
        takeover.received()? - writes[release].received()? < LEASE_DURATION,
        "the released Lease was waited out like a silent holder's"
    );

    let account = format!("system:serviceaccount:{}:{}", context.namespace, leader.name);
    let released = writes[release].received()?;
    let late = context.audit(|event| {
        event.user() == account && event.is_write() && event.received().is_ok_and(|time| time > released)
    })?;
    ensure!(
        late.is_empty(),
        "the leader wrote after it had released the Lease: {}",
        late[0].line()
    );
    Ok(())
}

/// After SIGKILL the Lease is left alone for its whole duration, and then taken.
fn a_killed_leader_is_robbed_too_early_or_never_replaced(context: &mut Context) -> Result<()> {
    let (mut leader, follower) = leader_and_follower(context)?;
    leader.signal(Signal::SIGKILL)?;
    leader.wait(Duration::from_secs(5))?;
    let holder = context.holder(Some(&leader.name), Duration::from_mins(1))?;
    ensure!(holder == follower.name, "the Lease went to {holder}");
    let writes = context.lease_writes()?;
    let takeover = writes
        .iter()
        .position(|event| holder_of(event) == follower.name)
        .context("the audit log shows no take-over")?;
    let last = writes[..takeover]
        .iter()
        .rfind(|event| holder_of(event) == leader.name)
        .context("the leader never held the Lease")?;
    let silence = writes[takeover].received()? - last.received()?;
    ensure!(
        silence >= LEASE_DURATION,
        "the Lease was taken {silence} µs after its last renewal"
    );
    ensure!(
        is_leader(context, &follower)?,
        "{} holds the Lease but its gauge is not 1",
        follower.name
    );
    Ok(())
}

/// A leader whose requests vanish gives up by its own clock before anybody can take the Lease, its process lives on, and it rejoins as a candidate.
fn a_leader_that_is_cut_off_goes_on_or_ends(context: &mut Context) -> Result<()> {
    let network = Proxy::open(context)?;
    let mut leader = context.ready(context.replica("replica-0").server(&network.server()).start()?)?;
    context.holder(None, Duration::from_secs(30))?;
    let follower = context.ready_replica("replica-1")?;
    network.cut();
    context.wait_for(
        "the gauge of the leader that is cut off falls to 0",
        Duration::from_secs(14),
        || Ok((!is_leader(context, &leader)?).then_some(())),
    )?;
    let lease = context.lease()?;
    ensure!(
        lease["spec"]["holderIdentity"] == leader.name,
        "the Lease was taken before its holder had given up: {lease}"
    );
    let holder = context.holder(Some(&leader.name), Duration::from_secs(30))?;
    ensure!(holder == follower.name, "the Lease went to {holder}");
    network.heal();
    context.wait_for("the former leader is a ready candidate", Duration::from_mins(1), || {
        leader.must_run()?;
        Ok((context.cluster.get(leader.metrics, "/readyz")?.0 == 200 && !is_leader(context, &leader)?).then_some(()))
    })?;
    ensure!(
        context.lease()?["spec"]["holderIdentity"] == follower.name,
        "the former leader took the Lease back"
    );
    let account = format!("system:serviceaccount:{}:{}", context.namespace, leader.name);
    let writes = context.lease_writes()?;
    let takeover = writes
        .iter()
        .find(|event| holder_of(event) == follower.name)
        .context("the audit log shows no take-over")?
        .received()?;
    let late = context.audit(|event| {
        event.user() == account && event.is_write() && event.received().is_ok_and(|time| time > takeover)
    })?;
    ensure!(
        late.is_empty(),
        "the former leader wrote after it had been replaced: {}",
        late[0].line()
    );
    Ok(())
}

/// Two ready replicas, the one that leads first.
fn leader_and_follower(context: &Context) -> Result<(Replica, Replica)> {
    let first = context.ready_replica("replica-0")?;
    let second = context.ready_replica("replica-1")?;
    let holder = context.holder(None, Duration::from_secs(30))?;
    Ok(if holder == first.name {
        (first, second)
    } else {
        (second, first)
    })
}

/// The holder in what the server stored.
fn holder_of(event: &Event) -> &str {
    event
        .response()
        .pointer("/spec/holderIdentity")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// What a replica's own gauge says.
fn is_leader(context: &Context, replica: &Replica) -> Result<bool> {
    let (status, metrics) = context.cluster.get(replica.metrics, "/metrics")?;
    ensure!(status == 200, "/metrics of {} says {status}", replica.name);
    let value = metrics
        .lines()
        .find_map(|line| line.strip_prefix("orchestratord_is_leader "))
        .context("no metric orchestratord_is_leader")?;
    Ok(value
        .trim()
        .parse::<f64>()
        .context("orchestratord_is_leader is no number")?
        > 0.5)
}
