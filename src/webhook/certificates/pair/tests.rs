#![allow(clippy::unwrap_used, reason = "tests")]

use rcgen::ExtendedKeyUsagePurpose;

use super::super::testing::{NAME, ca, hours, now};
use super::*;

fn judge(material: &Material) -> Result<Pair, (Part, Cause)> {
    Pair::read(material, NAME, now()).map_err(|unusable| (unusable.part, unusable.cause))
}

#[test]
fn a_pair_that_fits_is_usable() {
    let ca = ca("a", hours(9000));
    let material = ca.material(hours(90));
    let pair = judge(&material).unwrap();
    assert_eq!(pair.validity.not_after, hours(90));
    assert_eq!(pair.validity.not_before, hours(-1));
    assert_eq!(pair.authorities, Authorities::from_pem(ca.pem.as_bytes()).unwrap());
    assert_eq!(pair.digest, material.digest());
}

#[test]
fn an_authority_beside_the_one_that_counts_does_no_harm() {
    let (old, new) = (ca("old", hours(-1)), ca("new", hours(9000)));
    let mut material = new.material(hours(90));
    material.authorities = format!("# old\n{}\n\n{}", old.pem, new.pem).into_bytes();
    assert_eq!(judge(&material).unwrap().authorities.iter().count(), 2);
}

#[test]
fn each_fault_is_named_with_its_part() {
    let good = ca("a", hours(9000));
    let other = ca("b", hours(9000));
    let expired = ca("c", hours(-1));
    let fine = good.material(hours(90));
    let with = |change: &dyn Fn(&mut Material)| {
        let mut material = fine.clone();
        change(&mut material);
        material
    };
    let leaf = |from, until| good.material_of(&good.leaf(NAME, hours(from), hours(until)));
    let name = Cause::Name {
        expected: NAME.to_owned(),
    };
    let cases = [
        (
            with(&|m| m.authorities.clear()),
            Part::Authorities,
            CertificateError::Missing.into(),
        ),
        (
            with(&|m| m.authorities = b"garbage".to_vec()),
            Part::Authorities,
            CertificateError::Missing.into(),
        ),
        (
            with(&|m| m.authorities = m.key.clone()),
            Part::Authorities,
            CertificateError::Missing.into(),
        ),
        (
            with(&|m| m.authorities = b"-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n".to_vec()),
            Part::Authorities,
            CertificateError::X509 { index: 1 }.into(),
        ),
        (
            with(&|m| m.certificate.clear()),
            Part::Certificate,
            CertificateError::Missing.into(),
        ),
        (with(&|m| m.key = b"garbage".to_vec()), Part::Key, Cause::Key),
        (with(&|m| m.key = m.certificate.clone()), Part::Key, Cause::Key),
        (
            with(&|m| m.key = other.material(hours(90)).key),
            Part::Key,
            Cause::KeyMismatch,
        ),
        (leaf(-9, 0), Part::Certificate, Cause::Expired(hours(0))),
        (leaf(1, 9), Part::Certificate, Cause::NotYet(hours(1))),
        (
            with(&|m| m.authorities = expired.pem.clone().into_bytes()),
            Part::Authorities,
            Cause::NoValidAuthority,
        ),
        (
            with(&|m| m.authorities = other.pem.clone().into_bytes()),
            Part::Certificate,
            Cause::Chain("unknown issuer".to_owned()),
        ),
        (
            good.material_of(&good.leaf("operator.other.svc", hours(-1), hours(9))),
            Part::Certificate,
            name,
        ),
        (
            good.material_of(&good.leaf_with(NAME, hours(-1), hours(9), ExtendedKeyUsagePurpose::ClientAuth)),
            Part::Certificate,
            Cause::Chain("it is not for servers: its extended key usage lacks serverAuth".to_owned()),
        ),
    ];
    for (material, part, cause) in cases {
        assert_eq!(judge(&material).err(), Some((part, cause)));
    }
}

#[test]
fn a_damaged_block_is_no_certificate() {
    let mut material = ca("a", hours(9)).material(hours(9));
    material.certificate = b"-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n".to_vec();
    assert!(matches!(
        judge(&material),
        Err((Part::Certificate, Cause::Certificate(CertificateError::Pem(_))))
    ));
}

#[test]
fn a_certificate_may_be_its_own_authority() {
    let authority = ca("a", hours(9000));
    let leaf = authority.leaf(NAME, hours(-1), hours(9));
    let mut material = authority.material_of(&leaf);
    material.authorities = material.certificate.clone();
    assert!(judge(&material).is_ok());
}

#[test]
fn the_set_counts_and_not_its_bytes() {
    let (a, b) = (ca("a", hours(9)), ca("b", hours(9)));
    let one = Authorities::from_pem(format!("{}{}", a.pem, b.pem).as_bytes()).unwrap();
    let other = Authorities::from_pem(format!("x\n{}\n{}{}", b.pem, a.pem, b.pem).as_bytes()).unwrap();
    assert_eq!(one, other);
    assert_eq!(Authorities::from_pem(&one.to_pem()).unwrap(), one);
    let lossy = format!(
        "{}-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n{}",
        a.pem, b.pem
    );
    assert_eq!(Authorities::from_pem_lossy(lossy.as_bytes()), one);
    assert!(Authorities::from_pem(lossy.as_bytes()).is_err());
}
