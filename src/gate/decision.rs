//! Whether the controllers of a new leader may start, decided from the pods that were seen (decision L15).

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt as _;

/// The variable by which a container shows that its operator takes part in the election.
const VARIABLE: &str = "ORCHESTRATORD_LEADER_ELECTION_IDENTITY";
/// The flag that says the same.
const FLAG: &str = "--leader-election-identity";

/// What is known of this replica's own pod before any pod was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// The names that its pod may have: its identity and its host name.
    pub names: Vec<String>,
    /// Whether this replica was given its identity by flag or variable: then a pod that shows neither is another one.
    pub shows_election: bool,
}

/// What a look at the operator's pods brought.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// The pods with the labels of `--orchestratord-pod-selector-labels`; those of a list that succeeded.
    Pods(Vec<Pod>),
    /// There are no such labels.
    WithoutLabels,
    /// The API server does not permit to look.
    Forbidden,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The controllers may start.
    Start,
    /// They may start, but nobody knows whether an operator without election runs.
    StartWithWarning(Doubt),
    /// These run; never empty.
    Wait(Vec<Predecessor>),
}

/// A pod that runs an operator without election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Its name.
    pub pod: String,
    /// The images of its containers, separated by commas.
    pub image: String,
}

/// Why nobody knows whether an operator without election runs. Its text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// There are no labels to look for.
    NoLabels,
    /// The API server does not permit to look.
    Forbidden,
    /// This replica's own pod is not among those that were seen.
    OwnPodNotFound {
        /// The names that were looked for.
        names: Vec<String>,
        /// Pods that this replica could be itself, for all it knows.
        ignored: Vec<String>,
    },
}

/// Decides by what was seen.
pub fn decide(seen: &Seen, own: &Own) -> Decision {
    let pods = match seen {
        Seen::Pods(pods) => pods,
        Seen::WithoutLabels => return Decision::StartWithWarning(Doubt::NoLabels),
        Seen::Forbidden => return Decision::StartWithWarning(Doubt::Forbidden),
    };
    let is_own = |pod: &&Pod| own.names.contains(&pod.name_any());
    let suspects = pods
        .iter()
        .filter(|pod| !is_own(pod) && !has_terminated(pod) && !containers(pod).iter().any(shows_election));
    let Some(own_pod) = pods.iter().find(is_own) else {
        return without_own_pod(suspects, own);
    };
    let own_images = operator_images(own_pod);
    wait_for(suspects.filter(|pod| !own_images.is_subset(&images(containers(pod))))).unwrap_or(Decision::Start)
}

/// Whether no container of the pod runs any more, nor ever will again.
pub(super) fn has_terminated(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Without its own pod this replica does not know its image. If its own pod shows the election, each suspect is
/// another pod; else each may be its own.
fn without_own_pod<'a>(suspects: impl Iterator<Item = &'a Pod>, own: &Own) -> Decision {
    let (others, ignored): (Vec<_>, Vec<_>) = suspects.partition(|_| own.shows_election);
    wait_for(others.into_iter()).unwrap_or_else(|| {
        Decision::StartWithWarning(Doubt::OwnPodNotFound {
            names: own.names.clone(),
            ignored: ignored.into_iter().map(kube::ResourceExt::name_any).collect(),
        })
    })
}

fn wait_for<'a>(pods: impl Iterator<Item = &'a Pod>) -> Option<Decision> {
    let predecessor = |pod: &Pod| Predecessor {
        pod: pod.name_any(),
        image: Vec::from_iter(images(containers(pod))).join(","),
    };
    let predecessors: Vec<_> = pods.map(predecessor).collect();
    (!predecessors.is_empty()).then_some(Decision::Wait(predecessors))
}

/// The images by which a pod is told to run the same operator: that of the container which shows the election. If
/// none does, nobody can tell the operator from its sidecars, and all of them count.
fn operator_images(pod: &Pod) -> BTreeSet<&str> {
    let shown = images(containers(pod).iter().filter(|container| shows_election(container)));
    if shown.is_empty() {
        images(containers(pod))
    } else {
        shown
    }
}

fn images<'a>(containers: impl IntoIterator<Item = &'a Container>) -> BTreeSet<&'a str> {
    containers
        .into_iter()
        .filter_map(|container| container.image.as_deref())
        .collect()
}

fn containers(pod: &Pod) -> &[Container] {
    pod.spec.as_ref().map_or(&[], |spec| &spec.containers)
}

fn shows_election(container: &Container) -> bool {
    let variable = container.env.iter().flatten().any(|variable| variable.name == VARIABLE);
    // A shell may stand in between, so each word counts.
    let mut words = [&container.command, &container.args]
        .into_iter()
        .flatten()
        .flatten()
        .flat_map(|argument| argument.split_whitespace());
    variable
        || words.any(|word| {
            word.strip_prefix(FLAG)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
}

// === impl Doubt ===

impl fmt::Display for Doubt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::NoLabels => formatter.write_str(
                "the labels of the operator's pods are not known; give them with --orchestratord-pod-selector-labels",
            ),
            Doubt::Forbidden => {
                formatter.write_str("the service account may not list the pods in its namespace; grant it list on pods")
            }
            Doubt::OwnPodNotFound { names, ignored } => {
                write!(
                    formatter,
                    "this replica's own pod ({}) does not have the labels of --orchestratord-pod-selector-labels",
                    names.join(" or ")
                )?;
                if ignored.is_empty() {
                    Ok(())
                } else {
                    write!(formatter, "; ignored, because each may be it: {}", ignored.join(", "))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
