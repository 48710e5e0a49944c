//! The condition `Ready`: what a Deployment says about itself. No I/O.

use k8s_openapi::api::apps::v1::Deployment;

use crate::controllers::building::identity::Component;

/// Whether the Deployment is available; `None` while it does not say, and then the condition stays as it is.
pub(super) fn is_available(deployment: &Deployment) -> Option<bool> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    if conditions.is_empty() {
        return None;
    }
    let is_true = |type_: &str| conditions.iter().any(|c| c.type_ == type_ && c.status == "True");
    Some(is_true("Available"))
}

/// Whether every pod runs the current template and is available, and no other pod is left.
pub(super) fn is_rolled_out(deployment: &Deployment) -> bool {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let Some(status) = &deployment.status else { return false };
    let observed = status.observed_generation.unwrap_or_default() >= deployment.metadata.generation.unwrap_or(1);
    let counts = [status.replicas, status.updated_replicas, status.available_replicas];
    observed && counts.iter().all(|count| count.unwrap_or_default() == wanted)
}

/// The message of the condition. `cause` says why it is not ready.
pub(super) fn message(component: Component, ready: bool, cause: Option<&str>) -> String {
    let app = component.app();
    match (ready, cause) {
        (true, _) => format!("{app} deployment is ready"),
        (false, None) => format!("{app} deployment is not ready"),
        (false, Some(cause)) => format!("{app} deployment is not ready: {cause}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn deployment(generation: i64, status: &Value) -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"name": "mzx-balancerd", "generation": generation},
            "spec": {"replicas": 2, "selector": {}, "template": {}},
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_deployment_without_conditions_says_nothing() {
        assert_eq!(is_available(&Deployment::default()), None);
        assert_eq!(is_available(&deployment(1, &json!({}))), None);
        assert_eq!(is_available(&deployment(1, &json!({"conditions": []}))), None);
    }

    #[test]
    fn only_the_condition_available_counts() {
        for (conditions, ready) in [
            (json!([{"type": "Available", "status": "True"}]), true),
            (json!([{"type": "Available", "status": "False"}]), false),
            (json!([{"type": "Available", "status": "Unknown"}]), false),
            (json!([{"type": "Progressing", "status": "True"}]), false),
            (
                json!([{"type": "Progressing", "status": "False"}, {"type": "Available", "status": "True"}]),
                true,
            ),
        ] {
            let deployment = deployment(1, &json!({"conditions": conditions}));
            assert_eq!(is_available(&deployment), Some(ready), "{conditions}");
        }
    }

    #[test]
    fn rolled_out_means_every_pod_and_no_other() {
        let status = |observed: i64, replicas: i32, updated: i32, available: i32| {
            json!({
                "observedGeneration": observed,
                "replicas": replicas, "updatedReplicas": updated, "availableReplicas": available,
            })
        };
        assert!(is_rolled_out(&deployment(3, &status(3, 2, 2, 2))));
        assert!(
            !is_rolled_out(&deployment(3, &status(2, 2, 2, 2))),
            "the template was not seen yet"
        );
        assert!(
            !is_rolled_out(&deployment(3, &status(3, 3, 2, 2))),
            "an old pod is left"
        );
        assert!(!is_rolled_out(&deployment(3, &status(3, 2, 1, 2))));
        assert!(!is_rolled_out(&deployment(3, &status(3, 2, 2, 1))));
        assert!(!is_rolled_out(&deployment(3, &Value::Null)));
    }

    #[test]
    fn the_published_messages() {
        assert_eq!(
            message(Component::Balancerd, true, Some("x")),
            "balancerd deployment is ready"
        );
        assert_eq!(
            message(Component::Balancerd, false, None),
            "balancerd deployment is not ready"
        );
        assert_eq!(
            message(Component::Console, false, None),
            "console deployment is not ready"
        );
        assert_eq!(
            message(Component::Console, false, Some("no image")),
            "console deployment is not ready: no image"
        );
    }
}
