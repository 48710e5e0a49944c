//! Replicas, each behind a network of its own.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::Context;
use super::ledger::Ledger;
use crate::proxy::{Entry, Proxy, lease, watches};
use crate::scenarios::replica::{Replica, ReplicaBuilder};

/// For what happens in moments on an idle machine.
pub(super) const SOON: Duration = Duration::from_secs(20);

/// A replica and its network.
pub(super) struct Player {
    pub(super) replica: Replica,
    pub(super) network: Proxy,
}

// === impl Player ===

impl Player {
    /// Starts one.
    pub(super) fn start(context: &Context, name: &str) -> Result<Self> {
        Self::start_so(context, name, |builder| builder)
    }

    /// Starts one that differs from the others.
    pub(super) fn start_so(
        context: &Context,
        name: &str,
        differ: impl FnOnce(ReplicaBuilder<'_>) -> ReplicaBuilder<'_>,
    ) -> Result<Self> {
        Self::start_behind(context, name, Proxy::open(context.cluster.level)?, differ)
    }

    /// Starts one behind a network that has been prepared.
    pub(super) fn start_behind(
        context: &Context,
        name: &str,
        network: Proxy,
        differ: impl FnOnce(ReplicaBuilder<'_>) -> ReplicaBuilder<'_>,
    ) -> Result<Self> {
        let builder = context.replica(name).server(&network.server());
        Ok(Self {
            replica: differ(builder).start()?,
            network,
        })
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.replica.name
    }

    /// Waits until it watches the Lease, so that it hears what happens to it.
    pub(super) fn wait_until_it_watches(&mut self, context: &Context) -> Result<()> {
        let what = format!("{} watches the Lease", self.replica.name);
        let watching = |entry: &Entry| lease(&entry.target) && watches(&entry.target) && entry.status == Some(200);
        context.wait_for(&what, Duration::from_mins(1), || {
            self.replica.must_run()?;
            Ok((self.network.journal().count(watching) > 0).then_some(()))
        })
    }

    /// What its gauge says.
    pub(super) fn leads(&self, context: &Context) -> Result<bool> {
        let (status, metrics) = context.cluster.get(self.replica.metrics, "/metrics")?;
        ensure!(status == 200, "/metrics of {} says {status}", self.name());
        let value = metrics
            .lines()
            .find_map(|line| line.strip_prefix("orchestratord_is_leader "))
            .context("no metric orchestratord_is_leader")?;
        Ok(value.trim() != "0")
    }

    /// How many requests about the Lease it has made since `since`.
    pub(super) fn lease_requests(&self, since: Duration) -> usize {
        let wanted = |entry: &Entry| lease(&entry.target) && entry.first_byte >= since;
        self.network.journal().count(wanted)
    }

    /// What it sent after `since` that can change something and is not about the Lease.
    pub(super) fn mutations(&self, since: Duration) -> Vec<Entry> {
        let wanted = |entry: &Entry| entry.target.is_mutating() && !lease(&entry.target) && entry.first_byte > since;
        self.network.journal().entries(wanted)
    }

    /// Time on a processor so far.
    pub(super) fn processor_time(&self) -> Result<Duration> {
        let path = format!("/proc/{}/stat", self.replica.pid());
        let stat = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        let after_name = stat.rfind(')').map_or("", |end| &stat[end + 1..]);
        // Fields 14 and 15 of proc(5), in hundredths of a second; the state is field 3.
        let ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
        let ticks = ticks
            .sum::<Result<u64, _>>()
            .with_context(|| format!("understanding {path}"))?;
        Ok(Duration::from_millis(ticks * 10))
    }
}

/// `replica-0`, which leads, and `replica-1`, which watches.
pub(super) fn leader_and_standby(context: &Context, ledger: &Ledger<'_>) -> Result<(Player, Player)> {
    let leader = Player::start(context, "replica-0")?;
    ledger.wait_for_holder("the first replica leads", Duration::from_mins(1), |holder| {
        holder == "replica-0"
    })?;
    let mut standby = Player::start(context, "replica-1")?;
    standby.wait_until_it_watches(context)?;
    Ok((leader, standby))
}

/// Waits until exactly the gauge of the named replica is 1.
pub(super) fn wait_for_gauges(context: &Context, players: &[&Player], leader: &str) -> Result<()> {
    context.wait_for(&format!("the gauge of {leader}, and no other, is 1"), SOON, || {
        for player in players {
            if player.leads(context)? != (player.name() == leader) {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })
}
