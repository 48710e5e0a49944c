//! Parsers of single flag values. Their errors become usage errors that name the flag.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::de::DeserializeOwned;

/// One `KEY=VALUE` element, split at the first `=`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyValue {
    /// What stands before the first `=`; never empty.
    pub key: String,
    /// The rest, which may be empty and may contain more `=`.
    pub value: String,
}

/// Text that must not appear in logs or error messages, such as an API key.
#[derive(Clone, PartialEq, Eq)]
pub struct Sensitive(String);

/// The given elements as a map; of equal keys the last one counts.
pub(super) fn to_map(items: Vec<KeyValue>) -> BTreeMap<String, String> {
    items.into_iter().map(|item| (item.key, item.value)).collect()
}

/// Parses JSON with surrounding white space: the chart's folded values end in a newline.
pub(super) fn json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text.trim()).map_err(|error| format!("expected JSON: {error}"))
}

/// Parses a JSON object: a derived `Deserialize` alone would also take an array.
pub(super) fn json_object<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let members: serde_json::Map<String, serde_json::Value> = json(text)?;
    T::deserialize(members).map_err(|error| error.to_string())
}

/// Parses a fraction from 0 to 1.
pub(super) fn fraction(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("expected a number from 0 to 1".to_owned()),
    }
}

/// Parses an address range such as `10.0.0.0/8` or `::/0`.
pub(super) fn cidr(text: &str) -> Result<String, String> {
    let expected = || "expected a CIDR such as 10.0.0.0/8 or ::/0".to_owned();
    let (address, prefix) = text.split_once('/').ok_or_else(expected)?;
    let bits = match address.parse::<std::net::IpAddr>().map_err(|_| expected())? {
        std::net::IpAddr::V4(_) => 32,
        std::net::IpAddr::V6(_) => 128,
    };
    match prefix.parse::<u8>() {
        Ok(prefix) if prefix <= bits => Ok(text.to_owned()),
        _ => Err(format!("expected a prefix length from 0 to {bits} after the '/'")),
    }
}

/// Parses the value of an HTTP header.
pub(super) fn header_value(text: &str) -> Result<String, String> {
    http::HeaderValue::from_str(text)
        .map(|_| text.to_owned())
        .map_err(|_| "expected a value that fits into an HTTP header".to_owned())
}

/// Parses the URL of an HTTP server; the text is kept as it was given.
pub(super) fn http_url(text: &str) -> Result<String, String> {
    let uri = text
        .parse::<http::Uri>()
        .map_err(|error| format!("expected a URL: {error}"))?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http" | "https"), Some(_)) => Ok(text.to_owned()),
        _ => Err("expected a URL that starts with http:// or https://".to_owned()),
    }
}

/// Parses `NAME=VALUE` where both must fit into an HTTP header.
pub(super) fn header(text: &str) -> Result<(String, Sensitive), String> {
    let KeyValue { key, value } = text.parse()?;
    http::HeaderName::from_str(&key).map_err(|_| "expected the name of an HTTP header before the '='".to_owned())?;
    header_value(&value)?;
    Ok((key, Sensitive(value)))
}

// === impl KeyValue ===

impl FromStr for KeyValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some(("", _)) => Err("expected a key before the '='".to_owned()),
            Some((key, value)) => Ok(Self {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            None => Err("expected KEY=VALUE".to_owned()),
        }
    }
}

// === impl Sensitive ===

impl Sensitive {
    /// The text itself, for the one place that has to send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl FromStr for Sensitive {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Sensitive {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("<redacted>")
    }
}
