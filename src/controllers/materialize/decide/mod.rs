//! What to do next for one `Materialize`: a pure function from what was observed to a [`Decision`].
//!
//! No I/O, no clock, no Kubernetes types. The tables of docs/reference/rollouts.md live here, one function per table:
//! `promote` for a rollout past its point of no return, `rollout` for one that is wanted, `idle`
//! for everything else. A pass asks again after each step that it took, with what it then knows, until the answer is
//! one that ends the pass. However it ends, Balancer and Console are looked after once a generation is active
//! (decision R16).

mod idle;
mod observed;
mod promote;
mod rollout;
#[cfg(test)]
mod tests;

pub use observed::{Answer, Deployed, Done, Gate, Observed, Question, Reported, Workload};

use k8s_openapi::jiff::Timestamp;
use uuid::Uuid;

use super::build::Record;
use crate::api::MaterializeRolloutStrategy as Strategy;
use crate::api::conditions::UpToDateReason as Reason;

/// What a pass does next: first write the status, if there is one to write, then take the step.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The row of the table that matched, for logs and tests.
    pub rule: Rule,
    /// What the status is to say from now on. `None` leaves it as it is.
    pub report: Option<Report>,
    /// What to do once the status says so.
    pub step: Step,
}

/// The rows of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The objects of a generation that is deployed are put back as they should be.
    Upkeep,
    /// Nothing may be started until the user has repaired something.
    Stalled,
    /// The rollout took longer than `rolloutRequestTimeout`.
    TimedOut,
    /// The image lies outside the upgrade window.
    Refused,
    /// The strategy asks for the active generation to go first.
    TearDownFirst,
    /// An earlier candidate of the same number is still being deleted.
    AwaitDisappearance,
    /// The candidate's objects are applied.
    Deploy,
    /// The candidate's pod is not ready.
    AwaitPod,
    /// The candidate's environmentd has not said that it is ready.
    AwaitCatchUp,
    /// The candidate can't be brought up as it is.
    Failed,
    /// Ready, and promoted only when the user says so.
    Park,
    /// Ready: the point of no return.
    EnterPromoting,
    /// The candidate has not said that it leads.
    AwaitLeader,
    /// environmentd refused the promotion; it is asked again.
    PromotionFailed,
    /// The candidate leads: traffic moves, the status says so.
    Complete,
    /// Objects of other generations than the active one are deleted.
    CleanUp,
    /// The spec differs from what is deployed, and nobody asked for a rollout.
    WaitForApproval,
    /// What is deployed is what the spec says.
    UpToDate,
}

/// What the condition `UpToDate` and the fields beside it are to say.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Reason of the condition; its status follows from it.
    pub reason: Reason,
    /// Message of the condition.
    pub message: String,
    /// `status.activeGeneration`.
    pub active: u64,
    /// `status.lastCompletedRolloutRequest`.
    pub completed: Uuid,
    /// `status.lastCompletedRolloutEnvironmentdImageRef`.
    pub image: Option<String>,
    /// `status.resourcesHash`.
    pub hash: String,
    /// `status.rolloutStartedAt` (decision R18).
    pub started_at: Option<Timestamp>,
}

/// What a pass does after the status was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Applies the objects of a generation from the current spec, then decides again.
    /// The public Service belongs to them if the generation is the active one.
    Apply(u64),
    /// Puts back what is deployed of a generation that the current spec differs from (decision R20), then decides again.
    Restore(u64),
    /// Deletes the objects of one generation. Their disappearance starts the next pass.
    TearDown(u64),
    /// Deletes the objects of every generation but the active one, then decides again.
    CleanUp,
    /// Lets the public Service select this generation, then decides again with the status written after it.
    SwitchTraffic(u64, Box<Report>),
    /// Asks the environmentd of the candidate; its answer continues this pass or starts the next one.
    Ask(Question),
    /// Decides again at once.
    Again,
    /// Ends the pass. What is awaited starts the next one; at the latest the given moment does.
    Wait(Option<Timestamp>),
    /// Ends the pass as failed, with this text.
    Fail(String),
}

/// The next thing to do (docs/reference/rollouts.md).
///
/// | Promoting | changes | requested | table |
/// | --- | --- | --- | --- |
/// | yes | any | any | `promote` |
/// | no | any | any, the active generation already gone for the candidate | `rollout` |
/// | no | yes | yes | `rollout` |
/// | no | yes | no | `idle`: await approval |
/// | no | no | any | `idle`: up to date |
pub fn decide(seen: &Observed) -> Decision {
    if seen.reported.reason == Some(Reason::Promoting) {
        promote::decide(seen)
    } else if seen.downtime_begun() || (seen.changes() && seen.requested()) {
        rollout::decide(seen)
    } else {
        idle::decide(seen)
    }
}

// === impl Decision ===

impl Decision {
    fn new(rule: Rule, step: Step) -> Self {
        Decision {
            rule,
            report: None,
            step,
        }
    }

    fn reporting(rule: Rule, report: Report, step: Step) -> Self {
        Decision {
            rule,
            report: Some(report),
            step,
        }
    }

    fn maybe_reporting(rule: Rule, report: Option<Report>, step: Step) -> Self {
        Decision { rule, report, step }
    }
}
