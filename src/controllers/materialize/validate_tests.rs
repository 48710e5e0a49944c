//! One test for each way in which a resource can be valid, incomplete or stalled.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;

use super::*;

const ID: Uuid = Uuid::from_u128(7);
const RANDOM: Uuid = Uuid::from_u128(99);
const NOW: i64 = 1_750_000_000;

fn materialize(image: &str) -> Materialize {
    serde_json::from_value(json!({
        "apiVersion": "materialize.cloud/v1alpha1",
        "kind": "Materialize",
        "metadata": { "name": "mz", "namespace": "ns", "uid": "own", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {
            "environmentdImageRef": format!("materialize/environmentd:{image}"),
            "backendSecretName": "backend",
            "requestRollout": Uuid::from_u128(1),
            "environmentId": ID,
        },
    }))
    .unwrap()
}

fn secret(license: Option<&str>) -> BackendSecret {
    BackendSecret::Found {
        license_key: license.map(|text| text.as_bytes().to_vec()),
        password: None,
    }
}

fn license(audience: Uuid) -> BackendSecret {
    let claims = json!({
        "iss": "Materialize, Inc.", "sub": "s", "aud": audience, "jti": "j", "version": 1,
        "nbf": NOW, "iat": NOW, "exp": NOW,
    });
    let key = EncodingKey::from_rsa_pem(include_bytes!("testdata/license-private.pem")).unwrap();
    secret(Some(&encode(&Header::new(Algorithm::PS256), &claims, &key).unwrap()))
}

fn check(materialize: &Materialize, secret: &BackendSecret, claimants: &[Claimant]) -> Verdict {
    validate(
        materialize,
        secret,
        claimants,
        &[],
        Timestamp::from_second(NOW).unwrap(),
        || RANDOM,
    )
}

fn reason(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Stalled(stall) => stall.reason(),
        other => panic!("not stalled: {other:?}"),
    }
}

fn claimant(uid: &str, created: &str, active_generation: u64) -> Claimant {
    Claimant {
        namespace: "other".to_owned(),
        name: uid.to_owned(),
        uid: uid.to_owned(),
        created: Some(created.parse().unwrap()),
        active_generation,
    }
}

#[test]
fn complete_and_licensed() {
    assert_eq!(check(&materialize("v26.1.0"), &license(ID), &[]), Verdict::Valid);
    assert_eq!(
        check(&materialize("v26.1.0"), &license(Uuid::nil()), &[]),
        Verdict::Valid,
        "a licence for any"
    );
}

#[test]
fn missing_secret() {
    let verdict = check(&materialize("v26.1.0"), &BackendSecret::Missing, &[]);
    assert_eq!(reason(&verdict), "BackendSecretNotFound");
    let Verdict::Stalled(stall) = verdict else {
        unreachable!()
    };
    assert!(stall.to_string().contains("ns/backend"), "{stall}");
}

#[test]
fn no_licence_key_before_and_from_0_161() {
    assert_eq!(check(&materialize("v0.160.9"), &secret(None), &[]), Verdict::Valid);
    assert_eq!(
        reason(&check(&materialize("v0.161.0"), &secret(None), &[])),
        "LicenseKeyNotFound"
    );
    assert_eq!(
        reason(&check(&materialize("latest"), &secret(None), &[])),
        "LicenseKeyNotFound"
    );
}

#[test]
fn an_empty_licence_key_is_one_that_is_invalid() {
    assert_eq!(
        reason(&check(&materialize("v0.100.0"), &secret(Some("")), &[])),
        "LicenseKeyInvalid"
    );
    assert_eq!(
        reason(&check(&materialize("v0.100.0"), &secret(Some("secret")), &[])),
        "LicenseKeyInvalid"
    );
}

#[test]
fn nothing_is_filled_in_without_a_valid_licence() {
    let mut resource = materialize("v26.1.0");
    resource.spec.environment_id = Uuid::nil();
    assert_eq!(reason(&check(&resource, &secret(None), &[])), "LicenseKeyNotFound");
}

#[test]
fn the_environment_id_comes_from_the_licence_or_is_random() {
    let mut resource = materialize("v0.160.0");
    resource.spec.environment_id = Uuid::nil();
    let filled = |id| Verdict::FillIn {
        request_rollout: None,
        environment_id: Some(id),
    };
    assert_eq!(check(&resource, &license(ID), &[]), filled(ID));
    assert_eq!(check(&resource, &license(Uuid::nil()), &[]), filled(RANDOM));
    assert_eq!(check(&resource, &secret(None), &[]), filled(RANDOM));
}

#[test]
fn the_request_is_filled_in_and_the_id_kept() {
    let mut resource = materialize("v26.1.0");
    resource.spec.request_rollout = Uuid::nil();
    let filled = Verdict::FillIn {
        request_rollout: Some(RANDOM),
        environment_id: None,
    };
    assert_eq!(check(&resource, &license(ID), &[]), filled);
}

#[test]
fn another_environments_licence() {
    let verdict = check(&materialize("v26.1.0"), &license(Uuid::from_u128(8)), &[]);
    assert_eq!(reason(&verdict), "EnvironmentIdMismatch");
}

#[test]
fn of_two_with_one_id_the_one_that_runs_goes_on() {
    let mut resource = materialize("v26.1.0");
    let own = Claimant::of(&resource);
    let older = claimant("x", "2025-01-01T00:00:00Z", 0);
    assert_eq!(
        reason(&check(&resource, &license(ID), &[own.clone(), older.clone()])),
        "EnvironmentIdInUse"
    );
    resource.status = Some(crate::api::v1alpha1::MaterializeStatus {
        active_generation: 1,
        ..Default::default()
    });
    assert_eq!(check(&resource, &license(ID), &[own.clone(), older]), Verdict::Valid);
    let further = claimant("x", "2027-01-01T00:00:00Z", 2);
    assert_eq!(
        reason(&check(&resource, &license(ID), &[own, further])),
        "EnvironmentIdInUse"
    );
}

#[test]
fn of_two_that_do_not_run_the_older_goes_on_and_never_both() {
    let resource = materialize("v26.1.0");
    let own = Claimant::of(&resource);
    let younger = claimant("x", "2026-06-01T00:00:00Z", 0);
    assert_eq!(check(&resource, &license(ID), &[own.clone(), younger]), Verdict::Valid);
    // Made in the same second: the uid decides, the other way round for the other one.
    let twin = |uid| claimant(uid, "2026-01-01T00:00:00Z", 0);
    assert_eq!(
        check(&resource, &license(ID), &[own.clone(), twin("zzz")]),
        Verdict::Valid
    );
    assert_eq!(
        reason(&check(&resource, &license(ID), &[own, twin("aaa")])),
        "EnvironmentIdInUse"
    );
}

#[test]
fn a_resource_is_no_rival_of_itself() {
    let resource = materialize("v26.1.0");
    let listed = Claimant {
        active_generation: 9,
        ..Claimant::of(&resource)
    };
    assert_eq!(check(&resource, &license(ID), &[listed]), Verdict::Valid);
}
