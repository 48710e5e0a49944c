//! Times without an API server: no process ends, and afterwards there is a leader.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::ledger::Ledger;
use super::stage::{Player, SOON, leader_and_standby};
use super::{Body, Context, RENEW_DEADLINE, judge};
use crate::clock::{Stopwatch, pause};
use crate::proxy::{Network, Proxy};

/// After an outage there must be a leader within this time (decision W8), with what a busy machine needs.
const RECOVERY: Duration = Duration::from_secs(18);

/// An outage shorter than the renew deadline changes nothing, a longer one only until it is over.
pub(super) const SCENARIO: Body = |context| {
    let ledger = Ledger::of(context);
    let (mut leader, mut standby) = leader_and_standby(context, &ledger)?;
    ledger.wait_for_renewal("replica-0", SOON)?;
    cut(&[&leader, &standby], Duration::from_secs(6), Network::Closed);
    ledger.wait_for_renewal("replica-0", SOON)?;
    ensure!(
        ledger.acquisitions()?.len() == 1,
        "6 s without an API server cost the Lease"
    );

    for network in [Network::Closed, Network::Silent] {
        for player in [&leader, &standby] {
            player.network.set(network);
        }
        context.wait_for("the leader stops", RENEW_DEADLINE + Duration::from_secs(5), || {
            Ok((!leader.leads(context)? && !standby.leads(context)?).then_some(()))
        })?;
        pause(Duration::from_secs(8));
        for player in [&mut leader, &mut standby] {
            player.replica.must_run()?;
            lives(context, player)?;
        }
        let before = ledger.writes()?.len();
        for player in [&leader, &standby] {
            player.network.heal();
        }
        ledger.wait_for_a_leader("a replica leads after the outage", RECOVERY, before)?;
        judge::election(&ledger)?;
    }
    Ok(())
};

/// A replica starts while there is no API server for half a minute.
pub(super) const START: Body = |context| start(context, Duration::from_secs(30));

/// A replica starts while there is no API server for three minutes.
pub(super) const LONG_START: Body = |context| start(context, Duration::from_mins(3));

/// The API server itself is killed and started again, after 6 and after 30 seconds.
pub(super) const RESTART: Body = |context| {
    let ledger = Ledger::of(context);
    let (mut leader, mut standby) = leader_and_standby(context, &ledger)?;
    for seconds in [0, 30] {
        let before = ledger.acquisitions()?.len();
        let watch = Stopwatch::start();
        let mut written = 0;
        context.cluster.without_api_server(|| {
            pause(Duration::from_secs(seconds));
            written = ledger.writes()?.len();
            leader.replica.must_run()?;
            standby.replica.must_run()
        })?;
        let away = watch.elapsed();
        ledger.wait_for_a_leader("a replica leads after the outage", RECOVERY, written)?;
        if away < RENEW_DEADLINE {
            ensure!(
                ledger.acquisitions()?.len() == before,
                "{away:?} without an API server cost the Lease"
            );
        }
        leader.replica.must_run()?;
        standby.replica.must_run()?;
    }
    judge::election(&ledger)
};

fn start(context: &Context, outage: Duration) -> Result<()> {
    let ledger = Ledger::of(context);
    let network = Proxy::open(context.cluster.level)?;
    network.set(Network::Closed);
    let mut player = Player::start_behind(context, "replica-0", network, |builder| builder)?;
    pause(outage / 2);
    player.network.set(Network::Silent);
    pause(outage / 2);
    player.replica.must_run()?;
    lives(context, &player)?;
    let (status, _) = context.cluster.get(player.replica.metrics, "/readyz")?;
    ensure!(
        status == 503,
        "/readyz says {status} before the API server was ever reached"
    );
    player.network.heal();
    ledger.wait_for_acquisition("it leads after the outage", RECOVERY, 0)?;
    context.wait_for("it is ready after the outage", SOON, || {
        Ok((context.cluster.get(player.replica.metrics, "/readyz")?.0 == 200).then_some(()))
    })?;
    player.replica.must_run()
}

/// All networks fail for a while.
fn cut(players: &[&Player], time: Duration, network: Network) {
    for player in players {
        player.network.set(network);
    }
    pause(time);
    for player in players {
        player.network.heal();
    }
}

/// Liveness does not depend on the API server (decision L12).
fn lives(context: &Context, player: &Player) -> Result<()> {
    let (status, body) = context.cluster.get(player.replica.metrics, "/healthz")?;
    ensure!(status == 200, "/healthz of {} says {status}: {body}", player.name());
    Ok(())
}
