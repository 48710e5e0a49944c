//! The steps that a decision asks for.

use std::sync::Arc;

use k8s_controller::Outcome;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;
use kube::runtime::reflector::ObjectRef;
use tracing::debug;

use super::super::apply::{Purpose, Writer};
use super::super::build::{Environment, GenerationObjects};
use super::super::decide::{Answer, Deployed, Done, Observed, Question, Report};
use super::super::error::Error;
use super::super::inquiry::Subject;
use super::super::status;
use super::super::tail::{self, Tail};
use super::super::validate::BackendSecret;
use super::Pass;
use crate::api::conditions::UpToDateReason;
use crate::environmentd::{Endpoint, Password};

// === impl Pass ===

impl Pass<'_> {
    /// Applies the objects of a generation from the current spec.
    pub(super) async fn apply(&mut self, generation: u64, seen: &Observed) -> Result<(), Error> {
        let step = self.trace.step("generation_resources");
        let is_active = generation == self.active();
        let Some(rendered) = &self.rendered else {
            return Err(Error::Internal("applied without rendered objects"));
        };
        let objects = Arc::clone(if is_active { &rendered.active } else { &rendered.next });
        let workload = if is_active { &seen.active } else { &seen.candidate };
        let (record, replaces) = match workload {
            Deployed::Running(workload) => (workload.record.clone(), workload.replaces.clone()),
            Deployed::Missing | Deployed::Terminating => (None, None),
        };
        let purpose = if is_active {
            // What it was applied for stays on record.
            let request = record.map_or(seen.reported.completed, |record| record.request);
            Purpose {
                request,
                replaces,
                public: true,
            }
        } else {
            Purpose {
                request: seen.request,
                replaces: replaces.or_else(|| seen.replaced_hash()),
                public: false,
            }
        };
        if is_active && self.changes_what_serves(&objects) {
            self.proof.require(&self.materialize).await?;
        }
        let namespace = self.namespace();
        let writer = Writer {
            client: &self.client,
            namespace: &namespace,
            own: &self.shared.own,
        };
        let applied = writer.generation(&objects, &purpose, &mut self.live).await;
        match applied {
            Ok(()) => {}
            // Judged and refused: the same objects won't be taken next time either.
            Err(error) if !is_active && error.is_rejection() => {
                let text = format!("Failed to apply changes for generation {generation}: {}", error.chain());
                if seen.reported.reason != Some(UpToDateReason::Promoting) {
                    // The status may have been written since it was seen.
                    let reported = self
                        .materialize
                        .status
                        .as_ref()
                        .map(status::reported)
                        .unwrap_or_default();
                    let report = Report {
                        reason: UpToDateReason::FailedDeploy,
                        message: text.clone(),
                        active: reported.active,
                        completed: reported.completed,
                        image: reported.image,
                        hash: reported.hash,
                        started_at: reported.started_at,
                    };
                    self.write_status(Some(&report)).await?;
                }
                return Err(Error::Rollout(text));
            }
            Err(error) => return Err(error),
        }
        self.mark_done(is_active);
        step.finish(Outcome::Completed);
        Ok(())
    }

    /// Puts back what is deployed of a generation that the spec differs from.
    pub(super) async fn restore(&mut self, generation: u64) -> Result<(), Error> {
        let is_active = generation == self.active();
        let Some(rendered) = &self.rendered else {
            return Err(Error::Internal("restored without rendered objects"));
        };
        if is_active && self.changes_what_serves(&Arc::clone(&rendered.active)) {
            self.proof.require(&self.materialize).await?;
        }
        let environment = Environment::new(&self.materialize, &self.shared.config)?;
        let namespace = self.namespace();
        let writer = Writer {
            client: &self.client,
            namespace: &namespace,
            own: &self.shared.own,
        };
        let stall = writer
            .restore(&environment, generation, is_active, &mut self.live)
            .await?;
        if is_active && stall.is_some() {
            self.stall = self.stall.take().or(stall);
        }
        self.mark_done(is_active);
        Ok(())
    }

    /// Moves traffic to the generation and then says so.
    pub(super) async fn switch_traffic(&mut self, generation: u64, report: &Report) -> Result<(), Error> {
        let step = self.trace.step("promote");
        let Some(rendered) = &self.rendered else {
            return Err(Error::Internal("promoted without rendered objects"));
        };
        let service = rendered.next.public_service.clone();
        debug!(generation, "environmentd leads; moving the public Service");
        self.proof.require(&self.materialize).await?;
        let namespace = self.namespace();
        let writer = Writer {
            client: &self.client,
            namespace: &namespace,
            own: &self.shared.own,
        };
        writer.public_service(&service, &mut self.live).await?;
        self.write_status(Some(report)).await?;
        self.done = Done::default();
        self.findings = None;
        self.answer = None;
        step.finish(Outcome::Completed);
        Ok(())
    }

    pub(super) async fn tear_down(&self, doomed: impl Fn(u64) -> bool) -> Result<(), Error> {
        let step = self.trace.step("teardown_generation");
        self.proof.require(&self.materialize).await?;
        self.writer_of(&self.namespace()).tear_down(&self.live, doomed).await?;
        step.finish(Outcome::Completed);
        Ok(())
    }

    /// Whether there is an answer. If not, it starts a pass when it comes.
    pub(super) fn ask(&mut self, question: Question) -> bool {
        let next = self.active().saturating_add(1);
        let Some(rendered) = &self.rendered else { return false };
        let connection = &rendered.next.connection;
        let password = match (&connection.secret_name, &self.secret) {
            (None, _) => None,
            (Some(name), BackendSecret::Missing) => {
                let text = format!("the Secret {name} with the password of mz_system does not exist");
                self.answer = Some((question, Answer::NotYet(text)));
                return true;
            }
            (Some(_), BackendSecret::Found { password, .. }) => password
                .as_ref()
                .map(|bytes| Password::new(String::from_utf8_lossy(bytes).into_owned())),
        };
        let incarnation = self.live.stateful_set(next).map_or_else(String::new, |set| {
            format!(
                "{}/{}",
                set.uid().unwrap_or_default(),
                set.metadata.generation.unwrap_or_default()
            )
        });
        let endpoint = Endpoint {
            base_url: connection.url.clone(),
            password,
        };
        let subject = Subject {
            question,
            endpoint,
            incarnation,
        };
        let resource = ObjectRef::from_obj(&self.materialize);
        let answer = self.shared.inquiries.ask(&resource, &self.uid(), &subject);
        self.asked = Some(subject);
        self.answer = answer.map(|answer| (question, answer));
        self.answer.is_some()
    }

    pub(super) async fn hand_over(&mut self) -> Result<(), Error> {
        let step = self.trace.step("balancer");
        let namespace = self.namespace();
        let environment = Environment::new(&self.materialize, &self.shared.config)?;
        let writer = Writer {
            client: &self.client,
            namespace: &namespace,
            own: &self.shared.own,
        };
        match tail::hand_over(&writer, &environment, &self.proof).await? {
            Tail::Done => step.finish(Outcome::Completed),
            Tail::AwaitsBalancer => step.finish(Outcome::Waiting),
        }
        Ok(())
    }

    pub(super) fn mark_done(&mut self, is_active: bool) {
        if is_active {
            self.done.upkeep = true;
        } else {
            self.done.deployed = true;
        }
    }

    /// Whether applying these objects would create the `StatefulSet` or move the public Service.
    pub(super) fn changes_what_serves(&self, objects: &GenerationObjects) -> bool {
        let selector = |service: &Service| service.spec.as_ref()?.selector.clone();
        let public = self.live.service(&objects.public_service.name_any());
        self.live.stateful_set(objects.generation).is_none()
            || public.is_none_or(|live| selector(live) != selector(&objects.public_service))
    }
}
