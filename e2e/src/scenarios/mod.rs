//! What is proved on real clusters. Each scenario is a function named after the failure it is about.
//!
//! To add one: write `fn the_failure(context: &mut Context) -> Result<()>` in the file of its area and name it in that file's `SCENARIOS`. A scenario works on
//! plain JSON and kubectl, never on the operator's own types: a wrong type must not be able to agree with itself.

mod artefacts;
mod chart;
pub(crate) mod context;
pub(crate) mod election;
mod failover;
mod first_upgrade;
mod install;
mod leadership;
mod materialize;
mod node_upgrades;
mod process;
mod proxy;
mod registration;
pub(crate) mod replica;
mod rights;
pub(crate) mod run;
mod webhook;
mod workloads;

use std::time::Duration;

use anyhow::Result;

use crate::cluster::Level;
use context::Context;

/// One scenario.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    /// `area::failure_it_is_about`.
    name: &'static str,
    /// The cluster it runs on.
    level: Level,
    /// Whether others may run at the same time. Those that make custom resources may not: every leader reconciles all namespaces.
    sharing: Sharing,
    /// Whether it runs only with `--long`.
    long: bool,
    /// After so much time it has failed.
    limit: Duration,
    /// What it does.
    body: fn(&mut Context) -> Result<()>,
}

/// Whether a scenario shares its cluster with others that run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// It does.
    Shared,
    /// It has the cluster for itself.
    Alone,
}

/// All scenarios.
fn all() -> Vec<Scenario> {
    [
        process::SCENARIOS,
        registration::SCENARIOS,
        leadership::SCENARIOS,
        first_upgrade::SCENARIOS,
        election::SCENARIOS,
        install::SCENARIOS,
        failover::SCENARIOS,
        webhook::SCENARIOS,
        materialize::SCENARIOS,
        node_upgrades::SCENARIOS,
        workloads::SCENARIOS,
        chart::SCENARIOS,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_have_an_area() {
        let mut names: Vec<&str> = all().iter().map(|scenario| scenario.name).collect();
        assert!(names.iter().all(|name| name.split("::").count() == 2));
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
