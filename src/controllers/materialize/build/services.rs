//! The three Services of a generation.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};

use super::environment::Environment;
use crate::api::labels;
use crate::controllers::building::identity::pairs;
use crate::controllers::building::names;
use crate::controllers::building::pod::service_port;

/// A Service without an address of its own: its DNS name gives the pods' addresses.
const HEADLESS: &str = "None";

/// The environment's Service, selecting this generation.
pub fn public(environment: &Environment<'_>, generation: u64) -> Service {
    let name = names::public_service(environment.id());
    service(environment, generation, name, true, environmentd_ports(environment))
}

/// The Service of this generation alone, by which the operator talks to a candidate.
pub fn generation(environment: &Environment<'_>, generation: u64) -> Service {
    let name = names::generation(environment.id(), generation);
    service(environment, generation, name, false, environmentd_ports(environment))
}

/// The Service of this generation's persist-pubsub server.
pub fn persist_pubsub(environment: &Environment<'_>, generation: u64) -> Service {
    let name = names::persist_pubsub(environment.id(), generation);
    let port = environment.config.ports.environmentd_internal_persist_pubsub_port;
    service(environment, generation, name, true, vec![service_port("grpc", port)])
}

fn environmentd_ports(environment: &Environment<'_>) -> Vec<ServicePort> {
    let ports = &environment.config.ports;
    vec![
        service_port("sql", ports.environmentd_sql_port),
        service_port("https", ports.environmentd_http_port),
        service_port("internal-sql", ports.environmentd_internal_sql_port),
        service_port("internal-http", ports.environmentd_internal_http_port),
    ]
}

fn service(
    environment: &Environment<'_>,
    generation: u64,
    name: String,
    headless: bool,
    ports: Vec<ServicePort>,
) -> Service {
    let pods = names::generation(environment.id(), generation);
    Service {
        metadata: environment.identity.metadata(name),
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            cluster_ip: headless.then(|| HEADLESS.to_owned()),
            selector: Some(pairs([(labels::LABEL_NAME, pods.as_str())])),
            ports: Some(ports),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}
