//! Area `registration`: the custom resource definitions that the operator brings along.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::context::Context;
use super::{Scenario, Sharing};
use crate::cluster::Level;

/// The scenarios of this area.
pub(super) const SCENARIOS: &[Scenario] = &[Scenario {
    name: "registration::definitions_are_missing_after_a_start",
    level: Level::Api,
    sharing: Sharing::Alone,
    long: false,
    limit: Duration::from_mins(2),
    body: definitions_are_missing_after_a_start,
}];

/// Once a replica is ready its three resources can be used. Without `--install-v1-crd` the Materialize has one version and no conversion.
fn definitions_are_missing_after_a_start(context: &mut Context) -> Result<()> {
    let all = ["materializes", "balancers", "consoles"].map(|name| format!("{name}.materialize.cloud"));
    for name in &all {
        context.kubectl(&["delete", "crd", name, "--ignore-not-found", "--timeout=30s"])?;
    }
    let mut replica = context.ready_replica("replica-0")?;
    for name in &all {
        context.wait_for(&format!("{name} is established"), Duration::from_secs(20), || {
            replica.must_run()?;
            let definition = context.json(&["get", "crd", name])?;
            let conditions = definition["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            Ok(conditions
                .iter()
                .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
                .then_some(()))
        })?;
    }
    let definition = context.json(&["get", "crd", &all[0]])?;
    let versions: Vec<&str> = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|version| version["name"].as_str())
        .collect();
    ensure!(
        versions == ["v1alpha1"],
        "the Materialize has the versions {versions:?}"
    );
    let strategy = definition["spec"]["conversion"]["strategy"].as_str().unwrap_or("None");
    ensure!(
        strategy == "None",
        "the conversion strategy is {strategy} although no webhook runs"
    );
    let listed = context.kubectl(&["get", "mzs", "-A"])?;
    ensure!(listed.is_empty(), "a fresh definition lists {listed}");
    Ok(())
}
