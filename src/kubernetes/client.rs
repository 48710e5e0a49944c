//! Builds clients: no Nagle delay, no retries of their own, every wait bounded.
//!
//! kube's own builder leaves Nagle's algorithm on and retries for up to a thousand seconds; neither can be had here.

use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt as _},
    config::{InClusterError, KubeConfigOptions, KubeconfigError},
};
use tower::{BoxError, Layer, Service, ServiceBuilder, layer::util::Identity};

/// The connections themselves: what the innermost layer of a client wraps.
pub type Transport = HyperClient<TimeoutConnector<HttpsConnector<HttpConnector>>, Body>;

/// How long a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// For a connection.
    pub connect: Duration,
    /// For the next bytes of an answer, counted from the request. A watch must say something more often.
    pub read: Duration,
    /// Until the bytes of a request are taken.
    pub write: Duration,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither a kubeconfig with the context nor a pod's service account.
    #[error(
        "no way to the API server: neither a kubeconfig with the context {context:?} ({kubeconfig}) nor an in-cluster \
         configuration ({in_cluster}); run in a pod with a service account, or give --kubernetes-context"
    )]
    NoConfiguration {
        /// The context that was looked for.
        context: String,
        /// Why the kubeconfig can't be used.
        kubeconfig: KubeconfigError,
        /// Why there is no in-cluster configuration.
        in_cluster: InClusterError,
    },
    /// The kubeconfig names a proxy.
    #[error(
        "the kubeconfig, or the environment, sets the proxy {0}, but connections through a proxy are not supported"
    )]
    Proxy(http::Uri),
    /// The configuration can't be used, for example because its certificates are unreadable.
    #[error("can't use the Kubernetes configuration")]
    Unusable(#[from] kube::Error),
}

// === impl Bounds ===

impl Bounds {
    /// Of the client of the Lease, whose caller bounds each attempt by what is left of its deadline and each silence
    /// of its watch (decisions L10 and L16): these only catch what would be lost otherwise.
    pub const LEASE: Self = Self {
        connect: Duration::from_secs(5),
        read: Duration::from_mins(4),
        write: Duration::from_secs(5),
    };

    /// Of every client but the one that renews the Lease.
    pub const DEFAULT: Self = Self {
        connect: Duration::from_secs(10),
        read: Duration::from_mins(2),
        write: Duration::from_mins(1),
    };
}

/// Finds the configuration: the kubeconfig's context of this name, else the in-cluster one. Its default namespace is
/// the operator's (docs/reference/flags.md).
///
/// # Errors
/// [`Error::NoConfiguration`] if there is neither.
pub async fn configuration(context: &str) -> Result<Config, Error> {
    let options = KubeConfigOptions {
        context: Some(context.to_owned()),
        ..KubeConfigOptions::default()
    };
    match Config::from_kubeconfig(&options).await {
        Ok(config) => Ok(config),
        Err(kubeconfig) => Config::incluster().map_err(|in_cluster| Error::NoConfiguration {
            context: context.to_owned(),
            kubeconfig,
            in_cluster,
        }),
    }
}

/// Builds a client with the default bounds.
///
/// # Errors
/// [`Error::Unusable`] if certificates or credentials can't be used, [`Error::Proxy`] if a proxy is configured.
pub fn build(config: &Config) -> Result<Client, Error> {
    build_with(config, Bounds::DEFAULT, &Identity::new())
}

/// Builds a client with these bounds and one more layer, the innermost: after authentication, directly before the
/// connection.
///
/// # Errors
/// As [`build`].
pub fn build_with<L>(config: &Config, bounds: Bounds, innermost: &L) -> Result<Client, Error>
where
    L: Layer<Transport>,
    L::Service: Service<Request<Body>, Response = Response<Incoming>> + Clone + Send + 'static,
    <L::Service as Service<Request<Body>>>::Error: Into<BoxError>,
    <L::Service as Service<Request<Body>>>::Future: Send + 'static,
{
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(Into::<BoxError>::into)
        .service(innermost.layer(transport(config, bounds)?));
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}

fn transport(config: &Config, bounds: Bounds) -> Result<Transport, Error> {
    if let Some(proxy) = &config.proxy_url {
        return Err(Error::Proxy(proxy.clone()));
    }
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(http)?);
    connector.set_connect_timeout(Some(bounds.connect));
    connector.set_read_timeout(Some(bounds.read));
    connector.set_write_timeout(Some(bounds.write));
    // Else the time that a pooled connection was idle would count against the next answer.
    connector.set_reset_reader_on_write(true);
    Ok(HyperClient::builder(TokioExecutor::new()).build(connector))
}
