//! Two processes with one identity.

use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::ledger::Ledger;
use super::stage::{Player, SOON};
use super::{Body, judge};
use crate::clock::pause;
use crate::cluster::audit::Event;

/// The second takes the Lease of its namesake at once, as after a restart. The first must stop when it notices, and say so.
pub(super) const SCENARIO: Body = |context| {
    let ledger = Ledger::of(context);
    let mut first = Player::start(context, "replica-0")?;
    ledger.wait_for_acquisition("the first leads", Duration::from_mins(1), 0)?;
    let mut second = Player::start_so(context, "replica-1", |builder| {
        builder.flag("--leader-election-identity=replica-0")
    })?;
    let by = |event: &Event, name: &str| ledger.replica(event) == Some(name);
    context.wait_for("the second takes the Lease of its namesake", SOON, || {
        Ok(ledger
            .acquisitions()?
            .iter()
            .any(|event| by(event, "replica-1"))
            .then_some(()))
    })?;
    context.wait_for("the first stops", Duration::from_secs(5), || {
        Ok((!first.leads(context)?).then_some(()))
    })?;
    pause(Duration::from_secs(6));
    let writes = ledger.writes()?;
    let taken = writes
        .iter()
        .position(|event| by(event, "replica-1"))
        .context("the second never wrote")?;
    let late: Vec<&Event> = writes[taken..].iter().filter(|event| by(event, "replica-0")).collect();
    ensure!(
        late.is_empty(),
        "the first wrote the Lease after its namesake had taken it: {}",
        late[0].line()
    );
    ensure!(second.leads(context)?, "neither of the two leads");
    first.replica.must_run()?;
    second.replica.must_run()?;
    // Only the log can tell a person.
    let output = first.replica.output()?;
    ensure!(
        output
            .lines()
            .any(|line| line.contains("ERROR") && line.contains("uses the same identity")),
        "the first did not say that another process uses its identity:\n{}",
        crate::command::tail(&output, 5)
    );
    judge::election(&ledger)
};
