#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};

use super::super::fixtures::with;

fn env(tag: &str, flags: &[&str], spec: &Value) -> Value {
    json!(with(tag, flags, spec, super::build))
}

fn names(env: &Value) -> Vec<&str> {
    env.as_array()
        .unwrap()
        .iter()
        .map(|variable| variable["name"].as_str().unwrap())
        .collect()
}

#[test]
fn order() {
    let spec = json!({
        "authenticatorKind": "Password",
        "environmentdExtraEnv": [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}],
    });
    assert_eq!(
        names(&env("v26.42.0", &[], &spec)),
        [
            "MZ_METADATA_BACKEND_URL",
            "MZ_PERSIST_BLOB_URL",
            "AWS_REGION",
            "B",
            "A",
            "MZ_LICENSE_KEY",
            "MZ_EXTERNAL_LOGIN_PASSWORD_MZ_SYSTEM",
        ]
    );
}

#[test]
fn values() {
    let env = env("v26.42.0", &["--region=eu"], &json!({"authenticatorKind": "Oidc"}));
    let secret = |key: &str| json!({"secretKeyRef": {"name": "backend", "key": key, "optional": false}});
    assert_eq!(
        env,
        json!([
            {"name": "MZ_METADATA_BACKEND_URL", "valueFrom": secret("metadata_backend_url")},
            {"name": "MZ_PERSIST_BLOB_URL", "valueFrom": secret("persist_backend_url")},
            {"name": "AWS_REGION", "value": "eu"},
            {"name": "MZ_LICENSE_KEY", "value": "/license_key/license_key"},
            {"name": "MZ_EXTERNAL_LOGIN_PASSWORD_MZ_SYSTEM", "valueFrom": secret("external_login_password_mz_system")},
        ])
    );
}

#[test]
fn the_system_password_goes_with_kinds_that_log_in_since_0_147() {
    let name = "MZ_EXTERNAL_LOGIN_PASSWORD_MZ_SYSTEM";
    for (kind, login) in [
        ("None", false),
        ("Frontegg", false),
        ("Password", true),
        ("Sasl", true),
        ("Oidc", true),
    ] {
        let spec = json!({"authenticatorKind": kind});
        assert_eq!(
            names(&env("v0.147.0-dev.0", &[], &spec)).contains(&name),
            login,
            "{kind}"
        );
        assert!(!names(&env("v0.146.9", &[], &spec)).contains(&name), "{kind}");
    }
}

/// A duplicate key would make the API server refuse the whole `StatefulSet`.
#[test]
fn a_user_overrides_the_region_and_the_last_of_equal_names_counts() {
    let spec = json!({"environmentdExtraEnv": [
        {"name": "A", "value": "first"},
        {"name": "AWS_REGION", "value": "own"},
        {"name": "A", "value": "last"},
        {"name": "MZ_LICENSE_KEY", "value": "own"},
    ]});
    let env = env("v26.42.0", &[], &spec);
    assert_eq!(
        names(&env),
        [
            "MZ_METADATA_BACKEND_URL",
            "MZ_PERSIST_BLOB_URL",
            "AWS_REGION",
            "A",
            "MZ_LICENSE_KEY"
        ]
    );
    assert_eq!(env[2]["value"], "own");
    assert_eq!(env[3]["value"], "last");
    assert_eq!(env[4]["value"], "/license_key/license_key");
}
