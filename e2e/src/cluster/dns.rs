//! DNS of a cluster: `CoreDNS` as a plain process in the control plane's namespace, known to pods as the Service `kube-dns`.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::control_plane::PATIENCE;
use super::daemons::Daemons;
use super::kubectl::Kubectl;
use super::level::Level;
use super::network;
use crate::tools::Tools;

/// Objects every cluster starts with: rights of `CoreDNS` and kube-proxy, and the DNS Service.
const OBJECTS: &str = include_str!("base.yaml");

/// Makes the objects, starts `CoreDNS`, and writes the `resolv.conf` of local processes.
pub(super) fn start(level: Level, tools: &Tools, daemons: &mut Daemons, kubectl: &Kubectl) -> Result<()> {
    kubectl.apply(OBJECTS)?;
    let corefile = level.folder().join("Corefile");
    fs::write(&corefile, self::corefile(level)).with_context(|| format!("writing {}", corefile.display()))?;
    let resolv_conf = format!(
        "nameserver {}\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n",
        network::CONTROL_PLANE
    );
    fs::write(level.resolv_conf(), resolv_conf)
        .with_context(|| format!("writing {}", level.resolv_conf().display()))?;
    daemons.start(
        "coredns",
        &level.netns(),
        &tools.path("coredns"),
        &[format!("-conf={}", corefile.display())],
    )
}

/// Waits until it answers.
pub(super) fn wait(level: Level, daemons: &Daemons) -> Result<()> {
    let address = SocketAddr::from(([172, 30, 0, 1], 53));
    let netns = level.netns();
    daemons
        .wait_for("that DNS answers", PATIENCE, Duration::from_millis(50), || {
            netns.run(|| Ok(TcpStream::connect(address)?)).ok()
        })
        .map(drop)
}

/// Short lifetimes: scenarios look up names right after the objects behind them change. Names of the world outside do not exist.
fn corefile(level: Level) -> String {
    format!(
        ".:53 {{\n  errors\n  ready 127.0.0.1:8181\n  kubernetes cluster.local in-addr.arpa {{\n    kubeconfig {}\n    pods insecure\n    ttl 1\n  }}\n  template ANY ANY . {{\n    rcode NXDOMAIN\n  }}\n  cache 1\n}}\n",
        level.pki().join("coredns.kubeconfig").display(),
    )
}
