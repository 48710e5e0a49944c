//! The rights of replicas that run as processes: those of the chart, bound to one service account a replica.
//!
//! A replica never works as administrator: a missing rule of the chart must show here.

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::context::Context;
use crate::cache::repository;
use crate::clock::Deadline;
use crate::cluster::pki;
use crate::command::run;

/// The names replicas may have.
pub(super) const REPLICAS: [&str; 3] = ["replica-0", "replica-1", "replica-2"];

/// Kinds taken from the chart.
const KINDS: [&str; 4] = ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

/// Marks what belongs to a scenario and has no namespace.
const LABEL: &str = "orchestratord-e2e/scenario";

/// Renders the chart, and makes its roles, the accounts and the bindings between them.
pub(super) fn install(context: &Context) -> Result<()> {
    let namespace = &context.namespace;
    let chart = repository().join("helm");
    let mut helm = context.cluster.kubectl.helm();
    // The release is named after the scenario, so that the names without a namespace do not clash.
    helm.args(["template", namespace])
        .arg(&chart)
        .args(["--namespace", namespace]);
    let rendered = run(&mut helm, Deadline::after(std::time::Duration::from_secs(30)))
        .context("rendering the chart for its roles")?;
    let objects = context.cluster.kubectl.run_until(
        &[
            "create",
            "--dry-run=client",
            "--validate=false",
            "-o",
            "json",
            "-f",
            "-",
        ],
        Some(&only_rights(&rendered)),
        Deadline::after(std::time::Duration::from_secs(30)),
    )?;
    let mut items: Vec<Value> = serde_json::Deserializer::from_str(&objects)
        .into_iter::<Value>()
        .collect::<Result<Vec<_>, _>>()
        .context("decoding the chart's roles")?
        .into_iter()
        .flat_map(|value| match value["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![value],
        })
        .collect();
    if !items.iter().any(|item| item["kind"] == "ClusterRole") {
        bail!("the chart renders no ClusterRole");
    }
    let subjects: Vec<Value> = REPLICAS
        .iter()
        .map(|name| json!({ "kind": "ServiceAccount", "name": name, "namespace": namespace }))
        .collect();
    for item in &mut items {
        item["metadata"]["labels"][LABEL] = json!(namespace);
        if item["kind"].as_str().is_some_and(|kind| kind.ends_with("Binding")) {
            item["subjects"] = json!(subjects);
        }
    }
    items.extend(REPLICAS.iter().map(|name| json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": namespace } })));
    context
        .cluster
        .kubectl
        .apply(&json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string())
}

/// A kubeconfig of a replica's own account, whose default namespace is the operator's.
pub(super) fn kubeconfig(context: &Context, replica: &str, server: &str) -> Result<String> {
    let token = context.kubectl(&[
        "create",
        "token",
        replica,
        "--namespace",
        &context.namespace,
        "--duration=24h",
    ])?;
    pki::kubeconfig_with_token(context.cluster.level, server, &context.namespace, token.trim())
}

/// Removes what is not removed with the namespace.
pub(super) fn remove(context: &Context) {
    let selector = format!("{LABEL}={}", context.namespace);
    // What is left is replaced by the next run.
    let _ = context.cluster.kubectl.run(&[
        "delete",
        "clusterroles,clusterrolebindings",
        "--selector",
        &selector,
        "--wait=false",
    ]);
}

/// The documents of a rendered chart that are about rights.
fn only_rights(rendered: &str) -> String {
    let is_wanted = |document: &&str| {
        document.lines().any(|line| {
            line.strip_prefix("kind: ")
                .is_some_and(|kind| KINDS.contains(&kind.trim()))
        })
    };
    rendered
        .split("\n---")
        .filter(is_wanted)
        .collect::<Vec<_>>()
        .join("\n---\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_rendered_chart_only_the_rights_are_kept() {
        let kept = only_rights(
            "---\nkind: Deployment\n---\n# Source: a\nkind: ClusterRole\nmetadata: {}\n---\nkind: Service\n",
        );
        assert!(
            kept.contains("ClusterRole") && !kept.contains("Deployment") && !kept.contains("Service"),
            "{kept}"
        );
    }
}
