//! The steps of `cargo verify`, in the order in which they run: what fails fast comes first.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::cache::{Cache, repository};
use crate::cluster::Level;
use crate::images::{self, Program};
use crate::scenarios::run::{Selection, test};
use crate::tools::{Module, Tools};

/// The variable that switches failures on demand on, in an operator that has them.
const FAILPOINTS: &str = "ORCHESTRATORD_FAILPOINTS";

/// One step.
pub(super) struct Step {
    /// Its name, for `--only`.
    pub(super) name: &'static str,
    /// What it shows.
    pub(super) about: &'static str,
    /// Whether it runs only with `--long`.
    pub(super) long: bool,
    /// What it does.
    pub(super) work: fn(&Cache) -> Result<()>,
}

/// All steps.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        about: "the code is formatted",
        long: false,
        work: |cache| cargo(cache, &["fmt", "--all", "--check"], &[]),
    },
    Step {
        name: "clippy",
        about: "no lint complains",
        long: false,
        work: |cache| {
            cargo(
                cache,
                &[
                    "clippy",
                    "--quiet",
                    "--workspace",
                    "--all-targets",
                    "--",
                    "-D",
                    "warnings",
                ],
                &[],
            )
        },
    },
    Step {
        name: "test",
        about: "unit and documentation tests pass",
        long: false,
        work: |cache| cargo(cache, &["test", "--quiet", "--workspace"], &[]),
    },
    Step {
        name: "doc",
        about: "the documentation builds and its links lead somewhere",
        long: false,
        work: |cache| {
            cargo(
                cache,
                &["doc", "--quiet", "--workspace", "--no-deps"],
                &[("RUSTDOCFLAGS", "-D warnings")],
            )
        },
    },
    Step {
        name: "tools",
        about: "Kubernetes, etcd, CoreDNS and helm are built",
        long: false,
        work: |cache| Tools::ensure(cache, &[Module::Kubernetes, Module::CoreDns, Module::Helm]).map(drop),
    },
    Step {
        name: "chart",
        about: "the chart is well formed and its tests pass",
        long: false,
        work: chart,
    },
    Step {
        name: "images",
        about: "the operator and the stand-ins are built as they go into images",
        long: false,
        work: |cache| {
            images::build(cache, Program::Operator)?;
            images::build(cache, Program::Standins).map(drop)
        },
    },
    Step {
        name: "failpoints",
        about: "failures on demand compile, and the operator that goes into the image has none",
        long: false,
        work: failpoints,
    },
    Step {
        name: "api",
        about: "scenarios on an API server",
        long: false,
        work: |cache| scenarios(cache, &Selection::of(Level::Api)),
    },
    Step {
        name: "cluster",
        about: "scenarios on a cluster with nodes",
        long: false,
        work: |cache| scenarios(cache, &Selection::of(Level::Cluster)),
    },
    Step {
        name: "long-scenarios",
        about: "scenarios that take minutes, and all others once more",
        long: true,
        work: |cache| {
            scenarios(cache, &Selection::of(Level::Api).with_long())?;
            scenarios(cache, &Selection::of(Level::Cluster).with_long())
        },
    },
    Step {
        name: "deny",
        about: "licences, advisories and sources of dependencies are allowed",
        long: true,
        work: deny,
    },
    Step {
        name: "model",
        about: "the deep exploration of the model",
        long: true,
        work: |cache| {
            cargo(
                cache,
                &["test", "--release", "--package", "states", "--", "--include-ignored"],
                &[],
            )
        },
    },
];

/// Runs cargo with these arguments and more environment.
fn cargo(cache: &Cache, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    succeed(
        crate::cargo::cargo(cache)
            .args(arguments)
            .envs(environment.iter().copied()),
    )
}

fn chart(cache: &Cache) -> Result<()> {
    let tools = Tools::ensure(cache, &[Module::Helm])?;
    let chart = repository().join("helm");
    succeed(tools.command("helm").args(["lint", "--strict"]).arg(&chart))?;
    succeed(tools.command("helm-unittest").arg(&chart))
}

/// Looks for the variable that switches failures on: who reads it, has its name.
fn failpoints(cache: &Cache) -> Result<()> {
    cargo(
        cache,
        &[
            "check",
            "--quiet",
            "--package",
            "orchestratord",
            "--features",
            "failpoints",
        ],
        &[],
    )?;
    let contains = |path: &Path, name: &str| -> Result<bool> {
        let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        Ok(bytes.windows(name.len()).any(|window| window == name.as_bytes()))
    };
    let source = repository().join("src/failpoints.rs");
    if !contains(&source, FAILPOINTS)? {
        bail!(
            "{} does not read {FAILPOINTS}: this step looks for something else",
            source.display()
        );
    }
    let program = images::build(cache, Program::Operator)?;
    if contains(&program, FAILPOINTS)? {
        bail!("{} was built with the feature `failpoints`", program.display());
    }
    Ok(())
}

fn deny(cache: &Cache) -> Result<()> {
    match Command::new("cargo-deny").arg("--version").output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("cargo-deny is missing: `cargo install --locked cargo-deny`")
        }
        _ => cargo(cache, &["deny", "check"], &[]),
    }
}

fn scenarios(cache: &Cache, selection: &Selection) -> Result<()> {
    if test(selection, cache)? == ExitCode::SUCCESS {
        return Ok(());
    }
    bail!("scenarios failed")
}

/// Runs a program whose output is for the person at the terminal.
fn succeed(command: &mut Command) -> Result<()> {
    let text = crate::command::describe(command);
    let status = command
        .stdin(std::process::Stdio::null())
        .status()
        .with_context(|| format!("starting `{text}`"))?;
    if !status.success() {
        bail!("`{text}` ended with {status}");
    }
    Ok(())
}
