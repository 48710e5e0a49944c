//! Which programs come from which Go module, and with which flags they are built.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::cache::{Key, repository};

/// The version of Kubernetes, as in `e2e/tools/kubernetes/go.mod`; it is stamped into the programs because `helm` and `kubectl` compare it.
pub(crate) const KUBERNETES: &str = "v1.34.4";

/// The version of helm, as in `e2e/tools/helm/go.mod`.
const HELM: &str = "v3.21.3";

/// One `go.mod` below `e2e/tools/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Module {
    /// Kubernetes and etcd.
    Kubernetes,
    /// `CoreDNS` with the few plugins a cluster needs.
    CoreDns,
    /// The peer of the operator in the benchmark of elections.
    LeaderElection,
    /// helm and helm-unittest, which need newer Kubernetes libraries than the cluster.
    Helm,
}

// === impl Module ===

impl Module {
    /// Its folder's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::CoreDns => "coredns",
            Self::LeaderElection => "leaderelection",
            Self::Helm => "helm",
        }
    }

    /// Its folder.
    pub(crate) fn source(self) -> PathBuf {
        repository().join("e2e/tools").join(self.name())
    }

    /// Go packages to build, each with the name its program gets (`go build` would call etcd `server`).
    pub(super) fn packages(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Kubernetes => &[
                ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
                (
                    "k8s.io/kubernetes/cmd/kube-controller-manager",
                    "kube-controller-manager",
                ),
                ("k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"),
                ("k8s.io/kubernetes/cmd/kubelet", "kubelet"),
                ("k8s.io/kubernetes/cmd/kube-proxy", "kube-proxy"),
                ("k8s.io/kubernetes/cmd/kubectl", "kubectl"),
                ("go.etcd.io/etcd/server/v3", "etcd"),
            ],
            Self::CoreDns => &[(".", "coredns")],
            Self::LeaderElection => &[(".", "leaderelection")],
            Self::Helm => &[
                ("helm.sh/helm/v3/cmd/helm", "helm"),
                (
                    "github.com/helm-unittest/helm-unittest/cmd/helm-unittest",
                    "helm-unittest",
                ),
            ],
        }
    }

    /// The names of its programs.
    pub(crate) fn programs(self) -> impl Iterator<Item = &'static str> {
        self.packages().iter().map(|(_, program)| *program)
    }

    /// How long a first build takes on two cores, for the person who waits.
    pub(super) fn first_build(self) -> &'static str {
        match self {
            Self::Kubernetes => "5 to 12 minutes",
            Self::CoreDns | Self::LeaderElection | Self::Helm => "1 to 4 minutes",
        }
    }

    /// Flags of the Go linker.
    pub(super) fn linker_flags(self) -> String {
        let mut parts = KUBERNETES.trim_start_matches('v').split('.');
        let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        match self {
            Self::Kubernetes => {
                let package = "k8s.io/component-base/version";
                format!(
                    "-s -w -X {package}.gitVersion={KUBERNETES} -X {package}.gitMajor={major} -X {package}.gitMinor={minor} \
                     -X {package}.gitTreeState=clean -X {package}.gitCommit=0000000000000000000000000000000000000000 \
                     -X {package}.buildDate=2026-01-01T00:00:00Z"
                )
            }
            Self::CoreDns | Self::LeaderElection => "-s -w".to_owned(),
            // Without a cluster helm believes in Kubernetes 1.20 unless it is told another version.
            Self::Helm => {
                let helm = "helm.sh/helm/v3";
                let versions: String = ["pkg/chartutil", "pkg/lint/rules"]
                    .map(|package| {
                        format!(
                            " -X {helm}/{package}.k8sVersionMajor={major} -X {helm}/{package}.k8sVersionMinor={minor}"
                        )
                    })
                    .concat();
                format!("-s -w -X {helm}/internal/version.version={HELM}{versions}")
            }
        }
    }

    /// Names everything its programs are made from.
    pub(super) fn key(self) -> Result<String> {
        let source = self.source();
        let mut files: Vec<PathBuf> = fs::read_dir(&source)
            .with_context(|| format!("reading {}", source.display()))?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        files.sort();
        let mut key = Key::default();
        for file in files {
            key.add(file.file_name().unwrap_or_default().as_encoded_bytes());
            key.add_file(&file)?;
        }
        for (package, program) in self.packages() {
            key.add(package.as_bytes()).add(program.as_bytes());
        }
        key.add(self.linker_flags().as_bytes())
            .add(std::env::consts::ARCH.as_bytes());
        Ok(key.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(module: Module, path: &str) -> Option<String> {
        let text = fs::read_to_string(module.source().join("go.mod")).unwrap();
        text.lines().find_map(|line| {
            line.trim()
                .trim_start_matches("require ")
                .strip_prefix(path)
                .map(str::trim)
                .map(|rest| rest.split(' ').next().unwrap().to_owned())
        })
    }

    #[test]
    fn stamped_versions_are_those_of_the_modules() {
        assert_eq!(
            requirement(Module::Kubernetes, "k8s.io/kubernetes ").as_deref(),
            Some(KUBERNETES)
        );
        assert_eq!(requirement(Module::Helm, "helm.sh/helm/v3 ").as_deref(), Some(HELM));
    }

    #[test]
    fn no_two_modules_have_a_program_of_the_same_name() {
        let all = [
            Module::Kubernetes,
            Module::CoreDns,
            Module::LeaderElection,
            Module::Helm,
        ];
        let mut names: Vec<_> = all.into_iter().flat_map(Module::programs).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
