//! Leadership of `orchestratord` as pure code: which phase a replica is in ([`phase`]) and how it holds the one Lease
//! ([`lease`]).
//!
//! Belongs here: decisions over values that were handed in, and the types of those values. Does not belong here: a
//! clock, I/O, tokio, logging, or types of the Kubernetes API. The driver, `src/leadership` of the operator, reads the
//! clock, sends the requests, and translates Lease objects at its edge.

pub mod lease;
pub mod phase;
