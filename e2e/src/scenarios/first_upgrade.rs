//! Area `first_upgrade`: the operator that runs already takes no part in any election.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::context::Context;
use super::{Scenario, Sharing};
use crate::cluster::Level;

/// The scenarios of this area.
pub(super) const SCENARIOS: &[Scenario] = &[Scenario {
    name: "first_upgrade::two_operators_reconcile_at_once",
    level: Level::Api,
    sharing: Sharing::Shared,
    long: false,
    limit: Duration::from_mins(2),
    body: two_operators_reconcile_at_once,
}];

/// While a pod of another image without election has not ended, a replica is ready and holds the Lease, but no controller of it reads anything. It follows within
/// seconds once that pod has gone (decision L15).
fn two_operators_reconcile_at_once(context: &mut Context) -> Result<()> {
    let elected = json!([{ "name": "ORCHESTRATORD_LEADER_ELECTION_IDENTITY", "value": "replica-0" }]);
    for pod in [
        pod(context, "old", "localhost/older:1", &json!([])),
        pod(context, "replica-0", "localhost/orchestratord:1", &elected),
    ] {
        context.cluster.kubectl.apply(&pod.to_string())?;
    }
    let replica = context
        .replica("replica-0")
        .flag("--orchestratord-pod-selector-labels=e2e=operator")
        .start()?;
    let mut replica = context.ready(replica)?;
    let holder = context.holder(None, Duration::from_secs(30))?;
    ensure!(holder == replica.name, "the holder is {holder}");

    let account = format!("system:serviceaccount:{}:{}", context.namespace, replica.name);
    let asked_for = |resource: &str| context.audit(|event| event.user() == account && event.resource() == resource);
    context.wait_for("the replica watches what it waits for", Duration::from_secs(20), || {
        Ok(asked_for("pods")?
            .iter()
            .any(|event| event.verb() == "watch")
            .then_some(()))
    })?;
    let renewals = context.lease_writes()?.len();
    context.wait_for("it goes on renewing", Duration::from_secs(20), || {
        Ok((context.lease_writes()?.len() >= renewals + 3).then_some(()))
    })?;
    let early = asked_for("materializes")?;
    ensure!(
        early.is_empty(),
        "beside the older operator a controller asked: {}",
        early[0].line()
    );

    context.kubectl(&[
        "delete",
        "pod",
        "old",
        "--namespace",
        &context.namespace,
        "--force",
        "--grace-period=0",
    ])?;
    context.wait_for("the controllers start", Duration::from_secs(10), || {
        replica.must_run()?;
        Ok((!asked_for("materializes")?.is_empty()).then_some(()))
    })
}

/// A pod with the operator's labels. Nothing runs in it: there are no nodes.
fn pod(context: &Context, name: &str, image: &str, env: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": context.namespace, "labels": { "e2e": "operator" } },
        "spec": {
            "serviceAccountName": "replica-0",
            "automountServiceAccountToken": false,
            "containers": [{ "name": "operator", "image": image, "env": env }],
        },
    })
}
