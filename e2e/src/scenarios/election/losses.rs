//! Faults that last longer than the renew deadline: the leader must stop in time, another must follow, and the former leader must be able to lead again.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::ledger::{Ledger, holder_of};
use super::stage::{Player, leader_and_standby};
use super::{Body, Context, RENEW_DEADLINE, TAKE_OVER, judge};
use crate::proxy::{Fault, lease};

/// What a gauge may need to be seen after the deadline on a busy machine; the Lease cannot be taken before five seconds have passed.
const SLACK: Duration = Duration::from_secs(4);

/// No answer to requests about the Lease, then answers that come too late to count.
pub(super) const SCENARIO: Body = |context| {
    let ledger = Ledger::of(context);
    let (mut leader, mut standby) = leader_and_standby(context, &ledger)?;
    lose(context, &ledger, &leader, &standby, &Fault::Swallow)?;
    leader.wait_until_it_watches(context)?;
    lose(
        context,
        &ledger,
        &standby,
        &leader,
        &Fault::DelayAnswer(Duration::from_secs(12)),
    )?;
    for player in [&mut leader, &mut standby] {
        player.replica.must_run()?;
    }
    judge::election(&ledger)
};

/// Each replica loses the Lease three times; each time there is a leader afterwards.
pub(super) const ROUNDS: Body = |context| {
    let ledger = Ledger::of(context);
    let (mut leader, mut standby) = leader_and_standby(context, &ledger)?;
    for _ in 0..6 {
        lose(context, &ledger, &leader, &standby, &Fault::Swallow)?;
        std::mem::swap(&mut leader, &mut standby);
        leader.replica.must_run()?;
        standby.replica.must_run()?;
    }
    judge::election(&ledger)
};

/// The leader's requests about the Lease suffer the fault until it has stopped and the other has followed.
fn lose(context: &Context, ledger: &Ledger<'_>, leader: &Player, standby: &Player, fault: &Fault) -> Result<()> {
    let before = ledger.acquisitions()?.len();
    ledger.wait_for_renewal(leader.name(), RENEW_DEADLINE)?;
    leader.network.inject(lease, fault.clone());
    let what = format!("{}, which gets no answers, stops", leader.name());
    context.wait_for(&what, RENEW_DEADLINE + SLACK, || {
        Ok((!leader.leads(context)?).then_some(()))
    })?;
    ensure!(
        ledger.acquisitions()?.len() == before,
        "the Lease was taken before its holder had stopped"
    );
    let acquired = ledger.wait_for_acquisition("the standby follows", TAKE_OVER, before)?;
    ensure!(
        holder_of(&acquired) == standby.name(),
        "not the standby followed: {}",
        acquired.line()
    );
    leader.network.heal();
    Ok(())
}
