//! The record of one cluster: written before each step, so that whoever comes after a killed run knows what may exist.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::level::{Level, base};
use crate::machine::process::Identity;

/// How far a cluster has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    /// Somebody starts it, or was killed doing so.
    Starting,
    /// It works.
    Up,
    /// Somebody removes it, or was killed doing so.
    Stopping,
}

/// What is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// How far it has got.
    pub(crate) phase: Phase,
    /// What it was made of; another key means another version of the programs or of the way they are started.
    pub(crate) version: String,
    /// The machine's boot in which it was written; what it says about processes and settings holds only there.
    boot: String,
    /// The daemons, in the order in which they were started.
    pub(crate) daemons: BTreeMap<String, Identity>,
    /// Kernel settings as they were before.
    pub(crate) sysctls: BTreeMap<String, String>,
}

// === impl Record ===

impl Record {
    /// The record of a cluster that is about to be started.
    pub(crate) fn new(version: String) -> Self {
        Self {
            phase: Phase::Starting,
            version,
            boot: boot(),
            daemons: BTreeMap::new(),
            sysctls: BTreeMap::new(),
        }
    }

    /// Reads the record of a level. One of an earlier boot counts as none: nothing of it is left but files.
    pub(crate) fn read(level: Level) -> Result<Option<Self>> {
        let path = level.record();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        // Written to a temporary name first, it is never half there; one that cannot be read is of another version of this program.
        Ok(serde_json::from_str::<Self>(&text)
            .ok()
            .filter(|record| record.boot == boot()))
    }

    /// Writes it, whole or not at all.
    pub(crate) fn write(&self, level: Level) -> Result<()> {
        let path = level.record();
        let temporary = path.with_extension("json.new");
        let text = serde_json::to_string_pretty(self).context("encoding the record")?;
        fs::create_dir_all(base()).with_context(|| format!("making {}", base().display()))?;
        fs::write(&temporary, text)
            .and_then(|()| fs::rename(&temporary, &path))
            .with_context(|| format!("writing {}", path.display()))
    }
}

/// Names the machine's current boot.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}
