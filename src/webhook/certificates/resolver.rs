//! The certificate that new connections get; exchanged without touching those that are open.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// Holds the served certificate, if there is one.
#[derive(Debug, Default)]
pub struct Resolver(ArcSwapOption<CertifiedKey>);

// === impl Resolver ===

impl Resolver {
    /// Serves `key` from the next handshake on.
    pub fn serve(&self, key: Arc<CertifiedKey>) {
        self.0.store(Some(key));
    }

    /// The certificate that is served, if there is one.
    pub fn served(&self) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.served()
    }
}
