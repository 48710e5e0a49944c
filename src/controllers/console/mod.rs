//! The Console controller: the web console of an environment.
//!
//! [`build`] renders the objects; what is planned of them stands here; everything else is `workload`'s.

pub mod build;

use std::sync::Arc;

use futures::stream::BoxStream;
use k8s_controller::ReconcileObserver;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::runtime::reflector::ObjectRef;

use self::build::{BuildError, ConsoleObjects};
use super::building::identity::{Component, IncompleteOwner};
use super::building::names;
use super::watching::Watches;
use super::workload::{self, Object, Plan, Stall, Unwanted, Workload};
use crate::api::v1alpha1::{Console, ConsoleStatus};
use crate::args::Config;
use crate::clock::Clock;
use crate::leadership::FencedClient;

/// Reconciles every `Console` until it is dropped (docs/reference/generated-objects.md).
///
/// Without `observer` no metrics of passes are kept.
pub async fn run(
    client: FencedClient,
    config: Arc<Config>,
    clock: Clock,
    observer: Option<Arc<dyn ReconcileObserver>>,
) {
    workload::run::<Console>("console", client, config, clock, observer).await;
}

// === impl Console ===

impl Workload for Console {
    const COMPONENT: Component = Component::Console;
    const REPORTER: &'static str = "orchestratord.materialize.cloud/console";

    fn requested_resource_id(&self) -> Option<&str> {
        self.spec.resource_id.as_deref()
    }

    fn recorded(&self) -> Option<(&str, &[Condition])> {
        self.status
            .as_ref()
            .map(|status| (status.resource_id.as_str(), status.conditions.as_slice()))
    }

    fn status_of(resource_id: String, conditions: Vec<Condition>) -> ConsoleStatus {
        ConsoleStatus {
            resource_id,
            conditions,
        }
    }

    fn deployment(resource_id: &str) -> String {
        names::console(resource_id)
    }

    fn plan(&self, config: &Config) -> Result<Plan, IncompleteOwner> {
        let objects = match ConsoleObjects::build(self, config) {
            Ok(objects) => objects,
            Err(BuildError::Owner(error)) => return Err(error),
            Err(error @ BuildError::Certificate(_)) => {
                return Ok(Plan::stalled(Stall::InvalidCertificateSpec(error.to_string())));
            }
        };
        let id = self
            .status
            .as_ref()
            .map(|status| status.resource_id.as_str())
            .unwrap_or_default();
        let mut plan = Plan::default();
        match objects.network_policy {
            Some(policy) => plan.objects.push(Object::NetworkPolicy(Box::new(policy))),
            None => plan
                .unwanted
                .push(Unwanted::NetworkPolicy(names::console_network_policy(id))),
        }
        plan.objects.push(Object::ConfigMap(Box::new(objects.config_map)));
        plan.objects.push(Object::Deployment(Box::new(objects.deployment)));
        plan.objects.push(Object::Service(Box::new(objects.service)));
        match objects.certificate {
            Some(certificate) => {
                plan.objects.push(Object::Certificate(Box::new(certificate)));
                plan.certificate = Some((names::console_certificate_secret(id), names::console_certificate(id)));
            }
            None => plan
                .unwanted
                .push(Unwanted::Certificate(names::console_certificate(id))),
        }
        Ok(plan)
    }

    fn watches(watches: &Watches<'_>, labels: &str) -> Vec<BoxStream<'static, ObjectRef<Self>>> {
        vec![
            watches.owned_metadata::<ConfigMap, Self>(labels),
            watches.owned_metadata::<NetworkPolicy, Self>(labels),
        ]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn plan(flags: &[&str], spec: &Value) -> Plan {
        let mut all = json!({
            "apiVersion": "materialize.cloud/v1alpha1", "kind": "Console",
            "metadata": {"name": "mz", "namespace": "ns", "uid": "u"},
            "spec": {
                "consoleImageRef": "materialize/console:v26.43.0",
                "balancerd": {"serviceName": "mzx-balancerd", "namespace": "ns", "scheme": "http"},
            },
            "status": {"resourceId": "x", "conditions": []},
        });
        for (key, value) in spec.as_object().unwrap() {
            all["spec"][key] = value.clone();
        }
        let console: Console = serde_json::from_value(all).unwrap();
        console.plan(&Config::for_tests(flags)).unwrap()
    }

    fn kinds(plan: &Plan) -> Vec<&'static str> {
        plan.objects
            .iter()
            .map(|object| match object {
                Object::Certificate(_) => "Certificate",
                Object::ConfigMap(_) => "ConfigMap",
                Object::Deployment(_) => "Deployment",
                Object::NetworkPolicy(_) => "NetworkPolicy",
                Object::Service(_) => "Service",
            })
            .collect()
    }

    #[test]
    fn everything_switched_on_in_its_order() {
        let spec = json!({"externalCertificateSpec": {"issuerRef": {"name": "ca"}}});
        let plan = plan(&["--network-policies-ingress-enabled"], &spec);
        assert_eq!(
            kinds(&plan),
            ["NetworkPolicy", "ConfigMap", "Deployment", "Service", "Certificate"]
        );
        assert_eq!(plan.unwanted, []);
        assert_eq!(
            plan.certificate,
            Some(("mzx-console-external-tls".to_owned(), "mzx-console-external".to_owned()))
        );
    }

    #[test]
    fn what_is_switched_off_is_not_wanted() {
        let plan = plan(&[], &json!({}));
        assert_eq!(kinds(&plan), ["ConfigMap", "Deployment", "Service"]);
        assert_eq!(
            plan.unwanted,
            [
                Unwanted::NetworkPolicy("mzx-console-ingress".to_owned()),
                Unwanted::Certificate("mzx-console-external".to_owned()),
            ]
        );
        assert_eq!((plan.certificate, plan.config_map), (None, None));
    }

    #[test]
    fn impossible_certificates_stop_everything() {
        let spec = json!({"externalCertificateSpec": {"issuerRef": {"name": "ca"}, "privateKeyAlgorithm": "RSA"}});
        let plan = plan(&[], &spec);
        assert_eq!(kinds(&plan), [""; 0]);
        assert!(matches!(plan.stall, Some(Stall::InvalidCertificateSpec(_))));
    }
}
