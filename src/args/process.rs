//! Flags of the process itself: listeners, Kubernetes access, leader election.

use std::net::SocketAddr;

use super::KeyValue;

/// Process, listeners and leader election (docs/reference/flags.md).
#[derive(Clone, Debug, clap::Args)]
pub struct Process {
    /// Context of the kubeconfig to use outside a cluster; if there is no such context, the in-cluster
    /// configuration is used.
    ///
    /// The default namespace of the one that is used is the operator's namespace.
    #[arg(
        long,
        value_name = "NAME",
        env = "ORCHESTRATORD_KUBERNETES_CONTEXT",
        default_value = "minikube"
    )]
    pub kubernetes_context: String,

    /// Address of the status page.
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:8004")]
    pub profiling_listen_address: SocketAddr,

    /// Address of `/metrics`, `/healthz` and `/readyz`.
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:3100")]
    pub metrics_listen_address: SocketAddr,

    /// Identity written to the Lease; must be unique per replica [default: $HOSTNAME, else a random one].
    #[arg(long, value_name = "NAME", env = "ORCHESTRATORD_LEADER_ELECTION_IDENTITY")]
    pub leader_election_identity: Option<String>,

    /// A label of the operator's own pods; repeatable. Generated network policies admit pods with these labels.
    #[arg(long, value_name = "KEY=VALUE")]
    pub orchestratord_pod_selector_labels: Vec<KeyValue>,

    /// Accepted and ignored: charts up to v26.39 pass it.
    #[arg(long, hide = true)]
    pub disable_statement_logging: bool,
}
