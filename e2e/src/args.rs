//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::bench;
use crate::cluster::Level;
use crate::cluster::node::boot;
use crate::machine::spawn::{SUBCOMMAND, Spawn};
use crate::scenarios::run::Selection;
use crate::verify::Options;

/// A real Kubernetes on this machine, and the scenarios that prove orchestratord on it.
#[derive(Debug, Parser)]
#[command(name = "cargo e2e", version, max_term_width = 120)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a cluster; does nothing if it runs already.
    Up {
        /// How much of a cluster.
        #[arg(long, value_enum, default_value = "cluster")]
        level: Level,
    },
    /// Remove clusters with everything they have left on the machine, also after a crash.
    Down {
        /// Only this one.
        #[arg(long, value_enum)]
        level: Option<Level>,
    },
    /// Show what runs, and how to use it.
    Status,
    /// Run kubectl in a cluster.
    Kubectl {
        /// Which cluster; the one that is up, `cluster` if both are.
        #[arg(long, value_enum)]
        level: Option<Level>,
        /// kubectl's own arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Show the logs of a cluster's components.
    Logs {
        /// Which cluster; the one that is up, `cluster` if both are.
        #[arg(long, value_enum)]
        level: Option<Level>,
        /// A component (`kube-apiserver`, `n1/kubelet`); the list of all if missing.
        component: Option<String>,
        /// Go on with what is written later.
        #[arg(short, long)]
        follow: bool,
    },
    /// Run scenarios on clusters, which are started if need be and left running.
    Test(Selection),
    /// Show an environment's rollouts and the operator's fail-over on a cluster with two nodes, which is left running.
    Demo,
    /// Measure what clusters or elections cost on this machine.
    Bench(bench::Options),
    /// Check everything that must be true before a change lands.
    Verify(Options),
    /// Forward a port of this machine's loopback into a cluster.
    Forward {
        /// Which cluster; the one that is up, `cluster` if both are.
        #[arg(long, value_enum)]
        level: Option<Level>,
        /// The port on 127.0.0.1.
        port: u16,
        /// ADDRESS:PORT as seen from the control plane, or SERVICE.NAMESPACE:PORT with the port of the pods behind.
        target: String,
    },
    /// Start a process in a namespace.
    #[command(name = SUBCOMMAND, hide = true)]
    Spawn(Spawn),
    /// A node's process outside.
    #[command(name = boot::OUTSIDE, hide = true)]
    NodeOutside {
        /// The node's plan.
        plan: PathBuf,
    },
    /// A node's first process.
    #[command(name = boot::INSIDE, hide = true)]
    NodeInside {
        /// The node's plan.
        plan: PathBuf,
    },
}
