//! What a failed scenario leaves for whoever looks into it: `target/e2e/SCENARIO/`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::context::Context;
use crate::cache::repository;
use crate::cluster::audit::Event;
use crate::cluster::level::instance;
use crate::installation;

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

/// The folder of all scenarios; one for each set of clusters.
pub(super) fn root() -> PathBuf {
    let folder = instance().map_or_else(|| "e2e".to_owned(), |name| format!("e2e-{name}"));
    repository().join("target").join(folder)
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
    let folder = &context.folder;
    let mut namespaces = vec![context.namespace.as_str()];
    if context.cluster.level.has_nodes() {
        namespaces.push(installation::NAMESPACE);
    }
    let mut objects = String::new();
    let mut events = String::new();
    for namespace in &namespaces {
        let kubectl = |arguments: &[&str]| {
            let mut all = arguments.to_vec();
            all.extend(["--namespace", *namespace]);
            context.cluster.kubectl.run(&all).unwrap_or_default()
        };
        for kind in KINDS {
            let _ = write!(
                objects,
                "# {kind} in {namespace}\n{}---\n",
                kubectl(&["get", kind, "-o", "yaml", "--ignore-not-found"])
            );
        }
        events.push_str(&kubectl(&["get", "events.events.k8s.io", "-o", "wide"]));
        if context.cluster.level.has_nodes() {
            for pod in kubectl(&["get", "pods", "-o", "name"]).lines() {
                let name = format!("{}.log", pod.trim_start_matches("pod/"));
                let _ = fs::write(
                    folder.join(name),
                    kubectl(&["logs", pod, "--all-containers", "--prefix"]),
                );
            }
        }
    }
    let _ = fs::write(folder.join("objects.yaml"), objects);
    let _ = fs::write(folder.join("events.txt"), events);
    let concerns = |event: &Event| {
        let account = event
            .user()
            .strip_prefix("system:serviceaccount:")
            .and_then(|rest| rest.split(':').next());
        namespaces
            .iter()
            .any(|namespace| event.namespace() == *namespace || account == Some(*namespace))
    };
    if let Ok(events) = context.audit(concerns) {
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
