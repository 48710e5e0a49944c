//! Building the Rust programs that go into images: static ones, so that an image needs nothing else.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::cache::Cache;
use crate::cargo::cargo;
use crate::clock::Stopwatch;
use crate::progress;

/// A program of this workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// The operator.
    Operator,
    /// The stand-ins for environmentd and its companions, all in one.
    Standins,
    /// The peer of the operator in the benchmark of elections; it goes into no image.
    WithLease,
}

// === impl Program ===

impl Program {
    /// The name of its package and of its binary.
    fn name(self) -> &'static str {
        match self {
            Self::Operator => "orchestratord",
            Self::Standins => "standins",
            Self::WithLease => "with-lease",
        }
    }
}

/// Builds the operator without optimisation, as `cargo test` does: in seconds, for attempts at the level `api`.
pub(crate) fn build_for_development(cache: &Cache) -> Result<PathBuf> {
    let folder = cache.cargo_target();
    let name = Program::Operator.name();
    cargo_build(cargo(cache).args(["build", "--quiet", "--package", name]), name)?;
    Ok(folder.join("debug").join(name))
}

/// The variable that chooses cargo's profile: `release`, as it is published, or `dev`, which builds in a fraction of the time.
const PROFILE: &str = "ORCHESTRATORD_E2E_PROFILE";

/// Cargo's profile and the folder that it writes to.
fn profile() -> Result<(&'static str, &'static str)> {
    match std::env::var(PROFILE).unwrap_or_default().as_str() {
        "" | "release" => Ok(("release", "release")),
        "dev" => Ok(("dev", "debug")),
        other => bail!("{PROFILE} is {other:?}: expected release, dev or nothing"),
    }
}

/// Builds a program and says where it is. Operator and stand-ins are always built by one call: alone, each would want their
/// dependencies with other features, and thus compiled again. glibc is linked statically; naming the target keeps that flag
/// away from procedural macros and build scripts.
pub(crate) fn build(cache: &Cache, program: Program) -> Result<PathBuf> {
    let watch = Stopwatch::start();
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let folder = cache.cargo_target();
    let name = program.name();
    let (profile, output) = profile()?;
    let packages: &[Program] = match program {
        Program::Operator | Program::Standins => &[Program::Operator, Program::Standins],
        Program::WithLease => &[Program::WithLease],
    };
    cargo_build(
        cargo(cache)
            .args(["build", "--quiet", "--profile", profile, "--target", &target])
            .args(packages.iter().flat_map(|package| ["--package", package.name()]))
            .env("RUSTFLAGS", "-C target-feature=+crt-static")
            .env_remove("CARGO_ENCODED_RUSTFLAGS"),
        name,
    )?;
    if watch.elapsed().as_secs() > 2 {
        progress::line(&format!(
            "         built {} in {}",
            program.name(),
            progress::seconds(watch.elapsed())
        ));
    }
    Ok(folder.join(target).join(output).join(program.name()))
}

fn cargo_build(cargo: &mut Command, name: &str) -> Result<()> {
    let status = cargo.status().context("starting cargo")?;
    if !status.success() {
        bail!("building {name} failed ({status}): the compiler's messages stand above");
    }
    Ok(())
}
