//! Running scenarios: which ones, on which clusters, at the same time or one after the other.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use libtest_mimic::{Arguments, Failed, Trial};

use super::context::Context;
use super::{Scenario, Sharing, all, artefacts};
use crate::cache::Cache;
use crate::cluster::{Cluster, Level, up};
use crate::images::{self, Program};
use crate::progress::line;

/// How many scenarios run at the same time: each is a few processes that mostly wait.
const AT_ONCE: usize = 8;

/// The arguments of `cargo e2e test`.
#[derive(Args, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Selection {
    /// Only scenarios whose names contain this.
    filter: Option<String>,
    /// Only those of this level.
    #[arg(long, value_enum)]
    level: Option<Level>,
    /// The filter is a whole name.
    #[arg(long)]
    exact: bool,
    /// Only list them.
    #[arg(long)]
    list: bool,
    /// Build the operator without optimisation: quicker, but only for the level `api`.
    #[arg(long, conflicts_with = "level")]
    dev: bool,
    /// Also those that take long.
    #[arg(long)]
    long: bool,
    /// Use this program instead of building the operator; only for the level `api`.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["level", "dev"])]
    operator: Option<PathBuf>,
    /// Run on a cluster that exists: the scenarios of area `install`, which use only the chart and the API.
    #[arg(long, value_name = "FILE", requires = "image", conflicts_with_all = ["level", "dev", "operator"])]
    kubeconfig: Option<PathBuf>,
    /// The operator's image on that cluster, as it can pull it.
    #[arg(long, value_name = "REPOSITORY:TAG", requires = "kubeconfig")]
    image: Option<String>,
    /// How many run at the same time.
    #[arg(long, value_name = "N")]
    test_threads: Option<usize>,
}

// === impl Selection ===

impl Selection {
    /// All of a level.
    pub(crate) fn of(level: Level) -> Self {
        Self {
            level: Some(level),
            ..Self::default()
        }
    }

    /// Also those that take long.
    pub(crate) fn with_long(self) -> Self {
        Self { long: true, ..self }
    }

    fn takes(&self, scenario: &Scenario) -> bool {
        let level = if self.dev || self.operator.is_some() {
            Some(Level::Api)
        } else {
            self.level
        };
        level.is_none_or(|level| scenario.level == level)
            && (self.kubeconfig.is_none() || scenario.name.starts_with("install::"))
            && (self.long || self.list || self.exact || !scenario.long)
            && self.filter.as_deref().is_none_or(|filter| {
                if self.exact {
                    scenario.name == filter
                } else {
                    scenario.name.contains(filter)
                }
            })
    }
}

/// Runs the selected scenarios; starts the clusters they need and leaves them running.
pub(crate) fn test(selection: &Selection, cache: &Cache) -> Result<ExitCode> {
    let selected: Vec<Scenario> = all().into_iter().filter(|scenario| selection.takes(scenario)).collect();
    if selection.list {
        for scenario in &selected {
            let long = if scenario.long { ", only with --long" } else { "" };
            line(&format!("{}: {}{long}", scenario.name, scenario.level));
        }
        return Ok(ExitCode::SUCCESS);
    }
    if selected.is_empty() {
        anyhow::bail!("no scenario of that name: `cargo e2e test --list` shows all");
    }
    if let Some(kubeconfig) = &selection.kubeconfig {
        let cluster = Cluster::given(std::path::absolute(kubeconfig)?, selection.image.clone(), cache)?;
        let passed = run_together(&selected, 1, &cluster, &PathBuf::new());
        return Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let operator = if let Some(operator) = &selection.operator {
        std::path::absolute(operator)?
    } else if selection.dev {
        images::build_for_development(cache)?
    } else {
        images::build(cache, Program::Operator)?
    };
    let mut failed = Vec::new();
    for level in Level::ALL {
        let of_level: Vec<Scenario> = selected
            .iter()
            .filter(|scenario| scenario.level == level)
            .copied()
            .collect();
        if of_level.is_empty() {
            continue;
        }
        let cluster = up::up(level, cache)?;
        for sharing in [Sharing::Shared, Sharing::Alone] {
            let threads = if sharing == Sharing::Shared {
                selection.test_threads.unwrap_or(AT_ONCE)
            } else {
                1
            };
            let now: Vec<Scenario> = of_level
                .iter()
                .filter(|scenario| scenario.sharing == sharing)
                .copied()
                .collect();
            if !now.is_empty() && !run_together(&now, threads, &cluster, &operator) {
                failed.push(format!("{level}"));
            }
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    line(&format!(
        "scenarios of level {} failed; what each left is in {}",
        failed.join(", "),
        artefacts::root().display()
    ));
    Ok(ExitCode::FAILURE)
}

/// Hands some scenarios to `libtest-mimic`, which has filtered names, threads and output of `cargo test`.
fn run_together(scenarios: &[Scenario], threads: usize, cluster: &Cluster, operator: &std::path::Path) -> bool {
    let arguments = Arguments {
        test_threads: Some(threads),
        ..Arguments::default()
    };
    let cluster = Arc::new(cluster.clone());
    let trials = scenarios
        .iter()
        .map(|scenario| {
            let (scenario, cluster, operator) = (*scenario, Arc::clone(&cluster), operator.to_path_buf());
            Trial::test(scenario.name, move || {
                Context::run(scenario.name, scenario.limit, &cluster, &operator, scenario.body)
                    .map_err(|error| Failed::from(format!("{error:#}")))
            })
        })
        .collect();
    !libtest_mimic::run(&arguments, trials).has_failed()
}
