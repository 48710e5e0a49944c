//! `cargo e2e logs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::cluster::Level;
use crate::progress::line;

/// Lists the logs, or shows one of them by `tail`.
pub(crate) fn show(level: Level, component: Option<&str>, follow: bool) -> Result<ExitCode> {
    let logs = list(level);
    if logs.is_empty() {
        bail!("there is no cluster of level {level}: run `cargo e2e up --level {level}` first");
    }
    let Some(component) = component else {
        for (name, path) in logs {
            line(&format!("{name:<28} {}", path.display()));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some((_, path)) = logs.iter().find(|(name, _)| name == component) else {
        let names: Vec<&str> = logs.iter().map(|(name, _)| name.as_str()).collect();
        bail!(
            "no component `{component}` in the cluster of level {level}: there are {}",
            names.join(", ")
        );
    };
    let mut tail = Command::new("tail");
    tail.args(["-n", "500"]).args(follow.then_some("-F")).arg(path);
    let status = tail.status().context("starting tail")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// All logs of a level: those of the control plane, and those of each node with the node's name before them.
fn list(level: Level) -> Vec<(String, PathBuf)> {
    let mut found = in_folder(&level.logs(), "");
    for node in level.nodes() {
        found.extend(in_folder(&node.folder(level).join("log"), &format!("{}/", node.name())));
    }
    found
}

fn in_folder(folder: &Path, prefix: &str) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<(String, PathBuf)> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .filter_map(|path| Some((format!("{prefix}{}", path.file_stem()?.to_str()?), path)))
        .collect();
    found.sort();
    found
}
