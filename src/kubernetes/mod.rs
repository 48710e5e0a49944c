//! How this operator talks to the API server: clients, server-side apply, deletes, retries.
//!
//! What belongs here knows nothing about Materialize: no object is built and nothing is decided here.
//! `docs/architecture.md` says which client is whose.

pub mod apply;
pub mod client;
pub mod delete;
pub mod difference;
mod error;
pub mod quantity;
pub mod retry;

pub use apply::{Applied, apply, apply_over};
pub use delete::{Deletion, delete_foreground};
pub use difference::{Difference, first_difference};
pub use error::Error;

pub use crate::api::labels::FIELD_MANAGER;

#[cfg(test)]
mod tests;
