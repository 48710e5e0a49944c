//! The limits of the server: what one client may take, and all of them together.

use std::time::Duration;

/// Limits of the server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest body of a request, bytes; 413 beyond.
    pub body: usize,
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// Time from the first byte of a request to the end of its head.
    pub head: Duration,
    /// Time from the end of the head to the end of the body.
    pub read: Duration,
    /// Time that a request waits for its share of memory and for its turn; 503 beyond.
    pub queue: Duration,
    /// Time without a request after which a connection is closed. Must exceed the 90 s that API servers keep theirs:
    /// they don't repeat a POST that met a closed connection.
    pub idle: Duration,
    /// Time for what is left to write, once a connection is to be closed.
    pub flush: Duration,
    /// Connections at the same time; beyond, the oldest one without a request in flight is closed.
    pub connections: usize,
    /// Conversions at the same time.
    pub conversions: usize,
    /// Bodies in memory at the same time, bytes.
    pub memory: usize,
    /// Bodies longer than this are converted on a thread where they delay nobody, bytes.
    pub inline: usize,
}

// === impl Limits ===

impl Limits {
    /// Of the operator, as `docs/reference/webhook.md` lists them.
    pub const PRODUCTION: Self = Self {
        body: 16 * 1024 * 1024,
        handshake: Duration::from_secs(5),
        head: Duration::from_secs(5),
        read: Duration::from_secs(10),
        queue: Duration::from_secs(30),
        idle: Duration::from_mins(2),
        flush: Duration::from_secs(5),
        connections: 512,
        conversions: 64,
        memory: 32 * 1024 * 1024,
        inline: 64 * 1024,
    };
}
