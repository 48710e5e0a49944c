//! Taking the API server away for a while.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::Cluster;
use super::control_plane::PATIENCE;
use super::daemons::Daemons;
use super::record::Record;
use crate::clock::{Deadline, poll};

const NAME: &str = "kube-apiserver";

const PORT: u16 = 6443;

// === impl Cluster ===

impl Cluster {
    /// Kills the API server, does something, and starts it again as it was, also if that something failed.
    pub(crate) fn without_api_server(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let record = Record::read(self.level)?.context("the cluster has no record")?;
        let identity = *record.daemons.get(NAME).context("the cluster has no API server")?;
        let path = format!("/proc/{}/cmdline", identity.pid());
        let command = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        let mut words = command.trim_end_matches('\0').split('\0').map(str::to_owned);
        let program = words.next().unwrap_or_default();
        let arguments: Vec<String> = words.collect();
        identity.kill();
        // A process that has ended may still be letting go of what it had.
        let netns = self.level.netns();
        let is_free = || netns.run(|| Ok(TcpListener::bind(("0.0.0.0", PORT))?)).is_ok();
        let ended = poll(Deadline::after(PATIENCE), Duration::from_millis(10), || {
            anyhow::Ok((!identity.is_alive() && is_free()).then_some(()))
        })?;
        if ended.is_none() {
            bail!("the API server does not end");
        }
        let result = work();
        let mut daemons = Daemons::new(self.level, record);
        daemons.record().daemons.remove(NAME);
        daemons.start(NAME, &netns, Path::new(&program), &arguments)?;
        daemons.wait_for(
            "that the API server is ready again",
            PATIENCE,
            Duration::from_millis(100),
            || self.kubectl.run(&["get", "--raw", "/readyz"]).ok(),
        )?;
        result
    }
}
