//! The rollout hash *H*: what makes a spec at `v1` ask for a rollout. See `docs/reference/materialize-resource.md`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::labels::ANNOTATION_EKS_ROLE_ARN;
use super::{AuthenticatorKind, MaterializeCertSpec, MaterializeRolloutStrategy, RolloutRequestTimeout, v1, v1alpha1};

/// SHA-256, in lower-case hex, of the parts of a spec that a rollout carries into effect.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct RolloutHash(String);

/// What is hashed: compact JSON, in this order, with `null` for what is not set.
///
/// The order and the set of fields are a contract: a change asks every environment for a rollout at its next write at
/// `v1`. A field that is added later must be left out when it is not set (decision R21). The fields of type `()` are
/// not part of the hash and always `null`; so is `balancerdConfigmapName`, which is younger and left out altogether.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hashed<'a> {
    environmentd_image_ref: &'a str,
    environmentd_extra_args: Option<&'a [String]>,
    environmentd_extra_env: Option<&'a [EnvVar]>,
    environmentd_connection_role_arn: Option<&'a str>,
    environmentd_resource_requirements: Option<&'a ResourceRequirements>,
    environmentd_scratch_volume_storage_requirement: Option<&'a Quantity>,
    balancerd_resource_requirements: (),
    console_resource_requirements: (),
    balancerd_replicas: (),
    console_replicas: (),
    service_account_name: Option<&'a str>,
    service_account_annotations: Option<Cow<'a, BTreeMap<String, String>>>,
    service_account_labels: Option<&'a BTreeMap<String, String>>,
    pod_annotations: Option<&'a BTreeMap<String, String>>,
    pod_labels: Option<&'a BTreeMap<String, String>>,
    force_promote: (),
    force_rollout: Uuid,
    rollout_strategy: MaterializeRolloutStrategy,
    rollout_request_timeout: &'a RolloutRequestTimeout,
    backend_secret_name: &'a str,
    authenticator_kind: AuthenticatorKind,
    enable_rbac: bool,
    environment_id: Uuid,
    system_parameter_configmap_name: Option<&'a str>,
    balancerd_external_certificate_spec: (),
    console_external_certificate_spec: (),
    internal_certificate_spec: Option<&'a MaterializeCertSpec>,
}

// === impl RolloutHash ===

impl RolloutHash {
    /// The hash of a spec at `v1`. `force_rollout` is the value of the annotation `materialize.cloud/force-rollout`.
    pub fn of_v1(spec: &v1::MaterializeSpec, force_rollout: Option<&str>) -> Self {
        Self::compute(&Hashed::from_v1(spec), force_rollout)
    }

    /// The hash of a spec at `v1alpha1`: that of the same spec after conversion to `v1`.
    pub fn of_v1alpha1(spec: &v1alpha1::MaterializeSpec, force_rollout: Option<&str>) -> Self {
        Self::compute(&Hashed::from_v1alpha1(spec), force_rollout)
    }

    /// The hash as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of `requestRollout` that stands for this hash at `v1alpha1`.
    pub fn request_id(&self) -> Uuid {
        request_id(&self.0)
    }

    fn compute(hashed: &Hashed<'_>, force_rollout: Option<&str>) -> Self {
        let mut digest = Sha256::new();
        digest.update(hashed.to_json());
        digest.update(force_rollout.unwrap_or_default());
        Self(format!("{:x}", digest.finalize()))
    }
}

impl fmt::Display for RolloutHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The value of `requestRollout` that stands for the rollout hash `hash`: UUID version 5 in the OID namespace.
pub fn request_id(hash: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, hash.as_bytes())
}

// === impl Hashed ===

impl<'a> Hashed<'a> {
    fn from_v1(spec: &'a v1::MaterializeSpec) -> Self {
        Self {
            environmentd_image_ref: &spec.environmentd_image_ref,
            environmentd_extra_args: spec.environmentd_extra_args.as_deref(),
            environmentd_extra_env: spec.environmentd_extra_env.as_deref(),
            environmentd_connection_role_arn: spec.environmentd_connection_role_arn.as_deref(),
            environmentd_resource_requirements: spec.environmentd_resource_requirements.as_ref(),
            environmentd_scratch_volume_storage_requirement: spec
                .environmentd_scratch_volume_storage_requirement
                .as_ref(),
            balancerd_resource_requirements: (),
            console_resource_requirements: (),
            balancerd_replicas: (),
            console_replicas: (),
            service_account_name: spec.service_account_name.as_deref(),
            service_account_annotations: spec.service_account_annotations.as_ref().map(Cow::Borrowed),
            service_account_labels: spec.service_account_labels.as_ref(),
            pod_annotations: spec.pod_annotations.as_ref(),
            pod_labels: spec.pod_labels.as_ref(),
            force_promote: (),
            force_rollout: spec.force_rollout,
            rollout_strategy: spec.rollout_strategy,
            rollout_request_timeout: &spec.rollout_request_timeout,
            backend_secret_name: &spec.backend_secret_name,
            authenticator_kind: spec.authenticator_kind,
            enable_rbac: spec.enable_rbac,
            environment_id: spec.environment_id,
            system_parameter_configmap_name: spec.system_parameter_configmap_name.as_deref(),
            balancerd_external_certificate_spec: (),
            console_external_certificate_spec: (),
            internal_certificate_spec: spec.internal_certificate_spec.as_ref(),
        }
    }

    fn from_v1alpha1(spec: &'a v1alpha1::MaterializeSpec) -> Self {
        Self {
            environmentd_image_ref: &spec.environmentd_image_ref,
            environmentd_extra_args: spec.environmentd_extra_args.as_deref(),
            environmentd_extra_env: spec.environmentd_extra_env.as_deref(),
            environmentd_connection_role_arn: spec.environmentd_connection_role_arn.as_deref(),
            environmentd_resource_requirements: spec.environmentd_resource_requirements.as_ref(),
            environmentd_scratch_volume_storage_requirement: spec
                .environmentd_scratch_volume_storage_requirement
                .as_ref(),
            balancerd_resource_requirements: (),
            console_resource_requirements: (),
            balancerd_replicas: (),
            console_replicas: (),
            service_account_name: spec.service_account_name.as_deref(),
            service_account_annotations: annotations_with_role(spec),
            service_account_labels: spec.service_account_labels.as_ref(),
            pod_annotations: spec.pod_annotations.as_ref(),
            pod_labels: spec.pod_labels.as_ref(),
            force_promote: (),
            force_rollout: spec.force_rollout,
            rollout_strategy: spec.rollout_strategy,
            rollout_request_timeout: &spec.rollout_request_timeout,
            backend_secret_name: &spec.backend_secret_name,
            authenticator_kind: spec.authenticator_kind,
            enable_rbac: spec.enable_rbac,
            environment_id: spec.environment_id,
            system_parameter_configmap_name: spec.system_parameter_configmap_name.as_deref(),
            balancerd_external_certificate_spec: (),
            console_external_certificate_spec: (),
            internal_certificate_spec: spec.internal_certificate_spec.as_ref(),
        }
    }

    #[expect(
        clippy::expect_used,
        reason = "every key is text and no Serialize of these types fails"
    )]
    fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("the hashed fields serialise")
    }
}

/// The service account's annotations as `v1` has them: with the deprecated IAM role, unless an annotation says another.
fn annotations_with_role(spec: &v1alpha1::MaterializeSpec) -> Option<Cow<'_, BTreeMap<String, String>>> {
    let annotations = spec.service_account_annotations.as_ref();
    match &spec.environmentd_iam_role_arn {
        Some(role) if annotations.is_none_or(|known| !known.contains_key(ANNOTATION_EKS_ROLE_ARN)) => {
            let mut annotations = annotations.cloned().unwrap_or_default();
            annotations.insert(ANNOTATION_EKS_ROLE_ARN.to_owned(), role.clone());
            Some(Cow::Owned(annotations))
        }
        _ => annotations.map(Cow::Borrowed),
    }
}

#[cfg(test)]
mod tests;
