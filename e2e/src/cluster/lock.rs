//! One change of a cluster at a time. The lock is an abstract socket, which ends with its process and leaves no file.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use anyhow::{Context as _, Result};

use super::level::Level;

/// Held while a cluster is started or removed.
#[derive(Debug)]
pub(crate) struct Lock {
    _socket: UnixListener,
}

// === impl Lock ===

impl Lock {
    /// Takes the lock, or says that somebody else has it.
    pub(crate) fn take(level: Level) -> Result<Self> {
        let name = format!("orchestratord-e2e/{}", level.prefix());
        let address = SocketAddr::from_abstract_name(&name).context("naming the lock")?;
        let socket = UnixListener::bind_addr(&address)
            .ok()
            .with_context(|| format!("another `cargo e2e` is starting or removing the cluster of level {level} at this moment: wait for it to end, or end it, and try again"))?;
        Ok(Self { _socket: socket })
    }
}
