//! Flags about cluster replica sizes.

use super::parse;

/// Cluster replica sizes, passed on to environmentd (docs/reference/flags.md).
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Sizing {
    /// The sizes that exist: a JSON object, passed on as it is.
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub environmentd_cluster_replica_sizes: Option<String>,
    /// Size of the default cluster.
    #[arg(long, value_name = "SIZE")]
    pub bootstrap_default_cluster_replica_size: Option<String>,
    /// Size of the built-in system cluster.
    #[arg(long, value_name = "SIZE")]
    pub bootstrap_builtin_system_cluster_replica_size: Option<String>,
    /// Size of the built-in probe cluster.
    #[arg(long, value_name = "SIZE")]
    pub bootstrap_builtin_probe_cluster_replica_size: Option<String>,
    /// Size of the built-in support cluster.
    #[arg(long, value_name = "SIZE")]
    pub bootstrap_builtin_support_cluster_replica_size: Option<String>,
    /// Size of the built-in catalogue server cluster.
    #[arg(long, value_name = "SIZE")]
    pub bootstrap_builtin_catalog_server_cluster_replica_size: Option<String>,
    /// Size of the built-in analytics cluster.
    #[arg(long, value_name = "SIZE")]
    pub bootstrap_builtin_analytics_cluster_replica_size: Option<String>,
    /// Replicas of the built-in system cluster.
    #[arg(long, value_name = "NUMBER")]
    pub bootstrap_builtin_system_cluster_replication_factor: Option<u32>,
    /// Replicas of the built-in probe cluster.
    #[arg(long, value_name = "NUMBER")]
    pub bootstrap_builtin_probe_cluster_replication_factor: Option<u32>,
    /// Replicas of the built-in support cluster.
    #[arg(long, value_name = "NUMBER")]
    pub bootstrap_builtin_support_cluster_replication_factor: Option<u32>,
    /// Replicas of the built-in analytics cluster.
    #[arg(long, value_name = "NUMBER")]
    pub bootstrap_builtin_analytics_cluster_replication_factor: Option<u32>,
}

/// Checks that the text is a JSON object and keeps it as it is, but for surrounding white space.
fn object(text: &str) -> Result<String, String> {
    parse::json::<serde_json::Map<String, serde_json::Value>>(text).map(|_| text.trim().to_owned())
}
