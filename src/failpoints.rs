//! Failures that only code can make, for scenarios: compiled in only with the cargo feature `failpoints`, which the
//! image never has (`tests/failpoints.rs`).
//!
//! `ORCHESTRATORD_FAILPOINTS` holds their names, separated by commas:
//!
//! * `controller-never-yields`: a task of the leader that occupies a worker for good.
//! * `task-ends`: a task of the leader that ends by itself, at once.
//! * `pass-panics=NAMESPACE/NAME`: every pass over this Materialize panics.

use futures::FutureExt as _;
use kube::{Resource, ResourceExt as _};

use crate::leadership::LeaderTask;

/// The variable that holds the names.
const VARIABLE: &str = "ORCHESTRATORD_FAILPOINTS";

/// The tasks that the leader gets beside its own.
pub fn leader_tasks() -> Vec<LeaderTask> {
    let mut tasks: Vec<LeaderTask> = Vec::new();
    if is_on("controller-never-yields") {
        let stuck = async {
            loop {
                std::thread::park();
            }
        };
        tasks.push(("controller-never-yields", stuck.boxed()));
    }
    if is_on("task-ends") {
        tasks.push(("task-ends", std::future::ready(()).boxed()));
    }
    tasks
}

/// Panics if that is asked for `resource`.
///
/// # Panics
/// That is what it is for.
pub fn pass(resource: &impl Resource) {
    let name = format!(
        "pass-panics={}/{}",
        resource.namespace().unwrap_or_default(),
        resource.name_any()
    );
    assert!(!is_on(&name), "failpoint {name}");
}

fn is_on(name: &str) -> bool {
    std::env::var(VARIABLE).is_ok_and(|names| names.split(',').any(|known| known == name))
}
