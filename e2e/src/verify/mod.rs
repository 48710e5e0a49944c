//! Everything that must be true before a change lands, one step after the other, and a table of where the time went.
//!
//! A step that fails does not keep the others from running. What the steps are stands in `steps`.

mod steps;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use crate::cache::Cache;
use crate::clock::Stopwatch;
use crate::cluster::{self, Cluster, Level};
use crate::errors;
use crate::progress::{line, seconds};
use steps::{STEPS, Step};

/// The arguments of `cargo verify`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Also what takes long and what needs more than a compiler and this clone.
    #[arg(long)]
    long: bool,
    /// Only these steps.
    #[arg(long, value_delimiter = ',', value_name = "STEP,…")]
    only: Vec<String>,
    /// Leave the clusters running.
    #[arg(long)]
    keep: bool,
}

/// How a step has ended.
struct Outcome {
    name: &'static str,
    duration: Duration,
    failure: Option<String>,
}

/// Runs the steps and prints the table.
pub(crate) fn verify(options: &Options, cache: &Cache) -> Result<ExitCode> {
    let steps = select(options)?;
    let watch = Stopwatch::start();
    let before: Vec<Level> = Level::ALL.into_iter().filter(|level| Cluster::is_up(*level)).collect();
    let outcomes: Vec<Outcome> = steps.iter().map(|step| run(step, cache)).collect();
    // Clusters that ran before belong to somebody who looks at them.
    let started: Vec<Level> = Level::ALL
        .into_iter()
        .filter(|level| Cluster::is_up(*level) && !before.contains(level))
        .collect();
    if !options.keep && !started.is_empty() {
        cluster::remove(&started)?;
    }
    line("");
    for outcome in &outcomes {
        let result = if outcome.failure.is_some() { "FAILED" } else { "ok" };
        line(&format!(
            "{:<16} {:>9}  {result}",
            outcome.name,
            seconds(outcome.duration)
        ));
    }
    line(&format!("{:<16} {:>9}", "together", seconds(watch.elapsed())));
    let failures: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.failure.is_some()).collect();
    for outcome in &failures {
        line(&format!(
            "{}: {}   (again: cargo verify --only {})",
            outcome.name,
            outcome.failure.as_deref().unwrap_or_default(),
            outcome.name
        ));
    }
    Ok(if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn run(step: &Step, cache: &Cache) -> Outcome {
    line(&format!("=== {}: {}", step.name, step.about));
    let watch = Stopwatch::start();
    let failure = (step.work)(cache).err().map(|error| errors::describe(&error));
    if let Some(failure) = &failure {
        line(&format!("    FAILED: {failure}"));
    }
    Outcome {
        name: step.name,
        duration: watch.elapsed(),
        failure,
    }
}

fn select(options: &Options) -> Result<Vec<&'static Step>> {
    if let Some(unknown) = options
        .only
        .iter()
        .find(|name| !STEPS.iter().any(|step| step.name == name.as_str()))
    {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        bail!("no step `{unknown}`: there are {}", names.join(", "));
    }
    let named = |step: &&Step| options.only.iter().any(|name| name == step.name);
    let wanted = |step: &&Step| {
        if options.only.is_empty() {
            options.long || !step.long
        } else {
            named(step)
        }
    };
    Ok(STEPS.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(long: bool, only: &[&str]) -> Result<Vec<&'static str>> {
        let options = Options {
            long,
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            keep: false,
        };
        Ok(select(&options)?.into_iter().map(|step| step.name).collect())
    }

    #[test]
    fn long_steps_run_only_when_they_are_asked_for() {
        let short = names(false, &[]).unwrap();
        let all = names(true, &[]).unwrap();
        let long = STEPS.iter().find(|step| step.long).unwrap().name;
        assert!(!short.contains(&long) && all.contains(&long));
        assert_eq!(names(false, &[long]).unwrap(), [long]);
    }

    #[test]
    fn an_unknown_step_is_an_error_that_lists_the_known_ones() {
        assert!(names(false, &["fnt"]).unwrap_err().to_string().contains("fmt"));
    }
}
