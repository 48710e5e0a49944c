//! One pass over one resource: dereference, validate, decide, build, apply, status.

mod prepare;
mod report;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use k8s_controller::{Outcome, TraceMetadata};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;
use kube::{Api, Client, ResourceExt as _};
use tracing::{debug, warn};

use super::apply::Writer;
use super::build::{BuildError, Environment, GenerationObjects};
use super::controller::Shared;
use super::decide::{Answer, Decision, Deployed, Done, Gate, Observed, Question, Rule, Step, decide};
use super::dereference::{self, Generations};
use super::error::Error;
use super::inquiry::Subject;
use super::proof::Proof;
use super::validate::{BackendSecret, Stall};
use super::{pods, status};
use crate::api::labels::ANNOTATION_FORCE_ROLLOUT;
use crate::api::rollout_hash::RolloutHash;
use crate::api::rollout_timeout::DEFAULT_ROLLOUT_REQUEST_TIMEOUT;
use crate::api::v1alpha1::Materialize;
use crate::api::version::check_upgrade;
use crate::kubernetes::{self, FIELD_MANAGER};

/// More decisions than any pass takes: a bound on a fault of this program.
const MOST_DECISIONS: usize = 32;

/// How often a pod that is not ready is looked at: its own state is not watched.
const POD_INTERVAL: Duration = Duration::from_secs(10);

/// How often, at most, a message alone is rewritten (decision R18).
const MESSAGE_INTERVAL: Duration = Duration::from_secs(30);

/// The state of one pass.
pub(super) struct Pass<'a> {
    shared: &'a Shared,
    client: Client,
    trace: &'a TraceMetadata,
    api: Api<Materialize>,
    proof: Proof,
    /// The resource, as this pass last read or wrote it.
    materialize: Materialize,
    secret: BackendSecret,
    stall: Option<Stall>,
    live: Generations,
    rendered: Option<Rendered>,
    findings: Option<pods::Findings>,
    answer: Option<(Question, Answer)>,
    asked: Option<Subject>,
    done: Done,
    /// The pass is repeated after this time at the latest.
    requeue: Option<Duration>,
}

/// The objects of the active and of the next generation under the current spec.
struct Rendered {
    active: Arc<GenerationObjects>,
    next: Arc<GenerationObjects>,
}

/// Runs one pass over `materialize`.
pub(super) async fn run(
    shared: &Shared,
    client: Client,
    materialize: &Materialize,
    trace: &TraceMetadata,
) -> Result<Option<Action>, Error> {
    #[cfg(feature = "failpoints")]
    crate::failpoints::pass(materialize);
    let api = Api::namespaced(client.clone(), &materialize.namespace().unwrap_or_default());
    let mut pass = Pass {
        shared,
        client,
        trace,
        proof: Proof::new(api.clone()),
        api,
        materialize: materialize.clone(),
        secret: BackendSecret::Missing,
        stall: None,
        live: Generations::default(),
        rendered: None,
        findings: None,
        answer: None,
        asked: None,
        done: Done::default(),
        requeue: None,
    };
    let result = pass.run().await;
    // What this pass did not ask for any more is no longer asked.
    shared.inquiries.keep_only(&pass.uid(), pass.asked.as_ref());
    pass.note_needs_update();
    result.map(|()| pass.requeue.map(Action::requeue))
}

// === impl Pass ===

impl Pass<'_> {
    async fn run(&mut self) -> Result<(), Error> {
        if status::is_uninitialised(&self.materialize) {
            self.initialise().await?;
        }
        let Some(gate) = self.resolve_environment_id().await? else {
            // The spec was filled in; that is an edit, whose event starts the next pass.
            return Ok(());
        };
        let resource_id = self
            .materialize
            .status
            .as_ref()
            .map(|status| status.resource_id.clone())
            .unwrap_or_default();
        self.live = Generations::read(&self.client, &self.materialize, &resource_id).await?;
        if gate == Gate::Open {
            let step = self.trace.step("global_resources");
            let applied = self
                .writer_of(&self.namespace())
                .global(&self.environment()?, &self.live)
                .await;
            if let Err(Error::Build(error @ BuildError::Certificate(_))) = &applied {
                let stall = Stall::InvalidCertificateSpec(error.to_string());
                return self.stall(stall).await;
            }
            applied?;
            step.finish(Outcome::Completed);
        }
        let result = self.roll(&gate).await;
        // Balancer and Console are looked after however the rollout stands (decision R16).
        let may_create = !matches!(self.stall, Some(Stall::EnvironmentIdInUse { .. }));
        if self.active() > 0 && may_create && !matches!(&result, Err(error) if error.is_nobodys_fault()) {
            let tail = self.hand_over().await;
            result?;
            tail?;
        } else {
            result?;
        }
        self.write_status(None).await
    }

    /// Decides and acts until a decision ends the pass.
    async fn roll(&mut self, gate: &Gate) -> Result<(), Error> {
        for _ in 0..MOST_DECISIONS {
            self.render()?;
            self.look_at_pods().await?;
            let seen = self.observe(gate)?;
            let Decision { rule, report, step } = decide(&seen);
            debug!(?rule, ?step, "decided");
            if let Some(report) = &report {
                self.write_status(Some(report)).await?;
            }
            match step {
                Step::Apply(generation) => self.apply(generation, &seen).await?,
                Step::Restore(generation) => self.restore(generation).await?,
                Step::TearDown(generation) => {
                    self.tear_down(|other| other == generation).await?;
                    return Ok(());
                }
                Step::CleanUp => {
                    let active = self.active();
                    self.tear_down(|other| other != active).await?;
                    self.done.cleaned = true;
                }
                Step::SwitchTraffic(generation, report) => self.switch_traffic(generation, &report).await?,
                Step::Ask(question) => {
                    if !self.ask(question) {
                        self.repeat_at(seen.deadline());
                        return Ok(());
                    }
                }
                Step::Again => {}
                Step::Wait(until) => {
                    self.repeat_at(until);
                    if rule == Rule::AwaitPod {
                        self.repeat_after(POD_INTERVAL);
                    }
                    return Ok(());
                }
                Step::Fail(text) if rule == Rule::Stalled => {
                    self.write_status(None).await?;
                    return Err(Error::Stalled(text));
                }
                Step::Fail(text) => return Err(Error::Rollout(text)),
            }
        }
        Err(Error::Internal("the decisions of one pass do not come to an end"))
    }

    /// Renders both generations, unless that was done for the active one of now.
    fn render(&mut self) -> Result<(), Error> {
        let active = self.active();
        if self
            .rendered
            .as_ref()
            .is_some_and(|rendered| rendered.active.generation == active)
        {
            return Ok(());
        }
        let environment = self.environment()?;
        let build = |generation| Arc::new(GenerationObjects::build(&environment, generation));
        let rendered = Rendered {
            active: build(active),
            next: build(active.saturating_add(1)),
        };
        self.rendered = Some(rendered);
        Ok(())
    }

    /// Looks at the pods of a candidate that is not ready, once, after it was applied.
    async fn look_at_pods(&mut self) -> Result<(), Error> {
        if !self.done.deployed || self.findings.is_some() {
            return Ok(());
        }
        let Some(candidate) = self.live.stateful_set(self.active().saturating_add(1)) else {
            return Ok(());
        };
        let findings = match self.live.deployed(self.active().saturating_add(1), |_| false) {
            Deployed::Running(workload) if !workload.ready => dereference::pods_of(&self.client, candidate).await?,
            _ => pods::Findings::default(),
        };
        for (name, uid) in &findings.stuck {
            self.proof.require(&self.materialize).await?;
            self.writer_of(&self.namespace()).delete_stuck_pod(name, uid).await?;
        }
        self.findings = Some(findings);
        Ok(())
    }

    /// Everything that the decision depends on.
    fn observe(&self, gate: &Gate) -> Result<Observed, Error> {
        let (Some(rendered), Some(stored)) = (&self.rendered, &self.materialize.status) else {
            return Err(Error::Internal("decided without status or rendered objects"));
        };
        let spec = &self.materialize.spec;
        let reported = status::reported(stored);
        let active_image = reported.image.as_deref().unwrap_or(&spec.environmentd_image_ref);
        let refusal = check_upgrade(reported.active, active_image, &spec.environmentd_image_ref).err();
        let next = reported.active.saturating_add(1);
        let mut candidate = self.live.deployed(next, |live| differs(&rendered.next, live));
        if let (Deployed::Running(workload), Some(findings)) = (&mut candidate, &self.findings) {
            workload.trouble.clone_from(&findings.trouble);
        }
        Ok(Observed {
            now: self.now(),
            generation: self.materialize.metadata.generation,
            request: spec.request_rollout,
            image: spec.environmentd_image_ref.clone(),
            strategy: spec.rollout_strategy,
            force_promote: self.is_force_promoted(),
            timeout: self.timeout(),
            refusal: refusal.map(|refusal| refusal.to_string()),
            gate: gate.clone(),
            hash_if_active: rendered.active.hash.clone(),
            hash_if_next: rendered.next.hash.clone(),
            active: self
                .live
                .deployed(reported.active, |live| differs(&rendered.active, live)),
            candidate,
            leftovers: self.live.has_leftovers(reported.active),
            answer: self.answer.clone(),
            done: self.done,
            reported,
        })
    }

    /// Whether `spec.forcePromote` names the rollout that is requested (v1alpha1), or this spec (v1).
    fn is_force_promoted(&self) -> bool {
        let spec = &self.materialize.spec;
        spec.force_promote == spec.request_rollout.hyphenated().to_string()
            || (!spec.force_promote.is_empty() && self.rollout_hash().as_str() == spec.force_promote)
    }

    /// The hash of this spec in the terms of v1.
    fn rollout_hash(&self) -> RolloutHash {
        let annotation = self.materialize.annotations().get(ANNOTATION_FORCE_ROLLOUT);
        RolloutHash::of_v1alpha1(&self.materialize.spec, annotation.map(String::as_str))
    }

    fn timeout(&self) -> Duration {
        let timeout = &self.materialize.spec.rollout_request_timeout;
        timeout.duration().unwrap_or_else(|error| {
            warn!(
                namespace = self.namespace(),
                name = self.materialize.name_any(),
                value = timeout.0,
                %error,
                "rolloutRequestTimeout can't be read, using 24h"
            );
            DEFAULT_ROLLOUT_REQUEST_TIMEOUT
        })
    }

    fn repeat_at(&mut self, moment: Option<Timestamp>) {
        let Some(moment) = moment else { return };
        let left = moment.duration_since(self.now());
        // What lies further ahead than the regular repetition is found by that.
        if left.as_secs() < 2400 {
            // Times are stored in whole seconds; a pass just before the moment would be for nothing.
            self.repeat_after(Duration::try_from(left).unwrap_or_default() + Duration::from_millis(10));
        }
    }

    fn repeat_after(&mut self, time: Duration) {
        self.requeue = Some(self.requeue.map_or(time, |earlier| earlier.min(time)));
    }

    fn environment(&self) -> Result<Environment<'_>, Error> {
        Ok(Environment::new(&self.materialize, &self.shared.config)?)
    }

    fn writer_of<'b>(&'b self, namespace: &'b str) -> Writer<'b> {
        Writer {
            client: &self.client,
            namespace,
            own: &self.shared.own,
        }
    }

    fn active(&self) -> u64 {
        self.materialize
            .status
            .as_ref()
            .map_or(0, |status| status.active_generation)
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.timestamp()
    }

    fn uid(&self) -> String {
        self.materialize.uid().unwrap_or_default()
    }

    fn namespace(&self) -> String {
        self.materialize.namespace().unwrap_or_default()
    }
}

/// Whether a `StatefulSet` that another operator made differs from what we would apply (decision R4).
fn differs(objects: &GenerationObjects, live: &StatefulSet) -> bool {
    match (serde_json::to_value(&objects.stateful_set), serde_json::to_value(live)) {
        (Ok(desired), Ok(live)) => kubernetes::first_difference(&desired, &live, FIELD_MANAGER).is_some(),
        _ => true,
    }
}
