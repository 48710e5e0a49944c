//! Pure builders of everything that is generated for a `Console`, one file per object. No I/O, no clock.
//!
//! What comes out is described, for users, in docs/reference/generated-objects.md.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;

use crate::api::MaterializeCertSpec;
use crate::api::v1alpha1::Console;
use crate::args::Config;
use crate::controllers::building::certificate::{Certificate, InvalidCertificate};
use crate::controllers::building::identity::{Component, Identity, IncompleteOwner};

mod certificate;
mod config_map;
mod deployment;
mod network_policy;
mod service;
#[cfg(test)]
mod tests;

/// Everything that a Console consists of, in the order of application.
#[derive(Clone, Debug, PartialEq)]
pub struct ConsoleObjects {
    /// Admits browsers; none while policies for traffic from outside are off.
    pub network_policy: Option<NetworkPolicy>,
    /// What the console's pages are told.
    pub config_map: ConfigMap,
    /// The console.
    pub deployment: Deployment,
    /// How browsers find it.
    pub service: Service,
    /// What the console presents to browsers; none without an issuer.
    pub certificate: Option<Certificate>,
}

/// Why the objects of a Console could not be built. Nothing is applied then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The resource lacks what nothing can be generated without.
    #[error(transparent)]
    Owner(#[from] IncompleteOwner),
    /// The external certificate's settings contradict each other.
    #[error("externalCertificateSpec: {0}")]
    Certificate(#[from] InvalidCertificate),
}

/// What the builders read.
struct Input<'a> {
    console: &'a Console,
    config: &'a Config,
    identity: Identity,
    tls: bool,
}

// === impl ConsoleObjects ===

impl ConsoleObjects {
    /// The objects of `console` under the operator's `config`.
    ///
    /// # Errors
    /// If the Console has no status yet, or impossible certificate settings.
    pub fn build(console: &Console, config: &Config) -> Result<Self, BuildError> {
        let resource_id = console.status.as_ref().map(|status| status.resource_id.as_str());
        let input = Input {
            identity: Identity::of(console, resource_id, Component::Console)?,
            tls: MaterializeCertSpec::issuer_defined(
                console.spec.external_certificate_spec.as_ref(),
                config.certificates.console_external.as_ref(),
            ),
            console,
            config,
        };
        Ok(Self {
            network_policy: network_policy::build(&input),
            config_map: config_map::build(&input),
            deployment: deployment::build(&input),
            service: service::build(&input),
            certificate: certificate::build(&input)?,
        })
    }
}
