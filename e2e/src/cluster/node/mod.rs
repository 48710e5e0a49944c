//! One node: a kubelet, a containerd and a kube-proxy with namespaces of their own for network, mounts and processes.
//!
//! This file starts nodes from outside; `boot` is what then runs inside, as the node's first process; `config` are the files it reads.

pub(crate) mod boot;
mod config;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::daemons::Daemons;
use super::level::{Level, Node};
use crate::machine::cgroups;
use crate::machine::spawn::SELF;
use crate::tools::Tools;

/// What the node's first process must know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    level: Level,
    node: Node,
    kubelet: PathBuf,
    kube_proxy: PathBuf,
}

/// Starts a node. Its daemon is the process outside; killing that is a power cut: everything on the node ends at once.
pub(crate) fn start(level: Level, node: Node, tools: &Tools, daemons: &mut Daemons) -> Result<()> {
    for group in [node.cgroup(level), node.system_cgroup(level)] {
        cgroups::create(&group)?;
    }
    let plan = Plan {
        level,
        node,
        kubelet: tools.path("kubelet"),
        kube_proxy: tools.path("kube-proxy"),
    };
    let folder = node.folder(level);
    let file = folder.join("etc/plan.json");
    config::write(&plan)?;
    fs::write(&file, serde_json::to_string(&plan).context("encoding a node's plan")?)
        .with_context(|| format!("writing {}", file.display()))?;
    let arguments = [boot::OUTSIDE.to_owned(), file.display().to_string()];
    daemons.start(&node.name(), &node.netns(level), SELF.as_ref(), &arguments)
}
