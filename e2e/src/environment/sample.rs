//! The sample: a namespace, the backend Secret with a licence key, a Materialize; and what changes it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::clock::{Deadline, poll};
use crate::cluster::Cluster;
use crate::images;

/// The environment's namespace.
pub(crate) const NAMESPACE: &str = "materialize-environment";

/// The environment's id, which is the resource's name, too.
pub(crate) const ENVIRONMENT: &str = "12345678-1234-1234-1234-123456789012";

/// The tag of the first image.
pub(crate) const FIRST: &str = "v26.42.0";

/// The tag of the second.
pub(crate) const SECOND: &str = "v26.43.0";

/// The request of the first rollout.
pub(crate) const FIRST_REQUEST: &str = "11111111-1111-4111-8111-111111111111";

/// The request of the second.
pub(crate) const SECOND_REQUEST: &str = "22222222-2222-4222-8222-222222222222";

/// Applies everything; the operator does the rest.
pub(crate) fn apply(cluster: &Cluster) -> Result<()> {
    let objects = json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } },
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": { "name": "materialize-backend", "namespace": NAMESPACE },
                "stringData": {
                    "metadata_backend_url": "postgres://materialize@postgres.materialize.svc/materialize",
                    "persist_backend_url": "s3://minio:minio@bucket/prefix?endpoint=http%3A%2F%2Fminio.materialize.svc%3A9000&region=minio",
                    "license_key": licence_key(),
                },
            },
            {
                "apiVersion": "materialize.cloud/v1alpha1",
                "kind": "Materialize",
                "metadata": { "name": ENVIRONMENT, "namespace": NAMESPACE },
                "spec": {
                    "environmentdImageRef": image(FIRST),
                    "backendSecretName": "materialize-backend",
                    "environmentId": ENVIRONMENT,
                    "requestRollout": FIRST_REQUEST,
                    "environmentdResourceRequirements": small(),
                    "balancerdResourceRequirements": small(),
                    "consoleResourceRequirements": small(),
                },
            },
        ],
    });
    cluster.kubectl.apply(&objects.to_string())
}

/// Asks for the second image.
pub(crate) fn upgrade(cluster: &Cluster) -> Result<()> {
    patch(
        cluster,
        &json!({ "environmentdImageRef": image(SECOND), "requestRollout": SECOND_REQUEST }),
    )
}

/// Asks for another generation of the same image. Returns the request.
pub(crate) fn roll_again(cluster: &Cluster, number: u64) -> Result<String> {
    let request = format!("33333333-3333-4333-8333-{number:012}");
    patch(cluster, &json!({ "requestRollout": request, "forceRollout": request }))?;
    Ok(request)
}

fn patch(cluster: &Cluster, spec: &serde_json::Value) -> Result<()> {
    let patch = json!({ "spec": spec }).to_string();
    cluster
        .kubectl
        .run(&[
            "patch",
            "materializes.v1alpha1.materialize.cloud",
            ENVIRONMENT,
            "--namespace",
            NAMESPACE,
            "--type=merge",
            "--patch",
            &patch,
        ])
        .map(drop)
}

/// Removes what an earlier run has left.
pub(crate) fn remove(cluster: &Cluster) -> Result<()> {
    let limit = "--timeout=55s";
    cluster
        .kubectl
        .run(&["delete", "namespace", NAMESPACE, "--ignore-not-found", limit])
        .map(drop)
        .context("the environment of an earlier run does not go away: `cargo e2e down` removes the cluster with it")
}

/// Waits until no pod of the first generation is left.
pub(crate) fn first_generation_is_gone(cluster: &Cluster) -> Result<()> {
    poll(
        Deadline::after(Duration::from_mins(1)),
        Duration::from_millis(300),
        || {
            let names = cluster
                .kubectl
                .run(&["get", "statefulsets,pods", "--namespace", NAMESPACE, "-o", "name"])?;
            anyhow::Ok(names.lines().all(|name| !name.contains("environmentd-1")).then_some(()))
        },
    )?
    .context("the first generation was not removed")
}

fn image(tag: &str) -> String {
    format!("{}/environmentd:{tag}", images::STANDINS)
}

fn small() -> serde_json::Value {
    json!({ "requests": { "cpu": "10m", "memory": "32Mi" }, "limits": { "memory": "256Mi" } })
}

/// A licence key for this environment with all claims in order. Nobody signed it: without a public key the operator checks everything but the signature.
fn licence_key() -> String {
    let header = json!({ "alg": "PS256", "typ": "JWT" });
    let claims = json!({
        "version": 1,
        "iss": "Materialize, Inc.",
        "sub": "local cluster",
        "aud": ENVIRONMENT,
        "jti": "00000000-0000-4000-8000-000000000001",
        "nbf": 1_577_836_800,
        "iat": 1_577_836_800,
        "exp": 4_102_444_800_u64,
        "max_credit_consumption_rate": 24,
        "expiration_behavior": "Warn",
    });
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    format!(
        "{}.{}.{}",
        encode(header.to_string().as_bytes()),
        encode(claims.to_string().as_bytes()),
        encode(&[0; 256])
    )
}
