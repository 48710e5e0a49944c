//! The stand-in for balancerd: strict about its arguments, carries SQL and HTTP to environmentd, and answers its probes.

mod args;
mod proxy;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::End;
use crate::host::Host;
use crate::http::{Handler, text};
use crate::net::{acceptor, asked_to_end, bind, trusting_connector};
use args::Args;
use proxy::{Protocol, Route};

/// How long open connections may go on when the process is asked to end.
const DRAIN: Duration = Duration::from_secs(10);
/// The one setting of the configuration file that is looked at, and its default.
const MAX_CONNECTIONS: (&str, u64) = ("balancerd_max_connections", 5000);

/// Runs until the process is asked to end.
pub(crate) async fn run(arguments: &[String], host: &Host) -> anyhow::Result<End> {
    let version = host.version()?;
    let args = Args::load(arguments, &version)?;
    let tls = args
        .tls_files()?
        .map(|(certificate, key)| acceptor(&host.file(certificate), &host.file(key)))
        .transpose()?;
    let connect = args.internal_tls.then(trusting_connector);
    let (stop, end) = (CancellationToken::new(), CancellationToken::new());
    let mut ports = JoinSet::new();
    for (protocol, listen, to) in [
        (Protocol::Pgwire, &args.pgwire_listen_addr, &args.static_resolver_addr),
        (Protocol::Https, &args.https_listen_addr, &args.https_resolver_template),
    ] {
        let route = Route {
            protocol,
            to: host.connect_address(to)?,
            accept: tls.clone(),
            connect: connect.clone(),
        };
        ports.spawn(proxy::serve(bind(host, listen).await?, Arc::new(route), stop.clone()));
    }
    let limit = Arc::new(AtomicU64::new(MAX_CONNECTIONS.1));
    let internal = bind(host, &args.internal_http_listen_addr).await?;
    let mut probes = JoinSet::new();
    probes.spawn(crate::http::serve(
        internal,
        None,
        handler(stop.clone(), Arc::clone(&limit)),
        end.clone(),
    ));
    if let (Some(path), Some(every)) = (&args.config_sync_file_path, args.config_sync_loop_interval) {
        let path = host.file(path);
        probes.spawn(async move { sync(&path, every, &limit).await });
    }
    info!(%version, "ready");
    asked_to_end().await?;
    stop.cancel();
    if timeout(DRAIN, async { while ports.join_next().await.is_some() {} })
        .await
        .is_err()
    {
        warn!("connections are cut off");
    }
    end.cancel();
    Ok(End::Exit(0))
}

fn handler(stop: CancellationToken, limit: Arc<AtomicU64>) -> Handler {
    Arc::new(move |request| {
        let reply = match request.path.as_str() {
            "/api/livez" => text(StatusCode::OK, "alive"),
            "/api/readyz" if stop.is_cancelled() => text(StatusCode::SERVICE_UNAVAILABLE, "draining"),
            "/api/readyz" => text(StatusCode::OK, "ready"),
            "/metrics" => {
                let limit = limit.load(Ordering::Relaxed);
                text(
                    StatusCode::OK,
                    format!("# TYPE mz_balancerd_max_connections gauge\nmz_balancerd_max_connections {limit}\n"),
                )
            }
            _ => text(StatusCode::NOT_FOUND, "not found"),
        };
        Box::pin(async move { reply })
    })
}

/// Follows the configuration file. What is no JSON at the start switches this off; later it changes nothing.
async fn sync(path: &Path, every: Duration, limit: &AtomicU64) {
    let mut tick = interval(every);
    let mut first = true;
    loop {
        tick.tick().await;
        match crate::settings::parameters(path) {
            Ok(parameters) => follow(&parameters, limit),
            Err(error) => {
                warn!(
                    error = format!("{error:#}"),
                    first, "the configuration file is not taken over"
                );
                if first {
                    return;
                }
            }
        }
        first = false;
    }
}

/// A key that is not there any more keeps its last value.
fn follow(parameters: &BTreeMap<String, Value>, limit: &AtomicU64) {
    let value = parameters.get(MAX_CONNECTIONS.0);
    let number = value.and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()));
    if let Some(number) = number {
        limit.store(number, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_limit_follows_the_file_and_survives_the_removal_of_its_key() {
        let limit = AtomicU64::new(MAX_CONNECTIONS.1);
        let take = |text: &str| {
            follow(&serde_json::from_str(text).unwrap(), &limit);
            limit.load(Ordering::Relaxed)
        };
        assert_eq!(take("{}"), 5000);
        assert_eq!(take(r#"{"balancerd_max_connections":123}"#), 123);
        assert_eq!(take(r#"{"balancerd_max_connections":"456"}"#), 456);
        assert_eq!(take("{}"), 456);
        assert_eq!(take(r#"{"balancerd_max_connections":0}"#), 0);
    }
}
