//! `Console`: the web console of an environment. See `docs/reference/materialize-resource.md`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{AuthenticatorKind, DEFAULT_REPLICAS, MaterializeCertSpec, null};

/// What a console Deployment should look like.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "materialize.cloud",
    version = "v1alpha1",
    kind = "Console",
    singular = "console",
    plural = "consoles",
    namespaced,
    status = "ConsoleStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "ImageRef", "type": "string", "description": "The image that is deployed.", "jsonPath": ".spec.consoleImageRef", "priority": 1}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "description": "Whether the Deployment is available.", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleSpec {
    /// The image of the console, used as it stands.
    pub console_image_ref: String,
    /// Resources of the container, instead of the operator's default as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_requirements: Option<ResourceRequirements>,
    /// Number of pods, 2 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The certificate that is presented to browsers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_certificate_spec: Option<MaterializeCertSpec>,
    /// Annotations for the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_annotations: Option<BTreeMap<String, String>>,
    /// Labels for the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_labels: Option<BTreeMap<String, String>>,
    /// The balancerd that the console connects to.
    pub balancerd: ConsoleBalancerd,
    /// How users are authenticated.
    #[serde(default, deserialize_with = "null::is_default")]
    pub authenticator_kind: AuthenticatorKind,
    /// The resource id to begin with; random if absent. Read once, when the status is first written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
}

/// The balancerd that a console connects to.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleBalancerd {
    /// Name of balancerd's Service.
    pub service_name: String,
    /// Namespace of balancerd's Service.
    pub namespace: String,
    /// Whether balancerd speaks TLS.
    pub scheme: BalancerdScheme,
    /// DNS names under which clients reach balancerd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_names: Option<Vec<String>>,
}

/// How the console speaks to balancerd.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BalancerdScheme {
    /// Without TLS.
    #[default]
    Http,
    /// With TLS.
    Https,
}

/// What the operator knows about a console Deployment.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleStatus {
    /// Prefix of the names of all objects, chosen once.
    pub resource_id: String,
    /// `Ready` first, then `Stalled` while something keeps the console from being applied.
    pub conditions: Vec<Condition>,
}

// === impl ConsoleSpec ===

impl ConsoleSpec {
    /// The number of pods asked for.
    pub fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(DEFAULT_REPLICAS)
    }
}

// === impl BalancerdScheme ===

impl BalancerdScheme {
    /// The scheme as it stands in URLs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}
