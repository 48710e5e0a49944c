//! One pass over one resource: status, plan, apply, look at what came of it, status.

use std::fmt::Debug;
use std::time::Duration;

use k8s_controller::events::{Event, EventType};
use k8s_controller::{Outcome, TraceMetadata};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions};
use kube::runtime::controller::Action;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tracing::{info, warn};

use super::controller::Shared;
use super::error::Error;
use super::migration::{self, Migration};
use super::stall::Stall;
use super::trouble::{self, Evidence, MissingSecret};
use super::{Object, Plan, Unwanted, Workload, ready, status};
use crate::api::labels::LABEL_NAME;
use crate::controllers::building::certificate::Certificate;
use crate::controllers::resource_id;
use crate::kubernetes::{self, Applied, FIELD_MANAGER};

/// How soon a Deployment that is being deleted is looked at, should its end go unseen.
const ENDING: Duration = Duration::from_secs(1);
/// How soon an admission webhook that did not answer is asked again.
const WEBHOOK: Duration = Duration::from_secs(5);

/// The state of one pass.
struct Pass<'a, W: Workload> {
    shared: &'a Shared<W>,
    client: Client,
    trace: &'a TraceMetadata,
    namespace: String,
    /// The resource, as this pass last read or wrote it.
    resource: W,
    /// What keeps it from being applied.
    stall: Option<Stall>,
    /// The pass is repeated after this time at the latest.
    requeue: Option<Duration>,
}

/// Runs one pass over `resource`.
pub(super) async fn run<W: Workload>(
    shared: &Shared<W>,
    client: Client,
    resource: &W,
    trace: &TraceMetadata,
) -> Result<Option<Action>, Error> {
    let mut pass = Pass {
        shared,
        client,
        trace,
        namespace: resource.namespace().unwrap_or_default(),
        resource: resource.clone(),
        stall: None,
        requeue: None,
    };
    pass.run().await?;
    Ok(pass.requeue.map(Action::requeue))
}

// === impl Pass ===

impl<W: Workload> Pass<'_, W> {
    async fn run(&mut self) -> Result<(), Error> {
        let known = self.resource.recorded().map(|(id, _)| id).filter(|id| !id.is_empty());
        let resource_id = if let Some(known) = known {
            known.to_owned()
        } else {
            self.initialise().await?
        };
        let plan = self.resource.plan(&self.shared.config)?;
        self.stall.clone_from(&plan.stall);
        let mut deployment = self
            .api::<Deployment>()
            .get_opt(&W::deployment(&resource_id))
            .await
            .map_err(Error::request("read the Deployment"))?;
        self.apply(&plan, &mut deployment).await?;
        if self.stall.is_none() {
            self.delete_unwanted(&plan, deployment.as_ref()).await?;
            self.stall = self.look_at_config_map(&plan).await;
        }
        self.report(&plan, resource_id, deployment.as_ref()).await
    }

    /// Writes the first status, and returns the id that it gives the resource for ever.
    async fn initialise(&mut self) -> Result<String, Error> {
        let step = self.trace.step("initialize_status");
        let requested = self.resource.requested_resource_id().filter(|id| !id.is_empty());
        let id = requested.map_or_else(resource_id::random, str::to_owned);
        self.write_status(id.clone(), Vec::new()).await?;
        step.finish(Outcome::Completed);
        Ok(id)
    }

    /// Applies what is planned, up to the first object that is refused.
    async fn apply(&mut self, plan: &Plan, deployment: &mut Option<Deployment>) -> Result<(), Error> {
        let step = self.trace.step("apply");
        for object in &plan.objects {
            let applied = match object {
                Object::Certificate(object) => self.object(&**object).await,
                Object::ConfigMap(object) => self.object(&**object).await,
                Object::NetworkPolicy(object) => self.object(&**object).await,
                Object::Service(object) => self.object(&**object).await,
                Object::Deployment(object) => self.deployment(object, deployment).await,
            };
            if let Err(error) = applied {
                let is_certificate = matches!(object, Object::Certificate(_));
                let stall = Stall::of_apply(&error, is_certificate).ok_or(error)?;
                self.stall = Some(stall);
                break;
            }
            if matches!(self.stall, Some(Stall::SelectorConflict { .. })) {
                break;
            }
        }
        step.finish(Outcome::Completed);
        Ok(())
    }

    async fn object<K>(&self, desired: &K) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
        K::DynamicType: Default,
    {
        self.note(&kubernetes::apply(&self.api::<K>(), desired).await?);
        Ok(())
    }

    /// Applies the Deployment over the one that is there, or brings it one step nearer to where that is possible.
    async fn deployment(&mut self, desired: &Deployment, live: &mut Option<Deployment>) -> Result<(), Error> {
        let api = self.api::<Deployment>();
        match migration::plan(live.as_ref(), desired) {
            Migration::NotNeeded => {
                let applied = kubernetes::apply_over(&api, desired, live.take()).await?;
                self.note(&applied);
                *live = Some(applied.into_object());
            }
            Migration::Ending => self.repeat_after(ENDING),
            Migration::Impossible(stall) => self.stall = Some(stall),
            Migration::Prepare(prepared) => {
                let applied = kubernetes::apply_over(&api, &prepared, live.take()).await?;
                self.note(&applied);
                if applied.was_sent() {
                    warn!(
                        namespace = self.namespace,
                        name = prepared.name_any(),
                        "the Deployment of an older operator has another selector; its pods get the labels of both"
                    );
                }
                let applied = live.insert(applied.into_object());
                if ready::is_rolled_out(applied) {
                    let applied = applied.clone();
                    self.delete_but_keep_pods(&api, &applied).await?;
                    *live = None;
                    self.repeat_after(ENDING);
                }
            }
        }
        Ok(())
    }

    /// Deletes a Deployment exactly as it was seen, and leaves its pods to its successor.
    async fn delete_but_keep_pods(&self, api: &Api<Deployment>, seen: &Deployment) -> Result<(), Error> {
        let preconditions = Preconditions {
            uid: seen.uid(),
            resource_version: seen.resource_version(),
        };
        let name = seen.name_any();
        warn!(
            namespace = self.namespace,
            name, "replacing the Deployment of an older operator; its pods stay"
        );
        match api
            .delete(&name, &DeleteParams::orphan().preconditions(preconditions))
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(Error::request("replace the Deployment of an older operator")(error)),
        }
    }

    /// Deletes what no setting wants any more (decision R8).
    async fn delete_unwanted(&self, plan: &Plan, deployment: Option<&Deployment>) -> Result<(), Error> {
        for unwanted in &plan.unwanted {
            match unwanted {
                Unwanted::NetworkPolicy(name) => self.delete_owned::<NetworkPolicy>(name).await?,
                // As long as pods of the old template run, their Secret is kept up to date.
                Unwanted::Certificate(name) if deployment.is_some_and(ready::is_rolled_out) => {
                    self.delete_owned::<Certificate>(name).await?;
                }
                Unwanted::Certificate(_) => {}
            }
        }
        Ok(())
    }

    async fn delete_owned<K>(&self, name: &str) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
        K::DynamicType: Default,
    {
        let api = self.api::<K>();
        let found = match api.get_metadata_opt(name).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(()),
            // There is not even such a kind: cert-manager is not installed.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(error) => return Err(Error::request("read an object that may have to go")(error)),
        };
        let owner = self.resource.uid();
        let is_owned = found
            .owner_references()
            .iter()
            .any(|reference| Some(&reference.uid) == owner.as_ref());
        if let (true, None, Some(uid)) = (is_owned, &found.metadata.deletion_timestamp, found.uid()) {
            kubernetes::delete_foreground(&api, name, &uid).await?;
            let kind = K::kind(&K::DynamicType::default()).into_owned();
            info!(
                kind,
                namespace = self.namespace,
                name,
                "deleted an object that is not wanted any more"
            );
        }
        Ok(())
    }

    /// Whether the user's `ConfigMap` is there with its key. Pods can't start without it.
    async fn look_at_config_map(&self, plan: &Plan) -> Option<Stall> {
        let (name, key) = plan.config_map.clone()?;
        let found = match self.api::<ConfigMap>().get_opt(&name).await {
            Ok(found) => found,
            Err(error) => {
                warn!(namespace = self.namespace, name, %error, "can't read a ConfigMap that pods mount");
                return None;
            }
        };
        let Some(found) = found else {
            return Some(Stall::ConfigMapNotFound { name, key });
        };
        let has_key = found.data.is_some_and(|data| data.contains_key(key))
            || found.binary_data.is_some_and(|data| data.contains_key(key));
        (!has_key).then_some(Stall::ConfigMapKeyNotFound { name, key })
    }

    /// Writes the conditions if they say anything new, and decides when to look again.
    async fn report(&mut self, plan: &Plan, resource_id: String, deployment: Option<&Deployment>) -> Result<(), Error> {
        let available = deployment.and_then(|deployment| Some((deployment, ready::is_available(deployment)?)));
        let ready = match available {
            None => None,
            Some((_, true)) => Some((true, ready::message(W::COMPONENT, true, None))),
            Some((deployment, false)) => {
                let cause = self.cause(plan, deployment).await;
                Some((false, ready::message(W::COMPONENT, false, cause.as_deref())))
            }
        };
        self.set_pace(ready.as_ref());

        let before = self
            .resource
            .recorded()
            .map(|(_, conditions)| conditions.to_vec())
            .unwrap_or_default();
        let generation = self.resource.meta().generation;
        let after = status::next(
            &before,
            ready,
            self.stall.as_ref(),
            generation,
            self.shared.clock.timestamp(),
        );
        if before != after {
            self.write_status(resource_id, after.clone()).await?;
            if let Some(stalled) = status::new_stall(&before, &after) {
                self.publish(stalled).await;
            }
        }
        match &self.stall {
            Some(stall) if !stall.may_end_unseen() => Err(Error::Stalled(stall.to_string())),
            _ => Ok(()),
        }
    }

    /// Looks again soon at what is not all watched.
    fn set_pace(&mut self, ready: Option<&(bool, String)>) {
        let uid = self.resource.uid().unwrap_or_default();
        let not_ready = ready.filter(|(ready, _)| !ready).map(|(_, message)| message.clone());
        let stalled = self
            .stall
            .as_ref()
            .filter(|stall| stall.may_end_unseen())
            .map(ToString::to_string);
        if not_ready.is_none() && stalled.is_none() {
            self.shared.pace.forget(&uid);
            return;
        }
        let cause = [stalled, not_ready].map(Option::unwrap_or_default).concat();
        self.repeat_after(self.shared.pace.next(&uid, &cause));
        if matches!(self.stall, Some(Stall::AdmissionWebhookFailed(_))) {
            self.repeat_after(WEBHOOK);
        }
    }

    /// Why the Deployment is not available. What can't be read is left out.
    async fn cause(&self, plan: &Plan, deployment: &Deployment) -> Option<String> {
        match self.inspect(plan, deployment).await {
            Ok(cause) => cause,
            Err(error) => {
                warn!(namespace = self.namespace, name = deployment.name_any(), %error, "can't find out why it is not ready");
                None
            }
        }
    }

    async fn inspect(&self, plan: &Plan, deployment: &Deployment) -> Result<Option<String>, Error> {
        let mut missing = None;
        if let Some((secret, certificate)) = &plan.certificate {
            let found = self.api::<Secret>().get_metadata_opt(secret).await;
            if found
                .map_err(Error::request("read the certificate's Secret"))?
                .is_none()
            {
                missing = Some((secret, certificate, self.what_certificate_says(certificate).await?));
            }
        }
        let selector = format!("{LABEL_NAME}={}", deployment.name_any());
        let pods = self
            .api::<Pod>()
            .list(&ListParams::default().labels(&selector))
            .await
            .map_err(Error::request("list the pods of the Deployment"))?;
        let missing_secret = missing.as_ref().map(|(name, certificate, says)| MissingSecret {
            name,
            certificate,
            says: says.as_deref(),
        });
        Ok(trouble::cause(Evidence {
            deployment,
            missing_secret,
            pods: &pods.items,
        }))
    }

    /// Reason and message of the Certificate's condition `Ready`.
    async fn what_certificate_says(&self, name: &str) -> Result<Option<String>, Error> {
        let resource = ApiResource::erase::<Certificate>(&());
        let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), &self.namespace, &resource);
        let found = api
            .get_opt(name)
            .await
            .map_err(Error::request("read the Certificate"))?;
        let Some(found) = found else { return Ok(None) };
        let conditions = found
            .data
            .pointer("/status/conditions")
            .and_then(|conditions| conditions.as_array());
        let ready = conditions
            .into_iter()
            .flatten()
            .find(|condition| condition["type"] == "Ready");
        Ok(ready.map(|condition| {
            let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", text("reason"), text("message"))
        }))
    }

    /// Writes the status to the resource as it was read: on its `resourceVersion` (decision R11).
    async fn write_status(&mut self, resource_id: String, conditions: Vec<Condition>) -> Result<(), Error> {
        let uid = self.resource.uid();
        let status = W::status_of(resource_id, conditions);
        self.shared.own.status(uid.as_deref().unwrap_or_default(), &status);
        let patch = json!({
            "metadata": { "resourceVersion": self.resource.resource_version(), "uid": uid },
            "status": status,
        });
        let parameters = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        self.resource = self
            .api::<W>()
            .patch_status(&self.resource.name_any(), &parameters, &Patch::Merge(&patch))
            .await
            .map_err(Error::request("write the status"))?;
        Ok(())
    }

    async fn publish(&self, stalled: &Condition) {
        let event = Event {
            type_: EventType::Warning,
            reason: stalled.reason.clone(),
            action: "Reconcile".to_owned(),
            note: Some(stalled.message.clone()),
            related: None,
        };
        self.trace.publish_event(event).await;
    }

    fn note<K>(&self, applied: &Applied<K>)
    where
        K: Resource,
        K::DynamicType: Default,
    {
        if !applied.was_sent() {
            return;
        }
        self.shared.own.object(applied.object().meta());
        if let Applied::Changed { difference, object } = applied {
            let kind = K::kind(&K::DynamicType::default()).into_owned();
            info!(kind, namespace = self.namespace, name = object.name_any(), %difference, "changed an object");
        }
    }

    fn repeat_after(&mut self, time: Duration) {
        self.requeue = Some(self.requeue.map_or(time, |earlier| earlier.min(time)));
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}
