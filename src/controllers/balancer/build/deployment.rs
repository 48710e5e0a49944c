//! The Deployment of balancerd.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec, Probe, Volume, VolumeMount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Input;
use crate::api::labels;
use crate::api::v1alpha1::StaticRouting;
use crate::controllers::building::deployment::{http_probe, pod_labels, under};
use crate::controllers::building::identity::Component;
use crate::controllers::building::names;
use crate::controllers::building::pod::{
    config_map_volume, container_port, mount, non_empty, non_empty_list, pod_security_context,
    restricted_security_context, scrape_annotations, secret_volume,
};

/// Directory of the certificate that is presented to clients.
const CERTIFICATE_PATH: &str = "/etc/external_tls";
/// Directory of the dynamic configuration. A directory, since files mounted singly are never refreshed.
const DYNAMIC_CONFIG_PATH: &str = "/etc/balancerd";

pub(super) fn build(input: &Input<'_>, routing: &StaticRouting) -> Deployment {
    let spec = &input.balancer.spec;
    let config = input.config;
    let placement = &config.scheduling.balancerd;
    let name = names::balancerd(&input.identity.resource_id);
    let pods = pod_labels(&input.identity, Component::Balancerd, &name);
    let (volumes, mounts) = volumes(input);
    let annotations = if config.features.enable_prometheus_scrape_annotations {
        scrape_annotations(config.ports.balancerd_internal_http_port)
    } else {
        BTreeMap::new()
    };
    Deployment {
        metadata: input.identity.metadata(name),
        spec: Some(DeploymentSpec {
            replicas: Some(spec.replicas()),
            selector: LabelSelector {
                match_labels: Some(pods.clone()),
                ..LabelSelector::default()
            },
            strategy: Some(DeploymentStrategy {
                // A full set of new pods first: then a new connection hardly ever meets a pod that is about to end.
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(IntOrString::String("100%".to_owned())),
                    max_unavailable: None,
                }),
                type_: None,
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: under(spec.pod_labels.as_ref(), pods),
                    annotations: under(spec.pod_annotations.as_ref(), annotations),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec {
                    containers: vec![container(input, routing, mounts)],
                    volumes: non_empty_list(&volumes),
                    node_selector: non_empty(&placement.node_selector),
                    affinity: placement.affinity.clone(),
                    tolerations: non_empty_list(&placement.tolerations),
                    scheduler_name: config.scheduling.scheduler_name.clone(),
                    security_context: Some(pod_security_context()),
                    ..PodSpec::default()
                }),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

fn container(input: &Input<'_>, routing: &StaticRouting, mounts: Vec<VolumeMount>) -> Container {
    let spec = &input.balancer.spec;
    let config = input.config;
    let ports = &config.ports;
    let internal = ports.balancerd_internal_http_port;
    Container {
        name: "balancerd".to_owned(),
        image: Some(spec.balancerd_image_ref.clone()),
        image_pull_policy: Some(config.images.image_pull_policy.as_kubernetes().to_owned()),
        args: Some(args(input, routing)),
        ports: Some(vec![
            container_port("pgwire", ports.balancerd_sql_port),
            container_port("http", ports.balancerd_http_port),
            container_port("internal-http", internal),
        ]),
        // All or nothing: the two are not merged.
        resources: spec
            .resource_requirements
            .clone()
            .or_else(|| config.scheduling.balancerd.default_resources.clone()),
        startup_probe: Some(probe("/api/readyz", internal, Some(3), 3, 20)),
        readiness_probe: Some(probe("/api/readyz", internal, None, 10, 3)),
        liveness_probe: Some(probe("/api/livez", internal, Some(8), 10, 3)),
        security_context: config
            .features
            .enable_security_context
            .then(restricted_security_context),
        volume_mounts: Some(mounts).filter(|mounts| !mounts.is_empty()),
        ..Container::default()
    }
}

fn probe(path: &str, port: u16, initial_delay: Option<i32>, period: i32, failures: i32) -> Probe {
    Probe {
        initial_delay_seconds: initial_delay,
        period_seconds: Some(period),
        timeout_seconds: Some(1),
        success_threshold: Some(1),
        failure_threshold: Some(failures),
        ..http_probe(path, port, None)
    }
}

fn args(input: &Input<'_>, routing: &StaticRouting) -> Vec<String> {
    let ports = &input.config.ports;
    let host = names::service_host(&routing.environmentd_service_name, &routing.environmentd_namespace);
    let mut args = vec![
        "service".to_owned(),
        format!("--pgwire-listen-addr=0.0.0.0:{}", ports.balancerd_sql_port),
        format!("--https-listen-addr=0.0.0.0:{}", ports.balancerd_http_port),
        format!(
            "--internal-http-listen-addr=0.0.0.0:{}",
            ports.balancerd_internal_http_port
        ),
        format!("--https-resolver-template={host}:{}", ports.environmentd_http_port),
        format!("--static-resolver-addr={host}:{}", ports.environmentd_sql_port),
    ];
    if input.internal_tls {
        args.push("--internal-tls".to_owned());
    }
    if input.external_tls {
        args.push("--tls-mode=require".to_owned());
        args.push(format!("--tls-cert={CERTIFICATE_PATH}/tls.crt"));
        args.push(format!("--tls-key={CERTIFICATE_PATH}/tls.key"));
    } else {
        args.push("--tls-mode=disable".to_owned());
    }
    if input.balancer.spec.configmap_name.is_some() {
        let key = labels::CONFIGMAP_KEY_BALANCERD_CONFIG;
        args.push(format!("--config-sync-file-path={DYNAMIC_CONFIG_PATH}/{key}"));
        args.push("--config-sync-loop-interval=1s".to_owned());
    }
    args
}

fn volumes(input: &Input<'_>) -> (Vec<Volume>, Vec<VolumeMount>) {
    let mut all = Vec::new();
    if input.external_tls {
        let secret = names::balancerd_certificate_secret(&input.identity.resource_id);
        all.push((
            secret_volume("external-certificate", &secret, None, Some(false)),
            mount("external-certificate", CERTIFICATE_PATH, Some(true)),
        ));
    }
    if let Some(config_map) = &input.balancer.spec.configmap_name {
        let key = labels::CONFIGMAP_KEY_BALANCERD_CONFIG;
        all.push((
            // Naming the key keeps pods from starting without it.
            config_map_volume("dynamic-config", config_map, Some(key), false),
            mount("dynamic-config", DYNAMIC_CONFIG_PATH, Some(true)),
        ));
    }
    all.into_iter().unzip()
}
