//! The watch of the resources themselves.

use std::collections::HashMap;

use futures::{Stream, StreamExt as _, future, stream};
use kube::core::{DeserializeGuard, ObjectMeta};
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use tracing::error;

use super::own_writes::{OwnWrites, fingerprint};
use super::{Primary, Starting, WATCH_SECONDS, hash};

/// Every resource once, and then whenever its spec or metadata change, or somebody else changes its status.
///
/// A resource that can't be decoded is named in the log and left out; the others go on (decision R22). `writer` gets
/// all of them, without `managedFields`, which no pass needs.
pub(in crate::controllers) fn primary<R: Primary>(
    client: &Client,
    writer: Writer<R>,
    own: OwnWrites,
    starting: &Starting,
) -> impl Stream<Item = Result<R, watcher::Error>> + Send + 'static {
    let config = Config::default().timeout(WATCH_SECONDS);
    let api = Api::<DeserializeGuard<R>>::all(client.clone());
    let mut news = News {
        own,
        known: HashMap::new(),
    };
    let events = watcher(api, config)
        .default_backoff()
        .filter_map(|event| future::ready(event.map(decoded).transpose()))
        .modify(|resource: &mut R| resource.managed_fields_mut().clear())
        .reflect(writer)
        .filter_map(move |event| future::ready(event.map(|event| news.of(event)).transpose()));
    stream::once(starting.done())
        .filter_map(|()| future::ready(None))
        .chain(events)
}

/// The event without what can't be decoded.
fn decoded<R: Primary>(event: Event<DeserializeGuard<R>>) -> Option<Event<R>> {
    Some(match event {
        Event::Apply(guard) => Event::Apply(valid(guard)?),
        Event::InitApply(guard) => Event::InitApply(valid(guard)?),
        Event::Delete(guard) => Event::Delete(valid(guard)?),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    })
}

fn valid<R: Primary>(guard: DeserializeGuard<R>) -> Option<R> {
    match guard.0 {
        Ok(resource) => Some(resource),
        Err(invalid) => {
            let ObjectMeta { namespace, name, .. } = invalid.metadata;
            // Quoted text is a value of the user's, which may be secret.
            let cause: Vec<&str> = invalid.error.split(['"', '`']).step_by(2).collect();
            error!(
                kind = %R::kind(&()),
                namespace = namespace.unwrap_or_default(),
                name = name.unwrap_or_default(),
                cause = cause.join("…"),
                "this resource can't be decoded and is not reconciled until it is corrected"
            );
            None
        }
    }
}

/// Tells changes that matter from echoes.
struct News {
    own: OwnWrites,
    /// By uid: hashes of spec version and metadata, and of the status.
    known: HashMap<String, (u64, u64)>,
}

// === impl News ===

impl News {
    fn of<R: Primary>(&mut self, event: Event<R>) -> Option<R> {
        match event {
            Event::Apply(resource) | Event::InitApply(resource) => self.is_news(&resource).then_some(resource),
            Event::Delete(resource) => {
                let uid = resource.uid().unwrap_or_default();
                self.known.remove(&uid);
                self.own.forget(&uid);
                None
            }
            Event::Init | Event::InitDone => None,
        }
    }

    fn is_news<R: Primary>(&mut self, resource: &R) -> bool {
        let meta = resource.meta();
        let uid = resource.uid().unwrap_or_default();
        let about = hash(&(
            meta.generation,
            meta.deletion_timestamp.is_some(),
            &meta.finalizers,
            &meta.labels,
            &meta.annotations,
        ));
        let status = fingerprint(resource.status());
        let own = self.own.is_own_status(&uid, status);
        match self.known.insert(uid, (about, status)) {
            Some(before) => before.0 != about || (before.1 != status && !own),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use kube::core::DeserializeGuard;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::v1alpha1::{Materialize, MaterializeStatus};

    fn resource(generation: i64, active: u64) -> Materialize {
        let mut resource = Materialize {
            status: Some(MaterializeStatus {
                active_generation: active,
                ..MaterializeStatus::default()
            }),
            ..Materialize::default()
        };
        resource.metadata.uid = Some("u".to_owned());
        resource.metadata.generation = Some(generation);
        resource
    }

    #[test]
    fn only_edits_and_statuses_of_others_are_news() {
        let own = OwnWrites::default();
        let mut news = News {
            own: own.clone(),
            known: HashMap::new(),
        };
        assert!(news.is_news(&resource(1, 0)), "seen for the first time");
        assert!(!news.is_news(&resource(1, 0)), "listed again");
        own.status("u", resource(1, 1).status.as_ref().unwrap());
        assert!(!news.is_news(&resource(1, 1)), "the echo of our own status");
        assert!(news.is_news(&resource(1, 2)), "a status of somebody else");
        assert!(news.is_news(&resource(2, 2)), "a new spec");
        let mut labelled = resource(2, 2);
        labelled.labels_mut().insert("a".to_owned(), "b".to_owned());
        assert!(news.is_news(&labelled), "new labels");
    }

    #[test]
    fn one_undecodable_resource_fails_no_other() {
        let guard = |spec: Value| -> DeserializeGuard<Materialize> {
            let object = json!({
                "apiVersion": "materialize.cloud/v1alpha1", "kind": "Materialize",
                "metadata": { "name": "mz", "namespace": "ns", "uid": "u" }, "spec": spec,
            });
            serde_json::from_value(object).unwrap()
        };
        let good = json!({ "environmentdImageRef": "i:v1", "backendSecretName": "s" });
        let bad = json!({ "environmentdImageRef": 7 });
        assert!(matches!(
            decoded(Event::InitApply(guard(good))),
            Some(Event::InitApply(_))
        ));
        assert!(decoded(Event::InitApply(guard(bad))).is_none());
    }
}
