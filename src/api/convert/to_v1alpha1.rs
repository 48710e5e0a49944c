//! `v1` to `v1alpha1`. See `docs/reference/materialize-resource.md`.

use uuid::Uuid;

use super::ConversionErrorKind;
use super::complete::{Complete, map_part};
use super::object::{Object, Value};
use crate::api::rollout_hash::{RolloutHash, request_id};
use crate::api::v1::{MaterializeSpec, MaterializeStatus};

/// Maps `object`, which is at `v1`, in place.
pub(super) fn convert(object: &mut Object<'_>) -> Result<(), ConversionErrorKind> {
    let complete = Complete::<MaterializeSpec, MaterializeStatus>::read(object);
    map_part(object, "spec", ".spec", |spec| {
        if let Some(complete) = &complete {
            let request = requested(complete).to_string();
            spec.set("requestRollout", Value::Text(request.into()));
        }
    })?;
    map_part(object, "status", ".status", |status| {
        for key in ["requestedRolloutHash", "requestRollout", "specRolloutHash"] {
            status.remove(key);
        }
        if let Some(known) = complete.as_ref().and_then(|complete| complete.status.as_ref()) {
            derive_status(status, known);
        }
    })
}

/// The stored request as long as the spec's hash is the one that it was stored with (decision R3), else the hash's own.
fn requested(complete: &Complete<MaterializeSpec, MaterializeStatus>) -> Uuid {
    let hash = RolloutHash::of_v1(&complete.spec, complete.force_rollout.as_deref());
    complete
        .status
        .as_ref()
        .filter(|status| status.spec_rollout_hash.as_deref() == Some(hash.as_str()))
        .and_then(|status| status.request_rollout)
        .unwrap_or_else(|| hash.request_id())
}

/// Adds what the schema of `v1alpha1` requires, where the status does not carry it from there.
fn derive_status(status: &mut Object<'_>, known: &MaterializeStatus) {
    if known.last_completed_rollout_request.is_none() {
        let completed = known
            .last_completed_rollout_hash
            .as_deref()
            .map_or(Uuid::nil(), request_id);
        status.set("lastCompletedRolloutRequest", Value::Text(completed.to_string().into()));
    }
    if known.resources_hash.is_none() {
        status.set("resourcesHash", Value::Text("".into()));
    }
}
