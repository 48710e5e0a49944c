//! The Role of environmentd: what it needs to run clusterd.

use k8s_openapi::api::rbac::v1::{PolicyRule, Role};

use super::environment::Environment;

const FULL: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// The Role, named like the resource.
pub fn build(environment: &Environment<'_>) -> Role {
    Role {
        metadata: environment.identity.metadata(&environment.identity.name),
        rules: Some(vec![
            rule("apps", &["statefulsets"], FULL),
            rule("", &["persistentvolumeclaims", "pods", "secrets", "services"], FULL),
            rule("", &["configmaps"], &["get"]),
            rule("materialize.cloud", &["vpcendpoints"], FULL),
            rule("metrics.k8s.io", &["pods"], &["get", "list"]),
            rule(
                "custom.metrics.k8s.io",
                &[
                    "persistentvolumeclaims/kubelet_volume_stats_used_bytes",
                    "persistentvolumeclaims/kubelet_volume_stats_capacity_bytes",
                ],
                &["get"],
            ),
        ]),
    }
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}
