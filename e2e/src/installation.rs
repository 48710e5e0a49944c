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
    let (repository_of_image, tag) = if let Some(image) = &cluster.image {
        split(image)?
    } else {
        let operator = images::operator(cache)?;
        cluster.load_images(&operator.archive)?;
        (images::OPERATOR.to_owned(), operator.tag)
    };
    let image = [
        format!("operator.image.repository={repository_of_image}"),
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
        .kubectl
        .within(|| finish(&mut helm, None, Deadline::after(Duration::from_mins(3))))?;
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

/// Repository and tag of an image reference. A colon before the last slash belongs to a port.
fn split(image: &str) -> Result<(String, String)> {
    image
        .rsplit_once(':')
        .filter(|(_, tag)| !tag.contains('/'))
        .map(|(repository, tag)| (repository.to_owned(), tag.to_owned()))
        .with_context(|| format!("--image: {image:?} has no tag; expected REPOSITORY:TAG"))
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

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn the_tag_of_an_image_is_no_port() {
        let both = |repository: &str, tag: &str| (repository.to_owned(), tag.to_owned());
        assert_eq!(split("host:5000/a/b:v1").unwrap(), both("host:5000/a/b", "v1"));
        assert_eq!(split("a/b:v1").unwrap(), both("a/b", "v1"));
        assert!(split("host:5000/a/b").is_err());
        assert!(split("a/b").is_err());
    }
}
