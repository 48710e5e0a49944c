//! The Service by which clients and load balancers find balancerd.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Input;
use crate::api::labels;
use crate::controllers::building::identity::pairs;
use crate::controllers::building::names;
use crate::controllers::building::pod::service_port;

pub(super) fn build(input: &Input<'_>) -> Service {
    let name = names::balancerd(&input.identity.resource_id);
    let ports = &input.config.ports;
    let port = |name: &str, port: u16| ServicePort {
        target_port: Some(IntOrString::Int(port.into())),
        ..service_port(name, port)
    };
    Service {
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            // Headless: its DNS name gives the pods' addresses.
            cluster_ip: Some("None".to_owned()),
            selector: Some(pairs([(labels::LABEL_NAME, name.as_str())])),
            ports: Some(vec![
                port("http", ports.balancerd_http_port),
                port("pgwire", ports.balancerd_sql_port),
            ]),
            ..ServiceSpec::default()
        }),
        metadata: input.identity.metadata(name),
        status: None,
    }
}
