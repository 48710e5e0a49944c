//! What every builder of a `Materialize` reads: the resource, the operator's configuration, and what follows from both.

use super::BuildError;
use crate::api::MaterializeCertSpec;
use crate::api::v1alpha1::{Materialize, MaterializeSpec};
use crate::api::version::ImageVersion;
use crate::args::Config;
use crate::controllers::building::identity::{Component, Identity};

/// One environment, as the builders see it.
#[derive(Clone, Debug)]
pub struct Environment<'a> {
    /// The resource.
    pub materialize: &'a Materialize,
    /// The operator's own configuration.
    pub config: &'a Config,
    /// Names, labels and owner reference of what is generated.
    pub identity: Identity,
    /// Whether environmentd serves TLS: an internal issuer is defined in the resource or in the operator's defaults.
    pub internal_tls: bool,
    /// The version of the environmentd to be deployed.
    pub version: ImageVersion,
}

// === impl Environment ===

impl<'a> Environment<'a> {
    /// Looks at `materialize` under `config`.
    ///
    /// # Errors
    /// If the resource was never stored or has no status yet.
    pub fn new(materialize: &'a Materialize, config: &'a Config) -> Result<Self, BuildError> {
        let resource_id = materialize.status.as_ref().map(|status| status.resource_id.as_str());
        Ok(Self {
            identity: Identity::of(materialize, resource_id, Component::Environmentd)?,
            internal_tls: MaterializeCertSpec::issuer_defined(
                materialize.spec.internal_certificate_spec.as_ref(),
                config.certificates.internal.as_ref(),
            ),
            version: ImageVersion::of(&materialize.spec.environmentd_image_ref),
            materialize,
            config,
        })
    }

    /// The resource's spec.
    pub fn spec(&self) -> &'a MaterializeSpec {
        &self.materialize.spec
    }

    /// `status.resourceId`.
    pub fn id(&self) -> &str {
        &self.identity.resource_id
    }

    /// The `ServiceAccount` of environmentd and clusterd pods.
    pub fn service_account_name(&self) -> &str {
        self.spec()
            .service_account_name
            .as_deref()
            .unwrap_or(&self.identity.name)
    }
}
