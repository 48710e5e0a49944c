//! What a new leader waits for before its controllers start: an operator without election that still runs
//! (decision L15).
//!
//! Belongs here: looking at the operator's own pods, and the waiting. `decision` decides and does no I/O. Does not
//! belong here: who leads (`leadership`), whose webhook serves the CRD (`webhook::registration`). Readiness depends on
//! none of it, so a roll-out goes on and ends the old pods.

mod decision;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Selector;
use kube::{Api, Client, ResourceExt as _};
use tracing::{info, warn};

pub use decision::{Decision, Doubt, Own, Predecessor, Seen, decide};

use crate::clock::{Clock, Moment};
use crate::kubernetes::retry::{self, Verdict};

/// How often the pods are looked at, and what is waited for is logged.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Pauses between attempts to list the pods, which are repeated without end.
const ATTEMPTS: retry::Bounds = retry::Bounds {
    first_pause: Duration::from_millis(250),
    longest_pause: Duration::from_secs(10),
    total: None,
};
/// How often a list that fails is logged at most.
const FAILURE_LOGGED_EVERY: Duration = Duration::from_mins(1);

/// Looks for operators without election among the operator's own pods.
#[derive(Clone)]
pub struct Predecessors {
    pods: Api<Pod>,
    namespace: String,
    labels: Selector,
    own: Own,
    clock: Clock,
}

/// A look at the pods, and the version of the list, from which a watch can go on.
struct Look {
    seen: Seen,
    version: Option<String>,
}

// === impl Predecessors ===

impl Predecessors {
    /// Looks at the pods of `namespace` that have all of `labels`. `client` is only read with.
    pub fn new(client: Client, namespace: &str, labels: &BTreeMap<String, String>, own: Own, clock: Clock) -> Self {
        let labels = labels.iter().map(|(key, value)| (key.clone(), value.clone()));
        Predecessors {
            pods: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            labels: labels.collect(),
            own,
            clock,
        }
    }

    /// Ends when no operator without election is left, or when that can't be known (docs/operations.md).
    pub async fn ended(&self) {
        let mut waited = false;
        loop {
            let Look { seen, version } = self.look().await;
            match decide(&seen, &self.own) {
                Decision::Start => {
                    if waited {
                        info!("no operator without election is left: the controllers start");
                    }
                    return;
                }
                Decision::StartWithWarning(doubt) => {
                    warn!(
                        namespace = self.namespace,
                        "the controllers start without having seen that no operator without election runs: {doubt}"
                    );
                    return;
                }
                Decision::Wait(predecessors) => {
                    waited = true;
                    for Predecessor { pod, image } in &predecessors {
                        warn!(
                            pod,
                            image,
                            namespace = self.namespace,
                            "holding the Lease, but the controllers don't start while an operator without election runs"
                        );
                    }
                    // Either way the next look tells.
                    let _ = tokio::time::timeout(LOOK_EVERY, self.one_ends(&predecessors, version)).await;
                }
            }
        }
    }

    /// Lists the pods, through any failure but a missing permission.
    async fn look(&self) -> Look {
        if self.labels.selects_all() {
            return Look {
                seen: Seen::WithoutLabels,
                version: None,
            };
        }
        let parameters = ListParams::default().labels_from(&self.labels);
        let mut logged: Option<Moment> = None;
        let judge = |error: &kube::Error, attempt| {
            if is_forbidden(error) {
                return Verdict::GiveUp;
            }
            let now = self.clock.now();
            if logged.is_none_or(|logged| now.saturating_since(logged) >= FAILURE_LOGGED_EVERY) {
                logged = Some(now);
                warn!(
                    attempt,
                    namespace = self.namespace,
                    labels = %self.labels,
                    error = %error,
                    "can't list the operator's own pods; the controllers don't start before that was possible"
                );
            }
            Verdict::Retry
        };
        match retry::retry(ATTEMPTS, || self.pods.list(&parameters), judge).await {
            Ok(pods) => Look {
                version: pods.metadata.resource_version.clone(),
                seen: Seen::Pods(pods.items),
            },
            // Only that was given up.
            Err(_) => Look {
                seen: Seen::Forbidden,
                version: None,
            },
        }
    }

    /// Ends when one of `predecessors` has gone or terminated since `version`. Never, if that can't be watched.
    async fn one_ends(&self, predecessors: &[Predecessor], version: Option<String>) {
        let ends = |pod: &Pod| predecessors.iter().any(|predecessor| predecessor.pod == pod.name_any());
        let parameters = WatchParams::default().labels_from(&self.labels);
        if let Some(version) = version
            && let Ok(events) = self.pods.watch(&parameters, &version).await
        {
            pin_mut!(events);
            while let Some(event) = events.next().await {
                match event {
                    Ok(WatchEvent::Deleted(pod)) if ends(&pod) => return,
                    Ok(WatchEvent::Modified(pod)) if ends(&pod) && decision::has_terminated(&pod) => return,
                    _ => {}
                }
            }
        }
        std::future::pending::<()>().await;
    }
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

#[cfg(test)]
mod tests;
