//! CRD registration and the conversion webhook.
//!
//! Belongs here: what every replica does for the API server's view of the custom resources, leader or not. Does not
//! belong here: the types and their conversion (`api`), and anything that only the leader may do (`controllers`).

pub mod certificates;
pub mod reachable;
pub mod registration;
pub mod review;
pub mod server;
pub mod sightings;
pub mod start;
pub mod state;
