//! A leader that is stopped for longer than its Lease lasts, and wakes up in the middle of its work.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::ledger::{Ledger, holder_of};
use super::stage::{Player, SOON, leader_and_standby};
use super::{Body, Context, TAKE_OVER, judge};
use crate::clock::{Deadline, Stopwatch, pause, poll};
use crate::proxy::{lease, watches};

/// How long it is stopped.
const STOPPED: Duration = Duration::from_secs(25);

/// How long a leader that has woken up is observed.
const OBSERVED: Duration = Duration::from_secs(6);

/// How many resources are made around the beginning of a pause.
const WORK: u32 = 40;

/// After so many writes about them the leader is stopped.
const BEGUN: usize = 12;

/// Once.
pub(super) const ONCE: Body = |context| wake_ups(context, 1);

/// Twenty times.
pub(super) const TWENTY_TIMES: Body = |context| wake_ups(context, 20);

fn wake_ups(context: &Context, times: u32) -> Result<()> {
    let ledger = Ledger::of(context);
    let (mut leader, mut standby) = leader_and_standby(context, &ledger)?;
    // Reconciling begins with the definitions, which the first replica has registered.
    let result = (0..times).try_for_each(|round| {
        wake_up(context, &ledger, &leader, &standby, round).with_context(|| format!("pause {}", round + 1))?;
        std::mem::swap(&mut leader, &mut standby);
        leader.replica.must_run()?;
        standby.replica.must_run()
    });
    // The leader removes what belongs to the resources while it still runs.
    let removed = context.kubectl(&[
        "delete",
        "materializes.materialize.cloud",
        "--all",
        "--namespace",
        &context.namespace,
        "--timeout=60s",
    ]);
    result?;
    removed?;
    judge::election(&ledger)
}

/// The leader is stopped while it works, finds more work when it wakes up, and must do nothing of it.
fn wake_up(context: &Context, ledger: &Ledger<'_>, leader: &Player, standby: &Player, round: u32) -> Result<()> {
    let before = ledger.acquisitions()?.len();
    let begun = leader.network.now();
    let stopped = thread::scope(|scope| -> Result<Stopwatch> {
        // It is stopped in the midst of this; the rest is what it finds when it wakes up.
        let working = scope.spawn(|| work(context, &format!("round-{round}")));
        let at_work = poll(Deadline::after(SOON), Duration::from_millis(1), || {
            anyhow::Ok((leader.mutations(begun).len() > BEGUN).then_some(()))
        })?;
        at_work.context("the leader does nothing")?;
        leader.replica.signal(Signal::SIGSTOP)?;
        let stopped = Stopwatch::start();
        working.join().map_err(|_| anyhow!("a panic"))??;
        Ok(stopped)
    })?;
    context.wait_for("the leader has stopped", SOON, || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", leader.replica.pid()))?;
        Ok(stat.contains(") T ").then_some(()))
    })?;
    let standby_begun = standby.network.now();
    let acquired = ledger.wait_for_acquisition("the standby follows", TAKE_OVER, before)?;
    ensure!(
        holder_of(&acquired) == standby.name(),
        "not the standby followed: {}",
        acquired.line()
    );
    context.wait_for("the standby does the work", SOON, || {
        Ok((!standby.mutations(standby_begun).is_empty()).then_some(()))
    })?;
    pause(STOPPED.saturating_sub(stopped.elapsed()));
    let woken = leader.network.now();
    leader.replica.signal(Signal::SIGCONT)?;
    pause(OBSERVED);
    // The Lease itself it may ask for again, by an update that is refused if another has it; `judge` looks at those that are not.
    let wrong = leader.mutations(woken);
    ensure!(
        wrong.is_empty(),
        "the former leader wrote after it had woken up at {woken:?}: {wrong:#?}"
    );
    context.wait_for("the former leader is a candidate again", SOON, || {
        let watching = |entry: &crate::proxy::Entry| {
            lease(&entry.target) && watches(&entry.target) && entry.status == Some(200) && entry.first_byte > woken
        };
        Ok((leader.network.journal().count(watching) > 0).then_some(()))
    })
}

/// Makes resources on which a leader has something to write.
fn work(context: &Context, name: &str) -> Result<()> {
    let resources: Vec<Value> = (0..WORK)
        .map(|index| {
            json!({
                "apiVersion": "materialize.cloud/v1alpha1",
                "kind": "Materialize",
                "metadata": { "name": format!("{name}-{index}"), "namespace": context.namespace },
                "spec": { "environmentdImageRef": "materialize/environmentd:v26.0.0", "backendSecretName": "missing" },
            })
        })
        .collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": resources });
    context.cluster.kubectl.apply(&list.to_string())
}
