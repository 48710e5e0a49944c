//! A rollout as it goes on: one line whenever generation, reason or leader change.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::Value;

use super::sample;
use crate::clock::{Deadline, Stopwatch, poll};
use crate::cluster::Cluster;
use crate::installation;
use crate::progress::{line, seconds};

/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(300);

/// What is waited for.
pub(crate) struct Rollout {
    /// The request that must be completed.
    pub(crate) request: String,
    /// The generation that must be active.
    pub(crate) generation: u64,
}

/// What is shown.
#[derive(Debug, PartialEq, Eq)]
struct View {
    generation: u64,
    up_to_date: String,
    reason: String,
    completed: String,
    leader: String,
}

/// Shows a rollout until it is done.
pub(crate) fn until_done(cluster: &Cluster, rollout: &Rollout, limit: Duration) -> Result<()> {
    let watch = Stopwatch::start();
    let mut last = None;
    let done = poll(Deadline::after(limit), INTERVAL, || {
        let Ok(view) = View::of(cluster) else {
            return anyhow::Ok(None);
        };
        let is_done = view.is_done(rollout);
        if last.as_ref() != Some(&view) {
            line(&format!("         {:>8}  {view}", seconds(watch.elapsed())));
            last = Some(view);
        }
        Ok(is_done.then_some(()))
    })?;
    if done.is_some() {
        return Ok(());
    }
    let pods = cluster
        .kubectl
        .run(&["get", "pods", "--namespace", sample::NAMESPACE, "-o", "wide"])
        .unwrap_or_default();
    let events = cluster
        .kubectl
        .run(&["events", "--namespace", sample::NAMESPACE, "--types=Warning"])
        .unwrap_or_default();
    bail!(
        "the rollout to generation {} was not done after {} s\n{pods}{events}",
        rollout.generation,
        limit.as_secs()
    )
}

// === impl View ===

impl View {
    fn of(cluster: &Cluster) -> Result<Self> {
        let resource = "materializes.v1alpha1.materialize.cloud";
        let object = cluster
            .kubectl
            .json(&["get", resource, sample::ENVIRONMENT, "--namespace", sample::NAMESPACE])?;
        let lease = cluster
            .kubectl
            .json(&["get", "lease", "orchestratord", "--namespace", installation::NAMESPACE])
            .unwrap_or_default();
        Ok(Self::from(&object, &lease))
    }

    fn from(object: &Value, lease: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let status = &object["status"];
        let condition = status["conditions"]
            .as_array()
            .and_then(|all| all.iter().find(|condition| condition["type"] == "UpToDate"));
        let condition = condition.unwrap_or(&Value::Null);
        Self {
            generation: status["activeGeneration"].as_u64().unwrap_or_default(),
            up_to_date: text(&condition["status"]),
            reason: text(&condition["reason"]),
            completed: text(&status["lastCompletedRolloutRequest"]),
            leader: text(&lease["spec"]["holderIdentity"]),
        }
    }

    fn is_done(&self, rollout: &Rollout) -> bool {
        self.up_to_date == "True" && self.completed == rollout.request && self.generation == rollout.generation
    }
}

impl fmt::Display for View {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            generation,
            up_to_date,
            reason,
            leader,
            ..
        } = self;
        write!(
            formatter,
            "generation {generation}  UpToDate {up_to_date:<8} {reason:<20} leader {leader}"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rollout_is_done_only_when_its_own_request_is() {
        let rollout = Rollout {
            request: "b".to_owned(),
            generation: 2,
        };
        let object = |request: &str, generation: u64, status: &str| {
            json!({ "status": {
                "activeGeneration": generation,
                "lastCompletedRolloutRequest": request,
                "conditions": [{ "type": "Other", "status": "False" }, { "type": "UpToDate", "status": status, "reason": "Applied" }],
            } })
        };
        let done = |object: Value| View::from(&object, &Value::Null).is_done(&rollout);
        assert!(done(object("b", 2, "True")));
        assert!(!done(object("a", 2, "True")));
        assert!(!done(object("b", 1, "True")));
        assert!(!done(object("b", 2, "Unknown")));
        assert!(!done(json!({})));
    }
}
