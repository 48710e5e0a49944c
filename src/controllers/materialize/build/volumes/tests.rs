#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};

use super::super::fixtures::with;

/// The names of the volumes, which must be those of the mounts.
fn volumes(tag: &str, flags: &[&str], spec: &Value) -> Vec<String> {
    let (volumes, mounts) = with(tag, flags, spec, |environment| super::build(environment, 3));
    let names: Vec<_> = volumes.into_iter().map(|volume| volume.name).collect();
    assert_eq!(names, mounts.into_iter().map(|mount| mount.name).collect::<Vec<_>>());
    names
}

#[test]
fn the_licence_key_is_mounted_by_version_and_flag() {
    for (tag, with_checks, without_checks) in [
        ("v0.139.9", false, false),
        ("v0.140.0-dev.0", true, false),
        ("v0.140.0", true, false),
        ("v0.143.0", true, false),
        ("v0.152.9", true, false),
        ("v0.153.0-dev.0", true, false),
        ("v0.153.0", true, true),
        ("v26.42.0", true, true),
        ("unstable", true, true),
    ] {
        let mounted = |flags: &[&str]| volumes(tag, flags, &json!({})).contains(&"license-key".to_owned());
        assert_eq!(mounted(&[]), with_checks, "{tag}");
        assert_eq!(
            mounted(&["--disable-license-key-checks"]),
            without_checks,
            "{tag} with checks disabled"
        );
    }
}

#[test]
fn the_listeners_are_mounted_since_0_147() {
    for (tag, mounted) in [
        ("v0.146.9", false),
        ("v0.147.0-dev.0", true),
        ("v26.42.0", true),
        ("unstable", true),
    ] {
        let found = volumes(tag, &[], &json!({})).contains(&"listeners-configmap".to_owned());
        assert_eq!(found, mounted, "{tag}");
    }
}

#[test]
fn system_parameters_are_mounted_since_26_1_if_there_are_any() {
    let spec = json!({"systemParameterConfigmapName": "parameters"});
    for (tag, mounted) in [
        ("v0.164.0", false),
        ("v26.0.9", false),
        ("v26.1.0-dev.0", true),
        ("unstable", true),
    ] {
        assert_eq!(
            volumes(tag, &[], &spec).contains(&"system-params".to_owned()),
            mounted,
            "{tag}"
        );
        assert!(
            !volumes(tag, &[], &json!({})).contains(&"system-params".to_owned()),
            "{tag}"
        );
    }
}

#[test]
fn the_certificate_is_mounted_with_an_issuer() {
    let spec = json!({"internalCertificateSpec": {"issuerRef": {"name": "ca"}}});
    assert!(volumes("v26.42.0", &[], &spec).contains(&"certificate".to_owned()));
    assert!(!volumes("v26.42.0", &[], &json!({})).contains(&"certificate".to_owned()));
}

#[test]
fn all_of_them_in_order() {
    let spec = json!({
        "internalCertificateSpec": {"issuerRef": {"name": "ca"}},
        "systemParameterConfigmapName": "parameters",
    });
    let (volumes, mounts) = with("v26.42.0", &[], &spec, |environment| super::build(environment, 3));
    assert_eq!(
        json!(volumes),
        json!([
            {"name": "certificate", "secret": {"secretName": "mzk3x9q0ab7z-environmentd-tls", "defaultMode": 0o400}},
            {"name": "system-params", "configMap": {"name": "parameters", "defaultMode": 0o400, "optional": true}},
            {"name": "license-key", "secret": {
                "secretName": "backend", "defaultMode": 0o400, "optional": false,
                "items": [{"key": "license_key", "path": "license_key"}],
            }},
            {"name": "listeners-configmap", "configMap": {
                "name": "mzk3x9q0ab7z-listeners-3", "defaultMode": 0o400, "optional": false,
                "items": [{"key": "listeners.json", "path": "listeners.json"}],
            }},
        ])
    );
    assert_eq!(
        json!(mounts),
        json!([
            {"name": "certificate", "mountPath": "/etc/materialized", "readOnly": true},
            {"name": "system-params", "mountPath": "/system-params", "readOnly": true},
            {"name": "license-key", "mountPath": "/license_key"},
            {"name": "listeners-configmap", "mountPath": "/listeners"},
        ])
    );
}
