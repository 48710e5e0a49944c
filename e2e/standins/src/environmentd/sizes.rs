//! The value of `--cluster-replica-sizes`.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::args::Args;

/// One size as environmentd knows it; a member that is not here is an error.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the shape is checked")]
#[expect(clippy::struct_excessive_bools, reason = "they are the members of the document")]
struct Size {
    #[serde(default)]
    cpu_exclusive: bool,
    cpu_limit: Option<f64>,
    cpu_request: Option<f64>,
    memory_limit: Option<String>,
    memory_request: Option<String>,
    disk_limit: Option<String>,
    scale: u16,
    workers: u16,
    credits_per_hour: String,
    #[serde(default)]
    is_cc: bool,
    #[serde(default)]
    swap_enabled: bool,
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    selectors: BTreeMap<String, String>,
}

/// Checks the sizes themselves, and that each size named by another flag is one of them.
pub(crate) fn check(args: &Args) -> anyhow::Result<()> {
    let Some(text) = &args.cluster_replica_sizes else {
        return Ok(());
    };
    let sizes: BTreeMap<String, Size> =
        serde_json::from_str(text).context("--cluster-replica-sizes is not a JSON object of sizes")?;
    for (name, size) in &sizes {
        if size.credits_per_hour.parse::<f64>().is_err() {
            bail!(
                "--cluster-replica-sizes: {name}: credits_per_hour {:?} is not a number",
                size.credits_per_hour
            );
        }
        if size.scale == 0 || size.workers == 0 {
            bail!("--cluster-replica-sizes: {name}: scale and workers must not be 0");
        }
    }
    let named = [
        ("default", &args.bootstrap_default_cluster_replica_size),
        ("system", &args.bootstrap_builtin_system_cluster_replica_size),
        ("probe", &args.bootstrap_builtin_probe_cluster_replica_size),
        ("support", &args.bootstrap_builtin_support_cluster_replica_size),
        (
            "catalog-server",
            &args.bootstrap_builtin_catalog_server_cluster_replica_size,
        ),
        ("analytics", &args.bootstrap_builtin_analytics_cluster_replica_size),
    ];
    for (cluster, size) in named {
        if let Some(size) = size.as_deref().filter(|size| !sizes.contains_key(*size)) {
            bail!("the bootstrap size {size:?} of the {cluster} cluster is not in --cluster-replica-sizes");
        }
    }
    for allowed in args
        .system_parameter_default
        .iter()
        .filter(|pair| pair.key == "allowed_cluster_replica_sizes")
    {
        for quoted in allowed.value.split(", ") {
            let size = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
            if !size.is_some_and(|size| sizes.contains_key(size)) {
                bail!(
                    "allowed_cluster_replica_sizes has {quoted}, which is no single-quoted name of --cluster-replica-sizes"
                );
            }
        }
    }
    Ok(())
}
