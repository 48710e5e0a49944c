//! The status of a `Materialize`: what it becomes, and how it is written (docs/reference/rollouts.md, "Conditions").

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::decide::{Report, Reported};
use super::error::Error;
use super::validate::Stall;
use crate::api::conditions::{STALLED, UP_TO_DATE, UpToDateReason};
use crate::api::labels::ANNOTATION_LAST_KNOWN_ACTIVE_GENERATION;
use crate::api::v1alpha1::{Materialize, MaterializeStatus};
use crate::kubernetes::FIELD_MANAGER;

/// The keys of the status that this operator writes. All others are left as they are: a newer version may own them.
const KEYS: [&str; 7] = [
    "resourceId",
    "activeGeneration",
    "lastCompletedRolloutRequest",
    "lastCompletedRolloutEnvironmentdImageRef",
    "resourcesHash",
    "rolloutStartedAt",
    "conditions",
];

/// The first status of a resource.
///
/// # Errors
/// [`Stall::InvalidAnnotation`] if the annotation that seeds the active generation can't be read.
pub(super) fn initial(materialize: &Materialize, resource_id: String) -> Result<MaterializeStatus, Stall> {
    let key = ANNOTATION_LAST_KNOWN_ACTIVE_GENERATION;
    let active_generation = match materialize.annotations().get(key) {
        None => 0,
        // The status stores a signed number of 64 bits.
        Some(value) => value
            .parse::<u64>()
            .ok()
            .filter(|number| i64::try_from(*number).is_ok())
            .ok_or_else(|| Stall::InvalidAnnotation {
                key,
                value: value.clone(),
            })?,
    };
    Ok(MaterializeStatus {
        resource_id,
        active_generation,
        last_completed_rollout_request: Uuid::nil(),
        last_completed_rollout_environmentd_image_ref: Some(materialize.spec.environmentd_image_ref.clone()),
        ..MaterializeStatus::default()
    })
}

/// Whether the first status has yet to be written: there is none, or only one that says that it can't be.
pub(super) fn is_uninitialised(materialize: &Materialize) -> bool {
    let Some(status) = &materialize.status else { return true };
    let stalled = status
        .conditions
        .iter()
        .any(|c| c.type_ == STALLED && c.reason == "InvalidAnnotation");
    status.resource_id.is_empty() || (stalled && status.up_to_date().is_none())
}

/// What the status says, as the decision reads it.
pub(super) fn reported(status: &MaterializeStatus) -> Reported {
    let condition = status.up_to_date();
    let reason = status.up_to_date_reason();
    // Written by an operator that does not know the field: the condition's own time serves (decision R18).
    let clock = matches!(
        reason,
        Some(UpToDateReason::Applying | UpToDateReason::ReadyToPromote | UpToDateReason::FailedDeploy)
    );
    let transition = condition
        .filter(|_| clock)
        .map(|condition| condition.last_transition_time.0);
    Reported {
        active: status.active_generation,
        reason,
        observed_generation: condition.and_then(|condition| condition.observed_generation),
        message: condition.map(|condition| condition.message.clone()).unwrap_or_default(),
        completed: status.last_completed_rollout_request,
        image: status.last_completed_rollout_environmentd_image_ref.clone(),
        hash: status.resources_hash.clone(),
        started_at: status.rollout_started_at.as_ref().map(|time| time.0).or(transition),
    }
}

/// `status` after `report` and with or without a stall, at the time `now`, for the `metadata.generation` given.
pub(super) fn next(
    status: &MaterializeStatus,
    report: Option<&Report>,
    stall: Option<&Stall>,
    generation: Option<i64>,
    now: Timestamp,
) -> MaterializeStatus {
    let mut next = status.clone();
    if let Some(report) = report {
        next.active_generation = report.active;
        next.last_completed_rollout_request = report.completed;
        next.last_completed_rollout_environmentd_image_ref
            .clone_from(&report.image);
        next.resources_hash.clone_from(&report.hash);
        next.rollout_started_at = report.started_at.map(Time);
    }
    let said = |type_: &str| status.conditions.iter().find(|condition| condition.type_ == type_);
    let condition = |type_: &str, status: &str, reason: &str, message: &str| Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: said(type_)
            .filter(|before| before.status == status)
            .map_or(Time(now), |before| before.last_transition_time.clone()),
    };
    let up_to_date = match report {
        Some(Report { reason, message, .. }) => Some(condition(UP_TO_DATE, reason.status(), reason.as_str(), message)),
        None => said(UP_TO_DATE).cloned(),
    };
    let stalled = stall.map(|stall| condition(STALLED, "True", stall.reason(), &stall.to_string()));
    next.conditions = up_to_date.into_iter().chain(stalled).collect();
    next
}

/// Whether both say the same, times of transitions aside.
pub(super) fn same(left: &MaterializeStatus, right: &MaterializeStatus) -> bool {
    timeless(left) == timeless(right)
}

/// Whether they differ in nothing but messages.
pub(super) fn same_but_for_messages(left: &MaterializeStatus, right: &MaterializeStatus) -> bool {
    let silent = |status: &MaterializeStatus| {
        let mut status = timeless(status);
        status
            .conditions
            .iter_mut()
            .for_each(|condition| condition.message.clear());
        status
    };
    silent(left) == silent(right)
}

fn timeless(status: &MaterializeStatus) -> MaterializeStatus {
    let mut status = status.clone();
    for condition in &mut status.conditions {
        condition.last_transition_time = Time(Timestamp::UNIX_EPOCH);
    }
    // Stored in whole seconds.
    status.rollout_started_at = status.rollout_started_at.map(|time| Time(whole_seconds(time.0)));
    status
}

/// `time` as the API server stores it.
pub(super) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Writes `status` to the resource as it was read: on its `resourceVersion` (decision R11), only our own keys.
///
/// # Errors
/// If the API server refuses, in particular with a conflict if the resource has changed since it was read.
pub(super) async fn write(
    api: &Api<Materialize>,
    materialize: &Materialize,
    status: &MaterializeStatus,
) -> Result<Materialize, Error> {
    let patch = json!({
        "metadata": { "resourceVersion": materialize.metadata.resource_version, "uid": materialize.metadata.uid },
        "status": own_keys(status)?,
    });
    let parameters = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    api.patch_status(&materialize.name_any(), &parameters, &Patch::Merge(&patch))
        .await
        .map_err(Error::request("write the status of the Materialize"))
}

/// The keys that we write, with null for those that are to go.
fn own_keys(status: &MaterializeStatus) -> Result<Value, Error> {
    let Ok(Value::Object(mut all)) = serde_json::to_value(status) else {
        return Err(Error::Internal("the status can't be written as JSON"));
    };
    let own: Map<String, Value> = KEYS
        .iter()
        .map(|key| ((*key).to_owned(), all.remove(*key).unwrap_or(Value::Null)))
        .collect();
    Ok(Value::Object(own))
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
