//! What the types read and write.

use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::api::{AuthenticatorKind, MaterializeRolloutStrategy, v1};

fn minimal() -> Value {
    json!({"environmentdImageRef": "materialize/environmentd:v26.1.0", "backendSecretName": "backend"})
}

/// Every optional field as an explicit null, which Terraform sends for "not set".
fn nulls() -> Value {
    let mut spec = minimal();
    for field in [
        "environmentdExtraArgs",
        "environmentdExtraEnv",
        "environmentdIamRoleArn",
        "environmentdConnectionRoleArn",
        "environmentdResourceRequirements",
        "environmentdScratchVolumeStorageRequirement",
        "balancerdResourceRequirements",
        "consoleResourceRequirements",
        "balancerdReplicas",
        "consoleReplicas",
        "serviceAccountName",
        "serviceAccountAnnotations",
        "serviceAccountLabels",
        "podAnnotations",
        "podLabels",
        "requestRollout",
        "forcePromote",
        "forceRollout",
        "inPlaceRollout",
        "rolloutStrategy",
        "rolloutRequestTimeout",
        "authenticatorKind",
        "enableRbac",
        "environmentId",
        "systemParameterConfigmapName",
        "balancerdExternalCertificateSpec",
        "consoleExternalCertificateSpec",
        "internalCertificateSpec",
        "balancerdConfigmapName",
    ] {
        spec[field] = Value::Null;
    }
    spec
}

#[test]
fn a_minimal_spec_gets_the_defaults_of_the_reference() {
    let spec: MaterializeSpec = serde_json::from_value(minimal()).expect("only two fields are required");
    assert_eq!(spec.request_rollout, Uuid::nil());
    assert_eq!(spec.force_promote, "");
    assert_eq!(spec.force_rollout, Uuid::nil());
    assert!(!spec.in_place_rollout);
    assert_eq!(spec.rollout_strategy, MaterializeRolloutStrategy::WaitUntilReady);
    assert_eq!(spec.rollout_request_timeout.0, "24h");
    assert_eq!(spec.authenticator_kind, AuthenticatorKind::None);
    assert!(!spec.enable_rbac);
    assert_eq!(spec.environment_id, Uuid::nil());
    assert_eq!(spec.balancerd_replicas, None);
}

#[test]
fn explicit_nulls_are_the_same_as_absent_fields_in_both_versions() {
    let from = |value: Value| serde_json::from_value::<MaterializeSpec>(value).expect("nulls are accepted");
    assert_eq!(from(nulls()), from(minimal()));
    let from = |value: Value| serde_json::from_value::<v1::MaterializeSpec>(value).expect("nulls are accepted");
    assert_eq!(from(nulls()), from(minimal()));
}

#[test]
fn required_fields_are_required() {
    for field in ["environmentdImageRef", "backendSecretName"] {
        for broken in [None, Some(Value::Null)] {
            let mut spec = minimal();
            match broken {
                None => drop(spec.as_object_mut().expect("an object").remove(field)),
                Some(value) => spec[field] = value,
            }
            assert!(
                serde_json::from_value::<MaterializeSpec>(spec.clone()).is_err(),
                "{field}"
            );
            assert!(serde_json::from_value::<v1::MaterializeSpec>(spec).is_err(), "{field}");
        }
    }
}

#[test]
fn optional_fields_that_are_not_set_are_not_written() {
    let spec: MaterializeSpec = serde_json::from_value(minimal()).expect("a minimal spec");
    let written = serde_json::to_value(&spec).expect("serialises");
    assert_eq!(
        written,
        json!({
            "environmentdImageRef": "materialize/environmentd:v26.1.0",
            "backendSecretName": "backend",
            "requestRollout": "00000000-0000-0000-0000-000000000000",
            "forcePromote": "",
            "forceRollout": "00000000-0000-0000-0000-000000000000",
            "inPlaceRollout": false,
            "rolloutStrategy": "WaitUntilReady",
            "rolloutRequestTimeout": "24h",
            "authenticatorKind": "None",
            "enableRbac": false,
            "environmentId": "00000000-0000-0000-0000-000000000000",
        })
    );
}

#[test]
fn the_required_keys_of_a_status_are_always_written() {
    assert_eq!(
        serde_json::to_value(MaterializeStatus::default()).expect("serialises"),
        json!({
            "resourceId": "",
            "activeGeneration": 0,
            "lastCompletedRolloutRequest": "00000000-0000-0000-0000-000000000000",
            "resourcesHash": "",
            "conditions": [],
        })
    );
    for value in [
        serde_json::to_value(BalancerStatus::default()),
        serde_json::to_value(ConsoleStatus::default()),
    ] {
        assert_eq!(value.expect("serialises"), json!({"resourceId": "", "conditions": []}));
    }
}

#[test]
fn enums_have_the_names_of_the_reference() {
    for kind in ["Frontegg", "Password", "Sasl", "Oidc", "None"] {
        let read: AuthenticatorKind = serde_json::from_value(json!(kind)).expect(kind);
        assert_eq!(read.as_str(), kind);
        assert_eq!(serde_json::to_value(read).expect("serialises"), json!(kind));
    }
    for strategy in ["WaitUntilReady", "ManuallyPromote", "ImmediatelyPromoteCausingDowntime"] {
        let read: MaterializeRolloutStrategy = serde_json::from_value(json!(strategy)).expect(strategy);
        assert_eq!(serde_json::to_value(read).expect("serialises"), json!(strategy));
    }
    for scheme in ["http", "https"] {
        let read: BalancerdScheme = serde_json::from_value(json!(scheme)).expect(scheme);
        assert_eq!(read.as_str(), scheme);
    }
}

#[test]
fn a_balancer_with_every_field_is_read_and_written() {
    let spec = json!({
        "balancerdImageRef": "materialize/balancerd:v26.1.0",
        "resourceRequirements": {"limits": {"memory": "256Mi"}},
        "replicas": 3,
        "externalCertificateSpec": null,
        "podAnnotations": {"a": "b"},
        "podLabels": {"c": "d"},
        "staticRouting": {"environmentdNamespace": "ns", "environmentdServiceName": "mzabc-environmentd"},
        "fronteggRouting": {},
        "resourceId": "abcdefghij",
        "configmapName": "balancerd",
    });
    let read: BalancerSpec = serde_json::from_value(spec.clone()).expect("every field is known");
    assert_eq!(read.replicas(), 3);
    let mut expected = spec;
    expected
        .as_object_mut()
        .expect("an object")
        .remove("externalCertificateSpec");
    assert_eq!(serde_json::to_value(&read).expect("serialises"), expected);
}

#[test]
fn a_console_needs_a_scheme() {
    let console = |scheme: Option<&str>| {
        let mut balancerd = json!({"serviceName": "mzabc-balancerd", "namespace": "ns"});
        if let Some(scheme) = scheme {
            balancerd["scheme"] = json!(scheme);
        }
        serde_json::from_value::<ConsoleSpec>(json!({"consoleImageRef": "c:1", "balancerd": balancerd}))
    };
    let read = console(Some("https")).expect("complete");
    assert_eq!(read.authenticator_kind, AuthenticatorKind::None);
    assert_eq!(read.replicas(), 2);
    assert!(console(None).is_err());
    assert!(console(Some("ftp")).is_err());
}
