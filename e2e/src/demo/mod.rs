//! `cargo demo`: an environment from nothing to its second generation, with the loss of the leader in between, on a real cluster.
//!
//! It succeeds only if everything that it shows has really happened. `sample` is what a user would apply; `follow` shows a rollout while it goes on.

mod follow;
mod sample;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::cache::{Cache, repository};
use crate::clock::{Deadline, Stopwatch, poll};
use crate::cluster::{Cluster, Level, up};
use crate::command::finish;
use crate::images;
use crate::progress::{Progress, line, seconds};
use follow::Rollout;

/// The operator's namespace.
pub(crate) const OPERATOR_NAMESPACE: &str = "materialize";

/// The Helm release.
const RELEASE: &str = "operator";

/// How long one rollout may take.
const ROLLOUT: Duration = Duration::from_mins(3);

/// Runs it and leaves the cluster running.
pub(crate) fn demo(cache: &Cache) -> Result<()> {
    let progress = Progress::start();
    let mut summary = Vec::new();
    line("1. A cluster with two nodes, and the images on them");
    let operator = images::operator(cache)?;
    let standins = images::standins(cache, &[sample::FIRST, sample::SECOND])?;
    let cluster = up::up(Level::Cluster, cache)?;
    progress.step("images loaded", || {
        cluster
            .load_images(&operator.archive)
            .and_then(|()| cluster.load_images(&standins))
    })?;

    line("2. Two replicas of the operator, installed by Helm");
    progress.step("chart installed, both replicas ready", || {
        install(&cluster, &operator.tag)
    })?;
    progress.step("an earlier environment removed", || sample::remove(&cluster))?;
    let leader = leader(&cluster, None, Duration::from_secs(30))?;
    line(&format!("                   {leader} leads"));

    line("3. An environment");
    let watch = Stopwatch::start();
    sample::apply(&cluster)?;
    follow::until_done(
        &cluster,
        &Rollout {
            request: sample::FIRST_REQUEST,
            generation: 1,
        },
        ROLLOUT,
    )?;
    summary.push(("environment from nothing to generation 1", watch.elapsed()));

    line("4. The leader's pod is deleted");
    let watch = Stopwatch::start();
    cluster.kubectl.run(&[
        "delete",
        "pod",
        &leader,
        "--namespace",
        OPERATOR_NAMESPACE,
        "--wait=false",
    ])?;
    let successor = self::leader(&cluster, Some(&leader), Duration::from_secs(30))?;
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
            request: sample::SECOND_REQUEST,
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
        "  cargo e2e kubectl -n {OPERATOR_NAMESPACE} logs -l app.kubernetes.io/name=materialize-operator --prefix"
    ));
    line("  cargo e2e status");
    line("and remove it: cargo e2e down");
    Ok(())
}

/// Installs the chart, or brings a release that is there to this build.
pub(crate) fn install(cluster: &Cluster, tag: &str) -> Result<()> {
    let image = [
        format!("operator.image.repository={}", images::OPERATOR),
        format!("operator.image.tag={tag}"),
    ];
    let mut helm: Command = cluster.kubectl.helm();
    helm.args(["upgrade", "--install", RELEASE])
        .arg(repository().join("helm"));
    helm.args([
        "--namespace",
        OPERATOR_NAMESPACE,
        "--create-namespace",
        "--wait",
        "--timeout",
        "120s",
    ]);
    for setting in &image {
        helm.args(["--set", setting]);
    }
    let finished = cluster
        .level
        .netns()
        .run(|| finish(&mut helm, None, Deadline::after(Duration::from_mins(3))))?;
    anyhow::ensure!(
        finished.status.success(),
        "helm could not install the chart: {}\nthe operator's pods:\n{}",
        finished.stderr.trim(),
        cluster
            .kubectl
            .run(&["get", "pods", "--namespace", OPERATOR_NAMESPACE, "-o", "wide"])
            .unwrap_or_default()
    );
    Ok(())
}

/// Waits for a leader other than `not` and says its pod's name.
pub(crate) fn leader(cluster: &Cluster, not: Option<&str>, limit: Duration) -> Result<String> {
    poll(Deadline::after(limit), Duration::from_millis(50), || {
        let lease = cluster
            .kubectl
            .json(&["get", "lease", "orchestratord", "--namespace", OPERATOR_NAMESPACE])
            .unwrap_or_default();
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        anyhow::Ok((!holder.is_empty() && Some(holder) != not).then(|| holder.to_owned()))
    })?
    .with_context(|| {
        format!(
            "no replica became leader within {} s: `cargo e2e kubectl -n {OPERATOR_NAMESPACE} get pods`",
            limit.as_secs()
        )
    })
}
