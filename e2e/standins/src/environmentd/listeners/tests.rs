#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

/// Both schemas for an environment without authentication, written out from the description of environmentd's file.
const LEGACY: &str = r#"{"version":"0.147.0",
 "sql":{"external":{"addr":"0.0.0.0:6875","authenticator_kind":"None","allowed_roles":"Normal","enable_tls":false},
        "internal":{"addr":"0.0.0.0:6877","authenticator_kind":"None","allowed_roles":"NormalAndInternal","enable_tls":false}},
 "http":{"external":{"addr":"0.0.0.0:6876","authenticator_kind":"None","allowed_roles":"Normal","enable_tls":false,
          "routes":{"base":true,"webhook":true,"internal":false,"metrics":false,"profiling":false,
                    "mcp_agent":true,"mcp_developer":true,"console_config":true}}}}"#;
const CURRENT: &str = r#"{"version":"26.32.0",
 "sql":{"external":{"addr":"0.0.0.0:6875","authenticator_kind":"None","allowed_roles":"Normal","enable_tls":false}},
 "http":{"external":{"addr":"0.0.0.0:6876","authenticator_kind":"None","enable_tls":false,
          "routes":{"base":{"enabled":true,"allowed_roles":"Normal"},"webhook":{"enabled":false},
                    "internal":{"enabled":true,"allowed_roles":"Internal"},"metrics":{"enabled":false},
                    "profiling":{"enabled":false},"mcp_agent":{"enabled":false},"mcp_developer":{"enabled":false},
                    "console_config":{"enabled":false}}}}}"#;

fn parse(text: &str, version: &str) -> anyhow::Result<Listeners> {
    Listeners::parse(text, &Version::parse(version))
}

fn reason(text: &str, version: &str) -> String {
    format!("{:#}", parse(text, version).unwrap_err())
}

#[test]
fn each_schema_is_read_by_its_own_versions_only() {
    for version in ["v0.147.20", "v26.0.0", "v26.31.9", "v26.32.0-dev.0"] {
        assert!(parse(LEGACY, version).is_ok(), "{version}");
        assert!(parse(CURRENT, version).is_err(), "{version}");
    }
    for version in ["v26.32.0", "v27.0.0", "latest"] {
        assert!(parse(CURRENT, version).is_ok(), "{version}");
        assert!(parse(LEGACY, version).is_err(), "{version}");
    }
}

#[test]
fn groups_and_roles_are_those_of_the_file() {
    let legacy = parse(LEGACY, "v26.31.0").unwrap();
    let groups: Vec<_> = legacy.http[0].groups.iter().collect();
    let normal = &Roles::Normal;
    assert_eq!(
        groups,
        [
            (&Group::Base, normal),
            (&Group::Webhook, normal),
            (&Group::McpAgent, normal),
            (&Group::McpDeveloper, normal),
            (&Group::ConsoleConfig, normal)
        ]
    );
    let current = parse(CURRENT, "v26.43.0").unwrap();
    assert_eq!(
        current.http[0].groups,
        BTreeMap::from([(Group::Base, Roles::Normal), (Group::Internal, Roles::Internal)])
    );
    assert_eq!(current.sql[0].roles, Roles::Normal);
}

#[test]
fn what_is_unknown_or_missing_is_refused() {
    let cases = [
        (
            CURRENT.replace(r#""enable_tls":false}},"#, r#""enable_tls":false,"x":1}},"#),
            "unknown field `x`",
        ),
        (
            CURRENT.replace(r#""webhook":{"enabled":false},"#, ""),
            "missing field `webhook`",
        ),
        (
            CURRENT.replace(r#""webhook":{"enabled":false},"#, r#""webhook":{"enabled":true},"#),
            "without allowed_roles",
        ),
        (
            CURRENT.replace(
                r#""authenticator_kind":"None","enable_tls""#,
                r#""authenticator_kind":"Talos","enable_tls""#,
            ),
            "unknown variant `Talos`",
        ),
        (
            CURRENT.replace(
                r#""authenticator_kind":"None","enable_tls""#,
                r#""authenticator_kind":"Sasl","enable_tls""#,
            ),
            "only SQL listeners",
        ),
        (CURRENT.replace("6876", "6875"), "both have 0.0.0.0:6875"),
        (
            CURRENT.replace(r#""http":{"external""#, r#""http":{"outside""#),
            "http.external is missing",
        ),
        (CURRENT.replace("0.0.0.0:6876", "6876"), "host:port"),
        (
            CURRENT.replace(r#""version":"26.32.0","#, r#""version":"26.32.0","grpc":{},"#),
            "unknown field `grpc`",
        ),
    ];
    for (text, expected) in cases {
        let reason = reason(&text, "v26.43.0");
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn the_version_member_is_not_looked_at() {
    assert!(parse(&CURRENT.replace("26.32.0", "0.1.0"), "v26.43.0").is_ok());
    assert!(parse(&CURRENT.replace(r#""version":"26.32.0","#, ""), "v26.43.0").is_ok());
}

#[test]
fn authenticators_begin_with_a_version() {
    let with = |kind: &str| LEGACY.replacen("\"None\"", &format!("\"{kind}\""), 1);
    for (kind, before, since) in [
        ("Password", "v0.147.6", "v0.147.7"),
        ("Sasl", "v0.164.0", "v26.0.0"),
        ("Oidc", "v26.15.9", "v26.16.0"),
    ] {
        assert!(reason(&with(kind), before).contains(kind));
        assert!(parse(&with(kind), since).is_ok(), "{kind}");
    }
}
