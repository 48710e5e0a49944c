//! Network namespaces under `/run/netns`, where `ip netns` shows them.
//!
//! As `ip netns` does it, that folder is made a mount point first: were it left to the next `ip netns add` of somebody else, the mount that makes
//! would hide ours. It is undone when the last namespace goes, if it was done here.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context as _, Result, bail};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use super::process::{self, Identity};

/// Where `ip netns` looks for them.
const DIRECTORY: &str = "/run/netns";

/// Exists while [`DIRECTORY`] is a mount point because of this program.
const MARK: &str = "/run/orchestratord-e2e.netns";

/// A named network namespace; the value is only the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetNamespace {
    name: String,
}

// === impl NetNamespace ===

impl NetNamespace {
    /// The namespace of this name, which need not exist.
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// All whose names begin with `prefix`, also half-made ones.
    pub(crate) fn with_prefix(prefix: &str) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(DIRECTORY) else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with(prefix))
            .map(Self::new)
            .collect()
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The file that keeps it alive.
    pub(crate) fn path(&self) -> PathBuf {
        Path::new(DIRECTORY).join(&self.name)
    }

    /// Its inode; `None` if it does not exist.
    pub(crate) fn inode(&self) -> Option<u64> {
        let own = fs::metadata("/proc/self/ns/net").ok()?;
        let this = fs::metadata(self.path()).ok()?;
        (this.dev() == own.dev()).then(|| this.ino())
    }

    /// Makes it. A file left by a run that was killed between the two steps is taken over.
    pub(crate) fn create(&self) -> Result<()> {
        if self.inode().is_some() {
            bail!(
                "the network namespace {} exists already: run `cargo e2e down`",
                self.name
            );
        }
        prepare_directory()?;
        File::create(self.path()).with_context(|| format!("making {}", self.path().display()))?;
        on_own_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).context("making a network namespace")?;
            mount(
                Some("/proc/thread-self/ns/net"),
                &self.path(),
                None::<&str>,
                MsFlags::MS_BIND,
                None::<&str>,
            )
            .with_context(|| format!("naming the network namespace {}", self.name))
        })
    }

    /// Takes the calling thread into it. What the thread then starts or opens belongs there.
    pub(crate) fn enter(&self) -> Result<()> {
        let file = File::open(self.path())
            .with_context(|| format!("the network namespace {} does not exist: run `cargo e2e up`", self.name))?;
        setns(file, CloneFlags::CLONE_NEWNET).with_context(|| format!("entering the network namespace {}", self.name))
    }

    /// Runs something inside, on a thread of its own. Processes it starts stay inside; they must not tie their life to the thread.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        on_own_thread(|| {
            self.enter()?;
            work()
        })
    }

    /// The processes that live in it.
    pub(crate) fn members(&self) -> Vec<Identity> {
        let Some(inode) = self.inode() else { return Vec::new() };
        process::all()
            .into_iter()
            .filter(|process| process::net_namespace(process.pid()) == Some(inode))
            .collect()
    }

    /// Removes the name; the namespace and its interfaces end with the last process in it.
    pub(crate) fn delete(&self) -> Result<()> {
        if self.inode().is_some() {
            umount2(&self.path(), MntFlags::MNT_DETACH)
                .with_context(|| format!("removing the network namespace {}", self.name))?;
        }
        if let Err(error) = fs::remove_file(self.path()) {
            if error.kind() != io::ErrorKind::ResourceBusy {
                return Err(error).with_context(|| format!("removing {}", self.path().display()));
            }
            self.delete_covered()?;
        }
        tidy_directory();
        Ok(())
    }

    /// Removes a name whose mount lies hidden under another mount of the folder. In a mount namespace where nothing is mounted there the file can be
    /// removed, and with the file goes the mount, wherever it is.
    fn delete_covered(&self) -> Result<()> {
        on_own_thread(|| {
            unshare(CloneFlags::CLONE_NEWNS).context("making a mount namespace")?;
            super::mounts::set_propagation(MsFlags::MS_PRIVATE)?;
            while umount2(DIRECTORY, MntFlags::MNT_DETACH).is_ok() {}
            while umount2(&self.path(), MntFlags::MNT_DETACH).is_ok() {}
            fs::remove_file(self.path()).with_context(|| format!("removing {}", self.path().display()))
        })
    }
}

/// Makes the folder and makes it a mount point, if it is none.
fn prepare_directory() -> Result<()> {
    fs::create_dir_all(DIRECTORY).context("making /run/netns")?;
    let directory = Path::new(DIRECTORY);
    if super::mounts::is_mount_point(directory) {
        return Ok(());
    }
    File::create(MARK).with_context(|| format!("making {MARK}"))?;
    super::mounts::bind(directory, directory)?;
    mount(None::<&str>, directory, None::<&str>, MsFlags::MS_SHARED, None::<&str>).context("sharing /run/netns")
}

/// Undoes that once the folder is empty.
fn tidy_directory() {
    let is_empty = fs::read_dir(DIRECTORY).is_ok_and(|mut entries| entries.next().is_none());
    if is_empty && Path::new(MARK).exists() && umount2(DIRECTORY, MntFlags::empty()).is_ok() {
        let _ = fs::remove_dir(DIRECTORY);
        let _ = fs::remove_file(MARK);
    }
}

/// Namespaces belong to threads: whatever changes them gets one of its own, so that no other work is moved by accident.
fn on_own_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
