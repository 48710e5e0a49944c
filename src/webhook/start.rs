//! Starts the webhook: server, certificates, and the links to the registration of the CRDs.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::certificates::self_managed::Found;
use super::certificates::{Authorities, Files, Keeper, Resolver, Source};
use super::server::{Limits, Server};
use super::sightings::Sightings;
use super::state::StickyReadiness;
use crate::args;
use crate::clock::Clock;
use crate::leadership::WebhookDrain;
use crate::telemetry::{self, Metrics, server::listen};

/// A webhook that serves.
pub struct Webhook {
    /// The hook for the shutdown.
    pub drain: Arc<dyn WebhookDrain>,
    /// The authorities that the CRD must name; none before the files have been looked at.
    pub own: watch::Receiver<Option<Authorities>>,
    /// What the CRD names.
    pub sightings: watch::Sender<Sightings>,
    /// Told what the Secret of the self-managed certificate has; none if the certificate comes from files.
    pub found: Option<watch::Sender<Found>>,
}

/// Why there is no webhook.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its address can't be listened on.
    #[error(transparent)]
    Listen(#[from] telemetry::Error),
    /// TLS can't be set up: a fault of this program.
    #[error("can't set up TLS")]
    Tls(#[from] rustls::Error),
}

// === impl Webhook ===

impl Webhook {
    /// Starts everything on `workers`, before anything is known of the API server.
    ///
    /// # Errors
    /// See [`enum@Error`].
    pub fn start(workers: &Handle, args: &args::Webhook, metrics: &Metrics, clock: &Clock) -> Result<Self, Error> {
        let _in_runtime = workers.enter();
        let readiness = StickyReadiness::not_yet("the certificate has not been looked at yet");
        let resolver = Arc::new(Resolver::default());
        let server = Server::new(resolver.clone(), readiness.clone(), metrics.clone(), Limits::PRODUCTION)?;
        let drain = server.drain();
        server.start(listen("--webhook-listen-address", args.listen_address)?);
        let (own, own_receiver) = watch::channel(None);
        let (sightings, sightings_receiver) = watch::channel(Sightings::default());
        let (source, found) = source(args);
        let keeper = Keeper {
            source,
            name: args.dns_name(),
            interval: args.cert_reload_interval,
            resolver,
            own,
            sightings: sightings_receiver,
            readiness,
            metrics: metrics.clone(),
            clock: clock.clone(),
        };
        workers.spawn(keeper.run());
        Ok(Self {
            drain,
            own: own_receiver,
            sightings,
            found,
        })
    }
}

fn source(args: &args::Webhook) -> (Source, Option<watch::Sender<Found>>) {
    let Some(secret) = &args.cert_secret else {
        let files = Files {
            authorities: args.tls_ca.clone(),
            certificate: args.tls_cert.clone(),
            key: args.tls_key.clone(),
        };
        return (Source::Files(files), None);
    };
    let (sender, found) = watch::channel(None);
    let source = Source::SelfManaged {
        secret: secret.clone(),
        found,
    };
    (source, Some(sender))
}
