//! Everything that a pass reads of the cluster beside the resource itself, as one value.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use kube::api::ListParams;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::build::Record;
use super::decide::{Deployed, Workload};
use super::error::Error;
use super::pods;
use super::validate::BackendSecret;
use crate::api::labels;
use crate::api::v1alpha1::Materialize;
use crate::controllers::building::names;

/// Annotation on a candidate's `StatefulSet`: the hash that the generation before it was deployed with. By it a full
/// revert is recognised after that generation has gone (decision R2).
pub(super) const ANNOTATION_REPLACED_HASH: &str = "orchestratord.materialize.cloud/replaced-resources-hash";

/// The objects of all generations of one resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Generations {
    /// `status.resourceId`.
    pub(super) resource_id: String,
    /// `StatefulSet`s, with `managedFields`.
    pub(super) stateful_sets: Vec<StatefulSet>,
    /// Services, the public one among them, with `managedFields`.
    pub(super) services: Vec<Service>,
    /// Listeners `ConfigMap`s, with `managedFields`.
    pub(super) config_maps: Vec<ConfigMap>,
}

/// Reads the backend Secret of `materialize`: only the one that is named, and only the keys that are needed.
///
/// # Errors
/// If the API server does not answer, or refuses for another reason than that there is no such Secret.
pub(super) async fn backend_secret(client: &Client, materialize: &Materialize) -> Result<BackendSecret, Error> {
    let name = &materialize.spec.backend_secret_name;
    // The empty name would list all Secrets.
    if name.is_empty() {
        return Ok(BackendSecret::Missing);
    }
    let api = Api::<Secret>::namespaced(client.clone(), &materialize.namespace().unwrap_or_default());
    let secret = api
        .get_opt(name)
        .await
        .map_err(Error::request("read the backend Secret"))?;
    Ok(secret.map_or(BackendSecret::Missing, |secret| {
        let mut data = secret.data.unwrap_or_default();
        let mut take = |key| data.remove(key).map(|value| value.0);
        BackendSecret::Found {
            license_key: take(labels::SECRET_KEY_LICENSE_KEY),
            password: take(labels::SECRET_KEY_EXTERNAL_LOGIN_PASSWORD),
        }
    }))
}

// === impl Generations ===

impl Generations {
    /// Reads the objects with the resource's id that are owned by it.
    ///
    /// # Errors
    /// If the API server does not answer or refuses.
    pub(super) async fn read(client: &Client, materialize: &Materialize, resource_id: &str) -> Result<Self, Error> {
        let namespace = materialize.namespace().unwrap_or_default();
        let selector = format!("{}={resource_id}", labels::LABEL_RESOURCE_ID);
        let owner = materialize.uid().unwrap_or_default();
        let (stateful_sets, services, config_maps) = futures::try_join!(
            owned(
                Api::<StatefulSet>::namespaced(client.clone(), &namespace),
                &selector,
                &owner
            ),
            owned(
                Api::<Service>::namespaced(client.clone(), &namespace),
                &selector,
                &owner
            ),
            owned(
                Api::<ConfigMap>::namespaced(client.clone(), &namespace),
                &selector,
                &owner
            ),
        )?;
        Ok(Self {
            resource_id: resource_id.to_owned(),
            stateful_sets,
            services,
            config_maps,
        })
    }

    /// The `StatefulSet` of a generation.
    pub(super) fn stateful_set(&self, generation: u64) -> Option<&StatefulSet> {
        find(&self.stateful_sets, &names::generation(&self.resource_id, generation))
    }

    /// The Service with this name.
    pub(super) fn service(&self, name: &str) -> Option<&Service> {
        find(&self.services, name)
    }

    /// The `ConfigMap` with this name.
    pub(super) fn config_map(&self, name: &str) -> Option<&ConfigMap> {
        find(&self.config_maps, name)
    }

    /// The generation that an object belongs to; `None` for the public Service and for what others made.
    pub(super) fn of_object(&self, name: &str) -> Option<u64> {
        let rest = name.strip_prefix(&format!("mz{}-", self.resource_id))?;
        ["environmentd-", "persist-pubsub-", "listeners-"]
            .iter()
            .find_map(|kind| rest.strip_prefix(kind))?
            .parse()
            .ok()
    }

    /// Whether anything of the generation is being deleted.
    pub(super) fn is_terminating(&self, generation: u64) -> bool {
        self.metadata()
            .any(|(name, terminating)| terminating && self.of_object(name) == Some(generation))
    }

    /// Whether objects of other generations than `active` exist that are not being deleted yet.
    pub(super) fn has_leftovers(&self, active: u64) -> bool {
        self.metadata().any(|(name, terminating)| {
            !terminating && self.of_object(name).is_some_and(|generation| generation != active)
        })
    }

    /// What the decision wants to know of a generation. `differs` is asked only for a `StatefulSet` without a record.
    pub(super) fn deployed(&self, generation: u64, differs: impl FnOnce(&StatefulSet) -> bool) -> Deployed {
        match self.stateful_set(generation) {
            _ if self.is_terminating(generation) => Deployed::Terminating,
            None => Deployed::Missing,
            Some(stateful_set) => {
                let record = Record::read(&stateful_set.metadata);
                Deployed::Running(Workload {
                    differs: record.is_none() && differs(stateful_set),
                    record,
                    replaces: stateful_set.annotations().get(ANNOTATION_REPLACED_HASH).cloned(),
                    image: image(stateful_set),
                    ready: is_ready(stateful_set),
                    trouble: None,
                })
            }
        }
    }

    fn metadata(&self) -> impl Iterator<Item = (&str, bool)> {
        self.stateful_sets
            .iter()
            .map(|object| &object.metadata)
            .chain(self.services.iter().map(|object| &object.metadata))
            .chain(self.config_maps.iter().map(|object| &object.metadata))
            .map(|meta| {
                (
                    meta.name.as_deref().unwrap_or_default(),
                    meta.deletion_timestamp.is_some(),
                )
            })
    }
}

/// Why the pod of a `StatefulSet` is not ready, and the pods that its controller will never replace (decision R19).
///
/// # Errors
/// If the pods can't be read.
pub(super) async fn pods_of(client: &Client, stateful_set: &StatefulSet) -> Result<pods::Findings, Error> {
    let namespace = stateful_set.namespace().unwrap_or_default();
    let selector = format!("{}={}", labels::LABEL_NAME, stateful_set.name_any());
    let list = Api::<Pod>::namespaced(client.clone(), &namespace)
        .list(&ListParams::default().labels(&selector))
        .await
        .map_err(Error::request("list the pods of environmentd"))?;
    Ok(pods::look_at(stateful_set, &list.items))
}

/// Whether the one pod runs the current template and is ready (decision R15).
fn is_ready(stateful_set: &StatefulSet) -> bool {
    let Some(status) = &stateful_set.status else {
        return false;
    };
    status.observed_generation.is_some()
        && status.observed_generation == stateful_set.metadata.generation
        && status.updated_replicas == Some(1)
        && status.ready_replicas == Some(1)
}

/// The image of environmentd in the pod template.
fn image(stateful_set: &StatefulSet) -> Option<String> {
    let pod = stateful_set.spec.as_ref()?.template.spec.as_ref()?;
    let named = pod
        .containers
        .iter()
        .find(|container| container.name == labels::APP_ENVIRONMENTD);
    named.or_else(|| pod.containers.first())?.image.clone()
}

fn find<'a, K: Resource>(objects: &'a [K], name: &str) -> Option<&'a K> {
    objects
        .iter()
        .find(|object| object.meta().name.as_deref() == Some(name))
}

/// Replaces the object of the same name in `objects`, or adds it.
pub(super) fn put<K: Resource>(objects: &mut Vec<K>, object: K) {
    match objects.iter_mut().find(|known| known.meta().name == object.meta().name) {
        Some(known) => *known = object,
        None => objects.push(object),
    }
}

async fn owned<K>(api: Api<K>, selector: &str, owner: &str) -> Result<Vec<K>, Error>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    let list = api
        .list(&ListParams::default().labels(selector))
        .await
        .map_err(Error::request("list the objects of the generations"))?;
    let is_owned = |object: &K| object.owner_references().iter().any(|reference| reference.uid == owner);
    Ok(list.items.into_iter().filter(is_owned).collect())
}
