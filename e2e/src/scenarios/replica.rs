//! A replica of the operator as a local process, with an account, a kubeconfig, ports and a log of its own.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::context::Context;
use super::rights;
use crate::clock::{Deadline, poll};
use crate::cluster::pki;
use crate::command::tail;
use crate::machine::spawn::InNamespace;

/// How a replica is to be started.
pub(crate) struct ReplicaBuilder<'a> {
    context: &'a Context,
    name: String,
    server: String,
    arguments: Option<Vec<String>>,
    more: Vec<String>,
    launcher: Vec<String>,
}

/// A replica that was started. It is killed when the value is dropped.
pub(crate) struct Replica {
    /// Its name: identity in the Lease and name of its service account.
    pub(crate) name: String,
    /// Where it serves metrics and probes.
    pub(crate) metrics: SocketAddr,
    log: PathBuf,
    child: Child,
}

// === impl ReplicaBuilder ===

impl<'a> ReplicaBuilder<'a> {
    pub(super) fn new(context: &'a Context, name: &str) -> Self {
        Self {
            context,
            name: name.to_owned(),
            server: pki::SERVER.to_owned(),
            arguments: None,
            more: Vec::new(),
            launcher: Vec::new(),
        }
    }

    /// Lets it reach the API server at another address, such as that of a proxy.
    pub(crate) fn server(mut self, server: &str) -> Self {
        server.clone_into(&mut self.server);
        self
    }

    /// Gives exactly these flags instead of those a replica needs.
    pub(crate) fn only_flags(mut self, flags: &[&str]) -> Self {
        self.arguments = Some(flags.iter().map(|flag| (*flag).to_owned()).collect());
        self
    }

    /// Gives one more flag.
    pub(crate) fn flag(mut self, flag: &str) -> Self {
        self.more.push(flag.to_owned());
        self
    }

    /// Lets another program start it, such as one that makes a process namespace.
    pub(crate) fn through(mut self, launcher: &[&str]) -> Self {
        self.launcher = launcher.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Starts it.
    pub(crate) fn start(self) -> Result<Replica> {
        let Self {
            context,
            name,
            server,
            arguments,
            more,
            launcher,
        } = self;
        let kubeconfig = context.folder.join(format!("{name}.kubeconfig"));
        pki::write(&kubeconfig, &rights::kubeconfig(context, &name, &server)?)?;
        let metrics = SocketAddr::from(([127, 0, 0, 1], context.cluster.free_port()?));
        let log = context.folder.join(format!("{name}.log"));
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("making {}", log.display()))?;
        let arguments = match arguments {
            Some(arguments) => arguments,
            None => needed_flags(context, metrics)?,
        };
        let netns = context.cluster.level.netns();
        let resolv_conf = context.cluster.level.resolv_conf();
        // Tied to the thread of its scenario: if this program is killed, no replica outlives it.
        let (program, between) = match launcher.split_first() {
            Some((program, words)) => (
                PathBuf::from(program),
                [words, &[context.operator.display().to_string()]].concat(),
            ),
            None => (context.operator.clone(), Vec::new()),
        };
        let child = InNamespace {
            netns: &netns,
            resolv_conf: Some(&resolv_conf),
            die_with_parent: true,
        }
        .command(&program)
        .args(between)
        .args(arguments)
        .args(more)
        .env_clear()
        .env("KUBECONFIG", &kubeconfig)
        .env("HOSTNAME", &name)
        .stdin(Stdio::null())
        .stdout(output.try_clone().context("sharing a log file")?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("starting {name}"))?;
        Ok(Replica {
            name,
            metrics,
            log,
            child,
        })
    }
}

/// The flags without which no replica starts, and a port of its own for each server.
fn needed_flags(context: &Context, metrics: SocketAddr) -> Result<Vec<String>> {
    Ok(vec![
        "--kubernetes-context=e2e".to_owned(),
        "--cloud-provider=local".to_owned(),
        "--region=local".to_owned(),
        "--console-image-tag-default=v26.43.0".to_owned(),
        format!("--metrics-listen-address={metrics}"),
        format!("--profiling-listen-address=127.0.0.1:{}", context.cluster.free_port()?),
        format!("--webhook-listen-address=127.0.0.1:{}", context.cluster.free_port()?),
    ])
}

// === impl Replica ===

impl Replica {
    /// Its process, or that of the program which started it.
    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal)
            .with_context(|| format!("sending {signal} to {}", self.name))
    }

    /// Waits until it has ended.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let status = poll(Deadline::after(limit), Duration::from_millis(10), || {
            self.child.try_wait()
        })
        .context("waiting for a replica")?;
        status.with_context(|| format!("{} had not ended after {} s", self.name, limit.as_secs()))
    }

    /// Fails if it has ended.
    pub(crate) fn must_run(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait().context("looking at a replica")? {
            bail!(
                "{} has ended ({status}); its last lines:\n{}",
                self.name,
                tail(&self.output()?, 8)
            );
        }
        Ok(())
    }

    /// Everything it has written so far.
    pub(crate) fn output(&self) -> Result<String> {
        fs::read_to_string(&self.log).with_context(|| format!("reading {}", self.log.display()))
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // A stopped process would not even notice.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
