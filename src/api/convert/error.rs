//! Why an object can't be converted.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Why an object can't be converted. The text is shown to the user by the API server; it names the object and the path.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error("{object}: {kind}")]
pub struct ConversionError {
    object: ObjectName,
    /// What is wrong.
    pub kind: ConversionErrorKind,
}

/// What is wrong with an object.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConversionErrorKind {
    /// There is no `apiVersion`, or it is no text.
    #[error(".apiVersion: missing version")]
    MissingVersion,
    /// `apiVersion` is neither of the two versions.
    #[error(
        ".apiVersion: unexpected version: {0:?}; expected \"materialize.cloud/v1alpha1\" or \"materialize.cloud/v1\""
    )]
    UnexpectedVersion(String),
    /// What must be an object is not.
    #[error("{path}: expected an object")]
    NotAnObject {
        /// The path, `.` for the whole.
        path: &'static str,
    },
    /// The object is nested too deeply.
    #[error("nested deeper than {} levels", super::DEPTH_LIMIT)]
    TooDeep,
}

/// Kind, namespace and name as far as the input has them.
#[derive(Debug, Default, Eq, PartialEq)]
struct ObjectName {
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Identity<'a> {
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Names<'a> {
    #[serde(borrow)]
    namespace: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
}

// === impl ConversionError ===

impl ConversionError {
    pub(super) fn new(input: &RawValue, kind: ConversionErrorKind) -> Self {
        Self {
            object: ObjectName::of(input),
            kind,
        }
    }
}

// === impl ObjectName ===

impl ObjectName {
    fn of(input: &RawValue) -> Self {
        let Ok(identity) = serde_json::from_str::<Identity<'_>>(input.get()) else {
            return Self::default();
        };
        let names = identity
            .metadata
            .and_then(|metadata| serde_json::from_str::<Names<'_>>(metadata.get()).ok());
        Self {
            kind: text(identity.kind),
            namespace: names.as_ref().and_then(|names| text(names.namespace)),
            name: names.as_ref().and_then(|names| text(names.name)),
        }
    }
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    let text: Cow<'_, str> = serde_json::from_str(raw?.get()).ok()?;
    Some(text.into_owned())
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_deref().unwrap_or("object"))?;
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (None, Some(name)) => write!(f, " {name}"),
            (_, None) => f.write_str(" without a name"),
        }
    }
}
