//! `v1alpha1` to `v1`. See `docs/reference/materialize-resource.md`.

use uuid::Uuid;

use super::ConversionErrorKind;
use super::complete::{Complete, map_part};
use super::object::{Object, Value, is_null};
use crate::api::conditions::UpToDateReason;
use crate::api::labels::ANNOTATION_EKS_ROLE_ARN;
use crate::api::rollout_hash::RolloutHash;
use crate::api::v1alpha1::{MaterializeSpec, MaterializeStatus};

/// Maps `object`, which is at `v1alpha1`, in place.
pub(super) fn convert(object: &mut Object<'_>) -> Result<(), ConversionErrorKind> {
    let complete = Complete::<MaterializeSpec, MaterializeStatus>::read(object);
    map_part(object, "spec", ".spec", map_spec)?;
    map_part(object, "status", ".status", |status| {
        if let Some(complete) = &complete
            && let Some(known) = &complete.status
        {
            let hash = RolloutHash::of_v1alpha1(&complete.spec, complete.force_rollout.as_deref());
            derive_status(status, &complete.spec, known, &hash);
        }
    })
}

fn map_spec(spec: &mut Object<'_>) {
    spec.remove("requestRollout");
    spec.remove("inPlaceRollout");
    move_role_to_annotation(spec);
    let promotes_nothing = spec
        .get("forcePromote")
        .and_then(Value::as_text)
        .is_some_and(|text| text.is_empty() || text == NIL);
    if promotes_nothing {
        spec.remove("forcePromote");
    }
}

/// The nil UUID; older clients write it into `forcePromote` for "nothing".
const NIL: &str = "00000000-0000-0000-0000-000000000000";

/// Moves the deprecated `environmentdIamRoleArn` into the annotations, unless they name a role already.
fn move_role_to_annotation(spec: &mut Object<'_>) {
    let role = spec.raw("environmentdIamRoleArn").filter(|role| !is_null(role));
    spec.remove("environmentdIamRoleArn");
    let Some(role) = role else {
        return;
    };
    let annotations = spec.raw("serviceAccountAnnotations").filter(|raw| !is_null(raw));
    let mut annotations = match annotations {
        None => Object::default(),
        Some(raw) => match Object::parse(raw) {
            Some(annotations) => annotations,
            None => return,
        },
    };
    if annotations.get(ANNOTATION_EKS_ROLE_ARN).is_none() {
        annotations.set(ANNOTATION_EKS_ROLE_ARN, Value::Raw(role));
        spec.set("serviceAccountAnnotations", Value::Object(annotations));
    }
}

/// Adds what `v1` knows and `v1alpha1` does not, and what a way back needs (decision R3).
fn derive_status(status: &mut Object<'_>, spec: &MaterializeSpec, known: &MaterializeStatus, hash: &RolloutHash) {
    let completed = known.last_completed_rollout_request;
    let outstanding = completed != spec.request_rollout || completed == Uuid::nil();
    let last_completed = match &known.last_completed_rollout_hash {
        Some(stored) => Some(stored.clone()),
        None if outstanding => None,
        None => Some(hash.to_string()),
    };
    let promoting = known
        .conditions
        .iter()
        .any(|condition| condition.reason == UpToDateReason::Promoting.as_str());
    status.set_text("lastCompletedRolloutHash", last_completed);
    status.set_text("requestedRolloutHash", (!promoting).then(|| hash.to_string()));
    status.set_text("requestRollout", Some(spec.request_rollout.to_string()));
    status.set_text("specRolloutHash", Some(hash.to_string()));
}
