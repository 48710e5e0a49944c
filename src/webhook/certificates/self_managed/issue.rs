//! Issues authorities and serving certificates (decision W5).

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use time::OffsetDateTime;

/// How long an authority is valid.
const CA_LIFETIME: SignedDuration = SignedDuration::from_hours(24 * 3650);
/// How long a serving certificate is valid.
const LEAF_LIFETIME: SignedDuration = SignedDuration::from_hours(24 * 90);
/// Certificates are valid from so long ago on: clocks differ.
const BACK: SignedDuration = SignedDuration::from_hours(1);

/// A certificate and its key, PEM.
#[derive(Clone, Eq, PartialEq)]
pub(super) struct Issued {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

/// Issues an authority.
pub(super) fn authority(now: Timestamp) -> Result<Issued, rcgen::Error> {
    let mut params = params(now, CA_LIFETIME)?;
    // A name of its own each time, so that nobody takes one authority for another.
    params
        .distinguished_name
        .push(DnType::CommonName, format!("orchestratord webhook CA {now:.0}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = params.self_signed(&key)?;
    Ok(Issued {
        certificate: certificate.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
    })
}

/// Issues a serving certificate for `name` by `authority`.
pub(super) fn leaf(authority: &Issued, name: &str, now: Timestamp) -> Result<Issued, rcgen::Error> {
    let text = |pem: &[u8]| String::from_utf8_lossy(pem).into_owned();
    let issuer_key = KeyPair::from_pem(&text(&authority.key))?;
    let issuer = Issuer::from_ca_cert_pem(&text(&authority.certificate), issuer_key)?;
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    (params.not_before, params.not_after) = validity(now, LEAF_LIFETIME)?;
    params
        .distinguished_name
        .push(DnType::CommonName, "orchestratord webhook");
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Issued {
        certificate: certificate.pem().into_bytes(),
        key: key.serialize_pem().into_bytes(),
    })
}

fn params(now: Timestamp, lifetime: SignedDuration) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::default();
    (params.not_before, params.not_after) = validity(now, lifetime)?;
    Ok(params)
}

fn validity(now: Timestamp, lifetime: SignedDuration) -> Result<(OffsetDateTime, OffsetDateTime), rcgen::Error> {
    let time = |timestamp: Timestamp| {
        OffsetDateTime::from_unix_timestamp(timestamp.as_second()).map_err(|_| rcgen::Error::Time)
    };
    Ok((time(now - BACK)?, time(now + lifetime - BACK)?))
}
