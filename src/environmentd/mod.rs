//! The client of environmentd's leader API (docs/reference/rollouts.md, "What environmentd is asked").
//!
//! Belongs here: the requests, how their answers are read, and what can be wrong with them. Does not belong here: when
//! to ask, how often, and what follows from an answer; that is the Materialize controller's.

mod client;
mod error;
#[cfg(test)]
mod tests;

pub use client::{LeaderClient, REQUEST_TIMEOUT};
pub use error::Error;

use std::fmt;

use serde::Deserialize;

/// What the environmentd of one generation says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum LeaderStatus {
    /// Still catching up.
    Initializing,
    /// Caught up; waits to be promoted.
    ReadyToPromote,
    /// Was told to promote itself.
    Promoting,
    /// Leads: it is the one that serves.
    IsLeader,
}

/// Where the environmentd of one generation is reached, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Scheme, host and port, such as `http://mzk3x9q0ab7z-environmentd-2.ns.svc.cluster.local:6878`.
    pub base_url: String,
    /// Password of the user `mz_system`, where environmentd wants a login.
    pub password: Option<Password>,
}

/// A password. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

// === impl Password ===

impl Password {
    /// Wraps the text of a password.
    pub fn new(text: impl Into<String>) -> Self {
        Password(text.into())
    }

    fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(…)")
    }
}
