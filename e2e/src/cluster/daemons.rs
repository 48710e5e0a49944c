//! Starting daemons that outlive this program, and noticing when one ends that should not.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::level::Level;
use super::record::Record;
use crate::clock::{Deadline, poll};
use crate::command::tail;
use crate::machine::netns::NetNamespace;
use crate::machine::process::Identity;
use crate::machine::spawn::InNamespace;

/// The daemons of one cluster.
#[derive(Debug)]
pub(crate) struct Daemons {
    level: Level,
    record: Record,
}

// === impl Daemons ===

impl Daemons {
    /// Those of a cluster that is being started, or was.
    pub(crate) fn new(level: Level, record: Record) -> Self {
        Self { level, record }
    }

    /// The record that names them.
    pub(crate) fn record(&mut self) -> &mut Record {
        &mut self.record
    }

    /// Starts one inside a namespace; its output goes to `log/NAME.log`.
    pub(crate) fn start(
        &mut self,
        name: &str,
        netns: &NetNamespace,
        program: &Path,
        arguments: &[String],
    ) -> Result<()> {
        let path = self.log(name);
        let log = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("making {}", path.display()))?;
        let mut command = InNamespace {
            netns,
            resolv_conf: None,
            die_with_parent: false,
        }
        .command(program);
        command.args(arguments).current_dir("/").stdin(Stdio::null());
        command
            .stdout(log.try_clone().context("sharing a log file")?)
            .stderr(log);
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        // A child cannot have been replaced before somebody waited for it, so its pid is still its own.
        let identity = Identity::of(child.id().cast_signed());
        if let Some(identity) = identity {
            self.record.daemons.insert(name.to_owned(), identity);
            self.record.write(self.level)?;
        }
        self.check()
    }

    /// Fails if one has ended: names it, and shows its last lines.
    pub(crate) fn check(&self) -> Result<()> {
        let Some((name, _)) = self.record.daemons.iter().find(|(_, identity)| !identity.is_alive()) else {
            return Ok(());
        };
        let log = self.log(name);
        let text = fs::read_to_string(&log).unwrap_or_default();
        bail!(
            "{name} of the cluster of level {} has ended; the last lines of {}:\n{}",
            self.level,
            log.display(),
            tail(&text, 12)
        )
    }

    /// Waits until `look` finds something, while all daemons must go on running.
    pub(crate) fn wait_for<T>(
        &self,
        what: &str,
        limit: Duration,
        interval: Duration,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<T> {
        let found = poll(Deadline::after(limit), interval, || {
            self.check()?;
            anyhow::Ok(look())
        })?;
        found.with_context(|| {
            format!("{what} did not happen within {} s: look at `cargo e2e logs --level {}`, then `cargo e2e down` and try again", limit.as_secs(), self.level)
        })
    }

    fn log(&self, name: &str) -> PathBuf {
        self.level.logs().join(format!("{name}.log"))
    }
}
