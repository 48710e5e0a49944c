//! What starts a pass: changes of a resource, of what it owns, and of what it names (decision R6).
//!
//! Echoes of this operator's own writes start none, and neither does what is merely listed again. What belongs here is
//! the same for every controller; which kinds one watches, and what of them counts, is that controller's to say.

mod own_writes;
mod primary;
mod seen;
mod starting;

pub(in crate::controllers) use own_writes::OwnWrites;
pub(in crate::controllers) use primary::primary;
pub(in crate::controllers) use starting::Starting;

use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, future, stream};
use kube::core::object::HasStatus;
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Config;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::warn;

use self::seen::{News, Seen};

/// How long the API server keeps a watch open, in seconds (decision L16).
const WATCH_SECONDS: u32 = 29;

/// How long the echo of a write may come before the answer to it and still be known as an echo.
const ECHO: Duration = Duration::from_millis(20);

/// A custom resource that a controller reconciles.
pub(in crate::controllers) trait Primary:
    Resource<DynamicType = ()>
    + HasStatus<Status: Serialize + Send>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<R> Primary for R where
    R: Resource<DynamicType = ()>
        + HasStatus<Status: Serialize + Send>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Watches the objects that belong to the resources of kind `R`.
pub(in crate::controllers) struct Watches<'a> {
    /// The leader's client.
    pub(in crate::controllers) client: &'a Client,
    /// What this operator writes itself.
    pub(in crate::controllers) own: &'a OwnWrites,
    /// Where each first list is announced.
    pub(in crate::controllers) starting: &'a Starting,
}

// === impl Watches ===

impl Watches<'_> {
    /// Every change of an object of kind `K` that an `R` owns, by its version alone: only metadata is transferred.
    /// `labels` is the label selector.
    pub(in crate::controllers) fn owned_metadata<K, R>(&self, labels: &str) -> BoxStream<'static, ObjectRef<R>>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        R: Primary,
    {
        let version = |object: &PartialObjectMeta<K>| hash(&object.metadata.resource_version);
        self.objects(Some(labels), version, owner)
    }

    /// Every change of an object of kind `K` that changes its `fingerprint`. `concerns` names the resource to wake.
    pub(in crate::controllers) fn objects<K, R>(
        &self,
        labels: Option<&str>,
        fingerprint: impl Fn(&K) -> u64 + Send + 'static,
        concerns: impl Fn(&ObjectMeta) -> Option<ObjectRef<R>> + Send + 'static,
    ) -> BoxStream<'static, ObjectRef<R>>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
        R: Primary,
    {
        let mut config = Config::default().timeout(WATCH_SECONDS);
        if let Some(labels) = labels {
            config = config.labels(labels);
        }
        let kind = K::kind(&()).into_owned();
        let mut seen = Seen::new(self.starting.expect());
        let news = watcher(Api::<K>::all(self.client.clone()), config)
            .default_backoff()
            .map(move |event| match event {
                Ok(event) => seen.news(event, &fingerprint, &concerns),
                Err(error) => {
                    warn!(kind, %error, "a watch failed; it is opened again");
                    Vec::new()
                }
            });
        without_echoes(news.flat_map(stream::iter), self.own.clone()).boxed()
    }
}

/// Leaves out what this operator wrote itself. Each change waits a moment, all at the same time, because the echo of
/// a write may come before the answer to it.
fn without_echoes<R: Primary>(news: impl Stream<Item = News<R>>, own: OwnWrites) -> impl Stream<Item = ObjectRef<R>> {
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

/// The `R` that owns an object.
pub(in crate::controllers) fn owner<R: Resource<DynamicType = ()>>(meta: &ObjectMeta) -> Option<ObjectRef<R>> {
    let owners = meta.owner_references.as_ref()?;
    let owner = owners
        .iter()
        .find(|owner| owner.kind == R::kind(&()) && owner.api_version.split('/').next() == Some(&*R::group(&())))?;
    Some(ObjectRef::new(&owner.name).within(meta.namespace.as_deref()?))
}

/// A fingerprint of `value`, good for this process only.
pub(in crate::controllers) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    use super::*;
    use crate::api::v1alpha1::{Balancer, Console};

    fn owned_by(api_version: &str, kind: &str) -> ObjectMeta {
        ObjectMeta {
            namespace: Some("ns".to_owned()),
            owner_references: Some(vec![OwnerReference {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                name: "mz".to_owned(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn the_owner_is_told_by_group_and_kind() {
        let of_balancer = owned_by("materialize.cloud/v1alpha1", "Balancer");
        assert_eq!(
            owner::<Balancer>(&of_balancer).unwrap(),
            ObjectRef::new("mz").within("ns")
        );
        assert_eq!(owner::<Console>(&of_balancer), None);
        assert_eq!(owner::<Balancer>(&owned_by("example.com/v1alpha1", "Balancer")), None);
        assert_eq!(owner::<Balancer>(&ObjectMeta::default()), None);
    }
}
