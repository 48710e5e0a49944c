//! What a watch has shown so far, so that only changes count. No I/O.

use std::collections::HashMap;
use std::marker::PhantomData;

use kube::core::ObjectMeta;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt as _};

use super::hash;
use super::starting::FirstList;

/// A change of an object that concerns a resource.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controllers) struct News<R: Resource<DynamicType = ()>> {
    /// The resource.
    pub(in crate::controllers) concerns: ObjectRef<R>,
    /// Uid and version of the object; nothing else.
    pub(in crate::controllers) meta: ObjectMeta,
    /// It is gone.
    pub(in crate::controllers) deleted: bool,
}

/// By a hash of the uid: the fingerprint, and `namespace/name` of the resource concerned. Kept small, there is one for
/// each object of the cluster that is watched.
type Known = HashMap<u64, (u64, Box<str>)>;

/// What a watch has shown so far.
pub(in crate::controllers) struct Seen<R> {
    known: Known,
    /// The list that is being received.
    listed: Known,
    first: Option<FirstList>,
    concerned: PhantomData<fn() -> R>,
}

// === impl Seen ===

impl<R: Resource<DynamicType = ()>> Seen<R> {
    /// Nothing yet; the first list is announced to `first`.
    pub(in crate::controllers) fn new(first: FirstList) -> Self {
        Seen {
            known: Known::new(),
            listed: Known::new(),
            first: Some(first),
            concerned: PhantomData,
        }
    }

    /// What is new in `event`: at most one thing, but for the end of a list, which may show several deletions.
    pub(in crate::controllers) fn news<K: Resource<DynamicType = ()>>(
        &mut self,
        event: Event<K>,
        fingerprint: &impl Fn(&K) -> u64,
        concerns: &impl Fn(&ObjectMeta) -> Option<ObjectRef<R>>,
    ) -> Vec<News<R>> {
        match event {
            Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                let Some((key, value, concerned)) = entry(&object, fingerprint, concerns) else {
                    return Vec::new();
                };
                let print = value.0;
                let before = self.known.get(&key).map(|known| known.0);
                self.listed.insert(key, value);
                // The first list is what the first passes will see anyway, if it comes before them.
                let counts = self.first.as_ref().is_none_or(FirstList::is_late) && before != Some(print);
                if counts {
                    vec![changed(concerned, object.meta())]
                } else {
                    Vec::new()
                }
            }
            Event::InitDone => {
                if let Some(mut first) = self.first.take() {
                    first.arrived();
                }
                let before = std::mem::replace(&mut self.known, std::mem::take(&mut self.listed));
                let gone = before.into_iter().filter(|(key, _)| !self.known.contains_key(key));
                gone.filter_map(|(_, (_, name))| {
                    let (namespace, name) = name.split_once('/')?;
                    let concerns = ObjectRef::new(name).within(namespace);
                    Some(News {
                        concerns,
                        meta: ObjectMeta::default(),
                        deleted: true,
                    })
                })
                .collect()
            }
            Event::Apply(object) => {
                let Some((key, value, concerned)) = entry(&object, fingerprint, concerns) else {
                    return Vec::new();
                };
                let print = value.0;
                let before = self.known.insert(key, value).map(|known| known.0);
                if before == Some(print) {
                    Vec::new()
                } else {
                    vec![changed(concerned, object.meta())]
                }
            }
            Event::Delete(object) => {
                let Some((key, _, concerned)) = entry(&object, fingerprint, concerns) else {
                    return Vec::new();
                };
                self.known.remove(&key);
                vec![News {
                    deleted: true,
                    ..changed(concerned, object.meta())
                }]
            }
        }
    }
}

type Entry<R> = (u64, (u64, Box<str>), ObjectRef<R>);

fn entry<R: Resource<DynamicType = ()>, K: Resource<DynamicType = ()>>(
    object: &K,
    fingerprint: &impl Fn(&K) -> u64,
    concerns: &impl Fn(&ObjectMeta) -> Option<ObjectRef<R>>,
) -> Option<Entry<R>> {
    let concerned = concerns(object.meta())?;
    let name = format!(
        "{}/{}",
        concerned.namespace.as_deref().unwrap_or_default(),
        concerned.name
    );
    Some((
        hash(&object.uid()),
        (fingerprint(object), name.into_boxed_str()),
        concerned,
    ))
}

fn changed<R: Resource<DynamicType = ()>>(concerns: ObjectRef<R>, meta: &ObjectMeta) -> News<R> {
    let meta = ObjectMeta {
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectMeta::default()
    };
    News {
        concerns,
        meta,
        deleted: false,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::watcher::Event::{Apply, Delete, Init, InitApply, InitDone};

    use super::super::Starting;
    use super::*;
    use crate::api::v1alpha1::Materialize;

    fn object(uid: &str, version: &str) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some("mz".to_owned()),
                namespace: Some("ns".to_owned()),
                uid: Some(uid.to_owned()),
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    /// How many news each of the events brings.
    fn news(seen: &mut Seen<Materialize>, events: Vec<Event<ConfigMap>>) -> Vec<usize> {
        let fingerprint = |object: &ConfigMap| hash(&object.metadata.resource_version);
        let concerns =
            |meta: &ObjectMeta| Some(ObjectRef::new(meta.name.as_deref()?).within(meta.namespace.as_deref()?));
        events
            .into_iter()
            .map(|event| seen.news(event, &fingerprint, &concerns).len())
            .collect()
    }

    fn listed(starting: &Starting) -> Seen<Materialize> {
        let mut seen = Seen::<Materialize>::new(starting.expect());
        assert_eq!(
            news(
                &mut seen,
                vec![Init, InitApply(object("a", "1")), InitApply(object("b", "1")), InitDone]
            ),
            [0; 4]
        );
        seen
    }

    #[test]
    fn the_first_list_is_no_news_and_a_change_is() {
        let mut seen = listed(&Starting::new());
        assert_eq!(
            news(
                &mut seen,
                vec![
                    Apply(object("a", "1")),
                    Apply(object("a", "2")),
                    Apply(object("c", "1"))
                ]
            ),
            [0, 1, 1]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_list_after_the_first_passes_is_news() {
        let starting = Starting::new();
        let mut seen = Seen::<Materialize>::new(starting.expect());
        starting.done().await;
        assert_eq!(
            news(&mut seen, vec![Init, InitApply(object("a", "1")), InitDone]),
            [0, 1, 0]
        );
    }

    #[test]
    fn listing_again_shows_changes_and_deletions_only() {
        let mut seen = listed(&Starting::new());
        let again = vec![Init, InitApply(object("a", "2")), InitDone];
        assert_eq!(news(&mut seen, again), [0, 1, 1], "a has changed, b is gone");
    }

    #[test]
    fn a_deletion_is_news() {
        let mut seen = listed(&Starting::new());
        assert_eq!(
            news(&mut seen, vec![Delete(object("a", "1")), Apply(object("a", "1"))]),
            [1, 1]
        );
    }
}
