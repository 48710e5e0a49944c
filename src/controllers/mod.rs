//! The controllers, one folder each. Everything here runs only under a permit.
//!
//! `building` holds what their builders share, `watching` what starts their passes, `workload` the controller that
//! Balancer and Console are two instances of.
pub mod balancer;
pub mod building;
pub mod console;
mod failure;
pub mod materialize;
mod resource_id;
mod watching;
mod workload;
