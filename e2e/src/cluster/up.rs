//! Starting a cluster, step by step; each step is recorded before it is taken.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::control_plane::PATIENCE;
use super::daemons::Daemons;
use super::down;
use super::kubectl::Kubectl;
use super::level::Level;
use super::lock::Lock;
use super::record::{Phase, Record};
use super::{Cluster, control_plane, dns, network, node, pki};
use crate::cache::{Cache, Key};
use crate::images;
use crate::machine::{mounts, packages, requirements, sysctl};
use crate::progress::{self, Progress};
use crate::tools::{Module, Tools};

/// Counts up whenever clusters are started in another way with the same programs.
const RECIPE: &[u8] = b"1";

/// What the tmpfs of a cluster may hold at most, in MiB: 160 in use after a start, images and logs besides.
const TMPFS: u64 = 4096;

/// The modules a level runs; helm comes with both because scenarios install the chart's rights with it.
const MODULES: [Module; 3] = [Module::Kubernetes, Module::CoreDns, Module::Helm];

/// The programs of a cluster, built if need be.
pub(crate) fn tools(cache: &Cache) -> Result<Tools> {
    Tools::ensure(cache, &MODULES)
}

/// Starts a level, or finds that it runs already.
pub(crate) fn up(level: Level, cache: &Cache) -> Result<Cluster> {
    requirements::check(level.has_nodes())?;
    let progress = Progress::start();
    packages::install_missing(level.has_nodes())?;
    let tools = tools(cache)?;
    let version = version(&tools);
    let _lock = Lock::take(level)?;
    if let Some(record) = Record::read(level)? {
        if record.phase == Phase::Up && record.version != version {
            bail!(
                "a cluster of level {level} with another version of its programs is running: run `cargo e2e down --level {level}` first, then this again"
            );
        }
        let cluster = Cluster::new(level, &tools);
        match Daemons::new(level, record.clone()).check() {
            Ok(()) if record.phase == Phase::Up && cluster.kubectl.run(&["get", "--raw", "/readyz"]).is_ok() => {
                progress::line(&format!(
                    "{:>8}           the cluster of level {level} is up already",
                    progress::seconds(progress.elapsed())
                ));
                return Ok(cluster);
            }
            Ok(()) => progress::line(&format!(
                "         the cluster of level {level} is only half there: starting it anew"
            )),
            Err(error) => progress::line(&format!("         starting anew: {error:#}")),
        }
    }
    if down::is_there(level) {
        progress.step("removed what was left of an earlier start", || down::down(level))?;
    }
    start(level, cache, &tools, version, &progress)
}

fn start(level: Level, cache: &Cache, tools: &Tools, version: String, progress: &Progress) -> Result<Cluster> {
    let mut record = Record::new(version);
    if level.has_nodes() {
        record.sysctls = sysctl::save();
    }
    record.write(level)?;
    progress.step("folders and certificates", || {
        fs::create_dir_all(level.folder()).with_context(|| format!("making {}", level.folder().display()))?;
        mounts::mount_tmpfs(&level.folder(), TMPFS)?;
        fs::create_dir_all(level.logs()).with_context(|| format!("making {}", level.logs().display()))?;
        pki::create(level)
    })?;
    progress.step("network", || network::create(level))?;
    let mut daemons = Daemons::new(level, record);
    let cluster = Cluster::new(level, tools);
    let kubectl = &cluster.kubectl;
    progress.step("etcd and API server ready", || {
        control_plane::start_api(level, tools, &mut daemons, kubectl)
    })?;
    progress.step("controllers, nodes and DNS started", || {
        control_plane::start_controllers(level, tools, &mut daemons)?;
        for node in level.nodes() {
            node::start(level, *node, tools, &mut daemons)?;
        }
        dns::start(level, tools, &mut daemons, kubectl)
    })?;
    if level.has_nodes() {
        progress.step("pause image in the nodes", || {
            let archive = images::pause(cache)?;
            for node in level.nodes() {
                let socket = node.containerd_socket(level);
                daemons.wait_for("that containerd runs", PATIENCE, Duration::from_millis(20), || {
                    socket.exists().then_some(())
                })?;
            }
            cluster.load_images(&archive)
        })?;
        progress.step("nodes ready", || {
            daemons.wait_for("that all nodes are ready", PATIENCE, Duration::from_millis(200), || {
                nodes_ready(kubectl, level)
            })
        })?;
    }
    progress.step("DNS and service accounts", || {
        dns::wait(level, &daemons)?;
        // Made by the controllers: pods could not be created before.
        daemons.wait_for(
            "that service accounts are made",
            PATIENCE,
            Duration::from_millis(100),
            || kubectl.run(&["get", "serviceaccount", "default"]).ok(),
        )
    })?;
    daemons.check()?;
    daemons.record().phase = Phase::Up;
    daemons.record().write(level)?;
    Ok(cluster)
}

/// Ready, and free of the taint that the node controller removes a moment later: until then the scheduler would put everything on one node.
fn nodes_ready(kubectl: &Kubectl, level: Level) -> Option<()> {
    let nodes = kubectl.json(&["get", "nodes"]).ok()?;
    let nodes = nodes["items"].as_array()?;
    (nodes.len() == level.nodes().len() && nodes.iter().all(usable)).then_some(())
}

fn usable(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions.is_some_and(|all| {
        all.iter()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    });
    ready && node["spec"]["taints"].is_null()
}

/// Names what a cluster is made of.
pub(super) fn version(tools: &Tools) -> String {
    let mut key = Key::default();
    key.add(RECIPE).add(tools.key().as_bytes());
    key.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_ready_node_with_a_taint_is_not_usable_yet() {
        let mut node = json!({ "spec": { "taints": [{ "key": "node.kubernetes.io/not-ready" }] }, "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
        assert!(!usable(&node));
        node["spec"] = json!({});
        assert!(usable(&node));
        node["status"]["conditions"][0]["status"] = json!("Unknown");
        assert!(!usable(&node));
    }
}
