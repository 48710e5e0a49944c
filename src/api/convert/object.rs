//! A JSON object whose values stay as they were written until they are replaced.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON object: keys in their order, values unparsed. A key that occurs twice is kept twice; the last one counts.
#[derive(Debug, Default)]
pub(super) struct Object<'a> {
    entries: Vec<(Cow<'a, str>, Value<'a>)>,
}

/// A value of an [`Object`].
#[derive(Debug)]
pub(super) enum Value<'a> {
    /// As it stands in the input.
    Raw(&'a RawValue),
    /// An object that was looked into.
    Object(Object<'a>),
    /// A new text.
    Text(Cow<'static, str>),
}

/// A key, borrowed from the input unless it has escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

// === impl Object ===

impl<'a> Object<'a> {
    /// Splits a text into its keys and values; `None` if it is no object.
    pub(super) fn parse(raw: &'a RawValue) -> Option<Self> {
        // Texts of a RawValue are valid JSON, so the only possible error is that it is something else.
        raw.get()
            .starts_with('{')
            .then(|| serde_json::from_str(raw.get()).ok())
            .flatten()
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Value<'a>> {
        let (_, value) = self.entries.iter().rev().find(|(name, _)| name == key)?;
        Some(value)
    }

    /// The value of a key that has not been looked into.
    pub(super) fn raw(&self, key: &str) -> Option<&'a RawValue> {
        match self.get(key)? {
            Value::Raw(raw) => Some(raw),
            Value::Object(_) | Value::Text(_) => None,
        }
    }

    /// Takes a key out.
    pub(super) fn remove(&mut self, key: &str) {
        self.entries.retain(|(name, _)| name != key);
    }

    /// Replaces the value of a key where it stands, or adds the key.
    pub(super) fn set(&mut self, key: &'static str, value: Value<'a>) {
        match self.entries.iter_mut().rev().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.entries.push((Cow::Borrowed(key), value)),
        }
    }

    /// Sets the key to a text, or takes it out.
    pub(super) fn set_text(&mut self, key: &'static str, text: Option<String>) {
        match text {
            Some(text) => self.set(key, Value::Text(text.into())),
            None => self.remove(key),
        }
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut entries = Vec::with_capacity(map.size_hint().unwrap_or(16));
                while let Some((Key(key), raw)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    entries.push((key, Value::Raw(raw)));
                }
                Ok(Object { entries })
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.entries.len()))?;
        for (key, value) in &self.entries {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

// === impl Value ===

impl Value<'_> {
    /// The value, if it is a text.
    pub(super) fn as_text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Raw(raw) => serde_json::from_str::<Key<'_>>(raw.get()).ok().map(|Key(text)| text),
            Self::Text(text) => Some(Cow::Borrowed(text)),
            Self::Object(_) => None,
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Raw(raw) => raw.serialize(serializer),
            Self::Object(object) => object.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// Whether a value is an explicit null.
pub(super) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}
