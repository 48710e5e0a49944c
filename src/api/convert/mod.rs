//! Conversion of `Materialize` between `v1alpha1` and `v1`, key by key over JSON (decisions W1, W2, R3).
//!
//! Server-side apply converts each field manager's own subset of an object, so that an input may lack anything: the
//! output has the input's keys, mapped, and nothing else. Only a complete object gains the derived fields. Values that
//! are not touched are carried byte for byte. No I/O here; the webhook's reviews are `webhook`'s business.

mod complete;
mod depth;
mod error;
mod object;
mod to_v1;
mod to_v1alpha1;

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use object::{Object, Value};

pub use error::{ConversionError, ConversionErrorKind};

/// Deepest nesting of an object that is converted.
pub const DEPTH_LIMIT: usize = 10_000;

/// A version of `Materialize`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ApiVersion {
    /// `materialize.cloud/v1alpha1`.
    V1alpha1,
    /// `materialize.cloud/v1`.
    V1,
}

/// A converted object, to be serialised. Refers to the input wherever it can.
#[derive(Debug)]
pub struct Converted<'a>(Outcome<'a>);

#[derive(Debug)]
enum Outcome<'a> {
    /// The input had the desired version already.
    Unchanged(&'a RawValue),
    /// The mapped object.
    Mapped(Object<'a>),
}

/// Converts one object to the version `desired`.
///
/// # Errors
/// The input is no object, has no known `apiVersion`, has a `spec` or `status` that is no object, or is nested deeper
/// than [`DEPTH_LIMIT`]. The error names the object and the path, never a value of the spec.
pub fn convert(input: &RawValue, desired: ApiVersion) -> Result<Converted<'_>, ConversionError> {
    convert_object(input, desired).map_err(|kind| ConversionError::new(input, kind))
}

fn convert_object(input: &RawValue, desired: ApiVersion) -> Result<Converted<'_>, ConversionErrorKind> {
    if depth::exceeds(input.get(), DEPTH_LIMIT) {
        return Err(ConversionErrorKind::TooDeep);
    }
    let mut object = Object::parse(input).ok_or(ConversionErrorKind::NotAnObject { path: "." })?;
    let version: Cow<'_, str> = object
        .get("apiVersion")
        .and_then(Value::as_text)
        .ok_or(ConversionErrorKind::MissingVersion)?;
    let version =
        ApiVersion::parse(&version).ok_or_else(|| ConversionErrorKind::UnexpectedVersion(version.into_owned()))?;
    if version == desired {
        return Ok(Converted(Outcome::Unchanged(input)));
    }
    match desired {
        ApiVersion::V1 => to_v1::convert(&mut object)?,
        ApiVersion::V1alpha1 => to_v1alpha1::convert(&mut object)?,
    }
    object.set("apiVersion", Value::Text(desired.as_str().into()));
    Ok(Converted(Outcome::Mapped(object)))
}

// === impl ApiVersion ===

impl ApiVersion {
    /// The version with this name in `apiVersion` and `desiredAPIVersion`, if there is one.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "materialize.cloud/v1alpha1" => Some(Self::V1alpha1),
            "materialize.cloud/v1" => Some(Self::V1),
            _ => None,
        }
    }

    /// The version's name, with the group.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1alpha1 => "materialize.cloud/v1alpha1",
            Self::V1 => "materialize.cloud/v1",
        }
    }
}

// === impl Converted ===

impl Serialize for Converted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Outcome::Unchanged(raw) => raw.serialize(serializer),
            Outcome::Mapped(object) => object.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests;
