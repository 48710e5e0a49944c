//! The network policies of an environment.

use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::environment::Environment;
use crate::api::labels;
use crate::controllers::building::identity::{Component, pairs};
use crate::controllers::building::names::network_policy as names;
use crate::controllers::building::network_policy::{cidr_peers, tcp_ports};

/// The label that the API server gives every namespace: its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Those policies that are switched on.
pub fn build(environment: &Environment<'_>) -> Vec<NetworkPolicy> {
    let flags = &environment.config.network_policies;
    let mut policies = Vec::new();
    if flags.network_policies_internal_enabled {
        policies.push(within_environment(environment));
        policies.push(operator(environment));
    }
    if flags.network_policies_ingress_enabled {
        policies.push(ingress(environment));
    }
    if flags.network_policies_egress_enabled {
        policies.push(egress(environment));
    }
    policies
}

/// All traffic between the pods of this environment.
fn within_environment(environment: &Environment<'_>) -> NetworkPolicy {
    let members = LabelSelector {
        match_labels: Some(pairs([(labels::LABEL_RESOURCE_ID, environment.id())])),
        ..LabelSelector::default()
    };
    let peers = vec![NetworkPolicyPeer {
        pod_selector: Some(members.clone()),
        ..NetworkPolicyPeer::default()
    }];
    policy(
        environment,
        names::within_environment(environment.id()),
        NetworkPolicySpec {
            pod_selector: Some(members),
            ingress: Some(vec![NetworkPolicyIngressRule {
                from: Some(peers.clone()),
                ports: None,
            }]),
            egress: Some(vec![NetworkPolicyEgressRule {
                to: Some(peers),
                ports: None,
            }]),
            policy_types: Some(types(&["Ingress", "Egress"])),
        },
    )
}

/// The operator's calls to environmentd.
fn operator(environment: &Environment<'_>) -> NetworkPolicy {
    let config = environment.config;
    let operator = NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector {
            match_labels: Some(pairs([(NAMESPACE_NAME, config.operator_namespace.as_str())])),
            ..LabelSelector::default()
        }),
        pod_selector: Some(LabelSelector {
            match_labels: Some(config.operator_pod_labels.clone()),
            ..LabelSelector::default()
        }),
        ip_block: None,
    };
    policy(
        environment,
        names::operator(environment.id()),
        NetworkPolicySpec {
            pod_selector: Some(environment.identity.selector(Some(Component::Environmentd))),
            ingress: Some(vec![NetworkPolicyIngressRule {
                from: Some(vec![operator]),
                ports: tcp_ports([
                    config.ports.environmentd_http_port,
                    config.ports.environmentd_internal_http_port,
                ]),
            }]),
            policy_types: Some(types(&["Ingress"])),
            egress: None,
        },
    )
}

/// Clients of balancerd.
fn ingress(environment: &Environment<'_>) -> NetworkPolicy {
    let config = environment.config;
    policy(
        environment,
        names::ingress(environment.id()),
        NetworkPolicySpec {
            pod_selector: Some(environment.identity.selector(Some(Component::Balancerd))),
            ingress: Some(vec![NetworkPolicyIngressRule {
                from: cidr_peers(&config.network_policies.network_policies_ingress_cidrs),
                ports: tcp_ports([config.ports.environmentd_http_port, config.ports.environmentd_sql_port]),
            }]),
            policy_types: Some(types(&["Ingress"])),
            egress: None,
        },
    )
}

/// Sources and sinks.
fn egress(environment: &Environment<'_>) -> NetworkPolicy {
    policy(
        environment,
        names::egress(environment.id()),
        NetworkPolicySpec {
            pod_selector: Some(environment.identity.selector(None)),
            egress: Some(vec![NetworkPolicyEgressRule {
                to: cidr_peers(&environment.config.network_policies.network_policies_egress_cidrs),
                ports: None,
            }]),
            policy_types: Some(types(&["Egress"])),
            ingress: None,
        },
    )
}

fn policy(environment: &Environment<'_>, name: String, spec: NetworkPolicySpec) -> NetworkPolicy {
    NetworkPolicy {
        metadata: environment.identity.metadata(name),
        spec: Some(spec),
    }
}

fn types(types: &[&str]) -> Vec<String> {
    types.iter().map(|&name| name.to_owned()).collect()
}
