//! Licence keys made with a key pair of the tests' own, each wrong in one way.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};

use super::*;

const NOW: i64 = 1_750_000_000;
const ID: &str = "5c4f8a0e-3f0b-4a56-9d57-1c2d3e4f5a6b";

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

fn claims() -> Value {
    json!({
        "iss": "Materialize, Inc.", "sub": "customer", "aud": ID, "jti": "6a3ff6ac-9a3e-4a60-b5a0-7b9f3a2f8c11",
        "nbf": NOW - 1000, "iat": NOW - 1000, "exp": NOW + 1000, "version": 1,
        "max_credit_consumption_rate": 24, "expiration_behavior": "Warn",
    })
}

fn sign(header: &Header, claims: &Value) -> String {
    let key = EncodingKey::from_rsa_pem(include_bytes!("testdata/license-private.pem")).unwrap();
    encode(header, claims, &key).unwrap()
}

fn key(claims: &Value) -> String {
    sign(&Header::new(Algorithm::PS256), claims)
}

fn ours() -> DecodingKey {
    DecodingKey::from_rsa_pem(include_bytes!("testdata/license-public.pem")).unwrap()
}

fn another() -> DecodingKey {
    DecodingKey::from_rsa_pem(include_bytes!("testdata/other-public.pem")).unwrap()
}

fn check(text: &str) -> Result<License, InvalidLicense> {
    License::check(text.as_bytes(), &[ours()], now())
}

/// The claims with one of them replaced.
fn with(name: &str, value: Value) -> String {
    let mut claims = claims();
    claims[name] = value;
    key(&claims)
}

#[test]
fn valid() {
    let license = check(&key(&claims())).unwrap();
    assert_eq!(
        license,
        License {
            environment_id: Some(ID.parse().unwrap()),
            expired: false
        }
    );
}

#[test]
fn white_space_around_it_is_accepted() {
    assert!(check(&format!(" \n{}\n\n", key(&claims()))).is_ok());
}

#[test]
fn the_nil_audience_means_any_environment() {
    let license = check(&with("aud", json!(Uuid::nil()))).unwrap();
    assert_eq!(license.environment_id, None);
}

#[test]
fn an_audience_may_be_a_list_of_one() {
    assert!(check(&with("aud", json!([ID]))).is_ok());
    assert_eq!(check(&with("aud", json!([ID, ID]))), Err(InvalidLicense::Audience));
}

#[test]
fn expired_is_still_valid() {
    assert_eq!(
        check(&with("exp", json!(NOW - 1))).map(|license| license.expired),
        Ok(true)
    );
}

#[test]
fn empty_and_binary_are_refused() {
    assert_eq!(check(""), Err(InvalidLicense::Empty));
    assert_eq!(check(" \n"), Err(InvalidLicense::Empty));
    assert_eq!(
        License::check(&[0xff, 0xfe], &[ours()], now()),
        Err(InvalidLicense::NotText)
    );
}

#[test]
fn what_is_no_token_is_refused_and_not_quoted() {
    for text in ["hunter2", "hunter2.hunter2", "hunter2.hunter2.hunter2", "..", "\u{0}"] {
        let error = check(text).unwrap_err();
        assert!(matches!(error, InvalidLicense::Malformed(_)), "{text}: {error:?}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn every_required_claim_is_required() {
    for name in ["iss", "sub", "aud", "nbf", "iat", "exp", "version", "jti"] {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(name);
        let error = check(&key(&claims)).unwrap_err();
        assert!(
            matches!(&error, InvalidLicense::Malformed(text) if text.contains(name)),
            "{name}: {error}"
        );
    }
}

#[test]
fn another_issuer() {
    assert_eq!(
        check(&with("iss", json!("Materialize Inc"))),
        Err(InvalidLicense::Issuer)
    );
}

#[test]
fn another_version() {
    assert_eq!(check(&with("version", json!(2))), Err(InvalidLicense::Version(2)));
}

#[test]
fn another_type() {
    let mut header = Header::new(Algorithm::PS256);
    header.typ = Some("JWS".to_owned());
    assert_eq!(check(&sign(&header, &claims())), Err(InvalidLicense::Type));
    header.typ = None;
    assert_eq!(check(&sign(&header, &claims())), Err(InvalidLicense::Type));
}

#[test]
fn another_algorithm_even_with_the_right_key() {
    for algorithm in [Algorithm::RS256, Algorithm::PS512] {
        assert_eq!(
            check(&sign(&Header::new(algorithm), &claims())),
            Err(InvalidLicense::Algorithm)
        );
    }
    let hmac = EncodingKey::from_secret(include_bytes!("testdata/license-public.pem"));
    let forged = encode(&Header::new(Algorithm::HS256), &claims(), &hmac).unwrap();
    assert_eq!(check(&forged), Err(InvalidLicense::Algorithm));
}

#[test]
fn signature_of_another_key() {
    let text = key(&claims());
    assert_eq!(
        License::check(text.as_bytes(), &[another()], now()),
        Err(InvalidLicense::Signature)
    );
    assert!(
        License::check(text.as_bytes(), &[another(), ours()], now()).is_ok(),
        "any of the keys will do"
    );
}

#[test]
fn without_keys_everything_but_the_signature_is_checked() {
    let text = key(&claims());
    let unsigned = format!("{}.AAAA", text.rsplit_once('.').unwrap().0);
    assert_eq!(check(&unsigned), Err(InvalidLicense::Signature));
    assert!(License::check(unsigned.as_bytes(), &[], now()).is_ok());
    let issuer = with("iss", json!("me"));
    assert_eq!(
        License::check(issuer.as_bytes(), &[], now()),
        Err(InvalidLicense::Issuer)
    );
}

#[test]
fn not_yet_valid() {
    let ahead = |seconds: i64| {
        let mut claims = claims();
        claims["nbf"] = json!(NOW + seconds);
        claims["iat"] = json!(NOW + seconds);
        check(&key(&claims))
    };
    assert!(ahead(60).is_ok(), "clocks may disagree by a minute");
    assert_eq!(
        ahead(61),
        Err(InvalidLicense::NotYetValid(Timestamp::from_second(NOW + 61).unwrap()))
    );
}

#[test]
fn issued_outside_of_its_validity() {
    assert_eq!(
        check(&with("iat", json!(NOW - 1001))),
        Err(InvalidLicense::IssuedOutside)
    );
    assert_eq!(
        check(&with("iat", json!(NOW + 1001))),
        Err(InvalidLicense::IssuedOutside)
    );
    assert!(check(&with("iat", json!(NOW + 1000))).is_ok());
}

#[test]
fn revoked() {
    assert_eq!(
        check(&with("jti", json!("eddaf004-dc1e-48cf-9cc1-41d1543d940a"))),
        Err(InvalidLicense::Revoked)
    );
}

#[test]
fn absurd_claims_do_not_panic() {
    for value in [json!(i64::MAX), json!(i64::MIN)] {
        for name in ["nbf", "iat", "exp"] {
            let _ = check(&with(name, value.clone()));
        }
    }
    assert!(check(&with("nbf", json!(u64::MAX))).is_err());
    assert_eq!(check(&with("aud", json!("mz"))), Err(InvalidLicense::Audience));
}
