//! The environmentd container.

use k8s_openapi::api::core::v1::{Container, ContainerPort, Probe, TCPSocketAction, VolumeMount};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::environment::Environment;
use super::{args, env};
use crate::controllers::building::pod::{container_port, restricted_security_context};

/// The container, with the given mounts.
pub fn build(environment: &Environment<'_>, generation: u64, mounts: Vec<VolumeMount>) -> Container {
    let spec = environment.spec();
    let config = environment.config;
    let probe = probe(config.ports.environmentd_sql_port);
    Container {
        name: "environmentd".to_owned(),
        image: Some(spec.environmentd_image_ref.clone()),
        image_pull_policy: Some(config.images.image_pull_policy.as_kubernetes().to_owned()),
        args: Some(args::build(environment, generation)),
        env: Some(env::build(environment)),
        ports: Some(ports(environment)),
        // All or nothing: the two are not merged.
        resources: spec
            .environmentd_resource_requirements
            .clone()
            .or_else(|| config.scheduling.environmentd.default_resources.clone()),
        liveness_probe: Some(probe.clone()),
        readiness_probe: Some(probe),
        security_context: config
            .features
            .enable_security_context
            .then(restricted_security_context),
        volume_mounts: Some(mounts).filter(|mounts| !mounts.is_empty()),
        ..Container::default()
    }
}

fn ports(environment: &Environment<'_>) -> Vec<ContainerPort> {
    let ports = &environment.config.ports;
    vec![
        container_port("sql", ports.environmentd_sql_port),
        container_port("internal-sql", ports.environmentd_internal_sql_port),
        container_port("http", ports.environmentd_http_port),
        container_port("internal-http", ports.environmentd_internal_http_port),
        container_port("persist-pubsub", ports.environmentd_internal_persist_pubsub_port),
    ]
}

/// Alive and ready are the same: the SQL port accepts connections.
fn probe(port: u16) -> Probe {
    Probe {
        tcp_socket: Some(TCPSocketAction {
            port: IntOrString::Int(port.into()),
            host: None,
        }),
        initial_delay_seconds: Some(1),
        failure_threshold: Some(12),
        ..Probe::default()
    }
}
