//! Explicit nulls. Clients that send every field (Terraform, for one) write `null` for "not set".

use serde::{Deserialize, Deserializer};

/// Reads `null` as the type's default, anything else as usual. Goes with `#[serde(default)]` on fields with a default.
///
/// The API server does the same for such fields: it drops the null and then applies the schema's default.
pub(crate) fn is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}
