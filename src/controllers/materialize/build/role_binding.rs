//! Gives environmentd's Role to the `ServiceAccount` that its pods run under.

use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};

use super::environment::Environment;

/// The binding, named like the resource: to the spec's service account, and to those in `still_bound` that live
/// generations run under (decision R8).
pub fn build(environment: &Environment<'_>, still_bound: &[String]) -> RoleBinding {
    let wanted = environment.service_account_name();
    let others = still_bound.iter().map(String::as_str).filter(|&name| name != wanted);
    let subject = |name: &str| Subject {
        // The group of ServiceAccounts is the empty one, which the API server leaves out.
        api_group: None,
        kind: "ServiceAccount".to_owned(),
        name: name.to_owned(),
        namespace: Some(environment.identity.namespace.clone()),
    };
    RoleBinding {
        metadata: environment.identity.metadata(&environment.identity.name),
        role_ref: RoleRef {
            // What the API server makes of an empty group; the field can't be changed, and must compare as equal.
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "Role".to_owned(),
            name: environment.identity.name.clone(),
        },
        subjects: Some(std::iter::once(wanted).chain(others).map(subject).collect()),
    }
}
