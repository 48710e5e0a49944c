//! Who registered a CRD, kept as an annotation on it, and whose definition stays when two differ (decision W9).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::jiff::Timestamp;
use semver::Version;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::api::labels::ANNOTATION_REGISTRATION;

/// The replica that registers.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Registrant {
    /// Version of the operator, semantic.
    pub version: String,
    /// When the replica started.
    pub started_at: Timestamp,
    /// The operator's namespace.
    pub namespace: String,
}

/// The annotation's value.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Registration {
    /// SHA-256 of the definition as rendered, without `caBundle`.
    hash: String,
    #[serde(flatten)]
    registrant: Registrant,
}

/// Signs `crd`, which must be complete apart from `caBundle`, as registered by `registrant`.
pub(super) fn sign(crd: &mut CustomResourceDefinition, registrant: &Registrant) {
    let registration = Registration {
        hash: hash(crd),
        registrant: registrant.clone(),
    };
    // A struct of texts always serialises.
    let value = serde_json::to_string(&registration).unwrap_or_default();
    crd.metadata
        .annotations
        .get_or_insert_default()
        .insert(ANNOTATION_REGISTRATION.to_owned(), value);
}

/// The other registrant whose definition stays, if `crd` of `registrant` has to stand back. A definition without an
/// annotation that can be read loses to any.
pub(super) fn winner(
    live: &CustomResourceDefinition,
    crd: &CustomResourceDefinition,
    registrant: &Registrant,
) -> Option<Registrant> {
    let theirs = registration(live)?;
    if registration(crd).is_some_and(|ours| ours.hash == theirs.hash) {
        return None;
    }
    let stands_back = precedence(&theirs.registrant) > precedence(registrant);
    stands_back.then_some(theirs.registrant)
}

/// Whether `live` is signed as the same definition as `crd`, by whichever replica.
pub(super) fn is_registered(live: &CustomResourceDefinition, crd: &CustomResourceDefinition) -> bool {
    match (registration(live), registration(crd)) {
        (Some(theirs), Some(ours)) => theirs.hash == ours.hash,
        _ => false,
    }
}

/// The higher version goes first, at equal versions the later start. A version that can't be read is the lowest.
fn precedence(registrant: &Registrant) -> (Option<Version>, Timestamp) {
    (Version::parse(&registrant.version).ok(), registrant.started_at)
}

fn registration(crd: &CustomResourceDefinition) -> Option<Registration> {
    let text = crd.metadata.annotations.as_ref()?.get(ANNOTATION_REGISTRATION)?;
    serde_json::from_str(text).ok()
}

/// SHA-256 of the definition without `caBundle`, in lower-case hex.
fn hash(crd: &CustomResourceDefinition) -> String {
    let mut spec = crd.spec.clone();
    if let Some(conversion) = &mut spec.conversion
        && let Some(webhook) = &mut conversion.webhook
        && let Some(client_config) = &mut webhook.client_config
    {
        client_config.ca_bundle = None;
    }
    // A definition always serialises; two that did not would count as equal, and are compared field by field anyway.
    let bytes = serde_json::to_vec(&spec).unwrap_or_default();
    format!("{:x}", Sha256::digest(&bytes))
}
