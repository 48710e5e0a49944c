//! Which group a path belongs to, who asks, and whether they may. No I/O.

use http::{HeaderMap, StatusCode, header};
use serde_json::json;

use super::listeners::{Authenticator, Group, Http};
use super::users::{Users, is_internal};
use crate::http::{Reply, Request, json, text};

/// The cookie that carries a session.
const COOKIE: &str = "mz_session";

/// What the body of `POST /api/login` must be.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    username: String,
    password: String,
}

/// The group of a path; `None` is no path of environmentd.
pub(crate) fn group(path: &str) -> Option<Group> {
    let under = |prefix: &str| path == prefix || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'));
    Some(match path {
        "/" | "/api/sql" | "/api/experimental/sql" | "/api/livez" | "/api/readyz" => Group::Base,
        "/api/console/config" => Group::ConsoleConfig,
        _ if under("/api/webhook") => Group::Webhook,
        _ if under("/api/leader") || under("/api/catalog") => Group::Internal,
        _ if under("/metrics") => Group::Metrics,
        _ if under("/prof") => Group::Profiling,
        _ if under("/api/mcp/agent") || under("/api/mcp/agents") => Group::McpAgent,
        _ if under("/api/mcp/developer") => Group::McpDeveloper,
        _ => return None,
    })
}

/// Answers what does not get as far as a handler: unknown, switched off, not logged in, not allowed.
pub(crate) fn refuse(listener: &Http, users: &Users, request: &Request) -> Option<Reply> {
    let Some(roles) = group(&request.path).and_then(|group| listener.groups.get(&group)) else {
        return Some(text(StatusCode::NOT_FOUND, "no such route on this listener"));
    };
    let Some(user) = user(listener.authenticator, users, &request.headers) else {
        return Some(text(StatusCode::UNAUTHORIZED, "unauthorized"));
    };
    let admitted = match user {
        User::Named(user) => roles.admit(is_internal(&user)),
        // Whoever reaches a listener without authentication may be any user.
        User::Anybody => true,
    };
    (!admitted).then(|| text(StatusCode::FORBIDDEN, "this user may not use this route"))
}

/// Answers `POST /api/login` on listeners that have passwords.
pub(crate) fn log_in(listener: &Http, users: &Users, request: &Request) -> Reply {
    if !listener.authenticator.has_passwords() {
        return text(StatusCode::NOT_FOUND, "no such route on this listener");
    }
    let media_type = request
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    if media_type.is_none_or(|value| !value.starts_with("application/json")) {
        return text(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "expected Content-Type: application/json",
        );
    }
    let login: Login = match serde_json::from_slice(&request.body) {
        Ok(login) => login,
        Err(error) => return text(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
    };
    let Some(id) = users.log_in(&login.username, &login.password) else {
        return text(StatusCode::UNAUTHORIZED, "invalid credentials");
    };
    let mut reply = json(StatusCode::OK, &json!({}));
    let secure = if listener.tls { "; Secure" } else { "" };
    if let Ok(cookie) = format!("{COOKIE}={id}; Path=/; HttpOnly; SameSite=Strict{secure}").parse() {
        reply.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    reply
}

#[derive(Debug, PartialEq, Eq)]
enum User {
    Named(String),
    Anybody,
}

fn user(authenticator: Authenticator, users: &Users, headers: &HeaderMap) -> Option<User> {
    match authenticator {
        Authenticator::None => Some(User::Anybody),
        Authenticator::Password | Authenticator::Oidc => {
            let cookies = headers
                .get_all(header::COOKIE)
                .iter()
                .filter_map(|value| value.to_str().ok());
            let id = cookies
                .flat_map(|value| value.split(';'))
                .find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))?;
            users.of_session(id).map(User::Named)
        }
        // There is no service here that could tell, and no HTTP listener may have Sasl.
        Authenticator::Frontegg | Authenticator::Sasl => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::collections::BTreeMap;

    use http::Method;

    use super::super::listeners::Roles;
    use super::*;

    fn listener(authenticator: Authenticator, groups: &[(Group, Roles)]) -> Http {
        Http {
            name: "external".to_owned(),
            addr: "0.0.0.0:1".to_owned(),
            authenticator,
            groups: groups.iter().copied().collect::<BTreeMap<_, _>>(),
            tls: false,
        }
    }

    fn request(path: &str, headers: &[(header::HeaderName, &str)], body: &str) -> Request {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.clone(), value.parse().unwrap());
        }
        Request {
            method: Method::POST,
            path: path.to_owned(),
            headers: map,
            body: body.to_owned().into(),
        }
    }

    fn users() -> Users {
        Users::new(Some("secret".to_owned()))
    }

    #[test]
    fn paths_belong_to_groups() {
        for (path, expected) in [
            ("/api/leader/status", Some(Group::Internal)),
            ("/api/leader/skip-catchup", Some(Group::Internal)),
            ("/api/leaders", None),
            ("/metrics", Some(Group::Metrics)),
            ("/metrics/mz_usage", Some(Group::Metrics)),
            ("/api/webhook/a/b/c", Some(Group::Webhook)),
            ("/nothing", None),
        ] {
            assert_eq!(group(path), expected, "{path}");
        }
    }

    #[test]
    fn a_group_that_is_off_is_not_there() {
        let listener = listener(Authenticator::None, &[(Group::Metrics, Roles::NormalAndInternal)]);
        assert!(refuse(&listener, &users(), &request("/metrics", &[], "")).is_none());
        let refused = refuse(&listener, &users(), &request("/api/leader/status", &[], "")).unwrap();
        assert_eq!(refused.status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn internal_routes_need_the_system_users_cookie() {
        let listener = listener(
            Authenticator::Password,
            &[
                (Group::Internal, Roles::Internal),
                (Group::Base, Roles::NormalAndInternal),
            ],
        );
        let users = users();
        let status = |path: &str, cookie: &str| {
            let headers = [(header::COOKIE, cookie)];
            refuse(&listener, &users, &request(path, &headers, "")).map(|reply| reply.status())
        };
        assert_eq!(status("/api/leader/promote", "a=b"), Some(StatusCode::UNAUTHORIZED));
        let system = format!("x=y; mz_session={}", users.log_in("mz_system", "secret").unwrap());
        assert_eq!(status("/api/leader/promote", &system), None);
        let ordinary = format!("mz_session={}", users.log_in("materialize", "materialize").unwrap());
        assert_eq!(status("/api/leader/promote", &ordinary), Some(StatusCode::FORBIDDEN));
        assert_eq!(status("/api/sql", &ordinary), None);
    }

    #[test]
    fn logging_in_takes_json_and_gives_a_cookie() {
        let listener = listener(Authenticator::Oidc, &[]);
        let users = users();
        let post = |media_type: &str, body: &str| {
            log_in(
                &listener,
                &users,
                &request("/api/login", &[(header::CONTENT_TYPE, media_type)], body),
            )
        };
        let good = r#"{"username":"mz_system","password":"secret"}"#;
        let reply = post("application/json", good);
        assert_eq!(reply.status(), StatusCode::OK);
        assert!(
            reply.headers()[header::SET_COOKIE]
                .to_str()
                .unwrap()
                .starts_with("mz_session=")
        );
        assert_eq!(post("text/plain", good).status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(
            post("application/json", "{}").status(),
            StatusCode::UNPROCESSABLE_ENTITY
        );
        let wrong = r#"{"username":"mz_system","password":"no"}"#;
        assert_eq!(post("application/json", wrong).status(), StatusCode::UNAUTHORIZED);
    }

    #[test]
    fn without_passwords_there_is_no_login() {
        let listener = listener(Authenticator::None, &[]);
        let reply = log_in(&listener, &users(), &request("/api/login", &[], ""));
        assert_eq!(reply.status(), StatusCode::NOT_FOUND);
    }
}
