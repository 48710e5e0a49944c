//! Starting a process in a namespace: the program runs itself once more, changes what must be changed, and becomes the process.
//!
//! Doing it after the fork, as is usual, would need `unsafe`; and like this the pid that was started is the pid of the process itself.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Error, Result};
use clap::Args;
use nix::mount::MsFlags;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::setsid;

use super::mounts;
use super::netns::NetNamespace;

/// This program, also after its file was replaced by a newer build.
pub(crate) const SELF: &str = "/proc/self/exe";

/// Name of the hidden subcommand.
pub(crate) const SUBCOMMAND: &str = "spawn-in-namespace";

/// What the hidden subcommand is given.
#[derive(Args, Debug)]
pub(crate) struct Spawn {
    /// Network namespace to live in.
    #[arg(long)]
    netns: String,
    /// File to see as /etc/resolv.conf.
    #[arg(long)]
    resolv_conf: Option<PathBuf>,
    /// End when the thread that started it ends.
    #[arg(long)]
    die_with_parent: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// How a process is to be started.
#[derive(Debug)]
pub(crate) struct InNamespace<'a> {
    /// Where it lives.
    pub(crate) netns: &'a NetNamespace,
    /// What it sees as `/etc/resolv.conf`.
    pub(crate) resolv_conf: Option<&'a Path>,
    /// Whether it ends with the thread that starts it.
    pub(crate) die_with_parent: bool,
}

// === impl InNamespace ===

impl InNamespace<'_> {
    /// The command that starts a program so. More arguments, environment and output are added by the caller as usual.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(SELF);
        command.args([SUBCOMMAND, "--netns", self.netns.name()]);
        if let Some(file) = self.resolv_conf {
            command.arg("--resolv-conf").arg(file);
        }
        if self.die_with_parent {
            command.arg("--die-with-parent");
        }
        command.arg("--").arg(program);
        command
    }
}

// === impl Spawn ===

impl Spawn {
    /// Becomes the process; comes back only if that fails.
    pub(crate) fn become_it(self) -> Result<()> {
        NetNamespace::new(self.netns).enter()?;
        setsid().context("leaving the terminal")?;
        if let Some(file) = self.resolv_conf {
            unshare(CloneFlags::CLONE_NEWNS).context("making a mount namespace")?;
            mounts::set_propagation(MsFlags::MS_PRIVATE)?;
            mounts::bind(&file, Path::new("/etc/resolv.conf"))?;
        }
        if self.die_with_parent {
            set_pdeathsig(Signal::SIGKILL).context("tying the process to its parent")?;
        }
        let mut words = self.command.into_iter();
        let program = words.next().context("no program to start")?;
        let error = Command::new(&program).args(words).exec();
        Err(Error::from(error).context(format!("starting {}", program.display())))
    }
}
