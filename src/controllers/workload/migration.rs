//! Takes over Deployments of older operators, whose selector is another one (docs/reference/generated-objects.md,
//! "Deployments of older operators"). No I/O.
//!
//! A selector can't be changed, and deleting the Deployment would end its pods. So its pods first get the labels of
//! both selectors, by a rolling update; then the Deployment alone is deleted; its pods stay, and the Deployment that
//! is made anew adopts them. Each step follows from what is stored, so that it can be interrupted anywhere.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStrategy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;

use super::stall::Stall;

/// What comes next for a Deployment.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Migration {
    /// It can be applied as it is.
    NotNeeded,
    /// It is being deleted: the one that is wanted comes after that.
    Ending,
    /// Apply this, whose pods have the labels of both selectors. Once it is rolled out, delete the Deployment and
    /// leave its pods.
    Prepare(Box<Deployment>),
    /// No pod can have the labels of both selectors.
    Impossible(Stall),
}

/// What comes next for the Deployment `live`, which is to become `desired`.
pub(super) fn plan(live: Option<&Deployment>, desired: &Deployment) -> Migration {
    let (Some(live), Some(desired_spec)) = (live, &desired.spec) else {
        return Migration::NotNeeded;
    };
    if live.metadata.deletion_timestamp.is_some() {
        return Migration::Ending;
    }
    let Some(live_spec) = &live.spec else {
        return Migration::NotNeeded;
    };
    if normalised(&live_spec.selector) == normalised(&desired_spec.selector) {
        return Migration::NotNeeded;
    }

    let mut prepared = desired.clone();
    let Some(spec) = &mut prepared.spec else {
        return Migration::NotNeeded;
    };
    let wanted = spec
        .template
        .metadata
        .get_or_insert_default()
        .labels
        .take()
        .unwrap_or_default();
    let there = live_spec
        .template
        .metadata
        .as_ref()
        .and_then(|meta| meta.labels.clone());
    for (label, old) in live_spec.selector.match_labels.iter().flatten() {
        if let Some(new) = wanted.get(label).filter(|new| *new != old) {
            return Migration::Impossible(Stall::SelectorConflict {
                deployment: desired.name_any(),
                label: label.clone(),
                old: old.clone(),
                new: new.clone(),
            });
        }
    }
    let mut labels = there.unwrap_or_default();
    labels.extend(live_spec.selector.match_labels.clone().unwrap_or_default());
    labels.extend(wanted);
    spec.template.metadata.get_or_insert_default().labels = Some(labels);
    spec.selector = live_spec.selector.clone();
    // No pod less than now at any time.
    let strategy = spec.strategy.get_or_insert_with(DeploymentStrategy::default);
    strategy.type_ = Some("RollingUpdate".to_owned());
    strategy.rolling_update.get_or_insert_default().max_unavailable = Some(IntOrString::Int(0));
    Migration::Prepare(Box::new(prepared))
}

/// A selector without empty parts, which mean nothing.
fn normalised(selector: &LabelSelector) -> LabelSelector {
    LabelSelector {
        match_labels: selector.match_labels.clone().filter(|labels| !labels.is_empty()),
        match_expressions: selector
            .match_expressions
            .clone()
            .filter(|expressions| !expressions.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn deployment(selector: &Value, labels: &Value) -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"name": "mzx-balancerd", "namespace": "ns"},
            "spec": {
                "replicas": 2,
                "selector": selector,
                "strategy": {"rollingUpdate": {"maxSurge": "100%"}},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "balancerd", "image": "new"}]}},
            },
        }))
        .unwrap()
    }

    fn desired() -> Deployment {
        let labels = json!({"app": "balancerd", "name": "mzx-balancerd"});
        deployment(&json!({"matchLabels": labels}), &labels)
    }

    fn prepared(live: &Deployment) -> Value {
        match plan(Some(live), &desired()) {
            Migration::Prepare(prepared) => json!(prepared),
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn the_same_selector_needs_nothing() {
        assert_eq!(plan(None, &desired()), Migration::NotNeeded);
        assert_eq!(plan(Some(&desired()), &desired()), Migration::NotNeeded);
        let labels = json!({"app": "balancerd", "name": "mzx-balancerd"});
        let empty = deployment(&json!({"matchLabels": labels, "matchExpressions": []}), &labels);
        assert_eq!(plan(Some(&empty), &desired()), Migration::NotNeeded);
    }

    #[test]
    fn what_is_being_deleted_is_waited_for() {
        let mut live = desired();
        live.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        assert_eq!(plan(Some(&live), &desired()), Migration::Ending);
    }

    #[test]
    fn a_smaller_selector_is_kept_until_the_pods_have_all_labels() {
        let live = deployment(
            &json!({"matchLabels": {"app": "balancerd"}}),
            &json!({"app": "balancerd"}),
        );
        let prepared = prepared(&live);
        assert_eq!(
            prepared["spec"]["selector"],
            json!({"matchLabels": {"app": "balancerd"}})
        );
        // Nothing but what is wanted: the pods are adopted as they are, without a second rolling update.
        assert_eq!(prepared["spec"]["template"], json!(desired())["spec"]["template"]);
    }

    #[test]
    fn labels_of_a_larger_or_other_selector_are_merged() {
        let old = json!({"app": "balancerd", "tier": "edge"});
        let live = deployment(
            &json!({"matchLabels": old}),
            &json!({"app": "balancerd", "tier": "edge", "team": "x"}),
        );
        let prepared = prepared(&live);
        assert_eq!(prepared["spec"]["selector"], json!({"matchLabels": old}));
        assert_eq!(
            prepared["spec"]["template"]["metadata"]["labels"],
            json!({"app": "balancerd", "name": "mzx-balancerd", "tier": "edge", "team": "x"})
        );
    }

    #[test]
    fn no_pod_goes_before_another_is_there() {
        let live = deployment(
            &json!({"matchLabels": {"app": "balancerd"}}),
            &json!({"app": "balancerd"}),
        );
        assert_eq!(
            prepared(&live)["spec"]["strategy"],
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}})
        );
    }

    #[test]
    fn selectors_that_exclude_each_other_are_refused() {
        let live = deployment(&json!({"matchLabels": {"app": "other"}}), &json!({"app": "other"}));
        let Migration::Impossible(stall) = plan(Some(&live), &desired()) else {
            unreachable!()
        };
        assert_eq!(
            stall,
            Stall::SelectorConflict {
                deployment: "mzx-balancerd".to_owned(),
                label: "app".to_owned(),
                old: "other".to_owned(),
                new: "balancerd".to_owned(),
            }
        );
    }

    #[test]
    fn a_label_that_no_selector_needs_may_change() {
        let live = deployment(
            &json!({"matchLabels": {"app": "balancerd"}}),
            &json!({"app": "balancerd", "name": "old"}),
        );
        assert_eq!(
            prepared(&live)["spec"]["template"]["metadata"]["labels"]["name"],
            "mzx-balancerd"
        );
    }
}
