#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use k8s_openapi::jiff::SignedDuration;

use super::*;
use crate::webhook::certificates::testing::{NAME, now};

type Damage<'a> = &'a dyn Fn(&mut Contents);

fn days(days: i64) -> Timestamp {
    now() + SignedDuration::from_hours(24 * days) - SignedDuration::from_hours(1)
}

fn written(action: Result<Action, rcgen::Error>) -> (Contents, Why) {
    match action.unwrap() {
        Action::Write { contents, why } => (contents, why),
        Action::Keep { .. } => panic!("kept"),
        Action::Refuse => panic!("refused"),
    }
}

fn first() -> Contents {
    written(decide(None, None, NAME, now())).0
}

fn secret(contents: &Contents) -> Secret {
    contents.secret(None, "materialize", "tls")
}

#[test]
fn without_a_secret_a_pair_is_issued_that_is_usable_and_kept() {
    let (contents, why) = written(decide(None, None, NAME, now()));
    assert_eq!(why, Why::Missing);
    let pair = Pair::read(&contents.material(), NAME, now()).unwrap();
    assert_eq!((pair.validity.not_before, pair.validity.not_after), (days(0), days(90)));
    let (_, authority) = pair.authorities.iter().next().unwrap();
    assert_eq!(authority.not_after, days(3650));
    match decide(Some(&secret(&contents)), None, NAME, now()).unwrap() {
        Action::Keep { contents: kept, until } => {
            assert!(kept == contents);
            assert_eq!(until, days(60), "a third is left");
        }
        _ => panic!("not kept"),
    }
}

#[test]
fn certificates_have_the_extensions_that_clients_look_at() {
    use x509_parser::extensions::ParsedExtension;

    let contents = first();
    let identifiers = |pem: &[u8]| {
        let (der, _) = certificates(pem).unwrap().remove(0);
        let (_, certificate) = x509_parser::parse_x509_certificate(&der).unwrap();
        let (mut subject, mut authority) = (None, None);
        for extension in certificate.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => subject = Some(id.0.to_vec()),
                ParsedExtension::AuthorityKeyIdentifier(id) => {
                    authority = id.key_identifier.as_ref().map(|id| id.0.to_vec());
                }
                _ => {}
            }
        }
        (certificate.is_ca(), subject, authority)
    };
    let (is_ca, ca_id, _) = identifiers(&contents.authority.certificate);
    let (leaf_is_ca, leaf_id, issuer_id) = identifiers(&contents.leaf.certificate);
    assert!(is_ca && !leaf_is_ca);
    assert!(ca_id.is_some() && leaf_id.is_some());
    assert_eq!(issuer_id, ca_id);
}

#[test]
fn the_leaf_is_renewed_with_a_third_left_and_the_authority_stays() {
    let contents = first();
    let (renewed, why) = written(decide(Some(&secret(&contents)), None, NAME, days(60)));
    assert_eq!(why, Why::LeafDue);
    assert!(renewed.authority == contents.authority && renewed.leaf != contents.leaf);
    assert!(Pair::read(&renewed.material(), NAME, days(149)).is_ok());
}

#[test]
fn the_authority_is_renewed_with_a_third_left_and_the_leaf_with_it() {
    let contents = first();
    let due = days(0) + SignedDuration::from_hours(24 * 3650 * 2 / 3);
    let (renewed, why) = written(decide(Some(&secret(&contents)), None, NAME, due));
    assert_eq!(why, Why::AuthorityDue);
    assert!(renewed.authority != contents.authority);
    assert!(Pair::read(&renewed.material(), NAME, due).is_ok());
}

#[test]
fn a_renamed_service_gets_another_leaf() {
    let contents = first();
    let (renewed, why) = written(decide(Some(&secret(&contents)), None, "other.materialize.svc", now()));
    assert_eq!(why, Why::LeafUnfit);
    assert!(renewed.authority == contents.authority);
    assert!(Pair::read(&renewed.material(), "other.materialize.svc", now()).is_ok());
}

#[test]
fn what_is_damaged_is_issued_again() {
    let (contents, other) = (first(), first());
    let cases: [(Damage<'_>, Why); 7] = [
        (&|c| c.leaf.key.clear(), Why::LeafUnfit),
        (&|c| c.leaf.certificate = b"garbage".to_vec(), Why::LeafUnfit),
        (&|c| c.leaf = other.leaf.clone(), Why::LeafUnfit),
        (&|c| c.authority.key.clear(), Why::AuthorityUnfit),
        (&|c| c.authority.key = other.authority.key.clone(), Why::AuthorityUnfit),
        (&|c| c.authority.certificate.clear(), Why::AuthorityUnfit),
        (&|c| c.authority = c.leaf.clone(), Why::AuthorityUnfit),
    ];
    for (damage, expected) in cases {
        let mut damaged = contents.clone();
        damage(&mut damaged);
        let (renewed, why) = written(decide(Some(&secret(&damaged)), Some(&contents), NAME, now()));
        assert_eq!(why, expected);
        assert!(Pair::read(&renewed.material(), NAME, now()).is_ok());
    }
}

#[test]
fn a_deleted_secret_comes_back_from_memory_while_that_is_good() {
    let contents = first();
    let (again, why) = written(decide(None, Some(&contents), NAME, now()));
    assert!(again == contents && why == Why::Missing);
    let (renewed, why) = written(decide(None, Some(&contents), NAME, days(70)));
    assert!(renewed.authority == contents.authority && why == Why::LeafDue);
}

#[test]
fn the_secret_of_somebody_else_is_refused_and_foreign_keys_stay() {
    let contents = first();
    let mut foreign = secret(&contents);
    foreign.metadata.labels = None;
    assert!(matches!(
        decide(Some(&foreign), Some(&contents), NAME, now()),
        Ok(Action::Refuse)
    ));
    let mut live = secret(&contents);
    live.metadata.resource_version = Some("7".to_owned());
    live.data
        .as_mut()
        .unwrap()
        .insert("more".to_owned(), ByteString(b"x".to_vec()));
    let next = first().secret(Some(&live), "materialize", "tls");
    assert_eq!(next.metadata, live.metadata);
    let data = next.data.unwrap();
    assert_eq!(data["more"].0, b"x");
    assert_eq!(
        data.keys().collect::<Vec<_>>(),
        ["ca.crt", "ca.key", "more", "tls.crt", "tls.key"]
    );
}
