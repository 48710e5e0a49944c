//! One connection from its handshake to its end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context as TaskContext, Poll};

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_rustls::TlsAcceptor;
use tower::Service;

use super::Context;
use super::activity::Activity;
use super::connections::Place;
use super::watched::Watched;

/// Largest buffer for reading from a connection and for heads of requests, bytes.
const BUFFER: usize = 64 * 1024;

/// Serves one connection to its end, within the limits.
pub(super) async fn serve<S, B>(tcp: TcpStream, tls: TlsAcceptor, place: Place, service: S, context: Arc<Context>)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (activity, closing) = (place.activity.clone(), place.closing.clone());
    // Answers are small and waited for. A connection that is gone already shows itself at the handshake.
    let _ = tcp.set_nodelay(true);
    let handshake = timeout_at(activity.due(&context.limits, None), tls.accept(tcp));
    let stream = tokio::select! {
        () = closing.cancelled() => return,
        stream = handshake => match stream {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => return tracing::debug!("a TLS handshake was not finished in time"),
        },
    };
    activity.idle();

    let io = TokioIo::new(Watched {
        inner: stream,
        activity: activity.clone(),
    });
    let service = service_fn({
        let (activity, context) = (activity.clone(), context.clone());
        move |request| answer(service.clone(), request, activity.clone(), context.clone())
    });
    let mut connection = pin!(http1::Builder::new().max_buf_size(BUFFER).serve_connection(io, service));
    let mut asked_to_close = pin!(closing.cancelled());
    let mut closing_since = None;
    let mut timer = pin!(sleep_until(activity.due(&context.limits, None)));
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke");
                }
                return Poll::Ready(());
            }
            if closing_since.is_none() && asked_to_close.as_mut().poll(cx).is_ready() {
                closing_since = Some(Instant::now());
                connection.as_mut().graceful_shutdown();
                continue;
            }
            // An earlier deadline moves the timer at once, a later one when it fires: most requests touch no timer.
            let due = activity.due(&context.limits, closing_since);
            if due < timer.deadline() {
                timer.as_mut().reset(due);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if due <= Instant::now() {
                tracing::debug!("a connection took too long");
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
    })
    .await;
}

/// Answers one request, and tells the connection when it has begun and when it has ended.
async fn answer<S, B>(
    mut service: S,
    request: Request<Incoming>,
    activity: Arc<Activity>,
    context: Arc<Context>,
) -> Result<Response<Tracked<B>>, Infallible>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
{
    activity.request();
    let end = End(activity);
    let mut response = service.call(request).await?;
    if context.lingering.load(Ordering::Relaxed) {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| Tracked { body, _end: end }))
}

/// Tells the end of a request when it is dropped.
struct End(Arc<Activity>);

/// A body whose end is the end of the request.
struct Tracked<B> {
    body: B,
    _end: End,
}

// === impl End ===

impl Drop for End {
    fn drop(&mut self) {
        self.0.idle();
    }
}

// === impl Tracked ===

impl<B: Body + Unpin> Body for Tracked<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
