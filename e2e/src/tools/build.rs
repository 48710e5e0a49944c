//! Building one module's programs: into a folder with a temporary name, renamed once it is complete.

use std::fs;
use std::io::{self, BufRead as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::Module;
use crate::cache::Cache;
use crate::clock::Stopwatch;
use crate::machine::process::Identity;
use crate::progress;

/// What temporary folders begin with; the pid of the builder follows after a dot.
const UNFINISHED: &str = ".unfinished";

/// Where the programs of a module are once they are built.
pub(super) fn folder(cache: &Cache, module: Module, key: &str) -> PathBuf {
    cache.tools().join(format!("{}-{key}", module.name()))
}

/// Builds the module unless this very version of it is there.
pub(super) fn ensure(cache: &Cache, module: Module, key: &str) -> Result<()> {
    let done = folder(cache, module, key);
    if done.is_dir() {
        return Ok(());
    }
    let watch = Stopwatch::start();
    progress::line(&format!(
        "         building {} (the first time {} on two cores)",
        module.programs().collect::<Vec<_>>().join(", "),
        module.first_build()
    ));
    fs::create_dir_all(cache.tools()).with_context(|| format!("making {}", cache.tools().display()))?;
    remove_unfinished(&cache.tools());
    let temporary = cache
        .tools()
        .join(format!("{UNFINISHED}-{}.{}", module.name(), std::process::id()));
    fs::create_dir(&temporary).with_context(|| format!("making {}", temporary.display()))?;
    if let Err(error) = go_build(module, &temporary) {
        let _ = fs::remove_dir_all(&temporary);
        return Err(error);
    }
    if let Err(error) = fs::rename(&temporary, &done) {
        let _ = fs::remove_dir_all(&temporary);
        // Somebody else built the same version meanwhile.
        if !done.is_dir() {
            return Err(error).with_context(|| format!("naming {}", done.display()));
        }
    }
    progress::line(&format!(
        "         built {} in {}",
        module.name(),
        progress::seconds(watch.elapsed())
    ));
    Ok(())
}

fn go_build(module: Module, output: &Path) -> Result<()> {
    let mut command = Command::new("go");
    command
        .current_dir(module.source())
        .env("CGO_ENABLED", "0")
        .env_remove("GOFLAGS")
        .args([
            "build",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            &module.linker_flags(),
            "-o",
        ])
        .arg(output.join(""))
        .args(module.packages().iter().map(|(package, _)| *package))
        .stdin(Stdio::null());
    let mut child = match command.stderr(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "Go is missing: install Go 1.26 or later (https://go.dev/dl/) and put its bin folder into PATH; \
             it builds the Kubernetes of the local cluster"
        ),
        Err(error) => return Err(error).context("starting go"),
    };
    let last = child.stderr.take().map(show).unwrap_or_default();
    let status = child.wait().context("waiting for go")?;
    if !status.success() {
        bail!(
            "building {} with `go build` failed ({status}); is the module proxy (`go env GOPROXY`) reachable? It says last: {last}",
            module.name()
        );
    }
    for (package, program) in module.packages() {
        rename_program(output, package, program)?;
    }
    Ok(())
}

/// Passes messages on to the person who waits, and keeps the last.
fn show(messages: impl io::Read) -> String {
    let mut last = String::new();
    for message in io::BufReader::new(messages).lines().map_while(Result::ok) {
        progress::line(&format!("         {message}"));
        last = message;
    }
    last
}

/// Gives a program its name where Go derives another one from the package's path.
fn rename_program(output: &Path, package: &str, program: &str) -> Result<()> {
    let built = package.rsplit('/').find(|part| !is_version(part)).unwrap_or(program);
    let wanted = output.join(program);
    if !wanted.exists() {
        fs::rename(output.join(built), &wanted).with_context(|| format!("go build left no program {program}"))?;
    }
    Ok(())
}

/// Whether the last part of a Go import path is a major version, which is no part of a program's name.
fn is_version(part: &str) -> bool {
    part.strip_prefix('v')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Removes what builders that were killed have left; those that still run are spared.
fn remove_unfinished(tools: &Path) {
    let Ok(entries) = fs::read_dir(tools) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let builder = name
            .strip_prefix(UNFINISHED)
            .and_then(|rest| rest.rsplit('.').next()?.parse().ok());
        if builder.is_some_and(|pid| Identity::of(pid).is_none()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_major_version_is_not_taken_for_a_program_name() {
        assert!(is_version("v3"));
        assert!(!is_version("v"));
        assert!(!is_version("server"));
    }
}
