//! Parts of the Deployments of balancerd and the console.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::identity::{Component, Identity, pairs};
use crate::api::labels;

/// The fixed labels of the pods of Deployment `name`.
///
/// They are the selector, too, which can never be changed: a label added here means that every existing Deployment
/// has to be replaced.
pub fn pod_labels(identity: &Identity, component: Component, name: &str) -> BTreeMap<String, String> {
    let mut all = identity.labels.clone();
    all.extend(pairs([
        (labels::LABEL_NAME, name),
        (labels::LABEL_LEGACY_APP, component.app()),
        (labels::LABEL_APP, component.app()),
    ]));
    all
}

/// The user's labels or annotations with the fixed ones on top, which win (decision R14).
pub fn under(
    user: Option<&BTreeMap<String, String>>,
    fixed: BTreeMap<String, String>,
) -> Option<BTreeMap<String, String>> {
    let mut all = user.cloned().unwrap_or_default();
    all.extend(fixed);
    Some(all).filter(|all| !all.is_empty())
}

/// A probe by HTTP, with everything else left to the API server.
pub fn http_probe(path: &str, port: u16, scheme: Option<&str>) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::Int(port.into()),
            scheme: scheme.map(str::to_owned),
            ..HTTPGetAction::default()
        }),
        ..Probe::default()
    }
}
