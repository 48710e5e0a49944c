//! What this operator wrote itself, so that the echo on its watches starts no pass.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::core::ObjectMeta;
use serde::Serialize;

/// The last write to each object. Clones share one record.
#[derive(Clone, Debug, Default)]
pub(in crate::controllers) struct OwnWrites {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By uid: the `resourceVersion` that a write of ours led to.
    versions: HashMap<String, String>,
    /// By uid of a resource: the status that we wrote or are about to write.
    statuses: HashMap<String, u64>,
}

// === impl OwnWrites ===

impl OwnWrites {
    /// Notes the metadata that the API server answered a write of ours with.
    pub(in crate::controllers) fn object(&self, meta: &ObjectMeta) {
        if let (Some(uid), Some(version)) = (&meta.uid, &meta.resource_version) {
            self.lock().versions.insert(uid.clone(), version.clone());
        }
    }

    /// Notes a status before it is written: its echo may come before the answer.
    pub(in crate::controllers) fn status(&self, uid: &str, status: &impl Serialize) {
        self.lock().statuses.insert(uid.to_owned(), fingerprint(Some(status)));
    }

    /// Whether this version of an object is the one that we wrote last.
    pub(in crate::controllers) fn is_own_object(&self, meta: &ObjectMeta) -> bool {
        let (Some(uid), Some(version)) = (&meta.uid, &meta.resource_version) else {
            return false;
        };
        self.lock().versions.get(uid) == Some(version)
    }

    /// Whether this status, by its fingerprint, is the one that we wrote last.
    pub(in crate::controllers) fn is_own_status(&self, uid: &str, fingerprint: u64) -> bool {
        self.lock().statuses.get(uid) == Some(&fingerprint)
    }

    /// Forgets an object that was deleted.
    pub(in crate::controllers) fn forget(&self, uid: &str) {
        let mut inner = self.lock();
        inner.versions.remove(uid);
        inner.statuses.remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A hash by which two statuses are told apart within this process.
pub(in crate::controllers) fn fingerprint<S: Serialize>(status: Option<&S>) -> u64 {
    let mut hasher = DefaultHasher::new();
    // A status that can't be written as JSON equals none, and so starts a pass.
    serde_json::to_vec(&status).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1alpha1::MaterializeStatus;

    fn meta(version: &str) -> ObjectMeta {
        ObjectMeta {
            uid: Some("u".to_owned()),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn only_the_version_written_last_is_our_own() {
        let own = OwnWrites::default();
        assert!(!own.is_own_object(&meta("1")));
        own.object(&meta("2"));
        assert!(own.is_own_object(&meta("2")) && !own.is_own_object(&meta("1")) && !own.is_own_object(&meta("3")));
        own.forget("u");
        assert!(!own.is_own_object(&meta("2")));
    }

    #[test]
    fn a_status_is_our_own_before_the_answer_comes() {
        let own = OwnWrites::default();
        let status = MaterializeStatus {
            active_generation: 3,
            ..MaterializeStatus::default()
        };
        own.status("u", &status);
        assert!(own.is_own_status("u", fingerprint(Some(&status))));
        assert!(!own.is_own_status("u", fingerprint(Some(&MaterializeStatus::default()))));
        assert!(!own.is_own_status("u", fingerprint::<MaterializeStatus>(None)));
    }
}
