#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};

use super::super::fixtures::{materialize, with};
use super::*;
use crate::args::Config;
use crate::controllers::building::certificate::InvalidCertificate;
use crate::controllers::building::identity::IncompleteOwner;

const TAG: &str = "v26.42.0";

fn built(flags: &[&str], spec: &Value) -> GlobalObjects {
    with(TAG, flags, spec, |environment| {
        GlobalObjects::build(environment, &[]).unwrap()
    })
}

#[test]
fn network_policies_follow_their_flags() {
    let within = "mzk3x9q0ab7z-allow-all-within-environment";
    let operator = "mzk3x9q0ab7z-allow-orchestratord";
    let ingress = "mzk3x9q0ab7z-sql-and-http-ingress";
    let egress = "mzk3x9q0ab7z-sources-and-sinks-egress";
    for (flags, wanted, unwanted) in [
        (vec![], vec![], vec![within, operator, ingress, egress]),
        (
            vec!["--network-policies-internal-enabled"],
            vec![within, operator],
            vec![ingress, egress],
        ),
        (
            vec!["--network-policies-ingress-enabled"],
            vec![ingress],
            vec![within, operator, egress],
        ),
        (
            vec!["--network-policies-egress-enabled"],
            vec![egress],
            vec![within, operator, ingress],
        ),
    ] {
        with(TAG, &flags, &json!({}), |environment| {
            let objects = GlobalObjects::build(environment, &[]).unwrap();
            let names: Vec<_> = objects
                .network_policies
                .iter()
                .map(|policy| policy.metadata.name.as_deref().unwrap())
                .collect();
            assert_eq!(names, wanted, "{flags:?}");
            assert_eq!(objects.unwanted_network_policies(environment), unwanted, "{flags:?}");
        });
    }
}

#[test]
fn without_cidrs_a_policy_admits_everybody() {
    let objects = built(&["--network-policies-ingress-enabled"], &json!({}));
    assert_eq!(
        json!(objects.network_policies[0].spec)["ingress"],
        json!([
            {"ports": [{"port": 6876, "protocol": "TCP"}, {"port": 6875, "protocol": "TCP"}]},
        ])
    );
}

#[test]
fn the_service_account_is_somebody_elses_if_it_is_named() {
    let objects = built(&[], &json!({"serviceAccountName": "own"}));
    assert_eq!(objects.service_account, None);
    assert_eq!(
        json!(objects.role_binding.subjects),
        json!([
            {"kind": "ServiceAccount", "name": "own", "namespace": "analytics"},
        ])
    );
}

#[test]
fn service_accounts_of_live_generations_keep_the_role() {
    let spec = json!({"serviceAccountName": "own"});
    let still_bound = ["production".to_owned(), "own".to_owned()];
    let objects = with(TAG, &[], &spec, |environment| {
        GlobalObjects::build(environment, &still_bound).unwrap()
    });
    let names: Vec<_> = objects
        .role_binding
        .subjects
        .unwrap()
        .into_iter()
        .map(|subject| subject.name)
        .collect();
    assert_eq!(names, ["own", "production"]);
}

#[test]
fn the_iam_role_is_taken_from_the_resource_then_the_flag_and_only_on_aws() {
    let key = "eks.amazonaws.com/role-arn";
    let aws = ["--cloud-provider=aws", "--environmentd-iam-role-arn=flag"];
    let gcp = ["--cloud-provider=gcp", "--environmentd-iam-role-arn=flag"];
    for (flags, spec, expected) in [
        (&aws[..], json!({}), Some("flag")),
        (&aws[..], json!({"environmentdIamRoleArn": "own"}), Some("own")),
        (&aws[..1], json!({}), None),
        (
            &aws[..],
            json!({"serviceAccountAnnotations": {key: "annotation"}}),
            Some("flag"),
        ),
        (
            &aws[..1],
            json!({"serviceAccountAnnotations": {key: "annotation"}}),
            Some("annotation"),
        ),
        (&gcp[..], json!({"environmentdIamRoleArn": "own"}), None),
        (
            &gcp[..],
            json!({"serviceAccountAnnotations": {key: "annotation"}}),
            Some("annotation"),
        ),
    ] {
        let annotations = built(flags, &spec)
            .service_account
            .unwrap()
            .metadata
            .annotations
            .unwrap_or_default();
        assert_eq!(annotations.get(key).map(String::as_str), expected, "{flags:?} {spec}");
    }
}

#[test]
fn the_certificates_key_follows_the_settings() {
    for (settings, expected) in [
        (json!({}), Ok(json!({"algorithm": "Ed25519"}))),
        (json!({"privateKeySize": 1}), Ok(json!({"algorithm": "Ed25519"}))),
        (
            json!({"privateKeyAlgorithm": "RSA"}),
            Ok(json!({"algorithm": "RSA", "size": 4096})),
        ),
        (
            json!({"privateKeyAlgorithm": "RSA", "privateKeySize": 2048}),
            Ok(json!({"algorithm": "RSA", "size": 2048})),
        ),
        (
            json!({"privateKeyAlgorithm": "RSA", "privateKeySize": 2047}),
            Err(InvalidCertificate::RsaSize(2047)),
        ),
        (
            json!({"privateKeyAlgorithm": "RSA", "privateKeySize": -1}),
            Err(InvalidCertificate::RsaSize(-1)),
        ),
        (
            json!({"privateKeyAlgorithm": "ECDSA"}),
            Ok(json!({"algorithm": "ECDSA", "size": 256})),
        ),
        (
            json!({"privateKeyAlgorithm": "ECDSA", "privateKeySize": 521}),
            Ok(json!({"algorithm": "ECDSA", "size": 521})),
        ),
        (
            json!({"privateKeyAlgorithm": "ECDSA", "privateKeySize": 512}),
            Err(InvalidCertificate::EcdsaSize(512)),
        ),
    ] {
        let mut certificate = settings.clone();
        certificate["issuerRef"] = json!({"name": "ca"});
        let spec = json!({"internalCertificateSpec": certificate});
        let found = with(TAG, &[], &spec, |environment| GlobalObjects::build(environment, &[]));
        let key = found.map(|objects| {
            let mut key = json!(objects.certificate.unwrap().spec.private_key);
            assert_eq!(key["encoding"], "PKCS8");
            assert_eq!(key["rotationPolicy"], "Always");
            key.as_object_mut()
                .unwrap()
                .retain(|name, _| name != "encoding" && name != "rotationPolicy");
            key
        });
        assert_eq!(key, expected.map_err(BuildError::Certificate), "{settings}");
    }
}

#[test]
fn without_an_issuer_there_is_no_certificate_and_no_error() {
    let spec = json!({"internalCertificateSpec": {"privateKeyAlgorithm": "RSA", "privateKeySize": 1}});
    assert_eq!(built(&[], &spec).certificate, None);
}

#[test]
fn a_resource_that_was_never_stored_or_has_no_status_is_refused() {
    let config = Config::for_tests(&[]);
    let error = |change: fn(&mut crate::api::v1alpha1::Materialize)| {
        let mut resource = materialize(TAG, &json!({}));
        change(&mut resource);
        Environment::new(&resource, &config).map(|_| ()).unwrap_err()
    };
    assert_eq!(
        error(|mz| mz.metadata.uid = None),
        IncompleteOwner::Metadata("metadata.uid").into()
    );
    assert_eq!(
        error(|mz| mz.metadata.namespace = None),
        IncompleteOwner::Metadata("metadata.namespace").into()
    );
    assert_eq!(error(|mz| mz.status = None), IncompleteOwner::ResourceId.into());
    assert_eq!(
        error(|mz| mz.status.as_mut().unwrap().resource_id.clear()),
        IncompleteOwner::ResourceId.into()
    );
}
