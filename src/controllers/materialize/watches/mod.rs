//! What starts a pass: changes of the resource, of what it owns, and of its Secret (decision R6).
//!
//! Echoes of this operator's own writes start none, and neither does what is merely listed again.

mod primary;
mod seen;
mod starting;

pub(in crate::controllers::materialize) use primary::primary;
pub(in crate::controllers::materialize) use starting::Starting;

use std::hash::{DefaultHasher, Hasher as _};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, future, stream};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Config;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tracing::warn;

use self::seen::{News, Seen};
use super::own_writes::OwnWrites;
use crate::api::labels;
use crate::api::v1alpha1::{Balancer, Console, Materialize};

/// How long the API server keeps a watch open, in seconds.
const WATCH_SECONDS: u32 = 29;

/// How long the echo of a write may come before the answer to it and still be known as an echo.
const ECHO: Duration = Duration::from_millis(20);

/// The watches of everything but the resource itself, each with its first list announced to `starting`.
pub(in crate::controllers::materialize) fn secondary(
    client: &Client,
    store: &Store<Materialize>,
    own: &OwnWrites,
    starting: &Starting,
) -> Vec<BoxStream<'static, ObjectRef<Materialize>>> {
    let owned_by = |meta: &ObjectMeta| owner(meta);
    vec![
        watch::<StatefulSet>(client, true, own, starting, readiness, owned_by),
        watch_metadata::<NetworkPolicy>(client, own, starting),
        watch_metadata::<ServiceAccount>(client, own, starting),
        watch_metadata::<Role>(client, own, starting),
        watch_metadata::<RoleBinding>(client, own, starting),
        watch_metadata::<Service>(client, own, starting),
        watch_metadata::<ConfigMap>(client, own, starting),
        watch_metadata::<Balancer>(client, own, starting),
        watch_metadata::<Console>(client, own, starting),
        secrets(client, store, own, starting),
    ]
}

/// Every change of an object of this kind, by its version alone: only metadata is transferred.
fn watch_metadata<K>(
    client: &Client,
    own: &OwnWrites,
    starting: &Starting,
) -> BoxStream<'static, ObjectRef<Materialize>>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync + 'static,
{
    watch::<PartialObjectMeta<K>>(
        client,
        true,
        own,
        starting,
        |object| hash(&object.metadata.resource_version),
        owner,
    )
}

/// Every Secret of the cluster, metadata only; it concerns the resources that name it.
fn secrets(
    client: &Client,
    store: &Store<Materialize>,
    own: &OwnWrites,
    starting: &Starting,
) -> BoxStream<'static, ObjectRef<Materialize>> {
    let key = |meta: &ObjectMeta| {
        Some(ObjectRef::<Materialize>::new(meta.name.as_deref()?).within(meta.namespace.as_deref()?))
    };
    let version = |object: &PartialObjectMeta<Secret>| hash(&object.metadata.resource_version);
    let store = store.clone();
    watch::<PartialObjectMeta<Secret>>(client, false, own, starting, version, key)
        .flat_map(move |secret| {
            let concerned: Vec<_> = store
                .state()
                .iter()
                .filter(|resource| {
                    resource.namespace() == secret.namespace && resource.spec.backend_secret_name == secret.name
                })
                .map(|resource| ObjectRef::from_obj(&**resource))
                .collect();
            stream::iter(concerned)
        })
        .boxed()
}

fn watch<K>(
    client: &Client,
    labelled: bool,
    own: &OwnWrites,
    starting: &Starting,
    fingerprint: impl Fn(&K) -> u64 + Send + 'static,
    concerns: impl Fn(&ObjectMeta) -> Option<ObjectRef<Materialize>> + Send + 'static,
) -> BoxStream<'static, ObjectRef<Materialize>>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync + 'static,
{
    let mut config = Config::default().timeout(WATCH_SECONDS);
    if labelled {
        config = config.labels(labels::LABEL_RESOURCE_ID);
    }
    let kind = K::kind(&()).into_owned();
    let mut seen = Seen::new(starting.expect());
    let news = watcher(Api::<K>::all(client.clone()), config)
        .default_backoff()
        .map(move |event| match event {
            Ok(event) => seen.news(event, &fingerprint, &concerns),
            Err(error) => {
                warn!(kind, %error, "a watch failed; it is opened again");
                Vec::new()
            }
        });
    without_echoes(news.flat_map(stream::iter), own.clone()).boxed()
}

/// Leaves out what this operator wrote itself. Each change waits a moment, all at the same time, because the echo of
/// a write may come before the answer to it.
fn without_echoes(news: impl Stream<Item = News>, own: OwnWrites) -> impl Stream<Item = ObjectRef<Materialize>> {
    let judged = news.map(move |news| {
        let own = own.clone();
        async move {
            if news.deleted {
                if let Some(uid) = &news.meta.uid {
                    own.forget(uid);
                }
                return Some(news.concerns);
            }
            tokio::time::sleep(ECHO).await;
            (!own.is_own_object(&news.meta)).then_some(news.concerns)
        }
    });
    judged.buffer_unordered(1024).filter_map(future::ready)
}

/// What of a `StatefulSet` the next step may depend on. Its other changes, of which a rollout brings many, do not count.
fn readiness(stateful_set: &StatefulSet) -> u64 {
    let meta = &stateful_set.metadata;
    let status = stateful_set.status.as_ref();
    hash(&(
        (
            meta.generation,
            &meta.deletion_timestamp.is_some(),
            &meta.labels,
            &meta.annotations,
        ),
        status.map(|status| {
            (
                status.observed_generation,
                status.updated_replicas,
                status.ready_replicas,
                &status.update_revision,
            )
        }),
    ))
}

/// The Materialize that owns an object.
fn owner(meta: &ObjectMeta) -> Option<ObjectRef<Materialize>> {
    let owners = meta.owner_references.as_ref()?;
    let owner = owners.iter().find(|owner| {
        owner.kind == Materialize::kind(&()) && owner.api_version.split('/').next() == Some(crate::api::GROUP)
    })?;
    Some(ObjectRef::new(&owner.name).within(meta.namespace.as_deref()?))
}

fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
