//! Answers about the Lease that cannot be understood, or not be true.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::kit::wrong_answers;
use super::ledger::Ledger;
use super::stage::{Player, leader_and_standby};
use super::{Body, TAKE_OVER, judge};
use crate::clock::pause;
use crate::proxy::{Network, lease, watches};

/// How long each kind of answer lasts: shorter than the renew deadline, long enough for a busy loop to show.
const LASTS: Duration = Duration::from_secs(4);

/// Each wrong answer is given to a standby while the leader renews in peace, and then to the leader.
pub(super) const SCENARIO: Body = |context| {
    let ledger = Ledger::of(context);
    let (mut leader, mut standby) = leader_and_standby(context, &ledger)?;
    for (name, fault) in wrong_answers() {
        let before = ledger.acquisitions()?.len();
        standby
            .network
            .inject(|target| lease(target) && !watches(target), fault);
        // It reads anew only after its watch has ended.
        standby.network.set(Network::Closed);
        standby.network.set(Network::Open);
        in_peace(&mut standby, name)?;
        let acquisitions = ledger.acquisitions()?;
        ensure!(
            acquisitions.len() == before,
            "{name}: it made a leader: {}",
            acquisitions[before].line()
        );
    }
    for (name, fault) in wrong_answers() {
        leader.network.inject(|target| lease(target) && !watches(target), fault);
        in_peace(&mut leader, name)?;
        let before = ledger.writes()?.len();
        context.wait_for(&format!("{name}: somebody leads afterwards"), TAKE_OVER, || {
            Ok((ledger.writes()?.len() > before + 1).then_some(()))
        })?;
    }
    standby.replica.must_run()?;
    judge::election(&ledger)
};

/// While the fault lasts the replica runs on, and asks not more than once a second.
fn in_peace(player: &mut Player, name: &str) -> Result<()> {
    let since = player.network.now();
    pause(LASTS);
    player.replica.must_run().with_context(|| name.to_owned())?;
    let requests = player.lease_requests(since);
    // The first few may follow each other.
    ensure!(
        requests as u64 <= LASTS.as_secs() + 4,
        "{name}: {requests} requests about the Lease in {LASTS:?}"
    );
    player.network.heal();
    Ok(())
}
