//! Flags of CRD registration and the conversion webhook.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceColumnDefinition;
use serde::Deserialize as _;

use super::parse;

/// CRD versions and the conversion webhook, as flags.
#[derive(Clone, Debug, clap::Args)]
pub struct WebhookArgs {
    /// Address of the HTTPS server of the conversion webhook.
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:8001")]
    pub webhook_listen_address: SocketAddr,

    /// Install version v1 of the Materialize CRD beside v1alpha1, and serve the conversion webhook.
    #[arg(long, requires_all = ["webhook_service_name", "webhook_service_namespace"])]
    pub install_v1_crd: bool,

    /// Name of the Service in front of the webhook; required with --install-v1-crd.
    #[arg(long, value_name = "NAME")]
    pub webhook_service_name: Option<String>,

    /// Namespace of that Service; required with --install-v1-crd.
    #[arg(long, value_name = "NAMESPACE")]
    pub webhook_service_namespace: Option<String>,

    /// Port of that Service.
    #[arg(long, value_name = "PORT", default_value_t = 8001)]
    pub webhook_service_port: u16,

    /// CA certificates (PEM) that are put into the CRD's `caBundle`.
    #[arg(long, value_name = "FILE", default_value = "/etc/tls/ca.crt")]
    pub tls_ca: PathBuf,

    /// Serving certificate with its chain (PEM).
    #[arg(long, value_name = "FILE", default_value = "/etc/tls/tls.crt")]
    pub tls_cert: PathBuf,

    /// Key of the serving certificate (PEM).
    #[arg(long, value_name = "FILE", default_value = "/etc/tls/tls.key")]
    pub tls_key: PathBuf,

    /// How often the certificate files are read again, for example 1h, 30m or 90s.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = interval)]
    pub webhook_cert_reload_interval: Duration,

    /// Secret in the operator's namespace in which the operator keeps a certificate that it issues itself; then the
    /// certificate files are not read.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub webhook_cert_secret: Option<String>,

    /// Additional printer columns of the Materialize CRD: a JSON array.
    #[arg(long, value_name = "JSON", hide = true, value_parser = columns, default_value = "[]")]
    pub additional_crd_columns: Columns,
}

/// Additional printer columns, in the order given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns(pub Vec<CustomResourceColumnDefinition>);

/// The conversion webhook, where `--install-v1-crd` switched it on.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// Address of the HTTPS server.
    pub listen_address: SocketAddr,
    /// Name of the Service that the CRD names.
    pub service_name: String,
    /// Namespace of that Service.
    pub service_namespace: String,
    /// Port of that Service.
    pub service_port: u16,
    /// CA certificates (PEM file).
    pub tls_ca: PathBuf,
    /// Serving certificate with its chain (PEM file).
    pub tls_cert: PathBuf,
    /// Key of the serving certificate (PEM file).
    pub tls_key: PathBuf,
    /// How often the files are read again; more than zero.
    pub cert_reload_interval: Duration,
    /// Secret of the certificate that the operator issues itself; none: the files count.
    pub cert_secret: Option<String>,
}

/// Parses a period, which must be more than zero.
fn interval(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text.trim()) {
        Ok(Duration::ZERO) => Err("expected more than zero".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("expected a duration such as 1h, 30m or 90s: {error}")),
    }
}

/// Parses columns; the fields that the API server requires are checked here, where the flag can be named.
fn columns(text: &str) -> Result<Columns, String> {
    let items: Vec<serde_json::Value> = parse::json(text)?;
    items
        .into_iter()
        .enumerate()
        .map(|(index, item)| {
            for field in ["name", "type", "jsonPath"] {
                if item
                    .get(field)
                    .and_then(serde_json::Value::as_str)
                    .is_none_or(str::is_empty)
                {
                    return Err(format!("column {index}: expected text in the field {field}"));
                }
            }
            CustomResourceColumnDefinition::deserialize(item).map_err(|error| format!("column {index}: {error}"))
        })
        .collect::<Result<_, _>>()
        .map(Columns)
}

// === impl WebhookArgs ===

impl WebhookArgs {
    /// The webhook's settings, or none if it is switched off.
    pub(super) fn webhook(&self) -> Option<Webhook> {
        // clap has made sure of both names.
        let (Some(service_name), Some(service_namespace)) = (
            self.webhook_service_name.clone(),
            self.webhook_service_namespace.clone(),
        ) else {
            return None;
        };
        self.install_v1_crd.then(|| Webhook {
            listen_address: self.webhook_listen_address,
            service_name,
            service_namespace,
            service_port: self.webhook_service_port,
            tls_ca: self.tls_ca.clone(),
            tls_cert: self.tls_cert.clone(),
            tls_key: self.tls_key.clone(),
            cert_reload_interval: self.webhook_cert_reload_interval,
            cert_secret: self.webhook_cert_secret.clone(),
        })
    }
}

// === impl Webhook ===

impl Webhook {
    /// The DNS name by which API servers know the webhook.
    pub fn dns_name(&self) -> String {
        format!("{}.{}.svc", self.service_name, self.service_namespace)
    }
}
