//! The two plain HTTP servers: metrics and probes on one port, the status page on another.
//!
//! Both are up from the first moment (decision O4), before anything that can fail or wait, and until the process ends.

use std::net::{Ipv4Addr, SocketAddr};

use http::{Response, StatusCode};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use warp::{Filter, Reply};

use super::{Board, Error, Readiness, page};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Listens on `address`; `flag` is the one that says it. `[::]` also takes IPv4, and where the machine has no IPv6,
/// `0.0.0.0` takes its place. Must be called in the runtime.
///
/// # Errors
/// [`Error::Listen`], for example if the port is in use.
pub fn listen(flag: &'static str, address: SocketAddr) -> Result<TcpListener, Error> {
    let listener = match bind(address) {
        Err(error) if address.ip().is_unspecified() && is_without_ipv6(&error) => {
            bind((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        other => other,
    };
    listener.map_err(|source| Error::Listen { flag, address, source })
}

/// Serves `/metrics`, `/healthz` and `/readyz` until it is dropped (decision L12).
pub async fn serve_metrics(listener: TcpListener, board: Board) {
    warp::serve(metrics_routes(board)).incoming(listener).run().await;
}

/// Serves the status page, as HTML at `/` and as JSON at `/status.json`, until it is dropped (decision O6).
pub async fn serve_status(listener: TcpListener, board: Board) {
    warp::serve(status_routes(board)).incoming(listener).run().await;
}

fn metrics_routes(board: Board) -> impl Filter<Extract = (impl Reply,), Error = warp::Rejection> + Clone {
    let metrics = {
        let board = board.clone();
        warp::path!("metrics").map(move || match board.metrics().render() {
            Ok(text) => reply(StatusCode::OK, prometheus::TEXT_FORMAT, text),
            Err(error) => reply(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{error}\n")),
        })
    };
    let healthz = warp::path!("healthz").map(|| reply(StatusCode::OK, TEXT, "ok\n".to_owned()));
    let readyz = warp::path!("readyz").map(move || match board.readiness() {
        Readiness::Ready => reply(StatusCode::OK, TEXT, "ok\n".to_owned()),
        Readiness::NotReady(reason) => reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{reason}\n")),
    });
    warp::get().and(metrics.or(healthz).unify().or(readyz).unify())
}

fn status_routes(board: Board) -> impl Filter<Extract = (impl Reply,), Error = warp::Rejection> + Clone {
    let html = {
        let board = board.clone();
        warp::path::end().map(move || reply(StatusCode::OK, HTML, page::render(&board.status())))
    };
    let json = warp::path!("status.json").map(move || match serde_json::to_string_pretty(&board.status()) {
        Ok(text) => reply(StatusCode::OK, JSON, text + "\n"),
        Err(error) => reply(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{error}\n")),
    });
    warp::get().and(html.or(json).unify())
}

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

fn reply(status: StatusCode, content_type: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // Whatever the machine's default: `[::]` means both.
        socket.set_only_v6(false)?;
    }
    // A restart must not wait for connections of the process before.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

/// Whether the machine has no IPv6 at all, or no IPv6 address to bind to.
fn is_without_ipv6(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
        || error.kind() == std::io::ErrorKind::AddrNotAvailable
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        clock::Clock,
        leadership::{Observer as _, Transition},
        telemetry::Metrics,
    };

    fn board() -> Board {
        let clock = Clock::boottime();
        Board::new("pod-a".to_owned(), clock.clone(), Metrics::new(clock).unwrap())
    }

    fn enter(board: &Board, from: &'static str, to: &'static str) {
        board.transition(&Transition {
            from,
            to,
            cause: "test",
            term: None,
            held_for: Duration::ZERO,
        });
    }

    async fn get<F>(routes: &F, path: &str) -> (u16, String)
    where
        F: Filter<Error = warp::Rejection> + 'static,
        F::Extract: Reply + Send,
    {
        let response = warp::test::request().path(path).reply(routes).await;
        (
            response.status().as_u16(),
            String::from_utf8(response.body().to_vec()).unwrap(),
        )
    }

    #[tokio::test]
    async fn probes_follow_the_phase_and_health_does_not() {
        let board = board();
        let routes = metrics_routes(board.clone());
        board.starting("waiting for the API server");
        assert_eq!(
            get(&routes, "/readyz").await,
            (503, "starting: waiting for the API server\n".to_owned())
        );
        for (from, to, status) in [
            ("Starting", "Candidate", 200),
            ("Candidate", "Leader", 200),
            ("Leader", "Releasing", 503),
        ] {
            enter(&board, from, to);
            assert_eq!(get(&routes, "/readyz").await.0, status, "{to}");
            assert_eq!(get(&routes, "/healthz").await, (200, "ok\n".to_owned()), "{to}");
        }
    }

    #[tokio::test]
    async fn metrics_are_served_as_text() {
        let routes = metrics_routes(board());
        let response = warp::test::request().path("/metrics").reply(&routes).await;
        assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4");
        assert!(response.body().starts_with(b"# HELP environmentd_needs_update "));
        for path in ["/", "/metrics/x", "/healthz/x"] {
            assert_eq!(get(&routes, path).await.0, 404, "{path}");
        }
        let posted = warp::test::request()
            .method("POST")
            .path("/metrics")
            .reply(&routes)
            .await;
        assert_eq!(posted.status(), 405);
    }

    #[tokio::test]
    async fn the_status_is_the_same_as_json() {
        let board = board();
        enter(&board, "Starting", "Candidate");
        let routes = status_routes(board);
        let (status, page) = get(&routes, "/").await;
        assert!(status == 200 && page.contains("<td>Candidate</td>"), "{page}");
        let (status, json) = get(&routes, "/status.json").await;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (status, &json["phase"], &json["leader"]),
            (200, &"Candidate".into(), &false.into())
        );
        assert_eq!(json["transitions"][0]["to"], "Candidate");
    }

    #[tokio::test]
    async fn both_families_reach_the_unspecified_address_and_a_taken_port_is_told() {
        let listener = listen("--metrics-listen-address", "[::]:0".parse().unwrap()).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(serve_metrics(listener, board()));
        tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .await
            .unwrap();
        let error = listen("--metrics-listen-address", (Ipv4Addr::UNSPECIFIED, port).into()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("--metrics-listen-address") && text.contains("in use"),
            "{text}"
        );
        server.abort();
    }
}
