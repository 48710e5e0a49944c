//! The listeners file: which port speaks what, who may use it, and which routes it has.
//!
//! Two schemas, each read strictly: environmentd takes the one of its own version and fails on the other.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::version::{Bound, Version};

/// The first version with roles for each route group.
pub(crate) const ROLES_PER_ROUTE: Bound = Bound::release(26, 32, 0);

/// How clients of a listener prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Authenticator {
    Frontegg,
    Password,
    Sasl,
    Oidc,
    None,
}

/// Which kinds of users may enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Roles {
    Normal,
    Internal,
    NormalAndInternal,
}

/// A group of HTTP routes that is switched on and off together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    Base,
    Webhook,
    Internal,
    Metrics,
    Profiling,
    McpAgent,
    McpDeveloper,
    ConsoleConfig,
}

/// A port that speaks pgwire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sql {
    pub(crate) name: String,
    pub(crate) addr: String,
    pub(crate) authenticator: Authenticator,
    pub(crate) roles: Roles,
    pub(crate) tls: bool,
}

/// A port that speaks HTTP. A group that is not in the map is switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Http {
    pub(crate) name: String,
    pub(crate) addr: String,
    pub(crate) authenticator: Authenticator,
    pub(crate) groups: BTreeMap<Group, Roles>,
    pub(crate) tls: bool,
}

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listeners {
    pub(crate) sql: Vec<Sql>,
    pub(crate) http: Vec<Http>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<H> {
    /// Not looked at: the program knows its own version.
    #[serde(default, rename = "version")]
    _version: Option<Value>,
    sql: BTreeMap<String, SqlFile>,
    http: BTreeMap<String, H>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SqlFile {
    addr: String,
    authenticator_kind: Authenticator,
    allowed_roles: Roles,
    enable_tls: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LegacyHttp {
    addr: String,
    authenticator_kind: Authenticator,
    allowed_roles: Roles,
    enable_tls: bool,
    routes: Routes<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CurrentHttp {
    addr: String,
    authenticator_kind: Authenticator,
    enable_tls: bool,
    routes: Routes<Route>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Routes<T> {
    base: T,
    webhook: T,
    internal: T,
    metrics: T,
    profiling: T,
    mcp_agent: T,
    mcp_developer: T,
    console_config: T,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Route {
    enabled: bool,
    #[serde(default)]
    allowed_roles: Option<Roles>,
}

// === impl Authenticator ===

impl Authenticator {
    /// Whether users log in with a password that environmentd itself knows.
    pub(crate) fn has_passwords(self) -> bool {
        matches!(self, Self::Password | Self::Sasl | Self::Oidc)
    }

    /// The first version that knows this kind.
    fn since(self) -> Bound {
        match self {
            Self::Oidc => Bound::release(26, 16, 0),
            Self::Sasl => Bound::release(26, 0, 0),
            Self::Password => Bound::release(0, 147, 7),
            Self::Frontegg | Self::None => Bound::release(0, 0, 0),
        }
    }
}

// === impl Roles ===

impl Roles {
    /// Whether a user may enter who is internal, or who is not.
    pub(crate) fn admit(self, internal: bool) -> bool {
        match self {
            Self::Normal => !internal,
            Self::Internal => internal,
            Self::NormalAndInternal => true,
        }
    }
}

// === impl Routes ===

impl<T> Routes<T> {
    fn groups(self) -> [(Group, T); 8] {
        [
            (Group::Base, self.base),
            (Group::Webhook, self.webhook),
            (Group::Internal, self.internal),
            (Group::Metrics, self.metrics),
            (Group::Profiling, self.profiling),
            (Group::McpAgent, self.mcp_agent),
            (Group::McpDeveloper, self.mcp_developer),
            (Group::ConsoleConfig, self.console_config),
        ]
    }
}

// === impl Listeners ===

impl Listeners {
    /// Reads the schema that belongs to `version`.
    pub(crate) fn parse(text: &str, version: &Version) -> anyhow::Result<Self> {
        let (sql, http) = if version.at_least(ROLES_PER_ROUTE) {
            let file: File<CurrentHttp> = serde_json::from_str(text)
                .with_context(|| format!("no listeners file of {version} (roles per route)"))?;
            let http = file.http.into_iter().map(current).collect::<anyhow::Result<_>>()?;
            (file.sql, http)
        } else {
            let file: File<LegacyHttp> = serde_json::from_str(text)
                .with_context(|| format!("no listeners file of {version} (routes are booleans)"))?;
            (file.sql, file.http.into_iter().map(legacy).collect())
        };
        let sql = sql.into_iter().map(|(name, sql)| Sql {
            name,
            addr: sql.addr,
            authenticator: sql.authenticator_kind,
            roles: sql.allowed_roles,
            tls: sql.enable_tls,
        });
        let listeners = Self {
            sql: sql.collect(),
            http,
        };
        listeners.check(version)?;
        Ok(listeners)
    }

    /// What versions before the listeners file had, from their four flags.
    pub(crate) fn from_flags(sql: &str, http: &str, internal_sql: &str, internal_http: &str, tls: bool) -> Self {
        let sql_listener = |name: &str, addr: &str, roles, tls| Sql {
            name: name.to_owned(),
            addr: addr.to_owned(),
            authenticator: Authenticator::None,
            roles,
            tls,
        };
        let http_listener = |name: &str, addr: &str, groups: &[Group], roles, tls| Http {
            name: name.to_owned(),
            addr: addr.to_owned(),
            authenticator: Authenticator::None,
            groups: groups.iter().map(|group| (*group, roles)).collect(),
            tls,
        };
        let internal = [
            Group::Base,
            Group::Webhook,
            Group::Internal,
            Group::Metrics,
            Group::Profiling,
        ];
        Self {
            sql: vec![
                sql_listener("external", sql, Roles::Normal, tls),
                sql_listener("internal", internal_sql, Roles::NormalAndInternal, false),
            ],
            http: vec![
                http_listener("external", http, &[Group::Base, Group::Webhook], Roles::Normal, tls),
                http_listener("internal", internal_http, &internal, Roles::NormalAndInternal, false),
            ],
        }
    }

    fn check(&self, version: &Version) -> anyhow::Result<()> {
        let kinds = self
            .sql
            .iter()
            .map(|sql| sql.authenticator)
            .chain(self.http.iter().map(|http| http.authenticator));
        for kind in kinds {
            if !version.at_least(kind.since()) {
                bail!(
                    "listeners file: {kind:?} begins with {}, this is {version}",
                    kind.since()
                );
            }
        }
        if let Some(http) = self.http.iter().find(|http| http.authenticator == Authenticator::Sasl) {
            bail!(
                "listeners file: http.{} has Sasl, which only SQL listeners may have",
                http.name
            );
        }
        let sql = self.sql.iter().map(|sql| (&sql.name, &sql.addr));
        let mut seen = BTreeMap::new();
        for (name, addr) in sql.chain(self.http.iter().map(|http| (&http.name, &http.addr))) {
            crate::host::split_address(addr).with_context(|| format!("listeners file: {name}"))?;
            if let Some(other) = seen.insert(addr, name) {
                bail!("listeners file: {other} and {name} both have {addr}");
            }
        }
        for (what, missing) in [
            ("sql", !self.sql.iter().any(|sql| sql.name == "external")),
            ("http", !self.http.iter().any(|http| http.name == "external")),
        ] {
            if missing {
                bail!("listeners file: {what}.external is missing");
            }
        }
        Ok(())
    }
}

fn legacy((name, http): (String, LegacyHttp)) -> Http {
    let roles = http.allowed_roles;
    Http {
        name,
        addr: http.addr,
        authenticator: http.authenticator_kind,
        groups: http
            .routes
            .groups()
            .into_iter()
            .filter(|(_, on)| *on)
            .map(|(group, _)| (group, roles))
            .collect(),
        tls: http.enable_tls,
    }
}

fn current((name, http): (String, CurrentHttp)) -> anyhow::Result<Http> {
    let mut groups = BTreeMap::new();
    for (group, route) in http.routes.groups() {
        match (route.enabled, route.allowed_roles) {
            (true, Some(roles)) => drop(groups.insert(group, roles)),
            (true, None) => bail!("listeners file: http.{name}: {group:?} is enabled without allowed_roles"),
            (false, None) => {}
            (false, Some(_)) => bail!("listeners file: http.{name}: {group:?} has allowed_roles but is not enabled"),
        }
    }
    Ok(Http {
        name,
        addr: http.addr,
        authenticator: http.authenticator_kind,
        groups,
        tls: http.enable_tls,
    })
}

#[cfg(test)]
mod tests;
