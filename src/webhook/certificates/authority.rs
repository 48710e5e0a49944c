//! Certificate authorities as a set: what counts is which certificates there are, not their bytes as PEM (decision W4).

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use k8s_openapi::jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use sha2::{Digest as _, Sha256};

/// SHA-256 of a certificate in lower-case hex.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Fingerprint(String);

/// The certificate of an authority.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Authority {
    /// The certificate.
    pub der: CertificateDer<'static>,
    /// Valid from here on.
    pub not_before: Timestamp,
    /// Valid until here.
    pub not_after: Timestamp,
}

/// A set of authorities.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Authorities(BTreeMap<Fingerprint, Authority>);

/// Why a text is no list of certificates.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CertificateError {
    /// There is no certificate in it.
    #[error("expected PEM with at least one block CERTIFICATE, found none")]
    Missing,
    /// A PEM block is damaged.
    #[error("expected PEM, but a block is damaged: {0}")]
    Pem(String),
    /// A block is no X.509 certificate.
    #[error("certificate {index} is not X.509")]
    X509 {
        /// Its place in the text, from 1.
        index: usize,
    },
}

/// From when until when a certificate is valid.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Validity {
    /// Valid from here on.
    pub not_before: Timestamp,
    /// Valid until here.
    pub not_after: Timestamp,
}

/// All certificates of a PEM text in their order, each with its validity.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<(CertificateDer<'static>, Validity)>, CertificateError> {
    let ders: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| CertificateError::Pem(error.to_string()))?;
    if ders.is_empty() {
        return Err(CertificateError::Missing);
    }
    ders.into_iter()
        .enumerate()
        .map(|(index, der)| {
            let validity = validity(&der).ok_or(CertificateError::X509 { index: index + 1 })?;
            Ok((der, validity))
        })
        .collect()
}

fn validity(der: &CertificateDer<'_>) -> Option<Validity> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    let validity = certificate.validity();
    let time = |time: x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp()).ok();
    Some(Validity {
        not_before: time(validity.not_before)?,
        not_after: time(validity.not_after)?,
    })
}

// === impl Authorities ===

impl Authorities {
    /// Reads a PEM text, all of which must be certificates.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn from_pem(pem: &[u8]) -> Result<Self, CertificateError> {
        Ok(certificates(pem)?.into_iter().collect())
    }

    /// The certificates of a PEM text that can be read.
    pub fn from_pem_lossy(pem: &[u8]) -> Self {
        CertificateDer::pem_slice_iter(pem)
            .filter_map(Result::ok)
            .filter_map(|der| validity(&der).map(|validity| (der, validity)))
            .collect()
    }

    /// The set as PEM, in the order of the fingerprints.
    pub fn to_pem(&self) -> Vec<u8> {
        let mut pem = String::new();
        for authority in self.0.values() {
            pem.push_str("-----BEGIN CERTIFICATE-----\n");
            let base64 = base64::engine::general_purpose::STANDARD.encode(&authority.der);
            for line in base64.as_bytes().chunks(64) {
                pem.push_str(&String::from_utf8_lossy(line));
                pem.push('\n');
            }
            pem.push_str("-----END CERTIFICATE-----\n");
        }
        pem.into_bytes()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The authorities with their fingerprints, in the order of those.
    pub fn iter(&self) -> impl Iterator<Item = (&Fingerprint, &Authority)> {
        self.0.iter()
    }

    /// Whether an authority is in it.
    pub fn contains(&self, fingerprint: &Fingerprint) -> bool {
        self.0.contains_key(fingerprint)
    }

    /// Whether all of `others` are in it.
    pub fn contains_all(&self, others: &Self) -> bool {
        others.0.keys().all(|fingerprint| self.contains(fingerprint))
    }

    /// Adds all of `others`.
    pub fn extend(&mut self, others: &Self) {
        for (fingerprint, authority) in others.iter() {
            self.0.entry(fingerprint.clone()).or_insert_with(|| authority.clone());
        }
    }

    /// Keeps those that `keep` wants.
    pub fn retain(&mut self, mut keep: impl FnMut(&Fingerprint, &Authority) -> bool) {
        self.0.retain(|fingerprint, authority| keep(fingerprint, authority));
    }
}

impl FromIterator<(CertificateDer<'static>, Validity)> for Authorities {
    fn from_iter<I: IntoIterator<Item = (CertificateDer<'static>, Validity)>>(certificates: I) -> Self {
        let entry = |(der, Validity { not_before, not_after })| {
            let fingerprint = Fingerprint::of(&der);
            let authority = Authority {
                der,
                not_before,
                not_after,
            };
            (fingerprint, authority)
        };
        Self(certificates.into_iter().map(entry).collect())
    }
}

// === impl Fingerprint ===

impl Fingerprint {
    /// That of a certificate.
    pub fn of(der: &CertificateDer<'_>) -> Self {
        Self(format!("{:x}", Sha256::digest(der)))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Fingerprint {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
