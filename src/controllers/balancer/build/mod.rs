//! Pure builders of everything that is generated for a `Balancer`, one file per object. No I/O, no clock.
//!
//! What comes out is described, for users, in docs/reference/generated-objects.md.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;

use crate::api::MaterializeCertSpec;
use crate::api::v1alpha1::{Balancer, StaticRouting};
use crate::args::Config;
use crate::controllers::building::certificate::{Certificate, InvalidCertificate};
use crate::controllers::building::identity::{Component, Identity, IncompleteOwner};

mod certificate;
mod deployment;
mod service;
#[cfg(test)]
mod tests;

/// Everything that a Balancer consists of, in the order of application.
#[derive(Clone, Debug, PartialEq)]
pub struct BalancerObjects {
    /// What balancerd presents to clients; none without an issuer.
    pub certificate: Option<Certificate>,
    /// balancerd.
    pub deployment: Deployment,
    /// How clients find it.
    pub service: Service,
}

/// Why the objects of a Balancer could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The resource lacks what nothing can be generated without.
    #[error(transparent)]
    Owner(#[from] IncompleteOwner),
    /// It is not clear where connections go.
    #[error(transparent)]
    Routing(#[from] InvalidRouting),
    /// The external certificate's settings contradict each other.
    #[error("externalCertificateSpec: {0}")]
    Certificate(#[from] InvalidCertificate),
}

/// A Balancer that does not say in one way where connections go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRouting {
    /// Neither `staticRouting` nor `fronteggRouting`.
    #[error("no routing configuration present")]
    Missing,
    /// Both.
    #[error("multiple routing configurations present")]
    Multiple,
    /// `fronteggRouting` is reserved.
    #[error("frontegg routing is not yet implemented")]
    Frontegg,
}

/// What the builders read.
struct Input<'a> {
    balancer: &'a Balancer,
    config: &'a Config,
    identity: Identity,
    external_tls: bool,
    internal_tls: bool,
}

// === impl BalancerObjects ===

impl BalancerObjects {
    /// The objects of `balancer` under the operator's `config`.
    ///
    /// # Errors
    /// If the Balancer has no status yet, no clear routing, or impossible certificate settings.
    pub fn build(balancer: &Balancer, config: &Config) -> Result<Self, BuildError> {
        let input = Input::new(balancer, config)?;
        let certificate = certificate::build(&input)?;
        Ok(Self {
            certificate,
            deployment: deployment::build(&input, routing(balancer)?),
            service: service::build(&input),
        })
    }

    /// The certificate alone, which is applied even where it is not clear where connections go.
    ///
    /// # Errors
    /// If the Balancer has no status yet, or impossible certificate settings.
    pub fn certificate(balancer: &Balancer, config: &Config) -> Result<Option<Certificate>, BuildError> {
        Ok(certificate::build(&Input::new(balancer, config)?)?)
    }
}

// === impl Input ===

impl<'a> Input<'a> {
    fn new(balancer: &'a Balancer, config: &'a Config) -> Result<Self, IncompleteOwner> {
        let spec = &balancer.spec;
        let resource_id = balancer.status.as_ref().map(|status| status.resource_id.as_str());
        let defined = MaterializeCertSpec::issuer_defined;
        Ok(Self {
            identity: Identity::of(balancer, resource_id, Component::Balancerd)?,
            external_tls: defined(
                spec.external_certificate_spec.as_ref(),
                config.certificates.balancerd_external.as_ref(),
            ),
            internal_tls: defined(
                spec.internal_certificate_spec.as_ref(),
                config.certificates.internal.as_ref(),
            ),
            balancer,
            config,
        })
    }
}

fn routing(balancer: &Balancer) -> Result<&StaticRouting, InvalidRouting> {
    match (&balancer.spec.static_routing, &balancer.spec.frontegg_routing) {
        (Some(routing), None) => Ok(routing),
        (None, Some(_)) => Err(InvalidRouting::Frontegg),
        (Some(_), Some(_)) => Err(InvalidRouting::Multiple),
        (None, None) => Err(InvalidRouting::Missing),
    }
}
