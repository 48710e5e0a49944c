//! The operator as pods: installed from its image and its chart, as a user would do it.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::cache::{Cache, repository};
use crate::clock::{Deadline, poll};
use crate::cluster::Cluster;
use crate::command::finish;
use crate::images;

/// The operator's namespace.
pub(crate) const NAMESPACE: &str = "materialize";

/// The Helm release.
const RELEASE: &str = "operator";

/// Installs the chart with this build's image, or brings a release that is there to this build.
pub(crate) fn install(cluster: &Cluster, cache: &Cache) -> Result<()> {
    let operator = images::operator(cache)?;
    cluster.load_images(&operator.archive)?;
    let tag = &operator.tag;
    let image = [
        format!("operator.image.repository={}", images::OPERATOR),
        format!("operator.image.tag={tag}"),
    ];
    let mut helm: Command = cluster.kubectl.helm();
    helm.args(["upgrade", "--install", RELEASE])
        .arg(repository().join("helm"));
    helm.args([
        "--namespace",
        NAMESPACE,
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
    ensure!(
        finished.status.success(),
        "helm could not install the chart: {}\nthe operator's pods:\n{}",
        finished.stderr.trim(),
        cluster
            .kubectl
            .run(&["get", "pods", "--namespace", NAMESPACE, "-o", "wide"])
            .unwrap_or_default()
    );
    Ok(())
}

/// Waits for a leader other than `not` and says its pod's name.
pub(crate) fn leader(cluster: &Cluster, not: Option<&str>, limit: Duration) -> Result<String> {
    poll(Deadline::after(limit), Duration::from_millis(50), || {
        let lease = cluster
            .kubectl
            .json(&["get", "lease", "orchestratord", "--namespace", NAMESPACE])
            .unwrap_or_default();
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        anyhow::Ok((!holder.is_empty() && Some(holder) != not).then(|| holder.to_owned()))
    })?
    .with_context(|| {
        format!(
            "no replica became leader within {} s: `cargo e2e kubectl -n {NAMESPACE} get pods`",
            limit.as_secs()
        )
    })
}
