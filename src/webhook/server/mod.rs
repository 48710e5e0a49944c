//! The HTTPS server of the conversion webhook, on every replica. See `docs/reference/webhook.md`.
//!
//! Belongs here: connections, their limits, routes, the shutdown. Does not belong here: what a review's answer is
//! (`review`), which certificate is served (`certificates`).
//!
//! It goes on while the replica starts, campaigns, leads and lingers; who leads is none of its business.

mod activity;
mod body;
mod budget;
mod connection;
mod connections;
mod limits;
mod routes;
#[cfg(test)]
mod tests;
mod watched;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::version::{TLS12, TLS13};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::leadership::WebhookDrain;
use crate::telemetry::Metrics;
use crate::webhook::state::StickyReadiness;

use budget::Budget;
use connections::Connections;

pub use limits::Limits;

/// Pause after a failed accept, and between looks for a connection that can be closed.
const PAUSE: Duration = Duration::from_millis(20);

/// The server, before it listens.
pub struct Server {
    tls: TlsAcceptor,
    context: Arc<Context>,
    drain: Arc<Drain>,
}

/// What all connections share.
struct Context {
    limits: Limits,
    budget: Budget,
    readiness: StickyReadiness,
    metrics: Metrics,
    lingering: AtomicBool,
}

/// The end of the server.
struct Drain {
    context: Arc<Context>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

// === impl Server ===

impl Server {
    /// A server that shows the certificate of `resolver`; while there is none, handshakes fail.
    ///
    /// # Errors
    /// Never with the versions that are compiled in; rustls can't know.
    pub fn new(
        resolver: Arc<dyn ResolvesServerCert>,
        readiness: StickyReadiness,
        metrics: Metrics,
        limits: Limits,
    ) -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13, &TLS12])?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        // API servers don't resume sessions.
        tls.session_storage = Arc::new(NoServerSessionStorage {});
        tls.send_tls13_tickets = 0;
        let context = Arc::new(Context {
            budget: Budget::new(&limits),
            limits,
            readiness,
            metrics,
            lingering: AtomicBool::new(false),
        });
        Ok(Self {
            tls: TlsAcceptor::from(Arc::new(tls)),
            drain: Arc::new(Drain {
                context: context.clone(),
                closing: CancellationToken::new(),
                tasks: TaskTracker::new(),
            }),
            context,
        })
    }

    /// The hook for the shutdown.
    pub fn drain(&self) -> Arc<dyn WebhookDrain> {
        self.drain.clone()
    }

    /// Starts to serve on the present runtime, until it is drained.
    pub fn start(self, listener: TcpListener) {
        let tasks = self.drain.tasks.clone();
        tasks.spawn(self.accept(listener));
    }

    async fn accept(self, listener: TcpListener) {
        let Self { tls, context, drain } = self;
        let connections = Connections::default();
        let service = warp::service(routes::routes(context.clone()));
        let mut complained = false;
        loop {
            let accepted = tokio::select! {
                biased;
                () = drain.closing.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            let tcp = match accepted {
                Ok((tcp, _)) => tcp,
                Err(error) => {
                    // Usually there are no file descriptors left: the next connection may find some.
                    if !std::mem::replace(&mut complained, true) {
                        tracing::error!(%error, "the webhook can't accept a connection");
                    }
                    connections.close_one();
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            complained = false;
            let place = connections.enter(&drain.closing);
            let (tls, service, context) = (tls.clone(), service.clone(), context.clone());
            let limit = context.limits.connections;
            drain.tasks.spawn(connection::serve(tcp, tls, place, service, context));
            while connections.count() > limit && !drain.closing.is_cancelled() {
                if !connections.close_one() {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

// === impl Drain ===

impl WebhookDrain for Drain {
    fn linger(&self) {
        self.context.lingering.store(true, Ordering::Relaxed);
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let tasks = self.tasks.clone();
        self.closing.cancel();
        tasks.close();
        async move { tasks.wait().await }.boxed()
    }
}
