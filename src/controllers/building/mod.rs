//! Building blocks that the builders of all three controllers share: names, metadata, certificates, pod parts.
//!
//! Only pure functions over values belong here. What is particular to one kind of object stands in that
//! controller's own `build` folder; reading and writing the API server stands outside of both.

pub mod certificate;
mod certificate_rules;
pub mod deployment;
pub mod identity;
pub mod names;
pub mod network_policy;
pub mod pod;

/// `value` as compact JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    #[expect(
        clippy::expect_used,
        reason = "structs, lists and maps with string keys always serialise"
    )]
    serde_json::to_string(value).expect("plain data serialises")
}
