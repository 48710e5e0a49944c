//! A `Materialize` for the builders' tests.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};

use super::Environment;
use crate::api::v1alpha1::Materialize;
use crate::args::Config;

/// `analytics/production` with resource id `k3x9q0ab7z`, running the given tag, with `spec` on top.
pub(super) fn materialize(tag: &str, spec: &Value) -> Materialize {
    let mut all = json!({
        "apiVersion": "materialize.cloud/v1alpha1",
        "kind": "Materialize",
        "metadata": {"name": "production", "namespace": "analytics", "uid": "5f0c7c1e-52a1-4b52-9f6e-0a4f6a3d9c11"},
        "spec": {
            "environmentdImageRef": format!("materialize/environmentd:{tag}"),
            "backendSecretName": "backend",
            "environmentId": "12345678-1234-4234-9234-123456789012",
        },
        "status": {
            "resourceId": "k3x9q0ab7z",
            "activeGeneration": 0,
            "lastCompletedRolloutRequest": "00000000-0000-0000-0000-000000000000",
            "resourcesHash": "",
            "conditions": [],
        },
    });
    let members = spec.as_object().unwrap().clone();
    all["spec"].as_object_mut().unwrap().extend(members);
    serde_json::from_value(all).unwrap()
}

/// What `build` makes of that `Materialize` under the operator's `flags`.
pub(super) fn with<T>(tag: &str, flags: &[&str], spec: &Value, build: impl FnOnce(&Environment<'_>) -> T) -> T {
    let materialize = materialize(tag, spec);
    let config = Config::for_tests(flags);
    build(&Environment::new(&materialize, &config).unwrap())
}
