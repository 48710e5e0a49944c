//! What runs on a node: first outside its namespaces, then as its first process, which starts the daemons and buries orphans.
//!
//! Two hidden subcommands of this program; nobody else calls them. A process cannot change its own pid namespace, only that of its children: hence two.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::wait::wait;

use super::Plan;
use crate::clock::{Deadline, poll};
use crate::machine::spawn::SELF;
use crate::machine::{cgroups, mounts};

/// The subcommand that makes the namespaces and waits outside.
pub(crate) const OUTSIDE: &str = "node-outside";

/// The subcommand that is the node's first process.
pub(crate) const INSIDE: &str = "node-inside";

/// Makes the namespaces, starts the first process in them, and stays until it ends.
pub(crate) fn outside(plan: &Path) -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID).context("making the node's namespaces")?;
    let status = Command::new(SELF)
        .arg(INSIDE)
        .arg(plan)
        .stdin(Stdio::null())
        .status()
        .context("starting the node's first process")?;
    bail!("the node's first process has ended: {status}")
}

/// The node's first process. It ends when one of the daemons does, and with it everything on the node.
pub(crate) fn inside(plan: &Path) -> Result<()> {
    // The process outside is the node's power supply.
    set_pdeathsig(Signal::SIGKILL).context("tying the node to its process outside")?;
    let plan: Plan = serde_json::from_str(&fs::read_to_string(plan).context("reading the node's plan")?)
        .context("decoding the node's plan")?;
    arrange_mounts(&plan)?;
    cgroups::join(&plan.node.system_cgroup(plan.level));
    let daemons = start_daemons(&plan)?;
    loop {
        match wait() {
            Ok(status) => {
                if let Some((name, _)) = daemons
                    .iter()
                    .find(|(_, child)| status.pid().is_some_and(|pid| pid.as_raw() == child.id().cast_signed()))
                {
                    bail!(
                        "{name} of node {} has ended: {status:?}; its log is {name}.log in the node's folder log",
                        plan.node.name()
                    );
                }
            }
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("waiting for the node's processes"),
        }
    }
}

/// All daemons use their default paths; behind these stand folders of the cluster's tmpfs, which the machine can look into.
fn arrange_mounts(plan: &Plan) -> Result<()> {
    mounts::set_propagation(MsFlags::MS_PRIVATE)?;
    mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), None::<&str>).context("mounting the node's /proc")?;
    let folder = plan.node.folder(plan.level);
    // Like any boot: what was in /run is gone, all else stays.
    let run = folder.join("run");
    if run.exists() {
        fs::remove_dir_all(&run).context("emptying the node's /run")?;
    }
    for (name, path) in [
        ("log", "/var/log"),
        ("kubelet", "/var/lib/kubelet"),
        ("cni", "/var/lib/cni"),
        ("containerd", "/var/lib/containerd"),
        ("run", "/run"),
    ] {
        let behind = folder.join(name);
        fs::create_dir_all(&behind).with_context(|| format!("making {}", behind.display()))?;
        fs::create_dir_all(path).with_context(|| format!("making {path}"))?;
        mounts::bind(&behind, Path::new(path))?;
    }
    for path in ["/run/lock", "/var/log/pods", "/var/log/containers"] {
        fs::create_dir_all(path).with_context(|| format!("making {path}"))?;
    }
    // Mounts made by the kubelet must be seen by containers that ask for it.
    mounts::set_propagation(MsFlags::MS_SHARED)
}

fn start_daemons(plan: &Plan) -> Result<Vec<(&'static str, Child)>> {
    let etc = plan.node.folder(plan.level).join("etc");
    let containerd = daemon(
        Path::new("containerd"),
        "containerd",
        &[
            format!("--config={}", etc.join("containerd.toml").display()),
            "--log-level=warn".to_owned(),
        ],
    )?;
    let socket = Path::new("/run/containerd/containerd.sock");
    poll(
        Deadline::after(Duration::from_mins(1)),
        Duration::from_millis(20),
        || anyhow::Ok(socket.exists().then_some(())),
    )?
    .context("containerd did not open its socket within 60 s; its log is containerd.log in the node's folder log")?;
    let name = plan.node.name();
    let kubelet = daemon(
        &plan.kubelet,
        "kubelet",
        &[
            format!("--config={}", etc.join("kubelet.yaml").display()),
            format!(
                "--kubeconfig={}",
                plan.level.pki().join(format!("{name}.kubeconfig")).display()
            ),
            format!("--hostname-override={name}"),
            format!("--node-ip={}", plan.node.address()),
            "--root-dir=/var/lib/kubelet".to_owned(),
            format!(
                "--node-labels=topology.kubernetes.io/zone={},workload=materialize-instance",
                plan.node.zone()
            ),
            "--v=2".to_owned(),
        ],
    )?;
    let kube_proxy = daemon(
        &plan.kube_proxy,
        "kube-proxy",
        &[
            format!("--config={}", etc.join("kube-proxy.yaml").display()),
            "--v=2".to_owned(),
        ],
    )?;
    Ok(vec![
        ("containerd", containerd),
        ("kubelet", kubelet),
        ("kube-proxy", kube_proxy),
    ])
}

/// Starts one; its output goes to the node's `/var/log`.
fn daemon(program: &Path, name: &str, arguments: &[String]) -> Result<Child> {
    let log = File::options()
        .create(true)
        .append(true)
        .open(format!("/var/log/{name}.log"))
        .with_context(|| format!("making the log of {name}"))?;
    let errors = log.try_clone().context("sharing a log file")?;
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn()
        .with_context(|| format!("starting {name}"))
}
