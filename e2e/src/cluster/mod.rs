//! A local cluster: started, described, used and removed.
//!
//! `level` says what there is and where; `up` and `down` start and remove it; the files between are the parts. Scenarios see only [`Cluster`].

pub(crate) mod audit;
mod control_plane;
mod daemons;
mod dns;
pub(crate) mod down;
mod forward;
mod http;
pub(crate) mod kubectl;
pub(crate) mod level;
mod lock;
mod network;
pub(crate) mod node;
mod outage;
pub(crate) mod pki;
mod record;
pub(crate) mod status;
pub(crate) mod up;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::cache::Cache;
use crate::clock::Deadline;
use crate::command::run;
use crate::machine::requirements;
use crate::progress;
use crate::tools::Tools;
use kubectl::Kubectl;
pub(crate) use level::Level;
pub(crate) use lock::Lock;
use record::{Phase, Record};

/// A cluster that runs.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// Its level.
    pub(crate) level: Level,
    /// kubectl for it.
    pub(crate) kubectl: Kubectl,
    /// The operator's image on a cluster that is none of ours: it can pull it, and was not told by us.
    pub(crate) image: Option<String>,
}

// === impl Cluster ===

impl Cluster {
    fn new(level: Level, tools: &Tools) -> Self {
        Self {
            level,
            kubectl: Kubectl::new(level, tools),
            image: None,
        }
    }

    /// A cluster that exists already and that somebody else runs.
    pub(crate) fn given(kubeconfig: PathBuf, image: Option<String>, cache: &Cache) -> Result<Self> {
        if !kubeconfig.is_file() {
            bail!("--kubeconfig: there is no file {}", kubeconfig.display());
        }
        Ok(Self {
            level: Level::Cluster,
            kubectl: Kubectl::given(kubeconfig, &up::tools(cache)?),
            image,
        })
    }

    /// The cluster of a level that somebody has started.
    pub(crate) fn attach(level: Level, cache: &Cache) -> Result<Self> {
        requirements::root()?;
        if !Self::is_up(level) {
            bail!("there is no cluster of level {level}: run `cargo e2e up --level {level}` first");
        }
        Ok(Self::new(level, &up::tools(cache)?))
    }

    /// The level a command without `--level` means: the only one that is up, the cluster if both are.
    pub(crate) fn default_level() -> Level {
        [Level::Cluster, Level::Api]
            .into_iter()
            .find(|level| Self::is_up(*level))
            .unwrap_or(Level::Cluster)
    }

    /// Whether a level was started and not removed since.
    pub(crate) fn is_up(level: Level) -> bool {
        Record::read(level)
            .ok()
            .flatten()
            .is_some_and(|record| record.phase == Phase::Up)
    }

    /// Puts the images of an archive into the stores of all nodes that do not have them yet.
    pub(crate) fn load_images(&self, archive: &Path) -> Result<()> {
        if self.kubectl.is_given() {
            bail!(
                "images can't be loaded into a cluster given by --kubeconfig: push them, and name the operator's with --image"
            );
        }
        for node in self.level.nodes() {
            // The folder of an archive in the cache is named after its content.
            let key = archive
                .parent()
                .and_then(Path::file_name)
                .context("an image archive outside of the cache")?;
            let mark = node.folder(self.level).join("images").join(key);
            if mark.exists() {
                continue;
            }
            let mut ctr = Command::new("ctr");
            ctr.arg("--address").arg(node.containerd_socket(self.level));
            ctr.args(["--namespace", "k8s.io", "images", "import"]).arg(archive);
            run(&mut ctr, Deadline::after(Duration::from_mins(2)))
                .with_context(|| format!("loading {} into node {}", archive.display(), node.name()))?;
            fs::create_dir_all(mark.with_file_name(""))
                .and_then(|()| fs::write(&mark, ""))
                .context("noting a loaded image")?;
        }
        Ok(())
    }
}

/// Removes the given levels, those of them that exist, and says so.
pub(crate) fn remove(levels: &[Level]) -> Result<()> {
    requirements::root()?;
    let mut removed = false;
    let progress = progress::Progress::start();
    for level in levels.iter().copied() {
        let _lock = Lock::take(level)?;
        if down::is_there(level) {
            progress.step(&format!("removed the cluster of level {level}"), || down::down(level))?;
            removed = true;
        }
    }
    if !removed {
        progress::line("nothing to remove: no cluster is there");
    }
    Ok(())
}
