//! Parts of network policies.

use k8s_openapi::api::networking::v1::{IPBlock, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// One peer for each CIDR; none for an empty list, which Kubernetes reads as *everywhere*.
pub fn cidr_peers(cidrs: &[String]) -> Option<Vec<NetworkPolicyPeer>> {
    let peers = cidrs.iter().map(|cidr| NetworkPolicyPeer {
        ip_block: Some(IPBlock {
            cidr: cidr.clone(),
            except: None,
        }),
        ..NetworkPolicyPeer::default()
    });
    // The API server drops empty lists, so that sending one would look like a difference for ever.
    Some(peers.collect::<Vec<_>>()).filter(|peers| !peers.is_empty())
}

/// One TCP port for each number.
pub fn tcp_ports(ports: impl IntoIterator<Item = u16>) -> Option<Vec<NetworkPolicyPort>> {
    let port = |port: u16| NetworkPolicyPort {
        port: Some(IntOrString::Int(port.into())),
        protocol: Some("TCP".to_owned()),
        end_port: None,
    };
    Some(ports.into_iter().map(port).collect())
}
