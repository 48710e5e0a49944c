//! `Balancer`: the balancerd Deployment in front of an environment. See `docs/reference/materialize-resource.md`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{DEFAULT_REPLICAS, MaterializeCertSpec};

/// What a balancerd Deployment should look like.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "materialize.cloud",
    version = "v1alpha1",
    kind = "Balancer",
    singular = "balancer",
    plural = "balancers",
    namespaced,
    status = "BalancerStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "ImageRef", "type": "string", "description": "The image that is deployed.", "jsonPath": ".spec.balancerdImageRef", "priority": 1}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "description": "Whether the Deployment is available.", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct BalancerSpec {
    /// The image of balancerd, used as it stands.
    pub balancerd_image_ref: String,
    /// Resources of the container, instead of the operator's default as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_requirements: Option<ResourceRequirements>,
    /// Number of pods, 2 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The certificate that is presented to clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_certificate_spec: Option<MaterializeCertSpec>,
    /// The certificate of environmentd: whether it names an issuer decides if balancerd speaks TLS to environmentd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_certificate_spec: Option<MaterializeCertSpec>,
    /// Annotations for the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_annotations: Option<BTreeMap<String, String>>,
    /// Labels for the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_labels: Option<BTreeMap<String, String>>,
    /// Sends every connection to one environmentd. Exactly one of `staticRouting` and `fronteggRouting` must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub static_routing: Option<StaticRouting>,
    /// Lets Frontegg decide where a connection goes. Exactly one of `staticRouting` and `fronteggRouting` must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frontegg_routing: Option<FronteggRouting>,
    /// The resource id to begin with; random if absent. Read once, when the status is first written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    /// A `ConfigMap` whose key `config.json` holds the dynamic configuration of balancerd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configmap_name: Option<String>,
}

/// The environmentd that balancerd connects to.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StaticRouting {
    /// Namespace of environmentd's Service.
    pub environmentd_namespace: String,
    /// Name of environmentd's Service.
    pub environmentd_service_name: String,
}

/// Routing by Frontegg. There is nothing to configure yet.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FronteggRouting {}

/// What the operator knows about a balancerd Deployment.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BalancerStatus {
    /// Prefix of the names of all objects, chosen once.
    pub resource_id: String,
    /// `Ready` first, then `Stalled` while something keeps the balancer from being applied.
    pub conditions: Vec<Condition>,
}

// === impl BalancerSpec ===

impl BalancerSpec {
    /// The number of pods asked for.
    pub fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(DEFAULT_REPLICAS)
    }
}
