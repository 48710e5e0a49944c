//! What environmentd's `ServiceAccount` must be allowed to do in its namespace, asked from the API server before anything else.
//!
//! The stand-in itself needs a part of it only; checking all of it shows a gap of the generated Role that would otherwise pass.

use anyhow::bail;
use k8s_openapi::api::authorization::v1::{
    ResourceRule, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec, SubjectRulesReviewStatus,
};
use kube::{Api, Client};

const FULL: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// Group, resource, verbs.
const NEEDED: &[(&str, &str, &[&str])] = &[
    ("apps", "statefulsets", FULL),
    ("", "persistentvolumeclaims", FULL),
    ("", "pods", FULL),
    ("", "secrets", FULL),
    ("", "services", FULL),
    ("", "configmaps", &["get"]),
    ("materialize.cloud", "vpcendpoints", FULL),
    ("metrics.k8s.io", "pods", &["get", "list"]),
    (
        "custom.metrics.k8s.io",
        "persistentvolumeclaims/kubelet_volume_stats_used_bytes",
        &["get"],
    ),
    (
        "custom.metrics.k8s.io",
        "persistentvolumeclaims/kubelet_volume_stats_capacity_bytes",
        &["get"],
    ),
];

/// Fails with the list of what is not allowed.
pub(crate) async fn check(client: &Client, namespace: &str) -> anyhow::Result<()> {
    let review = SelfSubjectRulesReview {
        spec: SelfSubjectRulesReviewSpec {
            namespace: Some(namespace.to_owned()),
        },
        ..SelfSubjectRulesReview::default()
    };
    let review = Api::<SelfSubjectRulesReview>::all(client.clone())
        .create(&kube::api::PostParams::default(), &review)
        .await?;
    let missing = missing(&review.status.unwrap_or_default());
    if !missing.is_empty() {
        bail!("the ServiceAccount may not: {}", missing.join(", "));
    }
    Ok(())
}

fn missing(status: &SubjectRulesReviewStatus) -> Vec<String> {
    let mut missing = Vec::new();
    for (group, resource, verbs) in NEEDED {
        for verb in *verbs {
            if !status
                .resource_rules
                .iter()
                .any(|rule| allows(rule, group, resource, verb))
            {
                let group = if group.is_empty() {
                    String::new()
                } else {
                    format!(".{group}")
                };
                missing.push(format!("{verb} {resource}{group}"));
            }
        }
    }
    missing
}

fn allows(rule: &ResourceRule, group: &str, resource: &str, verb: &str) -> bool {
    let has = |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
    // A rule for named objects is none for the resource.
    rule.resource_names.as_deref().is_none_or(<[String]>::is_empty)
        && has(rule.api_groups.as_deref().unwrap_or_default(), group)
        && has(rule.resources.as_deref().unwrap_or_default(), resource)
        && has(&rule.verbs, verb)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> ResourceRule {
        let strings = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        ResourceRule {
            api_groups: Some(strings(groups)),
            resources: Some(strings(resources)),
            verbs: strings(verbs),
            ..ResourceRule::default()
        }
    }

    fn status(resource_rules: Vec<ResourceRule>) -> SubjectRulesReviewStatus {
        SubjectRulesReviewStatus {
            resource_rules,
            ..SubjectRulesReviewStatus::default()
        }
    }

    #[test]
    fn an_administrator_may_everything() {
        assert_eq!(
            missing(&status(vec![rule(&["*"], &["*"], &["*"])])),
            Vec::<String>::new()
        );
    }

    #[test]
    fn each_missing_verb_is_named() {
        let mut rules: Vec<ResourceRule> = NEEDED
            .iter()
            .map(|(group, resource, verbs)| rule(&[group], &[resource], verbs))
            .collect();
        assert_eq!(missing(&status(rules.clone())), Vec::<String>::new());
        rules[0].verbs.retain(|verb| verb != "watch");
        rules.remove(6);
        let missing = missing(&status(rules));
        assert_eq!(missing.len(), 1 + FULL.len());
        assert_eq!(missing[0], "watch statefulsets.apps");
        assert_eq!(missing[1], "get vpcendpoints.materialize.cloud");
    }

    #[test]
    fn a_rule_for_named_objects_does_not_count() {
        let mut named = rule(&["*"], &["*"], &["*"]);
        named.resource_names = Some(vec!["one".to_owned()]);
        assert!(!missing(&status(vec![named])).is_empty());
    }
}
