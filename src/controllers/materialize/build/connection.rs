//! How the operator reaches one generation's environmentd.

use serde::Serialize;

use super::environment::Environment;
use crate::controllers::building::names;

/// Where a generation's leader API is served and how to log in to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionInfo {
    /// Scheme, host and port, without a path.
    pub url: String,
    /// The Secret with the password to log in with; none where the port asks for none.
    pub secret_name: Option<String>,
}

// === impl ConnectionInfo ===

impl ConnectionInfo {
    /// The connection to the given generation.
    pub fn new(environment: &Environment<'_>, generation: u64) -> Self {
        let ports = &environment.config.ports;
        let service = names::generation(environment.id(), generation);
        let host = names::service_host(&service, &environment.identity.namespace);
        if environment.spec().authenticator_kind.needs_login() {
            let scheme = if environment.internal_tls { "https" } else { "http" };
            Self {
                url: format!("{scheme}://{host}:{}", ports.environmentd_http_port),
                secret_name: Some(environment.spec().backend_secret_name.clone()),
            }
        } else {
            Self {
                url: format!("http://{host}:{}", ports.environmentd_internal_http_port),
                secret_name: None,
            }
        }
    }
}
