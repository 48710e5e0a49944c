//! environmentd's arguments.
//!
//! The order is fixed: it is part of what the hash covers, so that moving one argument would offer every environment
//! a rollout. [`build`] reads as the table in docs/reference/generated-objects.md.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::value::RawValue;

use super::environment::Environment;
use super::volumes;
use crate::api::image::matching_image;
use crate::api::labels;
use crate::args::CloudProvider;
use crate::controllers::building::json;
use crate::controllers::building::names;
use crate::controllers::building::pod::RUN_AS;

/// The arguments of one generation.
pub fn build(environment: &Environment<'_>, generation: u64) -> Vec<String> {
    let mut args = Args::default();
    identity(&mut args, environment);
    clusters(&mut args, environment);
    system_parameters(&mut args, environment);
    aws(&mut args, environment);
    orchestrator(&mut args, environment);
    telemetry(&mut args, environment);
    tls(&mut args, environment);
    storage(&mut args, environment);
    sentry(&mut args, environment);
    deployment(&mut args, environment, generation);
    monitoring(&mut args, environment);
    args.0
        .extend(environment.spec().environmentd_extra_args.iter().flatten().cloned());
    listeners(&mut args, environment);
    args.0
}

/// Rows 1 to 3: who this environment is.
fn identity(args: &mut Args, environment: &Environment<'_>) {
    let spec = environment.spec();
    let cloud = &environment.config.cloud;
    args.option(
        "helm-chart-version",
        environment.config.environmentd.helm_chart_version.as_ref(),
    );
    args.value(
        "environment-id",
        format_args!(
            "{}-{}-{}-0",
            cloud.cloud_provider.as_str(),
            cloud.region,
            spec.environment_id.hyphenated()
        ),
    );
    args.value(
        "clusterd-image",
        matching_image(&spec.environmentd_image_ref, "clusterd", None),
    );
}

/// Rows 4 to 9: cluster sizes, origins, secrets.
fn clusters(args: &mut Args, environment: &Environment<'_>) {
    let config = environment.config;
    let sizing = &config.sizing;
    args.option(
        "cluster-replica-sizes",
        sizing.environmentd_cluster_replica_sizes.as_ref(),
    );
    args.option(
        "bootstrap-default-cluster-replica-size",
        sizing.bootstrap_default_cluster_replica_size.as_ref(),
    );
    for (cluster, size) in [
        ("system", &sizing.bootstrap_builtin_system_cluster_replica_size),
        ("probe", &sizing.bootstrap_builtin_probe_cluster_replica_size),
        ("support", &sizing.bootstrap_builtin_support_cluster_replica_size),
        (
            "catalog-server",
            &sizing.bootstrap_builtin_catalog_server_cluster_replica_size,
        ),
        ("analytics", &sizing.bootstrap_builtin_analytics_cluster_replica_size),
    ] {
        args.option(
            format_args!("bootstrap-builtin-{cluster}-cluster-replica-size"),
            size.as_ref(),
        );
    }
    for (cluster, factor) in [
        ("system", sizing.bootstrap_builtin_system_cluster_replication_factor),
        ("probe", sizing.bootstrap_builtin_probe_cluster_replication_factor),
        ("support", sizing.bootstrap_builtin_support_cluster_replication_factor),
        (
            "analytics",
            sizing.bootstrap_builtin_analytics_cluster_replication_factor,
        ),
    ] {
        args.option(
            format_args!("bootstrap-builtin-{cluster}-cluster-replication-factor"),
            factor.as_ref(),
        );
    }
    args.each("cors-allowed-origin", &config.environmentd.environmentd_allowed_origins);
    args.value("secrets-controller", config.cloud.secrets_controller.as_str());
}

/// Rows 10 to 15: defaults of system parameters.
fn system_parameters(args: &mut Args, environment: &Environment<'_>) {
    let config = environment.config;
    if let Some(sizes) = config
        .sizing
        .environmentd_cluster_replica_sizes
        .as_deref()
        .and_then(quoted_sizes)
    {
        args.system_parameter("allowed_cluster_replica_sizes", sizes);
    }
    if !config.cloud.cloud_provider.is_cloud() {
        args.system_parameter("cluster_enable_topology_spread", false);
    }
    if config.environmentd.enable_internal_statement_logging {
        args.system_parameter("enable_internal_statement_logging", true);
    }
    if let Some(rate) = config.environmentd.statement_logging_max_sample_rate {
        args.system_parameter("statement_logging_max_sample_rate", rate);
    }
    if let Some(rate) = config.environmentd.statement_logging_target_data_rate {
        args.system_parameter("statement_logging_target_data_rate", rate);
    }
    if !environment.spec().enable_rbac {
        args.system_parameter("enable_rbac_checks", false);
    }
    if config.network_policies.disable_database_network_policies {
        args.system_parameter("enable_network_policies", false);
    }
    args.value("persist-isolated-runtime-threads", -1);
}

/// The keys of the sizes, sorted, quoted for a list of SQL strings; none if they are no JSON object.
fn quoted_sizes(sizes: &str) -> Option<String> {
    let sizes: BTreeMap<String, &RawValue> = serde_json::from_str(sizes).ok()?;
    Some(
        sizes
            .keys()
            .map(|size| format!("'{size}'"))
            .collect::<Vec<_>>()
            .join(", "),
    )
}

/// Row 16: what only AWS has.
fn aws(args: &mut Args, environment: &Environment<'_>) {
    let cloud = &environment.config.cloud;
    if cloud.cloud_provider != CloudProvider::Aws {
        return;
    }
    args.each(
        "availability-zone",
        cloud.environmentd_availability_zones.iter().flatten(),
    );
    let connection_role = environment.spec().environmentd_connection_role_arn.as_ref();
    args.option(
        "aws-connection-role-arn",
        connection_role.or(cloud.environmentd_connection_role_arn.as_ref()),
    );
    args.option("aws-account-id", cloud.aws_account_id.as_ref());
    args.value(
        "aws-secrets-controller-tags",
        format_args!("Environment={}", environment.identity.name),
    );
    args.0
        .extend(cloud.aws_secrets_controller_tags.iter().flatten().cloned());
}

/// Rows 17 to 23: how environmentd runs clusterd.
fn orchestrator(args: &mut Args, environment: &Environment<'_>) {
    let spec = environment.spec();
    let config = environment.config;
    let scheduling = &config.scheduling;
    args.value("orchestrator", "kubernetes");
    args.value(
        "orchestrator-kubernetes-service-account",
        environment.service_account_name(),
    );
    args.value(
        "orchestrator-kubernetes-image-pull-policy",
        config.images.image_pull_policy.as_kebab(),
    );
    args.pairs(
        "orchestrator-kubernetes-service-node-selector",
        Some(&scheduling.clusterd.node_selector),
    );
    if environment.version.supports_service_scheduling() {
        args.option(
            "orchestrator-kubernetes-service-affinity",
            scheduling.clusterd.affinity.as_ref().map(json),
        );
        let tolerations = Some(&scheduling.clusterd.tolerations).filter(|tolerations| !tolerations.is_empty());
        args.option("orchestrator-kubernetes-service-tolerations", tolerations.map(json));
    }
    if environment.version.supports_priority_class() {
        let class = scheduling.clusterd.priority_class_name.as_ref();
        args.option("orchestrator-kubernetes-priority-class-name", class);
    }
    args.option(
        "orchestrator-kubernetes-scheduler-name",
        scheduling.scheduler_name.as_ref(),
    );
    if environment.version.supports_service_annotations() {
        args.pairs(
            "orchestrator-kubernetes-service-annotation",
            spec.pod_annotations.as_ref(),
        );
    }
    args.pairs(
        "orchestrator-kubernetes-service-label",
        Some(&environment.identity.labels),
    );
    args.pairs("orchestrator-kubernetes-service-label", spec.pod_labels.as_ref());
    args.value(
        "orchestrator-kubernetes-name-prefix",
        names::prefixed(environment.id(), ""),
    );
}

/// Rows 24 to 27: logs, traces, product telemetry.
fn telemetry(args: &mut Args, environment: &Environment<'_>) {
    let config = environment.config;
    args.value("log-format", "json");
    args.option(
        "opentelemetry-endpoint",
        config.telemetry.opentelemetry_endpoint.as_ref(),
    );
    let organization = environment.spec().environment_id.hyphenated();
    args.value("opentelemetry-resource", format_args!("organization_id={organization}"));
    args.value(
        "opentelemetry-resource",
        format_args!("environment_name={}", environment.identity.name),
    );
    if let Some(key) = &config.environmentd.segment_api_key {
        args.value("segment-api-key", key.expose());
        args.switch("segment-client-side", config.environmentd.segment_client_side);
    }
}

/// Row 28.
fn tls(args: &mut Args, environment: &Environment<'_>) {
    if environment.internal_tls {
        args.value("tls-mode", "require");
        args.value("tls-cert", format_args!("{}/tls.crt", volumes::CERTIFICATE_PATH));
        args.value("tls-key", format_args!("{}/tls.key", volumes::CERTIFICATE_PATH));
    } else {
        args.value("tls-mode", "disable");
    }
}

/// Rows 29 to 31: volumes, those of clusterd and the system parameters' file.
fn storage(args: &mut Args, environment: &Environment<'_>) {
    let volume_class = environment.config.scheduling.ephemeral_volume_class.as_ref();
    args.option("orchestrator-kubernetes-ephemeral-volume-class", volume_class);
    args.value("orchestrator-kubernetes-service-fs-group", RUN_AS);
    if volumes::system_parameters(environment).is_some() {
        let file = format_args!(
            "{}/{}",
            volumes::SYSTEM_PARAMETERS_PATH,
            labels::CONFIGMAP_KEY_SYSTEM_PARAMS
        );
        args.value("config-sync-file-path", file);
        args.value("config-sync-loop-interval", "1s");
    }
}

/// Row 32.
fn sentry(args: &mut Args, environment: &Environment<'_>) {
    let telemetry = &environment.config.telemetry;
    if let Some(dsn) = &telemetry.sentry_dsn {
        args.value("sentry-dsn", dsn.expose());
        args.option("sentry-environment", telemetry.sentry_environment.as_ref());
        args.value("sentry-tag", format_args!("region={}", environment.config.cloud.region));
    }
}

/// Rows 33 to 35: this generation, and the console.
fn deployment(args: &mut Args, environment: &Environment<'_>, generation: u64) {
    let config = environment.config;
    let port = config.ports.environmentd_internal_persist_pubsub_port;
    let pubsub = names::persist_pubsub(environment.id(), generation);
    args.value("persist-pubsub-url", format_args!("http://{pubsub}:{port}"));
    args.value("internal-persist-pubsub-listen-addr", format_args!("0.0.0.0:{port}"));
    args.value("deploy-generation", generation);
    args.value(
        "internal-console-redirect-url",
        &config.environmentd.internal_console_proxy_url,
    );
}

/// Rows 36 to 38: metrics, and licence checks where they can still be switched off.
fn monitoring(args: &mut Args, environment: &Environment<'_>) {
    let config = environment.config;
    let collect = config.features.collect_pod_metrics;
    args.switch("orchestrator-kubernetes-disable-pod-metrics-collection", !collect);
    let scrape = config.features.enable_prometheus_scrape_annotations;
    args.switch("orchestrator-kubernetes-enable-prometheus-scrape-annotations", scrape);
    let known = environment.version.supports_disabling_license_key_checks();
    args.switch(
        "disable-license-key-checks",
        known && config.features.disable_license_key_checks,
    );
}

/// Row 40: what to listen on, from a file or, in old versions, by arguments.
fn listeners(args: &mut Args, environment: &Environment<'_>) {
    if environment.version.supports_listeners_config() {
        let file = format_args!("{}/{}", volumes::LISTENERS_PATH, labels::CONFIGMAP_KEY_LISTENERS);
        args.value("listeners-config-path", file);
        if environment.spec().authenticator_kind.needs_login() {
            args.system_parameter("enable_password_auth", true);
        }
        return;
    }
    let ports = &environment.config.ports;
    for (listener, port) in [
        ("sql", ports.environmentd_sql_port),
        ("http", ports.environmentd_http_port),
        ("internal-sql", ports.environmentd_internal_sql_port),
        ("internal-http", ports.environmentd_internal_http_port),
    ] {
        args.value(format_args!("{listener}-listen-addr"), format_args!("0.0.0.0:{port}"));
    }
}

/// A command line in the making.
#[derive(Default)]
struct Args(Vec<String>);

// === impl Args ===

impl Args {
    /// `--name=value`
    fn value(&mut self, name: impl Display, value: impl Display) {
        self.0.push(format!("--{name}={value}"));
    }

    /// `--name=value`, if there is a value.
    fn option(&mut self, name: impl Display, value: Option<impl Display>) {
        if let Some(value) = value {
            self.value(name, value);
        }
    }

    /// `--name=value`, for each value.
    fn each(&mut self, name: &str, values: impl IntoIterator<Item = impl Display>) {
        for value in values {
            self.value(name, value);
        }
    }

    /// `--name=key=value`, for each pair in order of the keys.
    fn pairs(&mut self, name: &str, pairs: Option<&BTreeMap<String, String>>) {
        for (key, value) in pairs.into_iter().flatten() {
            self.value(name, format_args!("{key}={value}"));
        }
    }

    /// `--name`, if it is on.
    fn switch(&mut self, name: &str, on: bool) {
        if on {
            self.0.push(format!("--{name}"));
        }
    }

    /// A system parameter's default; users override it with `ALTER SYSTEM`.
    fn system_parameter(&mut self, parameter: &str, value: impl Display) {
        self.value("system-parameter-default", format_args!("{parameter}={value}"));
    }
}

#[cfg(test)]
mod tests;
