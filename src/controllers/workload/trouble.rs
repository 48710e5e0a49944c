//! Why a Deployment is not available, in words for the user who has to repair it. No I/O.
//!
//! No counters, times or names of pods stand in them: the text changes only when the cause does.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};

/// How much is quoted of what others say: the API server allows far longer messages than anybody reads.
const LONGEST_QUOTE: usize = 200;

/// What is known about a Deployment that is not available.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    /// The Deployment.
    pub(super) deployment: &'a Deployment,
    /// The Secret that pods wait for, if it does not exist.
    pub(super) missing_secret: Option<MissingSecret<'a>>,
    /// Its pods, also of older templates.
    pub(super) pods: &'a [Pod],
}

/// A Secret that does not exist, and the Certificate that is to fill it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MissingSecret<'a> {
    /// Name of the Secret.
    pub(super) name: &'a str,
    /// Name of the Certificate.
    pub(super) certificate: &'a str,
    /// What the Certificate says about itself, if it exists and says anything.
    pub(super) says: Option<&'a str>,
}

/// The cause that explains most; `None` if Kubernetes names none, as in the first moments of a pod.
pub(super) fn cause(evidence: Evidence<'_>) -> Option<String> {
    let conditions = evidence
        .deployment
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let refused = conditions
        .filter(|condition| condition.type_ == "ReplicaFailure" && condition.status == "True")
        .find_map(|condition| condition.message.as_deref())
        .map(|message| format!("pods can't be created: {}", quote(without_pod(message))));
    refused
        .or_else(|| evidence.missing_secret.map(|secret| secret.to_string()))
        .or_else(|| evidence.pods.iter().filter_map(of_pod).min().map(|(_, text)| text))
}

// === impl MissingSecret ===

impl std::fmt::Display for MissingSecret<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            name,
            certificate,
            says,
        } = self;
        write!(
            formatter,
            "the Secret {name} does not exist; the Certificate {certificate} is not issued"
        )?;
        match says {
            Some(says) => write!(formatter, " ({})", quote(says)),
            None => Ok(()),
        }
    }
}

/// How much a trouble explains, most first: the order in which troubles of several pods are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Unschedulable,
    NotStarted,
    Crashed,
    NotReady,
}

/// What keeps a pod from being ready.
fn of_pod(pod: &Pod) -> Option<(Rank, String)> {
    let status = pod.status.as_ref()?;
    let over = matches!(status.phase.as_deref(), Some("Failed" | "Succeeded"));
    if over || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    if let Some(condition) = unscheduled {
        let text = match condition.message.as_deref().map(reasons_of_scheduler) {
            Some(reasons) if !reasons.is_empty() => format!("no node can take a pod: {}", quote(&reasons)),
            _ => "no node can take a pod".to_owned(),
        };
        return Some((Rank::Unschedulable, text));
    }
    let containers = status
        .init_container_statuses
        .iter()
        .flatten()
        .chain(status.container_statuses.iter().flatten());
    containers
        .filter(|container| !container.ready)
        .filter_map(of_container)
        .min()
}

fn of_container(container: &ContainerStatus) -> Option<(Rank, String)> {
    let name = &container.name;
    let state = container.state.as_ref()?;
    let last = container
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());
    if let Some(waiting) = &state.waiting {
        let message = waiting.message.as_deref().unwrap_or_default();
        match waiting.reason.as_deref()? {
            "ContainerCreating" | "PodInitializing" if last.is_none() => return None,
            "ErrImagePull" | "ImagePullBackOff" | "ErrImageNeverPull" | "RegistryUnavailable" => {
                let image = &container.image;
                let why = why_no_image(message);
                return Some((Rank::NotStarted, format!("the image {image} can't be pulled{why}")));
            }
            "InvalidImageName" => {
                return Some((
                    Rank::NotStarted,
                    format!("{} is no valid name of an image", container.image),
                ));
            }
            "CrashLoopBackOff" | "ContainerCreating" | "PodInitializing" => {}
            reason @ ("CreateContainerConfigError" | "CreateContainerError" | "RunContainerError") => {
                let text = format!("the container {name} can't be started: {reason} ({})", quote(message));
                return Some((Rank::NotStarted, text));
            }
            reason => return Some((Rank::NotStarted, format!("the container {name} waits: {reason}"))),
        }
    }
    if let Some(terminated) = state.terminated.as_ref().or(last) {
        return Some((Rank::Crashed, died(name, terminated)));
    }
    if container.state.as_ref().is_some_and(|state| state.waiting.is_some()) {
        return Some((Rank::Crashed, format!("the container {name} does not keep running")));
    }
    // Before that its start-up probe decides, which takes its time.
    let started = container.started == Some(true);
    started.then(|| {
        (
            Rank::NotReady,
            format!("the container {name} runs but fails its readiness probe"),
        )
    })
}

fn died(container: &str, terminated: &ContainerStateTerminated) -> String {
    let code = terminated.exit_code;
    match terminated.reason.as_deref() {
        Some(reason @ "OOMKilled") => format!("the container {container} ran out of memory ({reason})"),
        Some("Error" | "Completed") | None => {
            format!("the container {container} does not keep running: exit code {code}")
        }
        Some(reason) => format!("the container {container} does not keep running: {reason}, exit code {code}"),
    }
}

/// What a kubelet or its container runtime says about an image, in a few words that stay the same between attempts.
fn why_no_image(message: &str) -> &'static str {
    let message = message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if says(&[
        "unauthorized",
        "denied",
        "forbidden",
        "authentication required",
        "no basic auth",
    ]) {
        ": the registry denies access"
    } else if says(&["not found", "notfound", "manifest unknown", "does not exist"]) {
        ": it was not found"
    } else if says(&["toomanyrequests", "too many requests"]) {
        ": the registry takes no more requests for now"
    } else if says(&[
        "no such host",
        "dial tcp",
        "timeout",
        "connection refused",
        "tls:",
        "x509",
    ]) {
        ": the registry can't be reached"
    } else {
        ""
    }
}

/// The reasons in a message like `0/3 nodes are available: 2 Insufficient cpu, 1 node(s) had untolerated taint {a: b}.
/// preemption: …`, without the numbers.
fn reasons_of_scheduler(message: &str) -> String {
    let (_, reasons) = message.split_once("available: ").unwrap_or(("", message));
    let reasons = reasons.split(". preemption:").next().unwrap_or(reasons);
    let reasons: BTreeSet<&str> = reasons
        .split(", ")
        .map(|reason| {
            reason
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .trim()
                .trim_end_matches('.')
        })
        .filter(|reason| !reason.is_empty())
        .collect();
    reasons.into_iter().collect::<Vec<_>>().join(", ")
}

/// A message like `pods "mzx-balancerd-6d5f-abcde" is forbidden: …` without its beginning, which names a pod.
fn without_pod(message: &str) -> &str {
    let rest = message
        .strip_prefix("pods \"")
        .and_then(|rest| rest.split_once("\" "))
        .map(|(_, rest)| rest);
    let rest = rest.unwrap_or(message);
    // Used and limited amounts follow the name of a quota, and change with every pod.
    rest.split(", requested:").next().unwrap_or(rest)
}

fn quote(text: &str) -> String {
    text.chars().take(LONGEST_QUOTE).collect()
}

#[cfg(test)]
#[path = "trouble_tests.rs"]
mod tests;
