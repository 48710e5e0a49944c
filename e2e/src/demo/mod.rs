//! `cargo demo`: an environment from nothing to its second generation, with the loss of the leader in between, on a real cluster.
//!
//! It succeeds only if everything that it shows has really happened. `environment` has what a user would apply, and shows a rollout while it goes on.

use std::time::Duration;

use anyhow::Result;

use crate::cache::Cache;
use crate::clock::Stopwatch;
use crate::cluster::{Level, up};
use crate::environment::follow::{self, Rollout};
use crate::environment::sample;
use crate::images;
use crate::installation::{self, NAMESPACE, install};
use crate::progress::{Progress, line, seconds};

/// How long one rollout may take.
const ROLLOUT: Duration = Duration::from_mins(3);

/// Runs it and leaves the cluster running.
pub(crate) fn demo(cache: &Cache) -> Result<()> {
    let progress = Progress::start();
    let mut summary = Vec::new();
    line("1. A cluster with two nodes, and the images on them");
    images::operator(cache)?;
    let standins = images::standins(cache, &[sample::FIRST, sample::SECOND])?;
    let cluster = up::up(Level::Cluster, cache)?;
    progress.step("stand-ins loaded", || cluster.load_images(&standins))?;

    line("2. Two replicas of the operator, installed by Helm");
    progress.step("chart installed, both replicas ready", || install(&cluster, cache))?;
    progress.step("an earlier environment removed", || sample::remove(&cluster))?;
    let leader = installation::leader(&cluster, None, Duration::from_secs(30))?;
    line(&format!("                   {leader} leads"));

    line("3. An environment");
    let watch = Stopwatch::start();
    sample::apply(&cluster)?;
    follow::until_done(
        &cluster,
        &Rollout {
            request: sample::FIRST_REQUEST.to_owned(),
            generation: 1,
        },
        ROLLOUT,
    )?;
    summary.push(("environment from nothing to generation 1", watch.elapsed()));

    line("4. The leader's pod is deleted");
    let watch = Stopwatch::start();
    cluster
        .kubectl
        .run(&["delete", "pod", &leader, "--namespace", NAMESPACE, "--wait=false"])?;
    let successor = installation::leader(&cluster, Some(&leader), Duration::from_secs(30))?;
    summary.push(("take-over after the leader was deleted", watch.elapsed()));
    line(&format!(
        "                   {successor} leads after {}",
        seconds(watch.elapsed())
    ));

    line("5. The environment moves to a second image");
    let watch = Stopwatch::start();
    sample::upgrade(&cluster)?;
    follow::until_done(
        &cluster,
        &Rollout {
            request: sample::SECOND_REQUEST.to_owned(),
            generation: 2,
        },
        ROLLOUT,
    )?;
    summary.push(("rollout from generation 1 to generation 2", watch.elapsed()));
    progress.step("first generation removed", || {
        sample::first_generation_is_gone(&cluster)
    })?;

    line("");
    line("All of it happened:");
    for (what, duration) in summary {
        line(&format!("  {what:<44} {:>9}", seconds(duration)));
    }
    line(&format!("  {:<44} {:>9}", "everything", seconds(progress.elapsed())));
    line("");
    line("The cluster goes on running. Look around:");
    line("  cargo e2e kubectl get mzs -A");
    line(&format!(
        "  cargo e2e kubectl -n {NAMESPACE} logs -l app.kubernetes.io/name=materialize-operator --prefix"
    ));
    line("  cargo e2e status");
    line("and remove it: cargo e2e down");
    Ok(())
}
