//! The certificate that balancerd presents to clients.

use super::Input;
use crate::api::certificate::PrivateKeyAlgorithm;
use crate::controllers::building::certificate::{Certificate, InvalidCertificate, Request};
use crate::controllers::building::names;

pub(super) fn build(input: &Input<'_>) -> Result<Option<Certificate>, InvalidCertificate> {
    let id = &input.identity.resource_id;
    let request = Request {
        identity: &input.identity,
        name: names::balancerd_certificate(id),
        secret_name: names::balancerd_certificate_secret(id),
        spec: input.balancer.spec.external_certificate_spec.as_ref(),
        default: input.config.certificates.balancerd_external.as_ref(),
        extra_dns_names: Vec::new(),
        algorithm: PrivateKeyAlgorithm::Ecdsa,
        size: Some(256),
    };
    request.build()
}
