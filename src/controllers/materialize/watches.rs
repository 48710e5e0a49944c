//! What starts a pass, beside changes of the resource itself: changes of what it owns, and of its Secret (decision R6).

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Client, ResourceExt as _};

use crate::api::labels::LABEL_RESOURCE_ID;
use crate::api::v1alpha1::{Balancer, Console, Materialize};
use crate::controllers::watching::{OwnWrites, Starting, Watches, hash, owner};

/// The watches of everything but the resource itself, each with its first list announced to `starting`.
pub(super) fn secondary(
    client: &Client,
    store: &Store<Materialize>,
    own: &OwnWrites,
    starting: &Starting,
) -> Vec<BoxStream<'static, ObjectRef<Materialize>>> {
    let watches = Watches { client, own, starting };
    let labels = LABEL_RESOURCE_ID;
    vec![
        watches.objects(Some(labels), readiness, owner),
        watches.owned_metadata::<NetworkPolicy, _>(labels),
        watches.owned_metadata::<ServiceAccount, _>(labels),
        watches.owned_metadata::<Role, _>(labels),
        watches.owned_metadata::<RoleBinding, _>(labels),
        watches.owned_metadata::<Service, _>(labels),
        watches.owned_metadata::<ConfigMap, _>(labels),
        watches.owned_metadata::<Balancer, _>(labels),
        watches.owned_metadata::<Console, _>(labels),
        secrets(&watches, store),
    ]
}

/// Every Secret of the cluster, metadata only; it concerns the resources that name it.
fn secrets(watches: &Watches<'_>, store: &Store<Materialize>) -> BoxStream<'static, ObjectRef<Materialize>> {
    let key = |meta: &ObjectMeta| {
        Some(ObjectRef::<Materialize>::new(meta.name.as_deref()?).within(meta.namespace.as_deref()?))
    };
    let version = |object: &PartialObjectMeta<Secret>| hash(&object.metadata.resource_version);
    let store = store.clone();
    watches
        .objects(None, version, key)
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
