//! cert-manager Certificates: the part of their schema that is used, and how one is made from a
//! `MaterializeCertSpec` and the operator's default for it (docs/reference/generated-objects.md).

use kube::CustomResource;
use serde::{Deserialize, Serialize};

use super::certificate_rules::{check_dns_name, check_times};
use super::identity::Identity;
use crate::api::MaterializeCertSpec;
use crate::api::certificate::{IssuerRef, PrivateKeyAlgorithm, SecretTemplate};

/// What is used of cert-manager's Certificate. Its status is never read: pods wait for the Secret by themselves.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cert-manager.io",
    version = "v1",
    kind = "Certificate",
    namespaced,
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSpec {
    /// The names the certificate is valid for.
    #[serde(default)]
    pub dns_names: Vec<String>,
    /// Lifetime, as a Go duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// Who signs.
    pub issuer_ref: IssuerRef,
    /// How the key is made.
    pub private_key: CertificatePrivateKey,
    /// How long before its end the certificate is renewed, as a Go duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_before: Option<String>,
    /// The Secret that receives key and certificate.
    pub secret_name: String,
    /// Labels and annotations of that Secret.
    pub secret_template: SecretTemplate,
}

/// How cert-manager makes a private key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificatePrivateKey {
    /// The algorithm.
    pub algorithm: PrivateKeyAlgorithm,
    /// How the key is written to the Secret: always PKCS8.
    pub encoding: String,
    /// When the key is replaced: at each renewal.
    pub rotation_policy: String,
    /// Bits; none for Ed25519.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
}

/// What one Certificate is built from.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Whose certificate it is.
    pub identity: &'a Identity,
    /// Name of the Certificate.
    pub name: String,
    /// Name of its Secret.
    pub secret_name: String,
    /// What the resource says.
    pub spec: Option<&'a MaterializeCertSpec>,
    /// What the operator's `--default-certificate-specs` says, used field by field where the resource says nothing.
    pub default: Option<&'a MaterializeCertSpec>,
    /// Names that the certificate must be valid for, whatever the specs say.
    pub extra_dns_names: Vec<String>,
    /// The algorithm if neither spec names one.
    pub algorithm: PrivateKeyAlgorithm,
    /// The size if neither spec names one.
    pub size: Option<i64>,
}

/// Settings that no certificate can be made of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCertificate {
    /// An RSA key that is too short to be accepted by clients.
    #[error("RSA key size must be at least 2048 bits, not {0}: set privateKeySize beside privateKeyAlgorithm")]
    RsaSize(i64),
    /// There is no such curve.
    #[error(
        "ECDSA key size must be one of 256, 384, or 521 bits, not {0}: set privateKeySize beside privateKeyAlgorithm"
    )]
    EcdsaSize(i64),
    /// A lifetime or renewal time that is no Go duration.
    #[error("{field} must be given in hours, minutes and seconds, such as 2160h or 1h30m, not as {value:?}")]
    Duration {
        /// The field.
        field: &'static str,
        /// What it says.
        value: String,
    },
    /// A lifetime or renewal time below what cert-manager accepts.
    #[error("{field} must be at least {shortest}, not {value:?}")]
    TooShort {
        /// The field.
        field: &'static str,
        /// What it says.
        value: String,
        /// What it may say at least.
        shortest: &'static str,
    },
    /// A certificate that would have to be renewed before it is issued.
    #[error("renewBefore ({renew_before}) must be shorter than duration ({duration})")]
    RenewBefore {
        /// What `renewBefore` says.
        renew_before: String,
        /// What `duration` says, or cert-manager's default.
        duration: String,
    },
    /// A name that DNS does not know.
    #[error(
        "dnsNames: {0:?} is no DNS name; give host names such as mz.example.com or *.example.com, without scheme, port or dot at the end"
    )]
    DnsName(String),
}

// === impl Request ===

impl Request<'_> {
    /// The Certificate, or none if no issuer is defined.
    ///
    /// # Errors
    /// If the key's size does not fit its algorithm, a duration can't be read or is too short, or a name is none.
    pub fn build(self) -> Result<Option<Certificate>, InvalidCertificate> {
        let Some(issuer_ref) = self.setting(|spec| spec.issuer_ref.as_ref()) else {
            return Ok(None);
        };

        let algorithm = self
            .setting(|spec| spec.private_key_algorithm.as_ref())
            .unwrap_or(self.algorithm);
        let size = key_size(
            algorithm,
            self.setting(|spec| spec.private_key_size.as_ref()).or(self.size),
        )?;

        let mut dns_names = self.setting(|spec| spec.dns_names.as_ref()).unwrap_or_default();
        dns_names.extend(self.extra_dns_names.iter().cloned());
        dns_names.iter().try_for_each(|name| check_dns_name(name))?;

        let duration = self.setting(|spec| spec.duration.as_ref());
        let renew_before = self.setting(|spec| spec.renew_before.as_ref());
        check_times(duration.as_deref(), renew_before.as_deref())?;

        let mut secret_template = self.setting(|spec| spec.secret_template.as_ref()).unwrap_or_default();
        secret_template
            .labels
            .get_or_insert_default()
            .extend(self.identity.labels.clone());

        let spec = CertificateSpec {
            dns_names,
            duration,
            issuer_ref,
            private_key: CertificatePrivateKey {
                algorithm,
                encoding: "PKCS8".to_owned(),
                rotation_policy: "Always".to_owned(),
                size,
            },
            renew_before,
            secret_name: self.secret_name,
            secret_template,
        };
        Ok(Some(Certificate {
            metadata: self.identity.metadata(self.name),
            spec,
        }))
    }

    fn setting<T: Clone>(&self, field: impl Fn(&MaterializeCertSpec) -> Option<&T>) -> Option<T> {
        either(self.spec, self.default, field).cloned()
    }
}

fn either<'a, T>(
    spec: Option<&'a MaterializeCertSpec>,
    default: Option<&'a MaterializeCertSpec>,
    field: impl Fn(&'a MaterializeCertSpec) -> Option<&'a T>,
) -> Option<&'a T> {
    spec.and_then(&field).or_else(|| default.and_then(&field))
}

fn key_size(algorithm: PrivateKeyAlgorithm, wanted: Option<i64>) -> Result<Option<i64>, InvalidCertificate> {
    match algorithm {
        PrivateKeyAlgorithm::Rsa => match wanted.unwrap_or(4096) {
            size @ ..2048 => Err(InvalidCertificate::RsaSize(size)),
            size => Ok(Some(size)),
        },
        PrivateKeyAlgorithm::Ecdsa => match wanted.unwrap_or(256) {
            size @ (256 | 384 | 521) => Ok(Some(size)),
            size => Err(InvalidCertificate::EcdsaSize(size)),
        },
        PrivateKeyAlgorithm::Ed25519 => Ok(None),
    }
}
