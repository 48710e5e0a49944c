//! TLS towards the replica as the API server, and towards the API server as its client.

use std::fs;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use crate::cluster::Level;

/// The configurations of both sides.
pub(super) struct Certificates {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

// === impl Certificates ===

impl Certificates {
    /// With the certificate of a cluster's API server, which is valid on the loopback, too.
    pub(super) fn of(level: Level) -> Result<Self> {
        let read = |name: &str| {
            let path = level.pki().join(name);
            fs::read(&path).with_context(|| format!("reading {}", path.display()))
        };
        let certificate = CertificateDer::from_pem_slice(&read("apiserver.crt")?).context("decoding apiserver.crt")?;
        let key = PrivateKeyDer::from_pem_slice(&read("apiserver.key")?).context("decoding apiserver.key")?;
        let authority = CertificateDer::from_pem_slice(&read("ca.crt")?).context("decoding ca.crt")?;
        let server = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .context("choosing TLS versions")?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .context("using the API server's certificate")?;
        let mut roots = RootCertStore::empty();
        roots.add(authority).context("trusting the cluster's authority")?;
        let client = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .context("choosing TLS versions")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            server: Arc::new(server),
            client: Arc::new(client),
        })
    }

    /// The side of a new connection that faces the replica.
    pub(super) fn accept(&self) -> Option<ServerConnection> {
        ServerConnection::new(Arc::clone(&self.server)).ok()
    }

    /// The side that faces the API server.
    pub(super) fn connect(&self) -> Option<ClientConnection> {
        let name = ServerName::try_from("kubernetes").ok()?;
        ClientConnection::new(Arc::clone(&self.client), name).ok()
    }
}
