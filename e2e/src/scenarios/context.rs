//! What a scenario works with: the cluster, a namespace of its own, replicas of the operator, a deadline for everything it waits for.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Error, Result, bail};
use serde_json::Value;

use super::artefacts;
use super::replica::{Replica, ReplicaBuilder};
use super::rights;
use crate::clock::{Deadline, poll};
use crate::cluster::Cluster;
use crate::cluster::audit::{Event, Position};

/// Between two looks at something that is waited for.
const INTERVAL: Duration = Duration::from_millis(100);

/// Handed to each scenario.
pub(crate) struct Context {
    /// The cluster it runs on.
    pub(crate) cluster: Cluster,
    /// The scenario's own namespace, which is the operator's namespace, too.
    pub(crate) namespace: String,
    /// Where it leaves its traces.
    pub(super) folder: PathBuf,
    /// The operator's program.
    pub(super) operator: PathBuf,
    deadline: Deadline,
    /// The end of the audit log when it began.
    pub(super) begun: Position,
}

// === impl Context ===

impl Context {
    /// Runs a scenario in a fresh namespace, removes the namespace afterwards, and keeps the traces only of a failure.
    pub(crate) fn run(
        name: &str,
        limit: Duration,
        cluster: &Cluster,
        operator: &Path,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let namespace = namespace(name);
        let folder = artefacts::prepare(name)?;
        let mut context = Self {
            cluster: cluster.clone(),
            namespace,
            folder,
            operator: operator.to_path_buf(),
            deadline: Deadline::after(limit),
            begun: cluster.audit_end()?,
        };
        let result = context.prepare().and_then(|()| body(&mut context));
        let result = match result {
            Ok(()) => artefacts::discard(&context.folder),
            Err(error) => {
                artefacts::collect(&context);
                Err(error.context(format!("its traces are in {}", context.folder.display())))
            }
        };
        // Also after a failure: the next run must find nothing of this one.
        rights::remove(&context);
        let _ = context.cluster.kubectl.run(&[
            "delete",
            "namespace",
            &context.namespace,
            "--wait=false",
            "--ignore-not-found",
        ]);
        result
    }

    fn prepare(&self) -> Result<()> {
        self.cluster.kubectl.run(&[
            "delete",
            "namespace",
            &self.namespace,
            "--ignore-not-found",
            "--timeout=30s",
        ])?;
        self.cluster.kubectl.run(&["create", "namespace", &self.namespace])?;
        rights::install(self)
    }

    /// kubectl's output.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.cluster.kubectl.run_until(arguments, None, self.deadline)
    }

    /// kubectl's output with `-o json`, decoded.
    pub(crate) fn json(&self, arguments: &[&str]) -> Result<Value> {
        self.cluster.kubectl.json(arguments)
    }

    /// Waits until `look` finds something. Errors of `look` count as "not yet": what is looked at may still be starting; the last one is told at the end.
    pub(crate) fn wait_for<T>(
        &self,
        what: &str,
        limit: Duration,
        mut look: impl FnMut() -> Result<Option<T>>,
    ) -> Result<T> {
        let mut last: Option<Error> = None;
        let found = poll(self.deadline.earlier(Deadline::after(limit)), INTERVAL, || {
            Ok::<_, Error>(look().unwrap_or_else(|error| {
                last = Some(error);
                None
            }))
        })?;
        match (found, last) {
            (Some(found), _) => Ok(found),
            (None, Some(error)) => Err(error.context(format!("{what}: did not happen within {} s", limit.as_secs()))),
            (None, None) => bail!("{what}: did not happen within {} s", limit.as_secs()),
        }
    }

    /// Starts to describe a replica of the operator.
    pub(crate) fn replica(&self, name: &str) -> ReplicaBuilder<'_> {
        ReplicaBuilder::new(self, name)
    }

    /// A replica with default flags that has got as far as being ready.
    pub(crate) fn ready_replica(&self, name: &str) -> Result<Replica> {
        self.ready(self.replica(name).start()?)
    }

    /// Waits until a replica is ready.
    pub(crate) fn ready(&self, mut replica: Replica) -> Result<Replica> {
        self.wait_for(
            &format!("{} becomes ready", replica.name),
            Duration::from_mins(1),
            || {
                replica.must_run()?;
                Ok((self.cluster.get(replica.metrics, "/readyz")?.0 == 200).then_some(()))
            },
        )?;
        Ok(replica)
    }

    /// The operator's Lease.
    pub(crate) fn lease(&self) -> Result<Value> {
        self.json(&["get", "lease", "orchestratord", "--namespace", &self.namespace])
    }

    /// Waits until the Lease has a holder, another one than `not`, and says which.
    pub(crate) fn holder(&self, not: Option<&str>, limit: Duration) -> Result<String> {
        self.wait_for("the Lease gets a new holder", limit, || {
            let lease = self.lease()?;
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            Ok((!holder.is_empty() && Some(holder) != not).then(|| holder.to_owned()))
        })
    }

    /// What the audit log says since the scenario began.
    pub(crate) fn audit(&self, wanted: impl Fn(&Event) -> bool) -> Result<Vec<Event>> {
        self.cluster.audit(self.begun, wanted)
    }

    /// The writes of the operator's Lease, in the server's order.
    pub(crate) fn lease_writes(&self) -> Result<Vec<Event>> {
        let is_lease = |event: &Event| event.resource() == "leases" && event.name() == "orchestratord";
        self.audit(|event| is_lease(event) && event.namespace() == self.namespace && event.is_write())
    }
}

/// The namespace of a scenario: its name as far as Kubernetes allows it, with what tells long names apart at the end.
fn namespace(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() { char } else { '-' })
        .collect();
    let plain = plain.replace("--", "-");
    if plain.len() <= 40 {
        return plain;
    }
    let mut key = crate::cache::Key::default();
    key.add(name.as_bytes());
    format!("{}-{}", plain[..33].trim_end_matches('-'), &key.finish()[..6])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_a_short_dns_label_and_tells_names_apart() {
        assert_eq!(namespace("leadership::two_lead"), "leadership-two-lead");
        let long = namespace("leadership::a_very_long_name_of_a_scenario_that_does_not_fit_one");
        assert!(
            long.len() <= 40 && long.chars().all(|char| char.is_ascii_alphanumeric() || char == '-'),
            "{long}"
        );
        assert_ne!(
            long,
            namespace("leadership::a_very_long_name_of_a_scenario_that_does_not_fit_two")
        );
    }
}
