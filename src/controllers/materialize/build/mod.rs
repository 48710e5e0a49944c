//! Pure builders of everything that is generated for a `Materialize`, one file per object. No I/O, no clock.
//!
//! [`Environment`] is what all of them read; [`GlobalObjects`] and [`GenerationObjects`] are what they make:
//! the objects that exist once per environment and those that exist once per generation. [`balancer`] and
//! [`console`] make the two resources that the other controllers take over from.
//! What comes out is described, for users, in docs/reference/generated-objects.md.
//!
//! The same input gives the same bytes, in every process: a rollout starts where the hash of the bytes
//! changes ([`hash`]). So nothing here iterates over an unordered map, and nothing depends on `serde_json::Map`,
//! whose order is a matter of crate features.

use crate::controllers::building::certificate::InvalidCertificate;
use crate::controllers::building::identity::IncompleteOwner;

pub mod args;
pub mod balancer;
pub mod certificate;
pub mod connection;
pub mod console;
pub mod container;
pub mod env;
pub mod environment;
pub mod generation;
pub mod global;
pub mod hash;
pub mod listeners;
pub mod network_policies;
pub mod pod_template;
pub mod record;
pub mod role;
pub mod role_binding;
pub mod service_account;
pub mod services;
pub mod stateful_set;
pub mod volumes;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod golden;

pub use connection::ConnectionInfo;
pub use environment::Environment;
pub use generation::GenerationObjects;
pub use global::GlobalObjects;
pub use record::Record;

/// Why the objects of a `Materialize` could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The resource lacks what nothing can be generated without.
    #[error(transparent)]
    Owner(#[from] IncompleteOwner),
    /// The internal certificate's settings contradict each other.
    #[error("internalCertificateSpec: {0}")]
    Certificate(#[from] InvalidCertificate),
}
