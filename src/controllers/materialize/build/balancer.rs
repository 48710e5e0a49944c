//! The `Balancer` that goes with an environment.

use super::environment::Environment;
use crate::api::DEFAULT_REPLICAS;
use crate::api::image::matching_image;
use crate::api::v1alpha1::{Balancer, BalancerSpec, StaticRouting};
use crate::controllers::building::names;

/// The Balancer, named like the resource; it follows the image of the generation that serves.
pub fn build(environment: &Environment<'_>) -> Balancer {
    let spec = environment.spec();
    let identity = &environment.identity;
    Balancer {
        metadata: identity.metadata(&identity.name),
        spec: BalancerSpec {
            balancerd_image_ref: matching_image(environment.materialize.active_image(), "balancerd", None),
            resource_requirements: spec.balancerd_resource_requirements.clone(),
            replicas: Some(spec.balancerd_replicas.unwrap_or(DEFAULT_REPLICAS)),
            external_certificate_spec: spec.balancerd_external_certificate_spec.clone(),
            internal_certificate_spec: spec.internal_certificate_spec.clone(),
            pod_annotations: spec.pod_annotations.clone(),
            pod_labels: spec.pod_labels.clone(),
            static_routing: Some(StaticRouting {
                environmentd_namespace: identity.namespace.clone(),
                environmentd_service_name: names::public_service(environment.id()),
            }),
            frontegg_routing: None,
            resource_id: Some(identity.resource_id.clone()),
            configmap_name: spec.balancerd_configmap_name.clone(),
        },
        status: None,
    }
}
