//! `Materialize`: one environment. See `docs/reference/materialize-resource.md`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::api::conditions::{UP_TO_DATE, UpToDateReason};
use crate::api::{AuthenticatorKind, MaterializeCertSpec, MaterializeRolloutStrategy, RolloutRequestTimeout, null};

/// What a Materialize environment should look like.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "materialize.cloud",
    version = "v1alpha1",
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environmentd_extra_args: Option<Vec<String>>,
    /// Environment variables added after the operator's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environmentd_extra_env: Option<Vec<EnvVar>>,
    /// Deprecated: set the annotation `eks.amazonaws.com/role-arn` in `serviceAccountAnnotations` instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environmentd_iam_role_arn: Option<String>,
    /// The IAM role that environmentd assumes for `CREATE CONNECTION`; AWS only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environmentd_connection_role_arn: Option<String>,
    /// Resources of the environmentd container, instead of the operator's default as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environmentd_resource_requirements: Option<ResourceRequirements>,
    /// Size of the scratch volume. Accepted, and has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environmentd_scratch_volume_storage_requirement: Option<Quantity>,
    /// Resources of the balancerd containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balancerd_resource_requirements: Option<ResourceRequirements>,
    /// Resources of the console containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console_resource_requirements: Option<ResourceRequirements>,
    /// Number of balancerd pods, 2 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balancerd_replicas: Option<i32>,
    /// Number of console pods, 2 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console_replicas: Option<i32>,
    /// An existing service account for environmentd; if absent one is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Annotations of the service account that is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_annotations: Option<BTreeMap<String, String>>,
    /// Labels of the service account that is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_labels: Option<BTreeMap<String, String>>,
    /// Annotations for the pods of environmentd, clusterd, balancerd and the console.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_annotations: Option<BTreeMap<String, String>>,
    /// Labels for the pods of environmentd, clusterd, balancerd and the console.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_labels: Option<BTreeMap<String, String>>,
    /// A new value starts a rollout of the spec. The operator replaces the nil UUID by a random one.
    #[serde(default, deserialize_with = "null::is_default")]
    pub request_rollout: Uuid,
    /// Set to the value of `requestRollout` to promote that rollout now, without waiting until it has caught up.
    #[serde(default, deserialize_with = "null::is_default")]
    pub force_promote: String,
    /// A new value makes the next rollout start a new generation even if nothing else has changed.
    #[serde(default, deserialize_with = "null::is_default")]
    pub force_rollout: Uuid,
    /// Deprecated and ignored.
    #[serde(default, deserialize_with = "null::is_default")]
    pub in_place_rollout: bool,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_parameter_configmap_name: Option<String>,
    /// The certificate that balancerd presents to clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balancerd_external_certificate_spec: Option<MaterializeCertSpec>,
    /// The certificate that the console presents to browsers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console_external_certificate_spec: Option<MaterializeCertSpec>,
    /// The certificate of environmentd.
    #[serde(skip_serializing_if = "Option::is_none")]
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
    /// The last `requestRollout` that is finished, also by a time-out.
    pub last_completed_rollout_request: Uuid,
    /// The image of the last completed rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_completed_rollout_environmentd_image_ref: Option<String>,
    /// Hash of the objects of the active generation; empty while a rollout is under way.
    pub resources_hash: String,
    /// The same as `lastCompletedRolloutRequest` in the terms of `v1`; kept for conversion, never set by the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_completed_rollout_hash: Option<String>,
    /// When the current rollout began; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_started_at: Option<Time>,
    /// `UpToDate` first, then `Stalled` while something keeps the environment from moving.
    pub conditions: Vec<Condition>,
}

// === impl Materialize ===

impl Materialize {
    /// The image that serves: of the last completed rollout, else of the spec.
    pub fn active_image(&self) -> &str {
        self.status
            .as_ref()
            .and_then(|status| status.last_completed_rollout_environmentd_image_ref.as_deref())
            .unwrap_or(&self.spec.environmentd_image_ref)
    }
}

// === impl MaterializeStatus ===

impl MaterializeStatus {
    /// The condition `UpToDate`, if there is one yet.
    pub fn up_to_date(&self) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == UP_TO_DATE)
    }

    /// The reason of the condition `UpToDate`; `None` if there is no such condition, or its reason is unknown.
    pub fn up_to_date_reason(&self) -> Option<UpToDateReason> {
        UpToDateReason::parse(&self.up_to_date()?.reason)
    }
}
