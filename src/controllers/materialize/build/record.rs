//! What is remembered about a deployed generation, in annotations of its `StatefulSet` (decisions R1 and R20).
//!
//! The status is to describe what is deployed, not what the spec says by the time somebody looks. The annotations
//! stand on the `StatefulSet`'s own metadata: outside the pod template, so that writing them restarts nothing, and
//! outside the hash, so that they are no change.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use uuid::Uuid;

use crate::api::labels;

/// What a generation's `StatefulSet` was applied for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The `requestRollout` it was applied for.
    pub request: Uuid,
    /// The rendered hash of its generation's objects.
    pub hash: String,
    /// The content of its listeners `ConfigMap`.
    pub listeners: Option<String>,
}

// === impl Record ===

impl Record {
    /// Reads the record off a `StatefulSet`'s metadata; none if it was applied by another operator, or edited to
    /// something that is no record.
    pub fn read(meta: &ObjectMeta) -> Option<Self> {
        let annotations = meta.annotations.as_ref()?;
        Some(Self {
            request: annotations.get(labels::ANNOTATION_ROLLOUT_REQUEST)?.parse().ok()?,
            hash: annotations.get(labels::ANNOTATION_RESOURCES_HASH)?.clone(),
            listeners: annotations.get(labels::ANNOTATION_DEPLOYED_LISTENERS).cloned(),
        })
    }

    /// Puts the record on a `StatefulSet`'s metadata.
    pub fn write(&self, meta: &mut ObjectMeta) {
        let annotations = meta.annotations.get_or_insert_default();
        annotations.insert(labels::ANNOTATION_ROLLOUT_REQUEST.to_owned(), self.request.to_string());
        annotations.insert(labels::ANNOTATION_RESOURCES_HASH.to_owned(), self.hash.clone());
        if let Some(listeners) = &self.listeners {
            annotations.insert(labels::ANNOTATION_DEPLOYED_LISTENERS.to_owned(), listeners.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            request: Uuid::from_u128(7),
            hash: "ab".to_owned(),
            listeners: Some("{}".to_owned()),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut meta = ObjectMeta::default();
        record().write(&mut meta);
        assert_eq!(Record::read(&meta), Some(record()));
    }

    #[test]
    fn a_stateful_set_of_another_operator_has_no_record() {
        assert_eq!(Record::read(&ObjectMeta::default()), None);
    }

    #[test]
    fn an_edited_request_is_no_record() {
        let mut meta = ObjectMeta::default();
        record().write(&mut meta);
        meta.annotations
            .as_mut()
            .unwrap()
            .insert(labels::ANNOTATION_ROLLOUT_REQUEST.to_owned(), "soon".to_owned());
        assert_eq!(Record::read(&meta), None);
    }
}
