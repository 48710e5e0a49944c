//! A small HTTP/1.1 server, plain or with TLS, that ends within a second of being asked to.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// The longest body that is read.
const BODY_LIMIT: usize = 1 << 20;
/// How long open requests may go on after the stop.
const DRAIN: Duration = Duration::from_secs(1);

/// A request with its whole body.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A response with its whole body.
pub(crate) type Reply = Response<Full<Bytes>>;

/// What answers requests.
pub(crate) type Handler = Arc<dyn Fn(Request) -> BoxFuture<'static, Reply> + Send + Sync>;

/// Answers requests until `stop`, then lets the open ones end.
pub(crate) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, handler: Handler, stop: CancellationToken) {
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        while connections.try_join_next().is_some() {}
        let Ok((socket, _)) = accepted else { continue };
        drop(socket.set_nodelay(true));
        let (handler, watcher, tls) = (Arc::clone(&handler), graceful.watcher(), tls.clone());
        connections.spawn(async move {
            match tls {
                None => answer(socket, handler, watcher).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(socket).await {
                        answer(stream, handler, watcher).await;
                    }
                }
            }
        });
    }
    drop(listener);
    drop(tokio::time::timeout(DRAIN, graceful.shutdown()).await);
}

async fn answer<S>(stream: S, handler: Handler, watcher: hyper_util::server::graceful::Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: http::Request<Incoming>| {
        let handler = Arc::clone(&handler);
        async move {
            let (parts, body) = request.into_parts();
            let Ok(body) = Limited::new(body, BODY_LIMIT).collect().await else {
                return Ok::<_, Infallible>(text(StatusCode::PAYLOAD_TOO_LARGE, "body too large"));
            };
            let request = Request {
                method: parts.method,
                path: parts.uri.path().to_owned(),
                headers: parts.headers,
                body: body.to_bytes(),
            };
            Ok(handler(request).await)
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    // An error here is the peer's, which sees it itself.
    drop(watcher.watch(connection).await);
}

/// A reply with a text.
pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> Reply {
    typed(status, "text/plain; charset=utf-8", body)
}

/// A reply with JSON.
pub(crate) fn json(status: StatusCode, body: &serde_json::Value) -> Reply {
    typed(status, "application/json", body.to_string())
}

/// A reply without a body.
pub(crate) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Full::default());
    *reply.status_mut() = status;
    reply
}

/// A reply with a body of some media type.
pub(crate) fn typed(status: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Full::new(body.into()));
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media_type));
    reply
}
