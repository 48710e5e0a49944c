//! What a failed scenario leaves for whoever looks into it: `target/e2e/SCENARIO/`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::context::Context;
use crate::cache::repository;
use crate::cluster::Cluster;
use crate::cluster::audit::Event;

/// Kinds that are shown in full, as far as the cluster has them.
const KINDS: [&str; 14] = [
    "materializes.materialize.cloud",
    "balancers.materialize.cloud",
    "consoles.materialize.cloud",
    "statefulsets",
    "deployments",
    "pods",
    "services",
    "endpointslices",
    "configmaps",
    "serviceaccounts",
    "roles",
    "rolebindings",
    "networkpolicies",
    "leases",
];

/// The folder of all scenarios.
pub(super) fn root() -> PathBuf {
    repository().join("target/e2e")
}

/// An empty folder for a scenario.
pub(super) fn prepare(name: &str) -> Result<PathBuf> {
    let folder = root().join(name.replace("::", "."));
    discard(&folder)?;
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(folder)
}

/// Removes the folder of a scenario that has succeeded.
pub(super) fn discard(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Writes objects, events and audit log of a scenario beside the logs of its replicas. Whatever cannot be had is left out: the failure itself matters more.
pub(super) fn collect(context: &Context) {
    let Context {
        cluster,
        namespace,
        folder,
        ..
    } = context;
    let mut objects = String::new();
    for kind in KINDS {
        if let Ok(text) = cluster.kubectl.run(&[
            "get",
            kind,
            "--namespace",
            namespace,
            "-o",
            "yaml",
            "--ignore-not-found",
        ]) {
            let _ = write!(objects, "# {kind}\n{text}---\n");
        }
    }
    let _ = fs::write(folder.join("objects.yaml"), objects);
    if let Ok(events) = cluster
        .kubectl
        .run(&["get", "events.events.k8s.io", "--namespace", namespace, "-o", "wide"])
    {
        let _ = fs::write(folder.join("events.txt"), events);
    }
    if cluster.level.has_nodes() {
        pod_logs(cluster, namespace, folder);
    }
    let account = format!("system:serviceaccount:{namespace}:");
    if let Ok(events) = context.audit(|event| event.namespace() == namespace || event.user().starts_with(&account)) {
        let lines: Vec<String> = events.iter().map(Event::line).collect();
        let _ = fs::write(folder.join("audit.jsonl"), lines.join("\n"));
    }
    // Credentials are of no use to a reader and do not belong into an archive of results.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "kubeconfig")
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn pod_logs(cluster: &Cluster, namespace: &str, folder: &Path) {
    let Ok(names) = cluster
        .kubectl
        .run(&["get", "pods", "--namespace", namespace, "-o", "name"])
    else {
        return;
    };
    for pod in names.lines() {
        if let Ok(text) = cluster
            .kubectl
            .run(&["logs", pod, "--namespace", namespace, "--all-containers", "--prefix"])
        {
            let _ = fs::write(folder.join(format!("{}.log", pod.trim_start_matches("pod/"))), text);
        }
    }
}
