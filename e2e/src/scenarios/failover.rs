//! Area `failover`: the leader goes away in every way that users know, and an environment rolls out all the same.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::context::Context;
use super::{Scenario, Sharing};
use crate::cache::Cache;
use crate::clock::{Deadline, poll};
use crate::cluster::Level;
use crate::environment::follow::{self, Rollout};
use crate::environment::sample;
use crate::images;
use crate::installation::{self, NAMESPACE};

/// The scenarios of this area.
pub(super) const SCENARIOS: &[Scenario] = &[Scenario {
    name: "failover::nobody_goes_on_after_the_leader_was_deleted_replaced_or_robbed",
    level: Level::Cluster,
    sharing: Sharing::Alone,
    long: false,
    limit: Duration::from_mins(6),
    body: nobody_goes_on,
}];

/// How long one rollout may take.
const ROLLOUT: Duration = Duration::from_mins(1);

/// Who holds the Lease for a while in the last case.
const FOREIGN: &str = "a-foreign-candidate";

/// After the leader's pod was deleted, after a rolling restart, and after a foreign candidate took the Lease: a pod of the operator holds
/// the Lease, the gauges agree, and a whole rollout is completed. The last case restarts no container.
fn nobody_goes_on(context: &mut Context) -> Result<()> {
    let cache = Cache::locate()?;
    let standins = images::standins(&cache, &[sample::FIRST])?;
    context.cluster.load_images(&standins)?;
    installation::install(&context.cluster, &cache)?;
    sample::remove(&context.cluster)?;
    sample::apply(&context.cluster)?;
    done(context, sample::FIRST_REQUEST, 1)?;

    let leader = installation::leader(&context.cluster, None, Duration::from_secs(30))?;
    context.kubectl(&["delete", "pod", &leader, "--namespace", NAMESPACE, "--wait=false"])?;
    installation::leader(&context.cluster, Some(&leader), Duration::from_secs(12))?;
    goes_on(context, 2)?;

    let deployment = "deployment/operator-materialize-operator";
    context.kubectl(&["rollout", "restart", deployment, "--namespace", NAMESPACE])?;
    let patience = "--timeout=90s";
    context.kubectl(&["rollout", "status", deployment, "--namespace", NAMESPACE, patience])?;
    goes_on(context, 3)?;

    let restarts = restart_counts(context)?;
    let transitions = transitions(context)?;
    rob(context)?;
    // Silent from the start, it is waited for 15 s.
    installation::leader(&context.cluster, Some(FOREIGN), Duration::from_secs(30))?;
    ensure!(
        transitions_after(context, transitions)?,
        "leaseTransitions did not grow when the Lease changed hands"
    );
    goes_on(context, 4)?;
    let after = restart_counts(context)?;
    ensure!(
        restarts == after,
        "losing the Lease restarted a replica: {restarts:?} before, {after:?} after"
    );
    Ok(())
}

/// A replica leads, alone, and an environment moves on to `generation`.
fn goes_on(context: &Context, generation: u64) -> Result<()> {
    let agreed = poll(
        Deadline::after(Duration::from_secs(30)),
        Duration::from_millis(500),
        || {
            let holder = installation::leader(&context.cluster, None, Duration::from_secs(5))?;
            // A replica that is just being replaced has no address to be asked at.
            let leaders = leaders_by_gauge(context).unwrap_or_default();
            anyhow::Ok((leaders == [holder]).then_some(()))
        },
    )?;
    ensure!(
        agreed.is_some(),
        "the gauges name {:?} as leaders, the Lease names {}",
        leaders_by_gauge(context)?,
        installation::leader(&context.cluster, None, Duration::from_secs(5))?
    );
    let request = sample::roll_again(&context.cluster, generation)?;
    done(context, &request, generation)
}

fn done(context: &Context, request: &str, generation: u64) -> Result<()> {
    follow::until_done(
        &context.cluster,
        &Rollout {
            request: request.to_owned(),
            generation,
        },
        ROLLOUT,
    )
}

/// The names of the pods of the Deployment's current revision that show `orchestratord_is_leader 1`.
fn leaders_by_gauge(context: &Context) -> Result<Vec<String>> {
    let mut leaders = Vec::new();
    for pod in current_pods(context)? {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}:3100/proxy/metrics");
        let metrics = context.kubectl(&["get", "--raw", &path])?;
        let gauge = metrics
            .lines()
            .find_map(|line| line.strip_prefix("orchestratord_is_leader "))
            .with_context(|| format!("{name} shows no orchestratord_is_leader"))?;
        if gauge.trim() == "1" {
            leaders.push(name.to_owned());
        }
    }
    Ok(leaders)
}

/// The pods of the Deployment's current revision that are not being removed; never none.
fn current_pods(context: &Context) -> Result<Vec<Value>> {
    let revision = "deployment.kubernetes.io/revision";
    let deployment = context.json(&[
        "get",
        "deployment",
        "operator-materialize-operator",
        "--namespace",
        NAMESPACE,
    ])?;
    let sets = context.json(&["get", "replicasets", "--namespace", NAMESPACE])?;
    let current = sets["items"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|set| {
            set["metadata"]["ownerReferences"][0]["uid"] == deployment["metadata"]["uid"]
                && set["metadata"]["annotations"][revision] == deployment["metadata"]["annotations"][revision]
        })
        .context("no ReplicaSet is of the Deployment's current revision")?;
    let pods = context.json(&["get", "pods", "--namespace", NAMESPACE])?;
    let pods: Vec<Value> = pods["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|pod| {
            pod["metadata"]["ownerReferences"][0]["uid"] == current["metadata"]["uid"]
                && pod["metadata"]["deletionTimestamp"].is_null()
        })
        .cloned()
        .collect();
    ensure!(!pods.is_empty(), "no pod is of the Deployment's current revision");
    Ok(pods)
}

fn restart_counts(context: &Context) -> Result<BTreeMap<String, u64>> {
    let pods = current_pods(context)?;
    Ok(pods
        .iter()
        .map(|pod| {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let count = pod["status"]["containerStatuses"][0]["restartCount"].as_u64();
            (name, count.unwrap_or(u64::MAX))
        })
        .collect())
}

fn transitions(context: &Context) -> Result<i64> {
    let lease = context.json(&["get", "lease", "orchestratord", "--namespace", NAMESPACE])?;
    lease["spec"]["leaseTransitions"]
        .as_i64()
        .context("the Lease has no leaseTransitions")
}

fn transitions_after(context: &Context, before: i64) -> Result<bool> {
    Ok(transitions(context)? > before)
}

/// Writes a foreign holder into the Lease, as another candidate's PUT would.
fn rob(context: &Context) -> Result<()> {
    let now = context.kubectl(&[
        "get",
        "lease",
        "orchestratord",
        "--namespace",
        NAMESPACE,
        "-o",
        "jsonpath={.spec.renewTime}",
    ])?;
    let patch = json!({ "spec": { "holderIdentity": FOREIGN, "acquireTime": now.trim(), "renewTime": now.trim() } });
    context
        .kubectl(&[
            "patch",
            "lease",
            "orchestratord",
            "--namespace",
            NAMESPACE,
            "--type=merge",
            "--patch",
            &patch.to_string(),
        ])
        .map(drop)
}
