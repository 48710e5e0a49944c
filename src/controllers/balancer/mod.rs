//! The Balancer controller: balancerd in front of an environment.
//!
//! [`build`] renders the objects; what is planned of them stands here; everything else is `workload`'s.

pub mod build;

use std::sync::Arc;

use futures::stream::BoxStream;
use k8s_controller::ReconcileObserver;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::reflector::ObjectRef;

use self::build::{BalancerObjects, BuildError};
use super::building::identity::{Component, IncompleteOwner};
use super::building::names;
use super::watching::Watches;
use super::workload::{self, Object, Plan, Stall, Unwanted, Workload};
use crate::api::labels::CONFIGMAP_KEY_BALANCERD_CONFIG;
use crate::api::v1alpha1::{Balancer, BalancerStatus};
use crate::args::Config;
use crate::clock::Clock;
use crate::leadership::FencedClient;

/// Reconciles every `Balancer` until it is dropped (docs/reference/generated-objects.md).
///
/// Without `observer` no metrics of passes are kept.
pub async fn run(
    client: FencedClient,
    config: Arc<Config>,
    clock: Clock,
    observer: Option<Arc<dyn ReconcileObserver>>,
) {
    workload::run::<Balancer>("balancer", client, config, clock, observer).await;
}

// === impl Balancer ===

impl Workload for Balancer {
    const COMPONENT: Component = Component::Balancerd;
    const REPORTER: &'static str = "orchestratord.materialize.cloud/balancer";

    fn requested_resource_id(&self) -> Option<&str> {
        self.spec.resource_id.as_deref()
    }

    fn recorded(&self) -> Option<(&str, &[Condition])> {
        self.status
            .as_ref()
            .map(|status| (status.resource_id.as_str(), status.conditions.as_slice()))
    }

    fn status_of(resource_id: String, conditions: Vec<Condition>) -> BalancerStatus {
        BalancerStatus {
            resource_id,
            conditions,
        }
    }

    fn deployment(resource_id: &str) -> String {
        names::balancerd(resource_id)
    }

    fn plan(&self, config: &Config) -> Result<Plan, IncompleteOwner> {
        let certificate = |certificate| Object::Certificate(Box::new(certificate));
        match BalancerObjects::build(self, config) {
            Ok(objects) => {
                let id = self
                    .status
                    .as_ref()
                    .map(|status| status.resource_id.as_str())
                    .unwrap_or_default();
                let is_tls = objects.certificate.is_some();
                let mut plan = Plan {
                    certificate: is_tls.then(|| {
                        (
                            names::balancerd_certificate_secret(id),
                            names::balancerd_certificate(id),
                        )
                    }),
                    config_map: self
                        .spec
                        .configmap_name
                        .clone()
                        .map(|name| (name, CONFIGMAP_KEY_BALANCERD_CONFIG)),
                    ..Plan::default()
                };
                if !is_tls {
                    plan.unwanted
                        .push(Unwanted::Certificate(names::balancerd_certificate(id)));
                }
                plan.objects.extend(objects.certificate.map(certificate));
                plan.objects.push(Object::Deployment(Box::new(objects.deployment)));
                plan.objects.push(Object::Service(Box::new(objects.service)));
                Ok(plan)
            }
            Err(BuildError::Owner(error)) => Err(error),
            Err(error @ BuildError::Certificate(_)) => {
                Ok(Plan::stalled(Stall::InvalidCertificateSpec(error.to_string())))
            }
            Err(BuildError::Routing(error)) => {
                let certificates = BalancerObjects::certificate(self, config).ok().flatten();
                Ok(Plan {
                    objects: certificates.map(certificate).into_iter().collect(),
                    ..Plan::stalled(Stall::InvalidRouting(error.to_string()))
                })
            }
        }
    }

    fn watches(_watches: &Watches<'_>, _labels: &str) -> Vec<BoxStream<'static, ObjectRef<Self>>> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests;
