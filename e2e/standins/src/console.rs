//! The stand-in for the console: an image without arguments that is told everything by two variables and one file.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use http::StatusCode;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::End;
use crate::host::{Host, split_address};
use crate::http::{Handler, text, typed};
use crate::net::{acceptor, asked_to_end, bind};
use crate::version::Version;

const APP_CONFIG: &str = "/usr/share/nginx/html/app-config/app-config.json";

/// The file; a member that is not here is an error.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AppConfig {
    version: String,
    #[serde(rename = "auth")]
    _auth: Auth,
    #[serde(default)]
    balancerd_dns_names: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Auth {
    #[serde(rename = "mode")]
    _mode: Mode,
}

#[derive(Debug, Deserialize)]
enum Mode {
    None,
    Password,
    Sasl,
    Oidc,
    Frontegg,
}

/// What the variable `MZ_NGINX_LISTENER_CONFIG` says.
#[derive(Debug, PartialEq, Eq)]
struct Listener {
    port: u16,
    /// Certificate and key.
    tls: Option<(PathBuf, PathBuf)>,
}

/// Runs until the process is asked to end.
pub(crate) async fn run(arguments: &[String], host: &Host) -> anyhow::Result<End> {
    if let Some(argument) = arguments.first() {
        bail!("unexpected argument {argument}: the console takes none");
    }
    let version = host.version()?;
    check_endpoint(
        host.variable("MZ_ENDPOINT")
            .context("the variable MZ_ENDPOINT is not set")?,
    )?;
    let listener = host
        .variable("MZ_NGINX_LISTENER_CONFIG")
        .context("the variable MZ_NGINX_LISTENER_CONFIG is not set")?;
    let listener = Listener::parse(listener).context("MZ_NGINX_LISTENER_CONFIG")?;
    let config = std::fs::read_to_string(host.file(APP_CONFIG)).with_context(|| format!("cannot read {APP_CONFIG}"))?;
    check_config(&config, &version).context(APP_CONFIG)?;
    let tls = listener
        .tls
        .map(|(certificate, key)| acceptor(&host.file(certificate), &host.file(key)))
        .transpose()?;
    let socket = bind(host, &format!("0.0.0.0:{}", listener.port)).await?;
    info!(%version, "ready");
    let stop = CancellationToken::new();
    let serve = crate::http::serve(socket, tls, handler(host.clone()), stop.clone());
    let (ended, ()) = tokio::join!(
        async {
            let ended = asked_to_end().await;
            stop.cancel();
            ended
        },
        serve
    );
    ended.map(|()| End::Exit(0))
}

fn handler(host: Host) -> Handler {
    Arc::new(move |request| {
        let reply = match request.path.as_str() {
            "/" => typed(
                StatusCode::OK,
                "text/html",
                "<!doctype html><title>Materialize Console (stand-in)</title>",
            ),
            // Read for each request: the kubelet exchanges the file when the ConfigMap changes.
            "/app-config/app-config.json" => match std::fs::read(host.file(APP_CONFIG)) {
                Ok(config) => typed(StatusCode::OK, "application/json", config),
                Err(error) => text(StatusCode::NOT_FOUND, error.to_string()),
            },
            _ => text(StatusCode::NOT_FOUND, "not found"),
        };
        Box::pin(async move { reply })
    })
}

fn check_endpoint(endpoint: &str) -> anyhow::Result<()> {
    let address = endpoint
        .strip_prefix("https://")
        .or_else(|| endpoint.strip_prefix("http://"));
    let address = address.with_context(|| format!("MZ_ENDPOINT: {endpoint:?} is neither http:// nor https://"))?;
    split_address(address).context("MZ_ENDPOINT").map(drop)
}

fn check_config(text: &str, version: &Version) -> anyhow::Result<()> {
    let config: AppConfig = serde_json::from_str(text)?;
    if config.version != version.tag() {
        bail!("version is {:?}, this is {version}", config.version);
    }
    if let Some(name) = config
        .balancerd_dns_names
        .iter()
        .flatten()
        .find(|name| name.is_empty() || name.contains(['/', ':', ' ']))
    {
        bail!("balancerd_dns_names has {name:?}, which is no DNS name");
    }
    Ok(())
}

// === impl Listener ===

impl Listener {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let statement = |line: &str| {
            line.strip_suffix(';')
                .map(str::to_owned)
                .with_context(|| format!("{line:?} does not end in ;"))
        };
        let lines: Vec<String> = text.split('\n').map(statement).collect::<anyhow::Result<_>>()?;
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let listen = |line: &str, suffix: &str| {
            let port = line
                .strip_prefix("listen ")
                .and_then(|rest| rest.strip_suffix(suffix))
                .and_then(|port| port.parse().ok());
            port.filter(|port| *port > 0)
                .with_context(|| format!("{line:?} is not `listen <port>{suffix}`"))
        };
        let path = |line: &str, directive: &str| {
            let path = line.strip_prefix(directive).and_then(|rest| rest.strip_prefix(" /"));
            path.map(|path| PathBuf::from(format!("/{path}")))
                .with_context(|| format!("{line:?} is not `{directive} <path>`"))
        };
        match lines.as_slice() {
            [one] => Ok(Self {
                port: listen(one, "")?,
                tls: None,
            }),
            [one, two, three] => {
                let files = (path(two, "ssl_certificate")?, path(three, "ssl_certificate_key")?);
                Ok(Self {
                    port: listen(one, " ssl")?,
                    tls: Some(files),
                })
            }
            _ => bail!(
                "{} lines: expected `listen`, or `listen … ssl`, `ssl_certificate` and `ssl_certificate_key`",
                lines.len()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn both_forms_of_the_listener_are_read_and_no_other() {
        assert_eq!(
            Listener::parse("listen 8080;").unwrap(),
            Listener { port: 8080, tls: None }
        );
        let tls = "listen 8080 ssl;\nssl_certificate /nginx/tls/tls.crt;\nssl_certificate_key /nginx/tls/tls.key;";
        let files = (PathBuf::from("/nginx/tls/tls.crt"), PathBuf::from("/nginx/tls/tls.key"));
        assert_eq!(
            Listener::parse(tls).unwrap(),
            Listener {
                port: 8080,
                tls: Some(files)
            }
        );
        for wrong in [
            "",
            "listen 8080",
            "listen 8080 ssl;",
            "listen x;",
            "listen 8080;\n",
            "listen 0;",
            &tls.replace(" ssl", ""),
            &tls.replace("_key", ""),
        ] {
            assert!(Listener::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_file_is_read_strictly() {
        let version = Version::parse("v26.43.0");
        let check = |text: &str| check_config(text, &version);
        check(r#"{"version":"v26.43.0","auth":{"mode":"None"}}"#).unwrap();
        check(r#"{"version":"v26.43.0","auth":{"mode":"Sasl"},"balancerd_dns_names":["balancerd.example.com"]}"#)
            .unwrap();
        check(r#"{"version":"v26.43.0","auth":{"mode":"Oidc"},"balancerd_dns_names":null}"#).unwrap();
        for wrong in [
            "",
            "{}",
            r#"{"version":"v26.42.0","auth":{"mode":"None"}}"#,
            r#"{"version":"v26.43.0","auth":{"mode":"none"}}"#,
            r#"{"version":"v26.43.0","auth":{"mode":"None","issuer":"x"}}"#,
            r#"{"version":"v26.43.0","auth":{"mode":"None"},"balancerdDnsNames":[]}"#,
            r#"{"version":"v26.43.0","auth":{"mode":"None"},"balancerd_dns_names":["https://x"]}"#,
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_endpoint_has_scheme_host_and_port() {
        check_endpoint("http://mzabc-balancerd.ns.svc.cluster.local:6876").unwrap();
        check_endpoint("https://mzabc-balancerd.ns.svc.cluster.local:6876").unwrap();
        for wrong in ["mzabc-balancerd:6876", "ftp://a:1", "http://a"] {
            assert!(check_endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
