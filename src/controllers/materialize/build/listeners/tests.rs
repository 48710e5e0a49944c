#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use serde_json::{Value, json};

use super::super::fixtures::with;

fn listeners(tag: &str, kind: &str, flags: &[&str]) -> Value {
    let text = with(tag, flags, &json!({"authenticatorKind": kind}), super::json);
    serde_json::from_str(&text).unwrap()
}

const TLS: &str = r#"--default-certificate-specs={"internal":{"issuerRef":{"name":"ca"}}}"#;
const LEGACY: &str = "v26.31.9";
const PER_ROUTE: &str = "v26.32.0";
const BOTH: &str = "NormalAndInternal";

fn switches(on: [bool; 8]) -> Value {
    let [
        base,
        webhook,
        internal,
        metrics,
        profiling,
        mcp_agent,
        mcp_developer,
        console_config,
    ] = on;
    json!({
        "base": base, "webhook": webhook, "internal": internal, "metrics": metrics, "profiling": profiling,
        "mcp_agent": mcp_agent, "mcp_developer": mcp_developer, "console_config": console_config,
    })
}

fn groups(roles: [&str; 8]) -> Value {
    let [
        base,
        webhook,
        internal,
        metrics,
        profiling,
        mcp_agent,
        mcp_developer,
        console_config,
    ] = roles.map(|roles| match roles {
        "" => json!({"enabled": false}),
        roles => json!({"enabled": true, "allowed_roles": roles}),
    });
    json!({
        "base": base, "webhook": webhook, "internal": internal, "metrics": metrics, "profiling": profiling,
        "mcp_agent": mcp_agent, "mcp_developer": mcp_developer, "console_config": console_config,
    })
}

const ON: bool = true;
const OFF: bool = false;

#[test]
fn none_and_frontegg_in_the_legacy_schema() {
    for kind in ["None", "Frontegg"] {
        for (flags, tls) in [(vec![], false), (vec![TLS], true)] {
            assert_eq!(
                listeners(LEGACY, kind, &flags),
                json!({
                    "version": "0.147.0",
                    "sql": {
                        "external": {"addr": "0.0.0.0:6875", "authenticator_kind": kind, "allowed_roles": "Normal", "enable_tls": tls},
                        "internal": {"addr": "0.0.0.0:6877", "authenticator_kind": "None", "allowed_roles": BOTH, "enable_tls": false},
                    },
                    "http": {
                        "external": {
                            "addr": "0.0.0.0:6876", "authenticator_kind": kind, "allowed_roles": "Normal", "enable_tls": tls,
                            "routes": switches([ON, ON, OFF, OFF, OFF, ON, ON, ON]),
                        },
                        "internal": {
                            "addr": "0.0.0.0:6878", "authenticator_kind": "None", "allowed_roles": BOTH, "enable_tls": false,
                            "routes": switches([ON, ON, ON, ON, ON, ON, ON, OFF]),
                        },
                    },
                })
            );
        }
    }
}

#[test]
fn none_and_frontegg_with_roles_per_route() {
    for kind in ["None", "Frontegg"] {
        for (flags, tls) in [(vec![], false), (vec![TLS], true)] {
            assert_eq!(
                listeners(PER_ROUTE, kind, &flags),
                json!({
                    "version": "26.32.0",
                    "sql": {
                        "external": {"addr": "0.0.0.0:6875", "authenticator_kind": kind, "allowed_roles": "Normal", "enable_tls": tls},
                        "internal": {"addr": "0.0.0.0:6877", "authenticator_kind": "None", "allowed_roles": BOTH, "enable_tls": false},
                    },
                    "http": {
                        "external": {
                            "addr": "0.0.0.0:6876", "authenticator_kind": kind, "enable_tls": tls,
                            "routes": groups(["Normal", "Normal", "", "", "", "Normal", "Normal", "Normal"]),
                        },
                        "internal": {
                            "addr": "0.0.0.0:6878", "authenticator_kind": "None", "enable_tls": false,
                            "routes": groups([BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, BOTH, ""]),
                        },
                    },
                })
            );
        }
    }
}

/// Over HTTP the users of SASL log in with their password.
const LOGIN: [(&str, &str); 3] = [("Password", "Password"), ("Sasl", "Password"), ("Oidc", "Oidc")];

#[test]
fn kinds_that_log_in_in_the_legacy_schema() {
    for (kind, http) in LOGIN {
        for (flags, tls) in [(vec![], false), (vec![TLS], true)] {
            assert_eq!(
                listeners(LEGACY, kind, &flags),
                json!({
                    "version": "0.147.0",
                    "sql": {
                        "external": {"addr": "0.0.0.0:6875", "authenticator_kind": kind, "allowed_roles": BOTH, "enable_tls": tls},
                    },
                    "http": {
                        "external": {
                            "addr": "0.0.0.0:6876", "authenticator_kind": http, "allowed_roles": BOTH, "enable_tls": tls,
                            "routes": switches([ON, ON, ON, OFF, ON, ON, ON, ON]),
                        },
                        "metrics": {
                            "addr": "0.0.0.0:6878", "authenticator_kind": "None", "allowed_roles": BOTH, "enable_tls": false,
                            "routes": switches([OFF, OFF, OFF, ON, OFF, OFF, OFF, OFF]),
                        },
                    },
                })
            );
        }
    }
}

#[test]
fn kinds_that_log_in_with_roles_per_route() {
    for (kind, http) in LOGIN {
        for (flags, tls) in [(vec![], false), (vec![TLS], true)] {
            assert_eq!(
                listeners(PER_ROUTE, kind, &flags),
                json!({
                    "version": "26.32.0",
                    "sql": {
                        "external": {"addr": "0.0.0.0:6875", "authenticator_kind": kind, "allowed_roles": BOTH, "enable_tls": tls},
                    },
                    "http": {
                        "external": {
                            "addr": "0.0.0.0:6876", "authenticator_kind": http, "enable_tls": tls,
                            "routes": groups([BOTH, BOTH, "Internal", "", "Internal", BOTH, BOTH, BOTH]),
                        },
                        "metrics": {
                            "addr": "0.0.0.0:6878", "authenticator_kind": "None", "enable_tls": false,
                            "routes": groups(["", "", "", BOTH, "", "", "", ""]),
                        },
                    },
                })
            );
        }
    }
}

/// environmentd crash-loops with a schema that it does not know.
#[test]
fn the_schema_follows_the_version() {
    for (tag, version) in [
        ("v0.146.0", "0.147.0"),
        ("v0.147.20", "0.147.0"),
        ("v26.31.9", "0.147.0"),
        ("v26.32.0-dev.0", "0.147.0"),
        ("v26.32.0", "26.32.0"),
        ("v27.0.0", "26.32.0"),
        ("unstable", "26.32.0"),
        ("v26.31.0@sha256:abc", "26.32.0"),
    ] {
        assert_eq!(listeners(tag, "None", &[])["version"], version, "{tag}");
    }
}

#[test]
fn addresses_follow_the_configured_ports() {
    let flags = [
        "--environmentd-sql-port=1",
        "--environmentd-http-port=2",
        "--environmentd-internal-sql-port=3",
        "--environmentd-internal-http-port=4",
    ];
    let found = listeners(PER_ROUTE, "None", &flags);
    let addr = |protocol: &str, listener: &str| found[protocol][listener]["addr"].as_str().unwrap().to_owned();
    assert_eq!(addr("sql", "external"), "0.0.0.0:1");
    assert_eq!(addr("http", "external"), "0.0.0.0:2");
    assert_eq!(addr("sql", "internal"), "0.0.0.0:3");
    assert_eq!(addr("http", "internal"), "0.0.0.0:4");
}
