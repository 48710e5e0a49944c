//! A serving certificate with its key and authorities: when it is usable (decision W3).

use std::fmt;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError as TlsError, Error as RustlsError, RootCertStore};
use sha2::{Digest as _, Sha256};

use super::authority::{Authorities, CertificateError, Validity, certificates};

/// What a pair is made of, as it was read.
#[derive(Clone, Eq, PartialEq)]
pub struct Material {
    /// Certificate authorities, PEM.
    pub authorities: Vec<u8>,
    /// Serving certificate and its chain, PEM.
    pub certificate: Vec<u8>,
    /// Its key, PEM.
    pub key: Vec<u8>,
}

/// One of the three parts of a [`Material`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part {
    /// The certificate authorities.
    Authorities,
    /// The serving certificate.
    Certificate,
    /// Its key.
    Key,
}

/// A pair that was usable when it was looked at.
#[derive(Clone, Debug)]
pub struct Pair {
    /// What rustls serves.
    pub key: Arc<CertifiedKey>,
    /// The authorities it chains to, and those beside them.
    pub authorities: Authorities,
    /// From when until when the serving certificate is valid.
    pub validity: Validity,
    /// SHA-256 of the material.
    pub digest: Digest,
}

/// SHA-256 of a [`Material`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Digest([u8; 32]);

/// Why a pair is not usable. Never has a byte of the key.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{cause}")]
pub struct Unusable {
    /// The part to look at.
    pub part: Part,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What is wrong with a pair.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Cause {
    /// The text is no list of certificates.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// There is no key that can be used.
    #[error("expected one private key in PEM (PKCS #8, SEC 1 or PKCS #1), of a kind that TLS uses")]
    Key,
    /// The key is another certificate's.
    #[error("the key does not belong to the certificate")]
    KeyMismatch,
    /// The certificate is for other names.
    #[error("the certificate is not for {expected}, the name that the API server asks for: add it to its DNS names")]
    Name {
        /// The name it must have.
        expected: String,
    },
    /// The certificate is not valid any more.
    #[error("the certificate expired at {0}")]
    Expired(Timestamp),
    /// The certificate is not valid yet.
    #[error("the certificate is not valid before {0}")]
    NotYet(Timestamp),
    /// All authorities are expired, or not valid yet.
    #[error("no authority is valid now")]
    NoValidAuthority,
    /// The certificate does not chain to any of the authorities.
    #[error("the certificate is not issued by any of the authorities ({0})")]
    Chain(String),
}

// === impl Material ===

impl Material {
    /// SHA-256 of all parts.
    pub fn digest(&self) -> Digest {
        let mut digest = Sha256::new();
        for part in [&self.authorities, &self.certificate, &self.key] {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        Digest(digest.finalize().into())
    }
}

impl fmt::Debug for Material {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Material")
    }
}

// === impl Part ===

impl Part {
    /// The key that this part has in a Secret.
    pub fn key(self) -> &'static str {
        match self {
            Self::Authorities => "ca.crt",
            Self::Certificate => "tls.crt",
            Self::Key => "tls.key",
        }
    }

    fn unusable(self, cause: impl Into<Cause>) -> Unusable {
        Unusable {
            part: self,
            cause: cause.into(),
        }
    }
}

// === impl Pair ===

impl Pair {
    /// The pair in `material`, if it is usable at `now` for the DNS name `name`.
    ///
    /// # Errors
    /// See [`Cause`].
    pub fn read(material: &Material, name: &str, now: Timestamp) -> Result<Self, Unusable> {
        let provider = rustls::crypto::ring::default_provider();
        let authorities =
            Authorities::from_pem(&material.authorities).map_err(|error| Part::Authorities.unusable(error))?;
        let chain = certificates(&material.certificate).map_err(|error| Part::Certificate.unusable(error))?;
        let (ders, validities): (Vec<_>, Vec<_>) = chain.into_iter().unzip();
        // `certificates` never returns an empty list.
        let (Some(leaf), Some(validity)) = (ders.first().cloned(), validities.first().copied()) else {
            return Err(Part::Certificate.unusable(CertificateError::Missing));
        };
        let key = certified_key(&ders, &material.key, &provider)?;

        let at_leaf = |cause: Cause| Err(Part::Certificate.unusable(cause));
        if now >= validity.not_after {
            return at_leaf(Cause::Expired(validity.not_after));
        }
        if now < validity.not_before {
            return at_leaf(Cause::NotYet(validity.not_before));
        }
        verify(
            &leaf,
            ders.get(1..).unwrap_or_default(),
            &authorities,
            name,
            now,
            &provider,
        )?;
        Ok(Self {
            key: Arc::new(key),
            authorities,
            validity,
            digest: material.digest(),
        })
    }
}

fn certified_key(
    chain: &[CertificateDer<'static>],
    key: &[u8],
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Unusable> {
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| Part::Key.unusable(Cause::Key))?;
    CertifiedKey::from_der(chain.to_vec(), key, provider).map_err(|error| match error {
        RustlsError::InconsistentKeys(_) => Part::Key.unusable(Cause::KeyMismatch),
        RustlsError::InvalidCertificate(_) => Part::Certificate.unusable(CertificateError::X509 { index: 1 }),
        _ => Part::Key.unusable(Cause::Key),
    })
}

/// Checks what the API server will check: chain, purpose and name.
fn verify(
    leaf: &CertificateDer<'static>,
    intermediates: &[CertificateDer<'static>],
    authorities: &Authorities,
    name: &str,
    now: Timestamp,
    provider: &CryptoProvider,
) -> Result<(), Unusable> {
    let parsed = ParsedCertificate::try_from(leaf)
        .map_err(|_| Part::Certificate.unusable(CertificateError::X509 { index: 1 }))?;
    let mut roots = RootCertStore::empty();
    let valid = authorities
        .iter()
        .filter(|(_, authority)| authority.not_before <= now && now < authority.not_after);
    let (added, _) = roots.add_parsable_certificates(valid.map(|(_, authority)| authority.der.clone()));
    if added == 0 {
        return Err(Part::Authorities.unusable(Cause::NoValidAuthority));
    }
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    let algorithms = provider.signature_verification_algorithms.all;
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    // A certificate that is its own authority is trusted as it is.
    if !authorities.iter().any(|(_, authority)| authority.der == *leaf) {
        verify_server_cert_signed_by_trust_anchor(&parsed, &roots, intermediates, time, algorithms)
            .map_err(|error| Part::Certificate.unusable(Cause::Chain(text(&error))))?;
    }
    let wrong_name = || {
        Part::Certificate.unusable(Cause::Name {
            expected: name.to_owned(),
        })
    };
    let server_name = ServerName::try_from(name).map_err(|_| wrong_name())?;
    verify_server_name(&parsed, &server_name).map_err(|_| wrong_name())
}

fn text(error: &RustlsError) -> String {
    match error {
        RustlsError::InvalidCertificate(TlsError::UnknownIssuer) => "unknown issuer".to_owned(),
        RustlsError::InvalidCertificate(TlsError::InvalidPurpose | TlsError::InvalidPurposeContext { .. }) => {
            "it is not for servers: its extended key usage lacks serverAuth".to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
