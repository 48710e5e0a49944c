//! Certificates for tests.

#![allow(clippy::unwrap_used, reason = "tests")]

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, PublicKeyData as _,
};

use super::pair::Material;

/// The name that all leaves of these tests have.
pub(crate) const NAME: &str = "operator.materialize.svc";

/// The moment at which the tests happen.
pub(crate) fn now() -> Timestamp {
    "2026-03-01T00:00:00Z".parse().unwrap()
}

/// `now` plus so many hours.
pub(crate) fn hours(hours: i64) -> Timestamp {
    now() + SignedDuration::from_hours(hours)
}

/// An authority.
pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate.
    pub(crate) pem: String,
}

/// A certificate with its key, PEM.
pub(crate) struct Leaf {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

fn time(timestamp: Timestamp) -> time::OffsetDateTime {
    time::OffsetDateTime::from_unix_timestamp(timestamp.as_second()).unwrap()
}

/// An authority that is valid until `not_after`.
pub(crate) fn ca(name: &str, not_after: Timestamp) -> Ca {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = time(now() - SignedDuration::from_hours(24 * 365));
    params.not_after = time(not_after);
    let key = KeyPair::generate().unwrap();
    assert!(!key.der_bytes().is_empty());
    let pem = params.self_signed(&key).unwrap().pem();
    Ca {
        issuer: Issuer::new(params, key),
        pem,
    }
}

impl Ca {
    /// A leaf for `name`, valid from `not_before` until `not_after`.
    pub(crate) fn leaf(&self, name: &str, not_before: Timestamp, not_after: Timestamp) -> Leaf {
        self.leaf_with(name, not_before, not_after, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A leaf for another purpose.
    pub(crate) fn leaf_with(
        &self,
        name: &str,
        not_before: Timestamp,
        not_after: Timestamp,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Leaf {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = time(not_before);
        params.not_after = time(not_after);
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        Leaf {
            certificate: params.signed_by(&key, &self.issuer).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }

    /// The material of a usable pair: a leaf from an hour ago until `not_after`.
    pub(crate) fn material(&self, not_after: Timestamp) -> Material {
        self.material_of(&self.leaf(NAME, hours(-1), not_after))
    }

    /// The material of a leaf with this authority.
    pub(crate) fn material_of(&self, leaf: &Leaf) -> Material {
        Material {
            authorities: self.pem.clone().into_bytes(),
            certificate: leaf.certificate.clone().into_bytes(),
            key: leaf.key.clone().into_bytes(),
        }
    }
}
