//! `cargo e2e bench leadership`: the operator's election beside those of its peers, on one real API server, judged by its audit log.
//!
//! `runs` does what is measured, `figures` makes a table and JSON of it.

mod figures;
mod runs;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use serde_json::json;

use crate::cache::{Cache, repository};
use crate::cluster::{Cluster, Level, up};
use crate::images::{self, Program};
use crate::progress::line;
use crate::scenarios::context::Context;
use crate::tools::{Module, Tools};
use figures::Figures;

/// How many elections crash at the same time: they mostly wait.
const LANES: usize = 6;

/// For one election.
const LIMIT: Duration = Duration::from_mins(30);

/// One program whose replicas elect a leader.
struct Contestant {
    name: &'static str,
    program: PathBuf,
    runs: usize,
}

/// Measures the operator and its peers one after the other.
pub(super) fn bench(runs: usize, operator: Option<&Path>, cache: &Cache) -> Result<()> {
    let operator = match operator {
        Some(operator) => std::path::absolute(operator).context("looking for the operator")?,
        None => images::build(cache, Program::Operator)?,
    };
    let peers = runs.div_ceil(3);
    let contestants = [
        Contestant {
            name: "orchestratord",
            program: operator,
            runs,
        },
        Contestant {
            name: "k8s-controller 0.15",
            program: images::build(cache, Program::WithLease)?,
            runs: peers,
        },
        Contestant {
            name: "client-go 0.34.4",
            program: Tools::ensure(cache, &[Module::LeaderElection])?.path("leaderelection"),
            runs: peers,
        },
    ];
    let cluster = up::up(Level::Api, cache)?;
    let mut all = Vec::new();
    for contestant in &contestants {
        line(&format!("--- {}", contestant.name));
        all.push((contestant.name, measure(contestant, &cluster)?));
    }
    figures::print(&all);
    let folder = repository().join("target/e2e/bench");
    let path = folder.join("leadership.json");
    let text = json!(
        all.iter()
            .map(|(name, figures)| (*name, figures.json()))
            .collect::<std::collections::BTreeMap<_, _>>()
    );
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, format!("{text:#}\n")))
        .with_context(|| format!("writing {}", path.display()))?;
    line(&format!("these figures are in {}", path.display()));
    Ok(())
}

fn measure(contestant: &Contestant, cluster: &Cluster) -> Result<Figures> {
    let mut figures = Figures::default();
    let program = contestant.program.as_path();
    Context::run("bench::leadership", LIMIT, cluster, program, |context| {
        runs::quiet(context, &mut figures)?;
        runs::hand_overs(context, contestant.runs, &mut figures)
    })?;
    let lanes = LANES.min(contestant.runs);
    let each = contestant.runs.div_ceil(lanes);
    let crashes: Vec<Result<Vec<f64>>> = thread::scope(|scope| {
        let running: Vec<_> = (0..lanes)
            .map(|lane| {
                scope.spawn(move || {
                    let mut taken = Vec::new();
                    let name = format!("bench::leadership_{lane}");
                    Context::run(&name, LIMIT, cluster, program, |context| {
                        taken = runs::crashes(context, each)?;
                        Ok(())
                    })?;
                    Ok(taken)
                })
            })
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("a panic"))))
            .collect()
    });
    for crash in crashes {
        figures.crash_take_over.extend(crash?);
    }
    Ok(figures)
}
