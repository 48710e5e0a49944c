//! One pass over one resource: dereference, validate, decide, build, apply, status.

use std::sync::Arc;
use std::time::Duration;

use k8s_controller::events::{Event, EventType};
use k8s_controller::{Outcome, TraceMetadata};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, ResourceExt as _};
use rand::Rng as _;
use serde_json::json;
use tracing::{debug, warn};
use uuid::Uuid;

use super::apply::{Purpose, Writer};
use super::build::{BuildError, Environment, GenerationObjects};
use super::controller::Shared;
use super::decide::{
    Answer, Decision, Deployed, Done, Gate, Observed, Question, Report, Rule, Step, decide,
};
use super::dereference::{self, Generations};
use super::error::Error;
use super::inquiry::Subject;
use super::proof::Proof;
use super::tail::{self, Tail};
use super::validate::{BackendSecret, Claimant, Stall, Verdict, validate};
use super::{pods, status};
use crate::api::conditions::{STALLED, UpToDateReason};
use crate::api::labels::ANNOTATION_FORCE_ROLLOUT;
use crate::api::rollout_hash::RolloutHash;
use crate::api::rollout_timeout::DEFAULT_ROLLOUT_REQUEST_TIMEOUT;
use crate::api::v1alpha1::Materialize;
use crate::api::version::check_upgrade;
use crate::environmentd::{Endpoint, Password};
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
        let resource_id = self.materialize.status.as_ref().map(|status| status.resource_id.clone()).unwrap_or_default();
        self.live = Generations::read(&self.client, &self.materialize, &resource_id).await?;
        if gate == Gate::Open {
            let step = self.trace.step("global_resources");
            let applied = self.writer_of(&self.namespace()).global(&self.environment()?, &self.live).await;
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

    /// Writes the first status.
    async fn initialise(&mut self) -> Result<(), Error> {
        let step = self.trace.step("initialize_status");
        let known = self.materialize.status.as_ref().map(|status| status.resource_id.clone());
        let resource_id = known.filter(|id| !id.is_empty()).unwrap_or_else(random_resource_id);
        match status::initial(&self.materialize, resource_id.clone()) {
            Ok(initial) => {
                self.shared.own.status(&self.uid(), &initial);
                self.materialize = status::write(&self.api, &self.materialize, &initial).await?;
                self.proof.note(&self.materialize);
                step.finish(Outcome::Completed);
                Ok(())
            }
            Err(stall) => {
                let mut status = self.materialize.status.clone().unwrap_or_default();
                status.resource_id = resource_id;
                self.materialize.status.get_or_insert(status);
                self.stall(stall).await
            }
        }
    }

    /// Checks Secret, licence key and environment id; `None` if the spec was filled in.
    async fn resolve_environment_id(&mut self) -> Result<Option<Gate>, Error> {
        let step = self.trace.step("resolve_environment_id");
        self.secret = dereference::backend_secret(&self.client, &self.materialize).await?;
        let claimants = self.claimants();
        let keys = &self.shared.config.license_keys;
        let verdict = validate(&self.materialize, &self.secret, &claimants, keys, self.now(), Uuid::new_v4);
        let gate = match verdict {
            Verdict::Valid => Some(Gate::Open),
            Verdict::Stalled(stall) => {
                let gate = Gate::Stalled(stall.to_string());
                self.stall = Some(stall);
                Some(gate)
            }
            Verdict::FillIn { request_rollout, environment_id } => {
                self.fill_in(request_rollout, environment_id).await?;
                None
            }
        };
        step.finish(Outcome::Completed);
        Ok(gate)
    }

    /// Fills in the spec by a patch of just these keys, on the version that was read (decision R22).
    async fn fill_in(&self, request_rollout: Option<Uuid>, environment_id: Option<Uuid>) -> Result<(), Error> {
        let mut spec = serde_json::Map::new();
        if let Some(id) = request_rollout {
            spec.insert("requestRollout".to_owned(), json!(id));
        }
        if let Some(id) = environment_id {
            spec.insert("environmentId".to_owned(), json!(id));
        }
        let metadata = &self.materialize.metadata;
        let patch = json!({
            "metadata": { "resourceVersion": metadata.resource_version, "uid": metadata.uid },
            "spec": spec,
        });
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        self.api
            .patch(&self.materialize.name_any(), &parameters, &Patch::Merge(&patch))
            .await
            .map(|_| ())
            .map_err(Error::request("fill in requestRollout and environmentId"))
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
        if self.rendered.as_ref().is_some_and(|rendered| rendered.active.generation == active) {
            return Ok(());
        }
        let environment = self.environment()?;
        let build = |generation| Arc::new(GenerationObjects::build(&environment, generation));
        let rendered = Rendered { active: build(active), next: build(active.saturating_add(1)) };
        self.rendered = Some(rendered);
        Ok(())
    }

    /// Looks at the pods of a candidate that is not ready, once, after it was applied.
    async fn look_at_pods(&mut self) -> Result<(), Error> {
        if !self.done.deployed || self.findings.is_some() {
            return Ok(());
        }
        let Some(candidate) = self.live.stateful_set(self.active().saturating_add(1)) else { return Ok(()) };
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
            active: self.live.deployed(reported.active, |live| differs(&rendered.active, live)),
            candidate,
            leftovers: self.live.has_leftovers(reported.active),
            answer: self.answer.clone(),
            done: self.done,
            reported,
        })
    }

    /// Applies the objects of a generation from the current spec.
    async fn apply(&mut self, generation: u64, seen: &Observed) -> Result<(), Error> {
        let step = self.trace.step("generation_resources");
        let is_active = generation == self.active();
        let Some(rendered) = &self.rendered else { return Err(Error::Internal("applied without rendered objects")) };
        let objects = Arc::clone(if is_active { &rendered.active } else { &rendered.next });
        let workload = if is_active { &seen.active } else { &seen.candidate };
        let (record, replaces) = match workload {
            Deployed::Running(workload) => (workload.record.clone(), workload.replaces.clone()),
            Deployed::Missing | Deployed::Terminating => (None, None),
        };
        let purpose = if is_active {
            // What it was applied for stays on record.
            let request = record.map_or(seen.reported.completed, |record| record.request);
            Purpose { request, replaces, public: true }
        } else {
            Purpose { request: seen.request, replaces: replaces.or_else(|| seen.replaced_hash()), public: false }
        };
        if is_active && self.changes_what_serves(&objects) {
            self.proof.require(&self.materialize).await?;
        }
        let namespace = self.namespace();
        let writer =
            Writer { client: &self.client, namespace: &namespace, own: &self.shared.own };
        let applied = writer.generation(&objects, &purpose, &mut self.live).await;
        match applied {
            Ok(()) => {}
            // Judged and refused: the same objects won't be taken next time either.
            Err(error) if !is_active && error.is_rejection() => {
                let text = format!("Failed to apply changes for generation {generation}: {}", error.chain());
                if seen.reported.reason != Some(UpToDateReason::Promoting) {
                    // The status may have been written since it was seen.
                    let reported = self.materialize.status.as_ref().map(status::reported).unwrap_or_default();
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
    async fn restore(&mut self, generation: u64) -> Result<(), Error> {
        let is_active = generation == self.active();
        let Some(rendered) = &self.rendered else { return Err(Error::Internal("restored without rendered objects")) };
        if is_active && self.changes_what_serves(&Arc::clone(&rendered.active)) {
            self.proof.require(&self.materialize).await?;
        }
        let environment = Environment::new(&self.materialize, &self.shared.config)?;
        let namespace = self.namespace();
        let writer =
            Writer { client: &self.client, namespace: &namespace, own: &self.shared.own };
        let stall = writer.restore(&environment, generation, is_active, &mut self.live).await?;
        if is_active && stall.is_some() {
            self.stall = self.stall.take().or(stall);
        }
        self.mark_done(is_active);
        Ok(())
    }

    /// Moves traffic to the generation and then says so.
    async fn switch_traffic(&mut self, generation: u64, report: &Report) -> Result<(), Error> {
        let step = self.trace.step("promote");
        let Some(rendered) = &self.rendered else { return Err(Error::Internal("promoted without rendered objects")) };
        let service = rendered.next.public_service.clone();
        debug!(generation, "environmentd leads; moving the public Service");
        self.proof.require(&self.materialize).await?;
        let namespace = self.namespace();
        let writer =
            Writer { client: &self.client, namespace: &namespace, own: &self.shared.own };
        writer.public_service(&service, &mut self.live).await?;
        self.write_status(Some(report)).await?;
        self.done = Done::default();
        self.findings = None;
        self.answer = None;
        step.finish(Outcome::Completed);
        Ok(())
    }

    async fn tear_down(&self, doomed: impl Fn(u64) -> bool) -> Result<(), Error> {
        let step = self.trace.step("teardown_generation");
        self.proof.require(&self.materialize).await?;
        self.writer_of(&self.namespace()).tear_down(&self.live, doomed).await?;
        step.finish(Outcome::Completed);
        Ok(())
    }

    /// Whether there is an answer. If not, it starts a pass when it comes.
    fn ask(&mut self, question: Question) -> bool {
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
            (Some(_), BackendSecret::Found { password, .. }) => {
                password.as_ref().map(|bytes| Password::new(String::from_utf8_lossy(bytes).into_owned()))
            }
        };
        let incarnation = self.live.stateful_set(next).map_or_else(String::new, |set| {
            format!("{}/{}", set.uid().unwrap_or_default(), set.metadata.generation.unwrap_or_default())
        });
        let endpoint = Endpoint { base_url: connection.url.clone(), password };
        let subject = Subject { question, endpoint, incarnation };
        let resource = ObjectRef::from_obj(&self.materialize);
        let answer = self.shared.inquiries.ask(&resource, &self.uid(), &subject);
        self.asked = Some(subject);
        self.answer = answer.map(|answer| (question, answer));
        self.answer.is_some()
    }

    async fn hand_over(&mut self) -> Result<(), Error> {
        let step = self.trace.step("balancer");
        let namespace = self.namespace();
        let environment = Environment::new(&self.materialize, &self.shared.config)?;
        let writer =
            Writer { client: &self.client, namespace: &namespace, own: &self.shared.own };
        match tail::hand_over(&writer, &environment, &self.proof).await? {
            Tail::Done => step.finish(Outcome::Completed),
            Tail::AwaitsBalancer => step.finish(Outcome::Waiting),
        }
        Ok(())
    }

    /// Writes the status if it says anything new, and publishes what it says.
    async fn write_status(&mut self, report: Option<&Report>) -> Result<(), Error> {
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
    async fn publish(&self, before: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition]) {
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
    async fn stall(&mut self, stall: Stall) -> Result<(), Error> {
        let text = stall.to_string();
        self.stall = Some(stall);
        self.write_status(None).await?;
        Err(Error::Stalled(text))
    }

    fn mark_done(&mut self, is_active: bool) {
        if is_active {
            self.done.upkeep = true;
        } else {
            self.done.deployed = true;
        }
    }

    /// Whether applying these objects would create the StatefulSet or move the public Service.
    fn changes_what_serves(&self, objects: &GenerationObjects) -> bool {
        let selector = |service: &k8s_openapi::api::core::v1::Service| service.spec.as_ref()?.selector.clone();
        let public = self.live.service(&objects.public_service.name_any());
        self.live.stateful_set(objects.generation).is_none()
            || public.is_none_or(|live| selector(live) != selector(&objects.public_service))
    }

    fn note_needs_update(&self) {
        let status = self.materialize.status.as_ref();
        let applied = status.and_then(|status| status.up_to_date_reason()) == Some(UpToDateReason::Applied);
        self.shared.needs_update.set(&self.namespace(), &self.materialize.name_any(), !applied);
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

    /// All resources with this one's environment id.
    fn claimants(&self) -> Vec<Claimant> {
        let id = self.materialize.spec.environment_id;
        let all = self.shared.store.state();
        all.iter().filter(|other| other.spec.environment_id == id).map(|other| Claimant::of(other)).collect()
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
        Writer { client: &self.client, namespace, own: &self.shared.own }
    }

    fn active(&self) -> u64 {
        self.materialize.status.as_ref().map_or(0, |status| status.active_generation)
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

/// Whether a StatefulSet that another operator made differs from what we would apply (decision R4).
fn differs(objects: &GenerationObjects, live: &StatefulSet) -> bool {
    match (serde_json::to_value(&objects.stateful_set), serde_json::to_value(live)) {
        (Ok(desired), Ok(live)) => kubernetes::first_difference(&desired, &live, FIELD_MANAGER).is_some(),
        _ => true,
    }
}

/// Ten characters of `[a-z0-9]`.
fn random_resource_id() -> String {
    const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut random = rand::rng();
    (0..10).map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())])).collect()
}
