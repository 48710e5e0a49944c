//! The webhook's certificates: which pair is usable, which one is served, and which authorities the CRD must name
//! (decisions W3 to W5). See `docs/reference/webhook.md`.
//!
//! Belongs here: PEM, validity, the order of a rotation, reading files. Does not belong here: writing the CRD
//! (`registration`), connections (`server`).

pub mod authority;
pub mod files;
pub mod keeper;
pub mod pair;
pub mod resolver;
pub mod self_managed;
mod serving;
pub mod source;
#[cfg(test)]
pub(crate) mod testing;

pub use authority::{Authorities, Authority, Fingerprint};
pub use files::Files;
pub use keeper::Keeper;
pub use pair::{Material, Pair, Part, Unusable};
pub use resolver::Resolver;
pub use self_managed::SelfManaged;
pub use source::Source;
