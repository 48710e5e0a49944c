//! Sockets, TLS and signals, as all stand-ins need them.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::host::Host;

/// Binds the address that stands for a configured one (see [`Host::listen_address`]).
pub(crate) async fn bind(host: &Host, configured: &str) -> anyhow::Result<TcpListener> {
    let address = host.listen_address(configured)?;
    TcpListener::bind(&address)
        .await
        .with_context(|| format!("cannot listen on {address}"))
}

/// A server's side of TLS from two PEM files.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let read = |path: &Path| format!("cannot use {}", path.display());
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| read(certificate))?;
    let key_der = PrivateKeyDer::from_pem_file(key).with_context(|| read(key))?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key_der)
        .with_context(|| format!("{} and {} do not fit", certificate.display(), key.display()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A client's side of TLS that accepts any certificate: the real balancerd does not verify environmentd's either.
pub(crate) fn trusting_connector() -> TlsConnector {
    let config = ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting))
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// Resolves when the process is asked to end: SIGTERM or SIGINT.
pub(crate) async fn asked_to_end() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Takes every certificate, and checks only that the peer holds its key.
#[derive(Debug)]
struct Trusting;

// === impl Trusting ===

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
