//! The network of a cluster: a namespace with a bridge for the control plane, one for each node, no way out of any of them.

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::level::Level;
use crate::clock::Deadline;
use crate::command::finish;
use crate::machine::netns::NetNamespace;
use crate::machine::sysctl;

/// The control plane's address on the bridge.
pub(crate) const CONTROL_PLANE: &str = "172.30.0.1";

/// The address of the Service `kubernetes`, the first of [`SERVICES`].
pub(crate) const KUBERNETES_SERVICE: &str = "10.96.0.1";

/// The address of the DNS Service.
pub(crate) const DNS_SERVICE: &str = "10.96.0.10";

/// Addresses of Services.
pub(crate) const SERVICES: &str = "10.96.0.0/16";

/// Addresses of all pods.
pub(crate) const PODS: &str = "10.244.0.0/16";

/// Makes the namespaces, the bridge, the cables and the routes.
pub(crate) fn create(level: Level) -> Result<()> {
    let control_plane = level.netns();
    control_plane.create()?;
    for node in level.nodes() {
        node.netns(level).create()?;
    }
    let mut lines = format!(
        "link set lo up\nlink add oe2e0 type bridge\naddr add {CONTROL_PLANE}/24 dev oe2e0\nlink set oe2e0 up\n"
    );
    for node in level.nodes() {
        let name = node.name();
        write!(
            lines,
            "link add v{name} type veth peer name eth0 netns {}\nlink set v{name} master oe2e0 up\n",
            node.netns(level).name()
        )?;
    }
    for node in level.nodes() {
        writeln!(lines, "route add {} via {}", node.pod_cidr(), node.address())?;
    }
    if !level.has_nodes() {
        // Without a kube-proxy: a local process that listens on a Service's port is reached by the Service's address.
        writeln!(lines, "route add local {SERVICES} dev lo")?;
    }
    configure(&control_plane, &lines)?;
    for node in level.nodes() {
        let mut lines = format!(
            "link set lo up\naddr add {}/24 dev eth0\nlink set eth0 up\n",
            node.address()
        );
        for other in level.nodes().iter().filter(|other| *other != node) {
            writeln!(lines, "route add {} via {}", other.pod_cidr(), other.address())?;
        }
        configure(&node.netns(level), &lines)?;
    }
    Ok(())
}

/// Hands a list of commands to one `ip` inside a namespace, and switches forwarding on there.
fn configure(netns: &NetNamespace, lines: &str) -> Result<()> {
    netns
        .run(|| {
            sysctl::set("net/ipv4/ip_forward", "1")?;
            let finished = finish(
                Command::new("ip").args(["-batch", "-"]),
                Some(lines),
                Deadline::after(Duration::from_secs(30)),
            )?;
            if !finished.status.success() {
                bail!(
                    "configuring the network namespace {} failed: {}",
                    netns.name(),
                    finished.stderr.trim()
                );
            }
            Ok(())
        })
        .context("is iproute2 installed, and does the kernel have bridges and veth pairs?")
}
