//! Writes the generated objects, and deletes them. Nothing here waits for what follows from a write.

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{DeleteParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::info;
use uuid::Uuid;

use super::build::{Environment, GenerationObjects, GlobalObjects, Record, listeners, services};
use super::dereference::{ANNOTATION_REPLACED_HASH, Generations, put};
use super::error::Error;
use super::validate::Stall;
use crate::controllers::building::names;
use crate::controllers::watching::OwnWrites;
use crate::kubernetes::{self, Applied, Deletion};

/// Writes the objects of one resource.
pub(super) struct Writer<'a> {
    /// The leader's client.
    pub(super) client: &'a Client,
    /// Namespace of the resource and of all its objects.
    pub(super) namespace: &'a str,
    /// What this operator wrote itself: its echo on the watches starts no pass.
    pub(super) own: &'a OwnWrites,
}

/// What a `StatefulSet` is applied for, beside what the spec says.
#[derive(Clone, Debug)]
pub(super) struct Purpose {
    /// The request id that is recorded on it.
    pub(super) request: Uuid,
    /// The hash of the generation that it replaces, if known.
    pub(super) replaces: Option<String>,
    /// Whether the public Service selects it.
    pub(super) public: bool,
}

// === impl Writer ===

impl Writer<'_> {
    /// Applies what exists once per environment, and deletes network policies that are no longer wanted.
    pub(super) async fn global(&self, environment: &Environment<'_>, live: &Generations) -> Result<(), Error> {
        let objects = GlobalObjects::build(environment, &still_bound(environment, live))?;
        for policy in &objects.network_policies {
            self.apply(policy).await?;
        }
        if let Some(service_account) = &objects.service_account {
            self.apply::<ServiceAccount>(service_account).await?;
        }
        self.apply::<Role>(&objects.role).await?;
        self.apply::<RoleBinding>(&objects.role_binding).await?;
        if let Some(certificate) = &objects.certificate {
            self.apply(certificate).await?;
        }
        for name in objects.unwanted_network_policies(environment) {
            self.delete_owned::<NetworkPolicy>(&name, environment).await?;
        }
        Ok(())
    }

    /// Applies the objects of one generation, and the public Service if it is the active one.
    pub(super) async fn generation(
        &self,
        objects: &GenerationObjects,
        purpose: &Purpose,
        live: &mut Generations,
    ) -> Result<(), Error> {
        for service in [&objects.generation_service, &objects.persist_pubsub_service] {
            let known = live.service(&service.name_any()).cloned();
            let applied = self.apply_over(service, known).await?;
            put(&mut live.services, applied.into_object());
        }
        let known = live.config_map(&objects.listeners.name_any()).cloned();
        let applied = self.apply_over(&objects.listeners, known).await?;
        put(&mut live.config_maps, applied.into_object());

        let mut stateful_set = objects.stateful_set_for(purpose.request);
        if let Some(replaces) = &purpose.replaces {
            let annotations = stateful_set.annotations_mut();
            annotations.insert(ANNOTATION_REPLACED_HASH.to_owned(), replaces.clone());
        }
        let known = live.stateful_set(objects.generation).cloned();
        let applied = self.apply_over(&stateful_set, known).await?;
        put(&mut live.stateful_sets, applied.into_object());

        if purpose.public {
            self.public_service(&objects.public_service, live).await?;
        }
        Ok(())
    }

    /// Applies the public Service, which decides where SQL goes.
    pub(super) async fn public_service(
        &self,
        service: &k8s_openapi::api::core::v1::Service,
        live: &mut Generations,
    ) -> Result<(), Error> {
        let known = live.service(&service.name_any()).cloned();
        let applied = self.apply_over(service, known).await?;
        put(&mut live.services, applied.into_object());
        Ok(())
    }

    /// Puts back what is deployed of a generation that the spec differs from: Services as they always are, the
    /// listeners from the copy on the `StatefulSet`, never from the unapproved spec (decision R20).
    ///
    /// Returns what can't be put back.
    pub(super) async fn restore(
        &self,
        environment: &Environment<'_>,
        generation: u64,
        public: bool,
        live: &mut Generations,
    ) -> Result<Option<Stall>, Error> {
        let mut wanted = vec![
            services::generation(environment, generation),
            services::persist_pubsub(environment, generation),
        ];
        if public {
            wanted.push(services::public(environment, generation));
        }
        for service in &wanted {
            self.public_service(service, live).await?;
        }
        let name = names::listeners(environment.id(), generation);
        let record = live
            .stateful_set(generation)
            .and_then(|set| Record::read(&set.metadata));
        let known = live.config_map(&name).cloned();
        let missing = |what: String| Some(Stall::ActiveGenerationMissing { what, generation });
        match (record.and_then(|record| record.listeners), known) {
            (Some(content), known) => {
                let config_map = listeners::config_map(environment, generation, content);
                let applied = self.apply_over(&config_map, known).await?;
                put(&mut live.config_maps, applied.into_object());
            }
            (None, Some(_)) => {}
            (None, None) => return Ok(missing(format!("the ConfigMap {name}"))),
        }
        if live.stateful_set(generation).is_none() {
            return Ok(missing(format!(
                "the StatefulSet {}",
                names::generation(environment.id(), generation)
            )));
        }
        Ok(None)
    }

    /// Deletes, in the foreground and without waiting, every generation object that `doomed` says yes to.
    pub(super) async fn tear_down(&self, live: &Generations, doomed: impl Fn(u64) -> bool) -> Result<(), Error> {
        let is_doomed = |name: &str| live.of_object(name).is_some_and(&doomed);
        for object in live.stateful_sets.iter().filter(|object| is_doomed(&object.name_any())) {
            self.delete(object).await?;
        }
        for object in live.services.iter().filter(|object| is_doomed(&object.name_any())) {
            self.delete(object).await?;
        }
        for object in live.config_maps.iter().filter(|object| is_doomed(&object.name_any())) {
            self.delete(object).await?;
        }
        Ok(())
    }

    /// Deletes a pod that its `StatefulSet` will never replace, with its default grace period (decision R19).
    pub(super) async fn delete_stuck_pod(&self, name: &str, uid: &str) -> Result<(), Error> {
        let preconditions = Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        };
        let api = Api::<Pod>::namespaced(self.client.clone(), self.namespace);
        match api
            .delete(name, &DeleteParams::default().preconditions(preconditions))
            .await
        {
            Ok(_) => {
                info!(
                    namespace = self.namespace,
                    pod = name,
                    "deleted a pod of an older revision that was not ready"
                );
                Ok(())
            }
            // Gone, or another pod of the same name.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(error) => Err(Error::request("delete a pod that its StatefulSet does not replace")(
                error,
            )),
        }
    }

    /// Reads an object and applies it over what is there.
    pub(super) async fn apply<K>(&self, desired: &K) -> Result<Applied<K>, Error>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
        K::DynamicType: Default,
    {
        let applied = kubernetes::apply(&self.api::<K>(), desired).await?;
        self.note(&applied);
        Ok(applied)
    }

    /// Applies an object over what is known to be there.
    pub(super) async fn apply_over<K>(&self, desired: &K, live: Option<K>) -> Result<Applied<K>, Error>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
        K::DynamicType: Default,
    {
        let applied = kubernetes::apply_over(&self.api::<K>(), desired, live).await?;
        self.note(&applied);
        Ok(applied)
    }

    /// Deletes the object `name` if it exists and belongs to the resource (decision R8).
    pub(super) async fn delete_owned<K>(&self, name: &str, environment: &Environment<'_>) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned,
        K::DynamicType: Default,
    {
        let api = self.api::<K>();
        let found = api
            .get_metadata_opt(name)
            .await
            .map_err(Error::request("read an object that may have to go"))?;
        let Some(found) = found else { return Ok(()) };
        let owner = environment.materialize.uid();
        let is_owned = found
            .owner_references()
            .iter()
            .any(|reference| Some(&reference.uid) == owner.as_ref());
        if let (true, None, Some(uid)) = (is_owned, &found.metadata.deletion_timestamp, found.uid()) {
            kubernetes::delete_foreground(&api, name, &uid).await?;
        }
        Ok(())
    }

    async fn delete<K>(&self, object: &K) -> Result<(), Error>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + DeserializeOwned,
        K::DynamicType: Default,
    {
        if object.meta().deletion_timestamp.is_some() {
            return Ok(());
        }
        let (Some(name), Some(uid)) = (&object.meta().name, &object.meta().uid) else {
            return Ok(());
        };
        let deletion = kubernetes::delete_foreground(&self.api::<K>(), name, uid).await?;
        if deletion == Deletion::Requested {
            let kind = K::kind(&K::DynamicType::default()).into_owned();
            info!(
                kind,
                namespace = self.namespace,
                name,
                "deleting an object of another generation"
            );
        }
        Ok(())
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    fn note<K>(&self, applied: &Applied<K>)
    where
        K: Resource,
        K::DynamicType: Default,
    {
        if applied.was_sent() {
            self.own.object(applied.object().meta());
            if let Applied::Changed { difference, object } = applied {
                let kind = K::kind(&K::DynamicType::default()).into_owned();
                info!(
                    kind,
                    namespace = self.namespace,
                    name = object.name_any(),
                    %difference,
                    "changed an object"
                );
            }
        }
    }
}

/// The service accounts of `StatefulSet`s that still exist, other than the spec's (decision R8).
fn still_bound(environment: &Environment<'_>, live: &Generations) -> Vec<String> {
    let mut names: Vec<String> = live
        .stateful_sets
        .iter()
        .filter_map(|set| set.spec.as_ref()?.template.spec.as_ref()?.service_account_name.clone())
        .filter(|name| name != environment.service_account_name())
        .collect();
    names.sort();
    names.dedup();
    names
}
