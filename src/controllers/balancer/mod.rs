//! The Balancer controller: balancerd in front of an environment.
pub mod build;
