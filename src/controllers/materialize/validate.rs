//! Whether a rollout of this resource may start: its Secret, licence key and environment id. No I/O.

use jsonwebtoken::DecodingKey;
use k8s_openapi::jiff::Timestamp;
use uuid::Uuid;

use super::license::{InvalidLicense, License};
use crate::api::v1alpha1::Materialize;
use crate::api::version::ImageVersion;

/// What was read of the backend Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendSecret {
    /// There is no such Secret.
    Missing,
    /// It exists.
    Found {
        /// The value of its key `license_key`.
        license_key: Option<Vec<u8>>,
        /// The value of its key `external_login_password_mz_system`.
        password: Option<Vec<u8>>,
    },
}

/// Another resource with the same `environmentId`, or this one, as far as the choice between them goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `status.activeGeneration`.
    pub active_generation: u64,
}

/// What the check came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Rollouts may start.
    Valid,
    /// These fields of the spec are to be filled in first.
    FillIn {
        /// `spec.requestRollout`, if it is nil.
        request_rollout: Option<Uuid>,
        /// `spec.environmentId`, if it is nil.
        environment_id: Option<Uuid>,
    },
    /// The user has to repair something first.
    Stalled(Stall),
}

/// What keeps an environment from moving (decision R5).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stall {
    /// The Secret named by `spec.backendSecretName` does not exist.
    #[error("the Secret {namespace}/{name} (spec.backendSecretName) does not exist: create it, or correct the name")]
    BackendSecretNotFound {
        /// Namespace of the resource.
        namespace: String,
        /// The name in the spec.
        name: String,
    },
    /// The Secret has no licence key, and this version of environmentd wants one.
    #[error("the Secret {0} has no key license_key: environmentd needs one from version 0.161.0 on")]
    LicenseKeyNotFound(String),
    /// The licence key is not valid.
    #[error("license_key in the Secret {secret} can't be used: {error}")]
    LicenseKeyInvalid {
        /// The Secret.
        secret: String,
        /// What is wrong with the key.
        error: InvalidLicense,
    },
    /// The licence key is for another environment.
    #[error("spec.environmentId is {spec}, but the licence key is for the environment {license}")]
    EnvironmentIdMismatch {
        /// The id in the spec.
        spec: Uuid,
        /// The id in the licence key.
        license: Uuid,
    },
    /// Another resource has the same environment id, and goes first.
    #[error(
        "spec.environmentId {id} is already used by the Materialize {other}: an id belongs to one environment in the \
         world; give this one another id"
    )]
    EnvironmentIdInUse {
        /// The id.
        id: Uuid,
        /// Namespace and name of the other resource.
        other: String,
    },
    /// An annotation can't be read.
    #[error("the annotation {key} is {value:?}, expected a whole number from 0 to 9223372036854775807")]
    InvalidAnnotation {
        /// The annotation.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// Certificate settings contradict each other.
    #[error("{0}")]
    InvalidCertificateSpec(String),
    /// Objects of the active generation are gone and can't be made again from a spec that was not approved.
    #[error(
        "{what} of the active generation {generation} is missing, and the spec differs from what was deployed: \
         restore the spec, or request a rollout"
    )]
    ActiveGenerationMissing {
        /// Kind and name of the object.
        what: String,
        /// The generation.
        generation: u64,
    },
}

// === impl Stall ===

impl Stall {
    /// The reason of the condition `Stalled`.
    pub fn reason(&self) -> &'static str {
        match self {
            Stall::BackendSecretNotFound { .. } => "BackendSecretNotFound",
            Stall::LicenseKeyNotFound(_) => "LicenseKeyNotFound",
            Stall::LicenseKeyInvalid { .. } => "LicenseKeyInvalid",
            Stall::EnvironmentIdMismatch { .. } => "EnvironmentIdMismatch",
            Stall::EnvironmentIdInUse { .. } => "EnvironmentIdInUse",
            Stall::InvalidAnnotation { .. } => "InvalidAnnotation",
            Stall::InvalidCertificateSpec(_) => "InvalidCertificateSpec",
            Stall::ActiveGenerationMissing { .. } => "ActiveGenerationMissing",
        }
    }
}

/// Checks `materialize`; `random` makes ids.
///
/// `claimants` are all resources with its environment id, itself included or not.
pub fn validate(
    materialize: &Materialize,
    secret: &BackendSecret,
    claimants: &[Claimant],
    keys: &[DecodingKey],
    now: Timestamp,
    random: impl Fn() -> Uuid,
) -> Verdict {
    let spec = &materialize.spec;
    let namespace = materialize.metadata.namespace.clone().unwrap_or_default();
    let secret_name = format!("{namespace}/{}", spec.backend_secret_name);
    let license = match secret {
        BackendSecret::Missing => {
            let name = spec.backend_secret_name.clone();
            return Verdict::Stalled(Stall::BackendSecretNotFound { namespace, name });
        }
        BackendSecret::Found {
            license_key: Some(key), ..
        } => match License::check(key, keys, now) {
            Ok(license) => Some(license),
            Err(error) => {
                return Verdict::Stalled(Stall::LicenseKeyInvalid {
                    secret: secret_name,
                    error,
                });
            }
        },
        BackendSecret::Found { license_key: None, .. } => {
            if ImageVersion::of(&spec.environmentd_image_ref).requires_license_key() {
                return Verdict::Stalled(Stall::LicenseKeyNotFound(secret_name));
            }
            None
        }
    };
    let licensed_id = license.and_then(|license| license.environment_id);
    let request_rollout = spec.request_rollout.is_nil().then(&random);
    let environment_id = spec
        .environment_id
        .is_nil()
        .then(|| licensed_id.unwrap_or_else(&random));
    if request_rollout.is_some() || environment_id.is_some() {
        return Verdict::FillIn {
            request_rollout,
            environment_id,
        };
    }
    if let Some(license) = licensed_id.filter(|id| *id != spec.environment_id) {
        return Verdict::Stalled(Stall::EnvironmentIdMismatch {
            spec: spec.environment_id,
            license,
        });
    }
    match rival(materialize, claimants) {
        Some(rival) => Verdict::Stalled(Stall::EnvironmentIdInUse {
            id: spec.environment_id,
            other: format!("{}/{}", rival.namespace, rival.name),
        }),
        None => Verdict::Valid,
    }
}

/// The resource that goes before `materialize`, if one does: that with the higher generation, then the older one
/// (decision R16).
fn rival<'a>(materialize: &Materialize, claimants: &'a [Claimant]) -> Option<&'a Claimant> {
    let own = Claimant::of(materialize);
    let rank = |claimant: &Claimant| {
        (
            u64::MAX - claimant.active_generation,
            claimant.created.unwrap_or(Timestamp::MAX),
            claimant.uid.clone(),
        )
    };
    claimants
        .iter()
        .filter(|claimant| claimant.uid != own.uid && rank(claimant) < rank(&own))
        .min_by_key(|c| rank(c))
}

// === impl Claimant ===

impl Claimant {
    /// What counts of `materialize`.
    pub fn of(materialize: &Materialize) -> Self {
        let metadata = &materialize.metadata;
        Claimant {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            active_generation: materialize.status.as_ref().map_or(0, |status| status.active_generation),
        }
    }
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
