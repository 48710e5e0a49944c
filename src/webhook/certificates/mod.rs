//! The webhook's certificates: which pair is usable, which one is served, and which authorities the CRD names
//! (decisions W3 to W5). See `docs/reference/webhook.md`.
//!
//! Belongs here: PEM, validity, the order of a rotation, reading files. Does not belong here: writing the CRD
//! (`registration`), connections (`server`).

pub mod authority;
pub mod pair;
pub mod resolver;
#[cfg(test)]
pub(crate) mod testing;

pub use authority::{Authorities, Authority, Fingerprint};
pub use pair::{Material, Pair, Part, Unusable};
pub use resolver::Resolver;
