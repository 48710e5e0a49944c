//! Admits browsers to the console.

use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicySpec};

use super::Input;
use crate::controllers::building::names;
use crate::controllers::building::network_policy::{cidr_peers, tcp_ports};

pub(super) fn build(input: &Input<'_>) -> Option<NetworkPolicy> {
    let flags = &input.config.network_policies;
    flags.network_policies_ingress_enabled.then(|| NetworkPolicy {
        metadata: input
            .identity
            .metadata(names::console_network_policy(&input.identity.resource_id)),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(input.identity.selector(None)),
            ingress: Some(vec![NetworkPolicyIngressRule {
                from: cidr_peers(&flags.network_policies_ingress_cidrs),
                ports: tcp_ports([input.config.ports.console_http_port]),
            }]),
            policy_types: Some(vec!["Ingress".to_owned()]),
            egress: None,
        }),
    })
}
