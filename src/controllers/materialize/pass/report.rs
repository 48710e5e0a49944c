//! Writes the status, and publishes what it says.

use k8s_controller::events::{Event, EventType};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;

use super::super::decide::Report;
use super::super::error::Error;
use super::super::status;
use super::super::validate::Stall;
use super::{MESSAGE_INTERVAL, Pass};
use crate::api::conditions::{STALLED, UpToDateReason};
use crate::api::v1alpha1::MaterializeStatus;

// === impl Pass ===

impl Pass<'_> {
    /// Writes the status if it says anything new, and publishes what it says.
    pub(super) async fn write_status(&mut self, report: Option<&Report>) -> Result<(), Error> {
        let Some(before) = self.materialize.status.clone() else {
            return Err(Error::Internal("reported before the first status"));
        };
        let now = status::whole_seconds(self.now());
        let generation = self.materialize.metadata.generation;
        let after = status::next(&before, report, self.stall.as_ref(), generation, now);
        if status::same(&before, &after) {
            return Ok(());
        }
        let only_messages = status::same_but_for_messages(&before, &after);
        if only_messages && let Some(left) = self.shared.messages.time_left(&self.uid(), MESSAGE_INTERVAL) {
            self.repeat_after(left);
            return Ok(());
        }
        self.shared.own.status(&self.uid(), &after);
        self.materialize = status::write(&self.api, &self.materialize, &after).await?;
        self.proof.note(&self.materialize);
        self.shared.messages.written(&self.uid());
        if !only_messages {
            self.publish(&before.conditions).await;
        }
        Ok(())
    }

    /// One event for each condition that says something else than before.
    pub(super) async fn publish(&self, before: &[Condition]) {
        let conditions = self.materialize.status.iter().flat_map(|status| &status.conditions);
        for condition in conditions {
            let said = before.iter().find(|old| old.type_ == condition.type_);
            if said.is_some_and(|old| old.reason == condition.reason && old.message == condition.message) {
                continue;
            }
            let waits = condition.reason == UpToDateReason::WaitingForApproval.as_str();
            let bad = (condition.status == "False" && !waits) || condition.type_ == STALLED;
            let event = Event {
                type_: if bad { EventType::Warning } else { EventType::Normal },
                reason: condition.reason.clone(),
                action: "Reconcile".to_owned(),
                note: Some(condition.message.clone()),
                related: None,
            };
            self.trace.publish_event(event).await;
        }
    }

    /// Ends the pass because the user has to repair something.
    pub(super) async fn stall(&mut self, stall: Stall) -> Result<(), Error> {
        let text = stall.to_string();
        self.stall = Some(stall);
        self.write_status(None).await?;
        Err(Error::Stalled(text))
    }

    pub(super) fn note_needs_update(&self) {
        let status = self.materialize.status.as_ref();
        let applied = status.and_then(MaterializeStatus::up_to_date_reason) == Some(UpToDateReason::Applied);
        self.shared
            .needs_update
            .set(&self.namespace(), &self.materialize.name_any(), !applied);
    }
}
