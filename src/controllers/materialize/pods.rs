//! What the pods of a `StatefulSet` say about why it is not ready. No I/O.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt as _;

/// The label by which a `StatefulSet`'s pods carry their revision.
const REVISION: &str = "controller-revision-hash";

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// Why the pod is not ready, in one line; `None` if Kubernetes does not say.
    pub(super) trouble: Option<String>,
    /// Name and uid of pods of an older revision that are not ready: the `StatefulSet`'s controller waits for them for
    /// ever (decision R19).
    pub(super) stuck: Vec<(String, String)>,
}

/// Looks at the pods of `stateful_set`.
pub(super) fn look_at(stateful_set: &StatefulSet, pods: &[Pod]) -> Findings {
    let status = stateful_set.status.as_ref();
    let observed = status.and_then(|status| status.observed_generation);
    let up_to_date = observed.is_some() && observed == stateful_set.metadata.generation;
    let revision = status.and_then(|status| status.update_revision.as_deref());
    let is_stuck = |pod: &&Pod| {
        let own = pod.labels().get(REVISION).map(String::as_str);
        up_to_date && own.is_some() && revision.is_some() && own != revision && !is_ready(pod)
    };
    let deleted = |pod: &&Pod| pod.metadata.deletion_timestamp.is_some();
    let stuck = pods
        .iter()
        .filter(|pod| is_stuck(pod) && !deleted(pod))
        .filter_map(|pod| Some((pod.name_any(), pod.uid()?)))
        .collect();
    Findings {
        trouble: pods.iter().find_map(trouble),
        stuck,
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The first thing that keeps a pod from being ready.
fn trouble(pod: &Pod) -> Option<String> {
    let name = pod.name_any();
    if pod.metadata.deletion_timestamp.is_some() {
        return Some(format!("pod {name} is being deleted"));
    }
    let status = pod.status.as_ref()?;
    let unschedulable = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    if let Some(condition) = unschedulable {
        let reason = condition.reason.as_deref().unwrap_or("Unschedulable");
        return Some(explain(&name, reason, condition.message.as_deref()));
    }
    let containers = status
        .init_container_statuses
        .iter()
        .flatten()
        .chain(status.container_statuses.iter().flatten());
    containers.filter(|container| !container.ready).find_map(|container| {
        let (reason, message) = state(container)?;
        Some(explain(&name, &reason, message.as_deref()))
    })
}

/// Why a container does not run, or what it last died of.
fn state(container: &ContainerStatus) -> Option<(String, Option<String>)> {
    let state = container.state.as_ref()?;
    if let Some(waiting) = &state.waiting {
        return Some((waiting.reason.clone()?, waiting.message.clone()));
    }
    let terminated = state.terminated.as_ref()?;
    let reason = terminated.reason.clone().unwrap_or_else(|| "Terminated".to_owned());
    Some((reason, Some(format!("exit code {}", terminated.exit_code))))
}

/// At most about 300 characters: the API server allows far longer messages, `kubectl describe` shows them on one line.
fn explain(pod: &str, reason: &str, message: Option<&str>) -> String {
    let mut text = format!("pod {pod}: {reason}");
    if let Some(message) = message.filter(|message| !message.is_empty()) {
        text.push_str(" (");
        text.extend(message.chars().take(200));
        text.push(')');
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn stateful_set(observed: i64) -> StatefulSet {
        serde_json::from_value(json!({
            "metadata": { "name": "mzx-environmentd-2", "generation": 2 },
            "status": { "replicas": 1, "observedGeneration": observed, "updateRevision": "new" },
        }))
        .unwrap()
    }

    fn pod(revision: &str, status: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {
                "name": "mzx-environmentd-2-0", "uid": "u1", "labels": { "controller-revision-hash": revision },
            },
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_missing_image_is_named() {
        let waiting = json!({ "containerStatuses": [{
            "name": "environmentd", "image": "i", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "waiting": { "reason": "ImagePullBackOff", "message": "Back-off pulling image \"i\"" } },
        }]});
        let findings = look_at(&stateful_set(2), &[pod("new", &waiting)]);
        let expected = "pod mzx-environmentd-2-0: ImagePullBackOff (Back-off pulling image \"i\")";
        assert_eq!(
            findings,
            Findings {
                trouble: Some(expected.to_owned()),
                stuck: vec![]
            }
        );
    }

    #[test]
    fn an_unschedulable_pod_is_named() {
        let status = json!({ "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available",
        }]});
        let trouble = look_at(&stateful_set(2), &[pod("new", &status)]).trouble;
        assert_eq!(
            trouble.as_deref(),
            Some("pod mzx-environmentd-2-0: Unschedulable (0/3 nodes are available)")
        );
    }

    #[test]
    fn only_an_older_pod_that_is_not_ready_is_stuck() {
        let not_ready = json!({});
        let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        let stuck =
            |observed, revision, status: &Value| look_at(&stateful_set(observed), &[pod(revision, status)]).stuck;
        assert_eq!(
            stuck(2, "old", &not_ready),
            [("mzx-environmentd-2-0".to_owned(), "u1".to_owned())]
        );
        assert_eq!(stuck(2, "old", &ready), [], "replaced by its controller");
        assert_eq!(stuck(2, "new", &not_ready), [], "of the current revision");
        assert_eq!(
            stuck(1, "old", &not_ready),
            [],
            "the controller has not seen the new template yet"
        );
    }
}
