//! The two levels, and where each keeps its things. Both can be up at once: they share nothing.

use std::env;
use std::fmt;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::machine::PREFIX;
use crate::machine::netns::NetNamespace;

/// Everything the clusters keep on the machine, apart from the cache.
const BASE: &str = "/var/lib/orchestratord-e2e";

/// The variable that names a second set of clusters, which shares nothing with the first: two people, or two pieces of work, on one machine.
const INSTANCE: &str = "ORCHESTRATORD_E2E_INSTANCE";

/// Checks the name of the set of clusters, before anything else is done with it.
///
/// # Errors
/// When the variable holds something else than one to six lower-case letters or digits: names of network interfaces and namespaces are made from it.
pub(crate) fn check_instance() -> Result<()> {
    let name = env::var_os(INSTANCE).unwrap_or_default();
    let name = name.to_string_lossy();
    ensure!(
        name.is_empty() || valid(&name),
        "{INSTANCE} is {name:?}: expected one to six lower-case letters or digits, or nothing"
    );
    Ok(())
}

fn valid(instance: &str) -> bool {
    (1..=6).contains(&instance.len())
        && instance
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// The name of this set of clusters; the usual one has none.
pub(crate) fn instance() -> Option<String> {
    env::var(INSTANCE).ok().filter(|name| valid(name))
}

/// The folder of this set of clusters.
pub(crate) fn base() -> PathBuf {
    instance().map_or_else(|| PathBuf::from(BASE), |name| PathBuf::from(format!("{BASE}-{name}")))
}

/// How much of a cluster there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// etcd, kube-apiserver, kube-controller-manager and DNS; no nodes. What runs, runs as local processes.
    Api,
    /// The same with a scheduler and two real nodes.
    Cluster,
}

/// A node of the level `cluster`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Node {
    /// Counts from 1.
    pub(crate) index: u8,
}

// === impl Level ===

impl Level {
    /// Both, in the order in which they are started.
    pub(crate) const ALL: [Self; 2] = [Self::Api, Self::Cluster];

    /// Its name, as on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Cluster => "cluster",
        }
    }

    /// Its nodes.
    pub(crate) fn nodes(self) -> &'static [Node] {
        match self {
            Self::Api => &[],
            Self::Cluster => &[Node { index: 1 }, Node { index: 2 }],
        }
    }

    /// Whether it runs pods.
    pub(crate) fn has_nodes(self) -> bool {
        !self.nodes().is_empty()
    }

    /// What the names of its namespaces and control groups begin with.
    pub(crate) fn prefix(self) -> String {
        match instance() {
            None => format!("{PREFIX}{}", self.name()),
            Some(instance) => format!("{PREFIX}{instance}.{}", self.name()),
        }
    }

    /// The folder (a tmpfs) with everything it writes: etcd's data, logs, certificates, what the nodes hold.
    pub(crate) fn folder(self) -> PathBuf {
        base().join(self.name())
    }

    /// The record of what was started, which must survive the tmpfs.
    pub(crate) fn record(self) -> PathBuf {
        base().join(format!("{}.json", self.name()))
    }

    /// Certificates, keys and kubeconfigs.
    pub(crate) fn pki(self) -> PathBuf {
        self.folder().join("pki")
    }

    /// The kubeconfig of the cluster's administrator; it works inside [`Level::netns`].
    pub(crate) fn kubeconfig(self) -> PathBuf {
        self.pki().join("admin.kubeconfig")
    }

    /// What the components write.
    pub(crate) fn logs(self) -> PathBuf {
        self.folder().join("log")
    }

    /// The API server's audit log, one JSON event a line.
    pub(crate) fn audit_log(self) -> PathBuf {
        self.logs().join("audit.log")
    }

    /// What local processes see as `/etc/resolv.conf`.
    pub(crate) fn resolv_conf(self) -> PathBuf {
        self.folder().join("resolv.conf")
    }

    /// The namespace of the control plane, from which everything can be reached.
    pub(crate) fn netns(self) -> NetNamespace {
        NetNamespace::new(self.prefix())
    }

    /// All its namespaces, those of the nodes too, also when they are left from a run that was killed.
    pub(crate) fn existing_namespaces(self) -> Vec<NetNamespace> {
        let own = self.prefix();
        let nodes = format!("{own}-");
        NetNamespace::with_prefix(&own)
            .into_iter()
            .filter(|found| found.name() == own || found.name().starts_with(&nodes))
            .collect()
    }
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

// === impl Node ===

impl Node {
    /// `n1`, `n2`.
    pub(crate) fn name(self) -> String {
        format!("n{}", self.index)
    }

    /// Its address on the bridge.
    pub(crate) fn address(self) -> String {
        format!("172.30.0.{}", 10 + self.index)
    }

    /// The addresses of its pods.
    pub(crate) fn pod_cidr(self) -> String {
        format!("10.244.{}.0/24", self.index)
    }

    /// The zone it says it stands in, so that spreading over zones can be seen.
    pub(crate) fn zone(self) -> String {
        format!("zone-{}", self.index)
    }

    /// Its network namespace.
    pub(crate) fn netns(self, level: Level) -> NetNamespace {
        NetNamespace::new(format!("{}-{}", level.prefix(), self.name()))
    }

    /// What it holds: the folders behind its `/run`, `/var/log`, `/var/lib/kubelet` and so on.
    pub(crate) fn folder(self, level: Level) -> PathBuf {
        level.folder().join(self.name())
    }

    /// The control group below which its kubelet makes those of the pods.
    pub(crate) fn cgroup(self, level: Level) -> String {
        format!("{}/{}", level.prefix(), self.name())
    }

    /// The control group of its own daemons.
    pub(crate) fn system_cgroup(self, level: Level) -> String {
        format!("{}/{}-system", level.prefix(), self.name())
    }

    /// containerd's socket as seen from the machine.
    pub(crate) fn containerd_socket(self, level: Level) -> PathBuf {
        self.folder(level).join("run/containerd/containerd.sock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_share_no_folder_and_no_prefix_of_the_other() {
        assert_ne!(Level::Api.folder(), Level::Cluster.folder());
        assert!(!Level::Api.prefix().starts_with(&Level::Cluster.prefix()));
        assert!(!Level::Cluster.prefix().starts_with(&Level::Api.prefix()));
    }

    #[test]
    fn the_name_of_a_set_of_clusters_fits_into_names_of_namespaces() {
        assert!(valid("b") && valid("ci2") && valid("abcdef"));
        assert!(!valid("") && !valid("abcdefg") && !valid("a-b") && !valid("A") && !valid("../x"));
    }

    #[test]
    fn nodes_have_addresses_of_their_own() {
        let [first, second] = Level::Cluster.nodes() else {
            panic!("two nodes")
        };
        assert_ne!(first.address(), second.address());
        assert_ne!(first.pod_cidr(), second.pod_cidr());
    }
}
