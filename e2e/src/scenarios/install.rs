//! Area `install`: the operator as pods, from its image and its chart.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::context::Context;
use super::{Scenario, Sharing};
use crate::cache::Cache;
use crate::cluster::Level;
use crate::installation;

/// The scenarios of this area.
pub(super) const SCENARIOS: &[Scenario] = &[Scenario {
    name: "install::a_replica_is_not_ready_restarts_or_stands_beside_the_other",
    level: Level::Cluster,
    sharing: Sharing::Alone,
    long: false,
    limit: Duration::from_mins(4),
    body: a_replica_is_not_ready_restarts_or_stands_beside_the_other,
}];

/// With default values two replicas become ready on different nodes without a restart, one of them leads under its pod's name, and after
/// that pod was deleted another takes over without waiting for the Lease to expire.
fn a_replica_is_not_ready_restarts_or_stands_beside_the_other(context: &mut Context) -> Result<()> {
    installation::install(&context.cluster, &Cache::locate()?)?;
    let replicas = pods(context)?;
    let mut nodes = BTreeSet::new();
    let mut names = BTreeSet::new();
    for pod in &replicas {
        nodes.insert(pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned());
        names.insert(pod["metadata"]["name"].as_str().unwrap_or_default().to_owned());
        let status = &pod["status"]["containerStatuses"][0];
        ensure!(
            status["ready"] == true && status["restartCount"] == 0,
            "a replica is not ready or was restarted: {status}"
        );
    }
    ensure!(
        names.len() == 2 && nodes.len() == 2,
        "the replicas {names:?} stand on {nodes:?}"
    );

    let leader = installation::leader(&context.cluster, None, Duration::from_secs(30))?;
    ensure!(
        names.contains(&leader),
        "the holder {leader} is none of the pods {names:?}"
    );
    context.kubectl(&[
        "delete",
        "pod",
        &leader,
        "--namespace",
        installation::NAMESPACE,
        "--wait=false",
    ])?;
    // Less than the 15 s that a silent holder is waited for.
    let successor = installation::leader(&context.cluster, Some(&leader), Duration::from_secs(12))?;
    // It may be the replacement of the deleted pod: whoever sees the released Lease first takes it.
    let is_replica = pods(context)?
        .iter()
        .any(|pod| pod["metadata"]["name"] == successor.as_str());
    ensure!(is_replica, "the Lease went to {successor}, which is no replica");
    Ok(())
}

/// The operator's pods that are not being removed.
fn pods(context: &Context) -> Result<Vec<Value>> {
    let selector = "app.kubernetes.io/name=materialize-operator";
    let list = context.json(&[
        "get",
        "pods",
        "--namespace",
        installation::NAMESPACE,
        "--selector",
        selector,
    ])?;
    let all = list["items"].as_array().cloned().unwrap_or_default();
    Ok(all
        .into_iter()
        .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
        .collect())
}
