//! The Deployment of the console.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{
    Container, EnvVar, PodSecurityContext, PodSpec, PodTemplateSpec, Probe, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::{Input, config_map};
use crate::controllers::building::deployment::{http_probe, pod_labels, under};
use crate::controllers::building::identity::Component;
use crate::controllers::building::names;
use crate::controllers::building::pod::{
    config_map_volume, container_port, env_value, mount, non_empty, non_empty_list, restricted_security_context,
    secret_volume,
};

/// The group that nginx, in the console's image, runs as.
const NGINX_GROUP: i64 = 101;
/// Where the pages look for their configuration.
const APP_CONFIG_PATH: &str = "/usr/share/nginx/html/app-config";
/// Directory of the certificate that is presented to browsers.
const CERTIFICATE_PATH: &str = "/nginx/tls";

pub(super) fn build(input: &Input<'_>) -> Deployment {
    let spec = &input.console.spec;
    let config = input.config;
    let placement = &config.scheduling.console;
    let name = names::console(&input.identity.resource_id);
    let pods = pod_labels(&input.identity, Component::Console, &name);
    let (volumes, mounts) = volumes(input, &name);
    Deployment {
        metadata: input.identity.metadata(name),
        spec: Some(DeploymentSpec {
            replicas: Some(spec.replicas()),
            selector: LabelSelector {
                match_labels: Some(pods.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: under(spec.pod_labels.as_ref(), pods),
                    annotations: under(spec.pod_annotations.as_ref(), BTreeMap::new()),
                    ..ObjectMeta::default()
                }),
                spec: Some(PodSpec {
                    containers: vec![container(input, mounts)],
                    volumes: Some(volumes),
                    node_selector: non_empty(&placement.node_selector),
                    affinity: placement.affinity.clone(),
                    tolerations: non_empty_list(&placement.tolerations),
                    scheduler_name: config.scheduling.scheduler_name.clone(),
                    security_context: Some(PodSecurityContext {
                        fs_group: Some(NGINX_GROUP),
                        ..PodSecurityContext::default()
                    }),
                    ..PodSpec::default()
                }),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

fn container(input: &Input<'_>, mounts: Vec<VolumeMount>) -> Container {
    let spec = &input.console.spec;
    let config = input.config;
    let port = config.ports.console_http_port;
    let probe = || http_probe("/", port, Some(if input.tls { "HTTPS" } else { "HTTP" }));
    Container {
        name: "console".to_owned(),
        image: Some(spec.console_image_ref.clone()),
        image_pull_policy: Some(config.images.image_pull_policy.as_kubernetes().to_owned()),
        env: Some(env(input)),
        ports: Some(vec![container_port("http", port)]),
        // All or nothing: the two are not merged.
        resources: spec
            .resource_requirements
            .clone()
            .or_else(|| config.scheduling.console.default_resources.clone()),
        startup_probe: Some(Probe {
            period_seconds: Some(1),
            failure_threshold: Some(10),
            ..probe()
        }),
        readiness_probe: Some(Probe {
            period_seconds: Some(30),
            failure_threshold: Some(1),
            ..probe()
        }),
        liveness_probe: Some(Probe {
            period_seconds: Some(30),
            ..probe()
        }),
        security_context: config
            .features
            .enable_security_context
            .then(restricted_security_context),
        volume_mounts: Some(mounts),
        ..Container::default()
    }
}

fn env(input: &Input<'_>) -> Vec<EnvVar> {
    let balancerd = &input.console.spec.balancerd;
    let host = names::service_host(&balancerd.service_name, &balancerd.namespace);
    let scheme = balancerd.scheme.as_str();
    let port = input.config.ports.console_http_port;
    let listener = if input.tls {
        format!(
            "listen {port} ssl;\nssl_certificate {CERTIFICATE_PATH}/tls.crt;\nssl_certificate_key {CERTIFICATE_PATH}/tls.key;"
        )
    } else {
        format!("listen {port};")
    };
    vec![
        env_value(
            "MZ_ENDPOINT",
            format!("{scheme}://{host}:{}", input.config.ports.balancerd_http_port),
        ),
        env_value("MZ_NGINX_LISTENER_CONFIG", listener),
    ]
}

fn volumes(input: &Input<'_>, name: &str) -> (Vec<Volume>, Vec<VolumeMount>) {
    let mut all = vec![(
        config_map_volume("app-config", name, Some(config_map::FILE), false),
        mount("app-config", APP_CONFIG_PATH, None),
    )];
    if input.tls {
        let secret = names::console_certificate_secret(&input.identity.resource_id);
        all.push((
            secret_volume("external-certificate", &secret, None, Some(false)),
            mount("external-certificate", CERTIFICATE_PATH, Some(true)),
        ));
    }
    all.into_iter().unzip()
}
