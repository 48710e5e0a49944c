//! `Materialize` at `v1`: every relevant change of the spec starts a rollout.
//! See `docs/reference/materialize-resource.md`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::{AuthenticatorKind, MaterializeCertSpec, MaterializeRolloutStrategy, RolloutRequestTimeout, null};

/// What a Materialize environment should look like.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "materialize.cloud",
    version = "v1",
    kind = "Materialize",
    singular = "materialize",
    plural = "materializes",
    shortname = "mzs",
    namespaced,
    status = "MaterializeStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn = r#"{"name": "Status", "type": "string", "description": "Where the last change of the spec stands.", "jsonPath": ".status.conditions[?(@.type==\"UpToDate\")].reason"}"#,
    printcolumn = r#"{"name": "Generation", "type": "integer", "description": "The generation that serves.", "jsonPath": ".status.activeGeneration"}"#,
    printcolumn = r#"{"name": "ImageRefRunning", "type": "string", "description": "The image that is in use.", "jsonPath": ".status.lastCompletedRolloutEnvironmentdImageRef", "priority": 1}"#,
    printcolumn = r#"{"name": "ImageRefToDeploy", "type": "string", "description": "The image that the next rollout deploys.", "jsonPath": ".spec.environmentdImageRef", "priority": 1}"#,
    printcolumn = r#"{"name": "UpToDate", "type": "string", "description": "Whether the spec has been applied.", "jsonPath": ".status.conditions[?(@.type==\"UpToDate\")].status", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MaterializeSpec {
    /// The image of environmentd. The images of clusterd, balancerd and the console are derived from it.
    pub environmentd_image_ref: String,
    /// Arguments added after the operator's own.
    pub environmentd_extra_args: Option<Vec<String>>,
    /// Environment variables added after the operator's own.
    pub environmentd_extra_env: Option<Vec<EnvVar>>,
    /// The IAM role that environmentd assumes for `CREATE CONNECTION`; AWS only.
    pub environmentd_connection_role_arn: Option<String>,
    /// Resources of the environmentd container, instead of the operator's default as a whole.
    pub environmentd_resource_requirements: Option<ResourceRequirements>,
    /// Size of the scratch volume. Accepted, and has no effect.
    pub environmentd_scratch_volume_storage_requirement: Option<Quantity>,
    /// Resources of the balancerd containers.
    pub balancerd_resource_requirements: Option<ResourceRequirements>,
    /// Resources of the console containers.
    pub console_resource_requirements: Option<ResourceRequirements>,
    /// Number of balancerd pods, 2 if absent.
    pub balancerd_replicas: Option<i32>,
    /// Number of console pods, 2 if absent.
    pub console_replicas: Option<i32>,
    /// An existing service account for environmentd; if absent one is created.
    pub service_account_name: Option<String>,
    /// Annotations of the service account that is created.
    pub service_account_annotations: Option<BTreeMap<String, String>>,
    /// Labels of the service account that is created.
    pub service_account_labels: Option<BTreeMap<String, String>>,
    /// Annotations for the pods of environmentd, clusterd, balancerd and the console.
    pub pod_annotations: Option<BTreeMap<String, String>>,
    /// Labels for the pods of environmentd, clusterd, balancerd and the console.
    pub pod_labels: Option<BTreeMap<String, String>>,
    /// Set to `status.requestedRolloutHash` to promote that rollout now, without waiting until it has caught up.
    pub force_promote: Option<String>,
    /// A new value starts a rollout even if nothing else has changed.
    #[serde(default, deserialize_with = "null::is_default")]
    pub force_rollout: Uuid,
    /// When a new generation takes over.
    #[serde(default, deserialize_with = "null::is_default")]
    pub rollout_strategy: MaterializeRolloutStrategy,
    /// How long a rollout may take before it is given up, such as `24h` or `1h 30m`.
    #[serde(default, deserialize_with = "null::is_default")]
    pub rollout_request_timeout: RolloutRequestTimeout,
    /// The Secret with the keys `metadata_backend_url`, `persist_backend_url`, `license_key` and, optionally,
    /// `external_login_password_mz_system`.
    pub backend_secret_name: String,
    /// How users are authenticated.
    #[serde(default, deserialize_with = "null::is_default")]
    pub authenticator_kind: AuthenticatorKind,
    /// Whether role-based access control is on.
    #[serde(default, deserialize_with = "null::is_default")]
    pub enable_rbac: bool,
    /// The environment's id, unique in the world. The operator fills it in; it must never change afterwards.
    #[serde(default, deserialize_with = "null::is_default")]
    pub environment_id: Uuid,
    /// A `ConfigMap` whose key `system-params.json` holds system parameters, for environmentd from 26.1.
    pub system_parameter_configmap_name: Option<String>,
    /// The certificate that balancerd presents to clients.
    pub balancerd_external_certificate_spec: Option<MaterializeCertSpec>,
    /// The certificate that the console presents to browsers.
    pub console_external_certificate_spec: Option<MaterializeCertSpec>,
    /// The certificate of environmentd.
    pub internal_certificate_spec: Option<MaterializeCertSpec>,
    /// A `ConfigMap` whose key `config.json` holds the dynamic configuration of balancerd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balancerd_configmap_name: Option<String>,
}

/// What the operator knows about a Materialize environment.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MaterializeStatus {
    /// Prefix of the names of nearly all objects: ten characters of `[a-z0-9]`, chosen once.
    pub resource_id: String,
    /// The generation that serves; 0 before the first rollout.
    #[schemars(extend("format" = "int64"))]
    pub active_generation: u64,
    /// The image of the last completed rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_completed_rollout_environmentd_image_ref: Option<String>,
    /// Hash of the spec whose rollout was the last to finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_completed_rollout_hash: Option<String>,
    /// Hash of the spec that is to be rolled out; absent while a generation is being promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_rollout_hash: Option<String>,
    /// When the current rollout began; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_started_at: Option<Time>,
    /// `status.lastCompletedRolloutRequest` of `v1alpha1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_completed_rollout_request: Option<Uuid>,
    /// `status.resourcesHash` of `v1alpha1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources_hash: Option<String>,
    /// `spec.requestRollout` of `v1alpha1`, as it is stored. Kept as long as the spec's hash is `specRolloutHash`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_rollout: Option<Uuid>,
    /// Hash of the spec that is stored, also while a generation is being promoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec_rollout_hash: Option<String>,
    /// `UpToDate` first, then `Stalled` while something keeps the environment from moving.
    pub conditions: Vec<Condition>,
}
