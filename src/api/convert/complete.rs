//! When an object is complete: only then are the derived fields added.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::ConversionErrorKind;
use super::object::{Object, Value, is_null};

/// An object that can be read as a whole and has a name. The subset that a field manager owns has none, so that a
/// manager which owns just the required fields never gains derived ones.
pub(super) struct Complete<Spec, Status> {
    /// Value of the annotation `materialize.cloud/force-rollout`.
    pub(super) force_rollout: Option<String>,
    /// The spec.
    pub(super) spec: Spec,
    /// The status, if there is one.
    pub(super) status: Option<Status>,
}

/// What conversion needs of the metadata.
#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    annotations: Option<Annotations>,
}

/// Only this one matters, and the others are not kept.
#[derive(Deserialize)]
struct Annotations {
    #[serde(rename = "materialize.cloud/force-rollout")]
    force_rollout: Option<String>,
}

// === impl Complete ===

impl<Spec: DeserializeOwned, Status: DeserializeOwned> Complete<Spec, Status> {
    /// Reads the object, if it is complete.
    pub(super) fn read(object: &Object<'_>) -> Option<Self> {
        let metadata: Metadata<'_> = read(object.raw("metadata")?)?;
        metadata.name?;
        Some(Self {
            force_rollout: metadata.annotations.and_then(|annotations| annotations.force_rollout),
            spec: read(object.raw("spec")?)?,
            status: match object.raw("status") {
                None => None,
                Some(raw) => read(raw)?,
            },
        })
    }
}

fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// Opens the part of `object` at `key` for `map`; nothing happens if it is absent or null.
pub(super) fn map_part<'a>(
    object: &mut Object<'a>,
    key: &'static str,
    path: &'static str,
    map: impl FnOnce(&mut Object<'a>),
) -> Result<(), ConversionErrorKind> {
    let Some(raw) = object.raw(key).filter(|raw| !is_null(raw)) else {
        return Ok(());
    };
    let mut part = Object::parse(raw).ok_or(ConversionErrorKind::NotAnObject { path })?;
    map(&mut part);
    object.set(key, Value::Object(part));
    Ok(())
}
