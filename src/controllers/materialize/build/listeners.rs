//! What environmentd listens on, and who may do what there: the file `listeners.json`.
//!
//! environmentd parses the file strictly, so each version must be given the schema that it knows.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use serde::Serialize;

use super::environment::Environment;
use crate::api::AuthenticatorKind;
use crate::api::labels;
use crate::controllers::building;
use crate::controllers::building::identity::pairs;
use crate::controllers::building::names;

/// Who may connect, or use a group of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Roles {
    /// Ordinary users.
    Normal,
    /// Materialize's own users, such as the one the operator logs in as.
    Internal,
    /// Both.
    NormalAndInternal,
}

/// The two forms of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Schema {
    /// Before 26.32.0: roles per listener, routes on or off.
    Legacy,
    /// Since 26.32.0: roles per group of routes.
    PerRoute,
}

#[derive(Serialize)]
struct Listeners {
    version: &'static str,
    sql: BTreeMap<&'static str, SqlListener>,
    http: BTreeMap<&'static str, HttpListener>,
}

#[derive(Serialize)]
struct SqlListener {
    addr: String,
    authenticator_kind: AuthenticatorKind,
    allowed_roles: Roles,
    enable_tls: bool,
}

#[derive(Serialize)]
struct HttpListener {
    addr: String,
    authenticator_kind: AuthenticatorKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_roles: Option<Roles>,
    enable_tls: bool,
    routes: BTreeMap<&'static str, Route>,
}

/// A group of routes, in the form of either schema.
#[derive(Serialize)]
#[serde(untagged)]
enum Route {
    Switch(bool),
    Group {
        enabled: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        allowed_roles: Option<Roles>,
    },
}

/// All groups of routes; those that a listener does not name are off.
const ROUTES: [&str; 8] = [
    "base",
    "webhook",
    "internal",
    "metrics",
    "profiling",
    "mcp_agent",
    "mcp_developer",
    "console_config",
];

/// The `ConfigMap` of one generation with the given content.
///
/// The content is a parameter because a deleted `ConfigMap` of the active generation is restored to what was
/// deployed, not to what the spec says now (decision R20).
pub fn config_map(environment: &Environment<'_>, generation: u64, content: String) -> ConfigMap {
    let mut metadata = environment
        .identity
        .metadata(names::listeners(environment.id(), generation));
    metadata.annotations = Some(pairs([(
        labels::ANNOTATION_GENERATION,
        generation.to_string().as_str(),
    )]));
    ConfigMap {
        metadata,
        data: Some(BTreeMap::from([(labels::CONFIGMAP_KEY_LISTENERS.to_owned(), content)])),
        ..ConfigMap::default()
    }
}

/// The content of such a `ConfigMap`.
pub fn content(config_map: &ConfigMap) -> Option<&str> {
    config_map
        .data
        .as_ref()?
        .get(labels::CONFIGMAP_KEY_LISTENERS)
        .map(String::as_str)
}

/// The content of the file for this environment.
pub fn json(environment: &Environment<'_>) -> String {
    let schema = if environment.version.supports_route_group_roles() {
        Schema::PerRoute
    } else {
        Schema::Legacy
    };
    let listeners = if environment.spec().authenticator_kind.needs_login() {
        authenticating(environment, schema)
    } else {
        open_internally(environment, schema)
    };
    building::json(&listeners)
}

/// `None` and `Frontegg`: internal listeners without authentication, on ports of their own.
fn open_internally(environment: &Environment<'_>, schema: Schema) -> Listeners {
    use Roles::{Normal, NormalAndInternal};
    let ports = &environment.config.ports;
    let kind = environment.spec().authenticator_kind;
    let tls = environment.internal_tls;
    Listeners {
        version: schema.version(),
        sql: BTreeMap::from([
            ("external", sql(ports.environmentd_sql_port, kind, Normal, tls)),
            (
                "internal",
                sql(
                    ports.environmentd_internal_sql_port,
                    AuthenticatorKind::None,
                    NormalAndInternal,
                    false,
                ),
            ),
        ]),
        http: BTreeMap::from([
            (
                "external",
                schema.http(
                    ports.environmentd_http_port,
                    kind,
                    Normal,
                    tls,
                    &[
                        ("base", Normal),
                        ("webhook", Normal),
                        ("mcp_agent", Normal),
                        ("mcp_developer", Normal),
                        ("console_config", Normal),
                    ],
                ),
            ),
            (
                "internal",
                schema.http(
                    ports.environmentd_internal_http_port,
                    AuthenticatorKind::None,
                    NormalAndInternal,
                    false,
                    &[
                        ("base", NormalAndInternal),
                        ("webhook", NormalAndInternal),
                        ("internal", NormalAndInternal),
                        ("metrics", NormalAndInternal),
                        ("profiling", NormalAndInternal),
                        ("mcp_agent", NormalAndInternal),
                        ("mcp_developer", NormalAndInternal),
                    ],
                ),
            ),
        ]),
    }
}

/// `Password`, `Sasl` and `Oidc`: everybody logs in; only metrics are served without.
fn authenticating(environment: &Environment<'_>, schema: Schema) -> Listeners {
    use Roles::{Internal, NormalAndInternal};
    let ports = &environment.config.ports;
    let kind = environment.spec().authenticator_kind;
    let tls = environment.internal_tls;
    // SASL is a handshake of the SQL protocol; over HTTP the same users log in with their password.
    let http_kind = if kind == AuthenticatorKind::Sasl {
        AuthenticatorKind::Password
    } else {
        kind
    };
    Listeners {
        version: schema.version(),
        sql: BTreeMap::from([(
            "external",
            sql(ports.environmentd_sql_port, kind, NormalAndInternal, tls),
        )]),
        http: BTreeMap::from([
            (
                "external",
                schema.http(
                    ports.environmentd_http_port,
                    http_kind,
                    NormalAndInternal,
                    tls,
                    &[
                        ("base", NormalAndInternal),
                        ("webhook", NormalAndInternal),
                        // Ordinary users must reach neither promotion nor profiles.
                        ("internal", Internal),
                        ("profiling", Internal),
                        ("mcp_agent", NormalAndInternal),
                        ("mcp_developer", NormalAndInternal),
                        ("console_config", NormalAndInternal),
                    ],
                ),
            ),
            (
                "metrics",
                schema.http(
                    ports.environmentd_internal_http_port,
                    AuthenticatorKind::None,
                    NormalAndInternal,
                    false,
                    &[("metrics", NormalAndInternal)],
                ),
            ),
        ]),
    }
}

fn sql(port: u16, authenticator_kind: AuthenticatorKind, allowed_roles: Roles, enable_tls: bool) -> SqlListener {
    SqlListener {
        addr: addr(port),
        authenticator_kind,
        allowed_roles,
        enable_tls,
    }
}

fn addr(port: u16) -> String {
    format!("0.0.0.0:{port}")
}

// === impl Schema ===

impl Schema {
    fn version(self) -> &'static str {
        match self {
            Self::Legacy => "0.147.0",
            Self::PerRoute => "26.32.0",
        }
    }

    fn http(
        self,
        port: u16,
        authenticator_kind: AuthenticatorKind,
        listener_roles: Roles,
        enable_tls: bool,
        on: &[(&'static str, Roles)],
    ) -> HttpListener {
        let route = |name: &&'static str| {
            let roles = on.iter().find(|(on, _)| on == name).map(|&(_, roles)| roles);
            let route = match self {
                Self::Legacy => Route::Switch(roles.is_some()),
                Self::PerRoute => Route::Group {
                    enabled: roles.is_some(),
                    allowed_roles: roles,
                },
            };
            (*name, route)
        };
        HttpListener {
            addr: addr(port),
            authenticator_kind,
            allowed_roles: match self {
                Self::Legacy => Some(listener_roles),
                Self::PerRoute => None,
            },
            enable_tls,
            routes: ROUTES.iter().map(route).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
