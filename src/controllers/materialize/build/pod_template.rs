//! The pod of environmentd.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::environment::Environment;
use super::{container, volumes};
use crate::api::labels;
use crate::controllers::building::identity::{Component, pairs};
use crate::controllers::building::names;
use crate::controllers::building::pod::{non_empty, pod_security_context, scrape_annotations};

/// How long a pod stays on a node that does not answer.
const UNREACHABLE_SECONDS: i64 = 30;

/// The template of one generation.
pub fn build(environment: &Environment<'_>, generation: u64) -> PodTemplateSpec {
    let config = environment.config;
    let (volumes, mounts) = volumes::build(environment, generation);
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(pod_labels(environment, generation)),
            annotations: Some(pod_annotations(environment, generation)),
            ..ObjectMeta::default()
        }),
        spec: Some(PodSpec {
            containers: vec![container::build(environment, generation, mounts)],
            volumes: Some(volumes).filter(|volumes| !volumes.is_empty()),
            service_account_name: Some(environment.service_account_name().to_owned()),
            node_selector: non_empty(&config.scheduling.environmentd.node_selector),
            affinity: config.scheduling.environmentd.affinity.clone(),
            tolerations: Some(tolerations(&config.scheduling.environmentd.tolerations)),
            scheduler_name: config.scheduling.scheduler_name.clone(),
            priority_class_name: config.scheduling.environmentd.priority_class_name.clone(),
            security_context: Some(pod_security_context()),
            // Fail-over must be quick, and nothing is lost: environmentd is fenced through the metadata store.
            termination_grace_period_seconds: Some(0),
            ..PodSpec::default()
        }),
    }
}

fn pod_labels(environment: &Environment<'_>, generation: u64) -> BTreeMap<String, String> {
    let app = Component::Environmentd.app();
    let mut all = environment.identity.labels.clone();
    all.extend(pairs([
        (
            labels::LABEL_NAME,
            names::generation(environment.id(), generation).as_str(),
        ),
        (labels::LABEL_APP, app),
        (labels::LABEL_LEGACY_APP, app),
        (labels::LABEL_KUBERNETES_NAME, app),
    ]));
    // The user's labels win.
    all.extend(environment.spec().pod_labels.clone().unwrap_or_default());
    all
}

fn pod_annotations(environment: &Environment<'_>, generation: u64) -> BTreeMap<String, String> {
    let config = environment.config;
    let mut all = pairs([
        // Moving environmentd takes the environment down for seconds, so autoscalers must not do it in passing.
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
        ("karpenter.sh/do-not-evict", "true"),
        ("karpenter.sh/do-not-disrupt", "true"),
        (labels::ANNOTATION_GENERATION, generation.to_string().as_str()),
    ]);
    if config.features.enable_prometheus_scrape_annotations {
        all.extend(scrape_annotations(config.ports.environmentd_internal_http_port));
        all.extend(["usage", "frontier", "compute", "storage"].map(|group| {
            (
                format!("materialize.prometheus.io/mz_{group}_path"),
                format!("/metrics/mz_{group}"),
            )
        }));
    }
    // The user's annotations win.
    all.extend(environment.spec().pod_annotations.clone().unwrap_or_default());
    all
}

fn tolerations(configured: &[Toleration]) -> Vec<Toleration> {
    let leave_soon = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].map(|key| Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        toleration_seconds: Some(UNREACHABLE_SECONDS),
        value: None,
    });
    leave_soon.into_iter().chain(configured.iter().cloned()).collect()
}
