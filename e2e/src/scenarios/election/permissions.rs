//! The right to the Lease is missing, or is taken away.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::ledger::Ledger;
use super::stage::Player;
use super::{Body, Context, RENEW_DEADLINE, judge};
use crate::clock::pause;

/// Within this time after the right was granted the replica must lead: five seconds, and what a busy machine needs.
const GRANTED: Duration = Duration::from_secs(8);

/// The right is missing when a replica starts, is granted, taken away while it leads, and granted again.
pub(super) const SCENARIO: Body = |context| {
    let ledger = Ledger::of(context);
    let binding = revoke(context)?;
    let mut player = Player::start(context, "replica-0")?;
    context.wait_for("the replica is refused", Duration::from_mins(1), || {
        player.replica.must_run()?;
        let requests = ledger.lease_requests()?;
        Ok(requests.iter().any(|event| event.code() == 403).then_some(()))
    })?;
    wait_without_permission(&mut player, Duration::from_secs(6))?;
    ensure!(ledger.writes()?.is_empty(), "the Lease was written without permission");
    context.cluster.kubectl.apply(&binding.to_string())?;
    ledger.wait_for_acquisition("it leads once it may", GRANTED, 0)?;

    revoke(context)?;
    context.wait_for("it stops", RENEW_DEADLINE + Duration::from_secs(5), || {
        Ok((!player.leads(context)?).then_some(()))
    })?;
    wait_without_permission(&mut player, Duration::from_secs(6))?;
    let before = ledger.writes()?.len();
    context.cluster.kubectl.apply(&binding.to_string())?;
    ledger.wait_for_a_leader("it leads again once it may", GRANTED, before)?;
    player.replica.must_run()?;
    judge::election(&ledger)
};

/// It goes on trying, not more than about once a second.
fn wait_without_permission(player: &mut Player, time: Duration) -> Result<()> {
    let since = player.network.now();
    pause(time);
    player.replica.must_run()?;
    let requests = player.lease_requests(since) as u64;
    ensure!(
        (1..=time.as_secs() + 2).contains(&requests),
        "{requests} requests about the Lease in {time:?} without permission"
    );
    Ok(())
}

/// Takes the right away; gives what brings it back.
fn revoke(context: &Context) -> Result<Value> {
    let namespace = &context.namespace;
    let list = |kind: &str| -> Result<Vec<Value>> {
        let list = context.json(&["get", kind, "--namespace", namespace])?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    };
    let (roles, bindings) = (list("roles")?, list("rolebindings")?);
    let grants = |role: &Value| role["rules"].to_string().contains("\"leases\"");
    let grants: Vec<&Value> = roles.iter().filter(|role| grants(role)).collect();
    let binding = bindings
        .iter()
        .find(|binding| {
            let role = &binding["roleRef"]["name"];
            grants.iter().any(|granting| granting["metadata"]["name"] == *role)
        })
        .context("the chart binds no Role for Leases")?;
    let name = binding["metadata"]["name"].as_str().unwrap_or_default();
    context.kubectl(&["delete", "rolebinding", name, "--namespace", namespace])?;
    let mut binding = binding.clone();
    let metadata = binding["metadata"]
        .as_object_mut()
        .context("a RoleBinding without metadata")?;
    for field in ["resourceVersion", "uid", "creationTimestamp", "managedFields"] {
        metadata.remove(field);
    }
    Ok(binding)
}
