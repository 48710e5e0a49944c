//! Our own kubectl, run where the API server can be reached.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, bail};
use serde_json::Value;

use super::level::Level;
use crate::clock::Deadline;
use crate::command::{Finished, finish};
use crate::tools::Tools;

/// How long a single call may take.
const LIMIT: Duration = Duration::from_mins(1);

/// kubectl as the cluster's administrator.
#[derive(Clone, Debug)]
pub(crate) struct Kubectl {
    level: Level,
    /// The kubeconfig of a cluster that is none of ours, reached from where this program runs.
    given: Option<PathBuf>,
    tools: Tools,
}

// === impl Kubectl ===

impl Kubectl {
    /// That of a level.
    pub(crate) fn new(level: Level, tools: &Tools) -> Self {
        Self {
            level,
            given: None,
            tools: tools.clone(),
        }
    }

    /// That of a cluster that exists already.
    pub(crate) fn given(kubeconfig: PathBuf, tools: &Tools) -> Self {
        Self {
            level: Level::Cluster,
            given: Some(kubeconfig),
            tools: tools.clone(),
        }
    }

    /// Whether the cluster is one that somebody else runs.
    pub(crate) fn is_given(&self) -> bool {
        self.given.is_some()
    }

    /// Runs `work` where the API server can be reached.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        if self.is_given() {
            work()
        } else {
            self.level.netns().run(work)
        }
    }

    /// The command without arguments, to be started inside the cluster's network namespace.
    pub(crate) fn command(&self) -> Command {
        self.prepare("kubectl")
    }

    /// helm, likewise.
    pub(crate) fn helm(&self) -> Command {
        self.prepare("helm")
    }

    /// Becomes kubectl, for a person at a terminal.
    pub(crate) fn become_it(&self, arguments: &[OsString]) -> Result<()> {
        self.level.netns().enter()?;
        Err(Error::from(self.command().args(arguments).exec()).context("starting kubectl"))
    }

    fn prepare(&self, program: &str) -> Command {
        let mut command = self.tools.command(program);
        if let Some(kubeconfig) = &self.given {
            command.env("KUBECONFIG", kubeconfig);
            return command;
        }
        command
            .env("KUBECONFIG", self.level.kubeconfig())
            .env("KUBECACHEDIR", self.level.folder().join("kubectl-cache"));
        command
    }

    /// Its standard output.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        self.run_until(arguments, None, Deadline::after(LIMIT))
    }

    /// Its standard output, with something to read and a deadline.
    pub(crate) fn run_until(&self, arguments: &[&str], input: Option<&str>, deadline: Deadline) -> Result<String> {
        let Finished { status, stdout, stderr } =
            self.within(|| finish(self.command().args(arguments), input, deadline))?;
        if !status.success() {
            bail!("`kubectl {}` failed: {}", arguments.join(" "), stderr.trim());
        }
        Ok(stdout)
    }

    /// `get … -o json`, decoded.
    pub(crate) fn json(&self, arguments: &[&str]) -> Result<Value> {
        let mut all = arguments.to_vec();
        all.extend(["-o", "json"]);
        serde_json::from_str(&self.run(&all)?)
            .with_context(|| format!("decoding the output of `kubectl {}`", all.join(" ")))
    }

    /// `apply -f -`; server-side, because that works for objects of any size.
    pub(crate) fn apply(&self, manifests: &str) -> Result<()> {
        self.run_until(
            &["apply", "--server-side", "--force-conflicts", "-f", "-"],
            Some(manifests),
            Deadline::after(LIMIT),
        )
        .map(drop)
    }
}
