//! Custom resource types, their names and keys, image references and versions. No I/O.
//!
//! Belongs here: what the API server stores and serves, and pure functions of it (conversion, rollout hash, upgrade
//! window). Does not belong here: anything that talks to a server, builds child objects, or decides what happens next.

pub mod authenticator;
pub mod certificate;
pub mod conditions;
pub mod convert;
pub mod crds;
pub mod image;
pub mod labels;
mod null;
pub mod rollout_hash;
pub mod rollout_strategy;
pub mod rollout_timeout;
pub mod v1;
pub mod v1alpha1;
pub mod version;

pub use authenticator::AuthenticatorKind;
pub use certificate::MaterializeCertSpec;
pub use rollout_hash::RolloutHash;
pub use rollout_strategy::MaterializeRolloutStrategy;
pub use rollout_timeout::RolloutRequestTimeout;

/// API group of every custom resource of this operator.
pub const GROUP: &str = "materialize.cloud";

/// Replicas of balancerd and of the console where a resource names none.
pub const DEFAULT_REPLICAS: i32 = 2;
