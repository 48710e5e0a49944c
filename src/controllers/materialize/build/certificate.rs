//! environmentd's certificate.

use super::BuildError;
use super::environment::Environment;
use crate::api::certificate::PrivateKeyAlgorithm;
use crate::controllers::building::certificate::{Certificate, Request};
use crate::controllers::building::names;

/// The Certificate, or none without an internal issuer.
///
/// # Errors
/// If the key's size does not fit its algorithm.
pub fn build(environment: &Environment<'_>) -> Result<Option<Certificate>, BuildError> {
    let id = environment.id();
    let service = names::public_service(id);
    let host = names::service_host(&service, &environment.identity.namespace);
    let request = Request {
        identity: &environment.identity,
        name: names::environmentd_certificate(id),
        secret_name: names::environmentd_certificate_secret(id),
        spec: environment.spec().internal_certificate_spec.as_ref(),
        default: environment.config.certificates.internal.as_ref(),
        extra_dns_names: vec![service, host],
        algorithm: PrivateKeyAlgorithm::Ed25519,
        size: None,
    };
    Ok(request.build()?)
}
