//! The `Console` that goes with an environment.

use super::environment::Environment;
use crate::api::image::{matching_image, tag};
use crate::api::v1alpha1::{BalancerdScheme, Console, ConsoleBalancerd, ConsoleSpec};
use crate::api::{DEFAULT_REPLICAS, MaterializeCertSpec};
use crate::controllers::building::names;

/// The Console, named like the resource; it follows the image of the generation that serves.
pub fn build(environment: &Environment<'_>) -> Console {
    let spec = environment.spec();
    let identity = &environment.identity;
    let external = spec.balancerd_external_certificate_spec.as_ref();
    let default_external = environment.config.certificates.balancerd_external.as_ref();
    Console {
        metadata: identity.metadata(&identity.name),
        spec: ConsoleSpec {
            console_image_ref: matching_image(
                environment.materialize.active_image(),
                "console",
                Some(image_tag(environment)),
            ),
            resource_requirements: spec.console_resource_requirements.clone(),
            replicas: Some(spec.console_replicas.unwrap_or(DEFAULT_REPLICAS)),
            external_certificate_spec: spec.console_external_certificate_spec.clone(),
            pod_annotations: spec.pod_annotations.clone(),
            pod_labels: spec.pod_labels.clone(),
            balancerd: ConsoleBalancerd {
                service_name: names::balancerd(environment.id()),
                namespace: identity.namespace.clone(),
                scheme: if MaterializeCertSpec::issuer_defined(external, default_external) {
                    BalancerdScheme::Https
                } else {
                    BalancerdScheme::Http
                },
                // With or without an issuer: TLS may end in front of balancerd.
                dns_names: [external, default_external]
                    .into_iter()
                    .flatten()
                    .find_map(|certificate| certificate.dns_names.clone()),
            },
            authenticator_kind: spec.authenticator_kind,
            resource_id: Some(identity.resource_id.clone()),
        },
        status: None,
    }
}

/// The console's tag: the map's entry for the serving environmentd's tag, else the default.
fn image_tag<'a>(environment: &Environment<'a>) -> &'a str {
    let images = &environment.config.images;
    let serving = tag(environment.materialize.active_image()).unwrap_or("latest");
    images
        .console_image_tag_map
        .get(serving)
        .unwrap_or(&images.console_image_tag_default)
}
