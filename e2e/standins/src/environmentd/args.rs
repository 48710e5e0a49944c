//! environmentd's command line.
//!
//! What the operator always passes is required, what it passes under a condition is optional, and a flag that is not here is an error. The
//! last block is what users add through `environmentdExtraArgs`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::settings::{KeyValue, TlsMode, duration};

/// The command line, before anything is checked that needs more than one flag.
#[derive(Clone, Debug, Parser)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[command(name = "environmentd", disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Args {
    #[arg(long)]
    pub(crate) helm_chart_version: Option<String>,
    #[arg(long, value_parser = environment_id)]
    pub(crate) environment_id: EnvironmentId,
    #[arg(long)]
    pub(crate) clusterd_image: String,
    #[arg(long)]
    pub(crate) cluster_replica_sizes: Option<String>,
    #[arg(long)]
    pub(crate) bootstrap_default_cluster_replica_size: Option<String>,
    #[arg(long)]
    pub(crate) bootstrap_builtin_system_cluster_replica_size: Option<String>,
    #[arg(long)]
    pub(crate) bootstrap_builtin_probe_cluster_replica_size: Option<String>,
    #[arg(long)]
    pub(crate) bootstrap_builtin_support_cluster_replica_size: Option<String>,
    #[arg(long)]
    pub(crate) bootstrap_builtin_catalog_server_cluster_replica_size: Option<String>,
    #[arg(long)]
    pub(crate) bootstrap_builtin_analytics_cluster_replica_size: Option<String>,
    #[arg(long)]
    pub(crate) bootstrap_builtin_system_cluster_replication_factor: Option<u32>,
    #[arg(long)]
    pub(crate) bootstrap_builtin_probe_cluster_replication_factor: Option<u32>,
    #[arg(long)]
    pub(crate) bootstrap_builtin_support_cluster_replication_factor: Option<u32>,
    #[arg(long)]
    pub(crate) bootstrap_builtin_analytics_cluster_replication_factor: Option<u32>,
    #[arg(long)]
    pub(crate) cors_allowed_origin: Vec<String>,
    #[arg(long)]
    pub(crate) secrets_controller: SecretsController,
    #[arg(long)]
    pub(crate) system_parameter_default: Vec<KeyValue>,
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) persist_isolated_runtime_threads: i64,
    #[arg(long)]
    pub(crate) availability_zone: Vec<String>,
    #[arg(long)]
    pub(crate) aws_connection_role_arn: Option<String>,
    #[arg(long)]
    pub(crate) aws_account_id: Option<String>,
    #[arg(long)]
    pub(crate) aws_secrets_controller_tags: Vec<KeyValue>,
    #[arg(long)]
    pub(crate) orchestrator: Orchestrator,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_service_account: String,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_image_pull_policy: ImagePullPolicy,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_service_node_selector: Vec<KeyValue>,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_service_affinity: Option<String>,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_service_tolerations: Option<String>,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_priority_class_name: Option<String>,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_scheduler_name: Option<String>,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_service_annotation: Vec<KeyValue>,
    #[arg(long, required = true)]
    pub(crate) orchestrator_kubernetes_service_label: Vec<KeyValue>,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_name_prefix: String,
    #[arg(long)]
    pub(crate) log_format: LogFormat,
    #[arg(long)]
    pub(crate) opentelemetry_endpoint: Option<String>,
    #[arg(long, required = true)]
    pub(crate) opentelemetry_resource: Vec<KeyValue>,
    #[arg(long)]
    pub(crate) segment_api_key: Option<String>,
    #[arg(long, requires = "segment_api_key")]
    pub(crate) segment_client_side: bool,
    #[arg(long)]
    pub(crate) tls_mode: TlsMode,
    #[arg(long)]
    pub(crate) tls_cert: Option<PathBuf>,
    #[arg(long)]
    pub(crate) tls_key: Option<PathBuf>,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_ephemeral_volume_class: Option<String>,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_service_fs_group: i64,
    #[arg(long, requires = "config_sync_loop_interval")]
    pub(crate) config_sync_file_path: Option<PathBuf>,
    #[arg(long, requires = "config_sync_file_path", value_parser = duration)]
    pub(crate) config_sync_loop_interval: Option<Duration>,
    #[arg(long)]
    pub(crate) sentry_dsn: Option<String>,
    #[arg(long, requires = "sentry_dsn")]
    pub(crate) sentry_environment: Option<String>,
    #[arg(long, requires = "sentry_dsn")]
    pub(crate) sentry_tag: Vec<KeyValue>,
    #[arg(long)]
    pub(crate) persist_pubsub_url: String,
    #[arg(long)]
    pub(crate) internal_persist_pubsub_listen_addr: String,
    #[arg(long)]
    pub(crate) deploy_generation: u64,
    #[arg(long)]
    pub(crate) internal_console_redirect_url: String,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_disable_pod_metrics_collection: bool,
    #[arg(long)]
    pub(crate) orchestrator_kubernetes_enable_prometheus_scrape_annotations: bool,
    #[arg(long)]
    pub(crate) disable_license_key_checks: bool,
    #[arg(long)]
    pub(crate) listeners_config_path: Option<PathBuf>,
    #[arg(long)]
    pub(crate) sql_listen_addr: Option<String>,
    #[arg(long)]
    pub(crate) http_listen_addr: Option<String>,
    #[arg(long)]
    pub(crate) internal_sql_listen_addr: Option<String>,
    #[arg(long)]
    pub(crate) internal_http_listen_addr: Option<String>,

    #[arg(long)]
    pub(crate) announce_egress_address: Vec<String>,
    #[arg(long)]
    pub(crate) all_features: bool,
    #[arg(long)]
    pub(crate) unsafe_mode: bool,
    #[arg(long)]
    pub(crate) bootstrap_role: Option<String>,
    #[arg(long)]
    pub(crate) startup_log_filter: Option<String>,
}

/// `{provider}-{region}-{organization}-{ordinal}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnvironmentId {
    pub(crate) text: String,
    pub(crate) provider: String,
    pub(crate) organization: uuid::Uuid,
}

/// Where secrets of sources and sinks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SecretsController {
    AwsSecretsManager,
    Kubernetes,
}

/// What runs clusterd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Orchestrator {
    Kubernetes,
}

/// How clusterd's image is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImagePullPolicy {
    Always,
    IfNotPresent,
    Never,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Json,
    Text,
}

// === impl ImagePullPolicy ===

impl ImagePullPolicy {
    /// Kubernetes' spelling.
    pub(crate) fn kubernetes(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

fn environment_id(text: &str) -> Result<EnvironmentId, String> {
    let wrong = || format!("{text:?} is not of the form PROVIDER-REGION-UUID-ORDINAL");
    let (rest, ordinal) = text.rsplit_once('-').ok_or_else(wrong)?;
    if ordinal.is_empty() || ordinal.len() > 8 || !ordinal.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    // A hyphenated UUID has 36 characters.
    let middle = rest
        .len()
        .checked_sub(36)
        .filter(|at| rest.is_char_boundary(*at))
        .ok_or_else(wrong)?;
    let (place, organization) = rest.split_at(middle);
    let organization: uuid::Uuid = organization.parse().map_err(|_| wrong())?;
    let (provider, region) = place
        .strip_suffix('-')
        .and_then(|place| place.split_once('-'))
        .ok_or_else(wrong)?;
    let alphanumeric = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !alphanumeric(provider) || !region.split('-').all(alphanumeric) {
        return Err(wrong());
    }
    if organization.is_nil() {
        return Err(format!("{text:?} has the nil UUID"));
    }
    Ok(EnvironmentId {
        text: text.to_owned(),
        provider: provider.to_owned(),
        organization,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_ids_are_checked() {
        let id = environment_id("aws-us-east-1-12345678-1234-1234-1234-123456789012-0").unwrap();
        assert_eq!(id.provider, "aws");
        assert_eq!(id.organization.to_string(), "12345678-1234-1234-1234-123456789012");
        assert!(environment_id("local-kind-12345678-1234-1234-1234-123456789012-0").is_ok());
        for wrong in [
            "",
            "kind-12345678-1234-1234-1234-123456789012-0",
            "local-kind-12345678-1234-1234-1234-123456789012",
            "local-kind-12345678-1234-1234-1234-12345678901-0",
            "local-kind-00000000-0000-0000-0000-000000000000-0",
            "local--12345678-1234-1234-1234-123456789012-0",
            "local-ki_nd-12345678-1234-1234-1234-123456789012-0",
            "local-kind-12345678-1234-1234-1234-123456789012-x",
        ] {
            assert!(environment_id(wrong).is_err(), "{wrong}");
        }
    }
}
