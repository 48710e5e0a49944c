//! An environment as a user would apply it, and its rollouts as they go on. For the demonstration and for scenarios.
//!
//! Plain JSON and `kubectl`: nothing here knows the operator's own types.

pub(crate) mod follow;
pub(crate) mod sample;
