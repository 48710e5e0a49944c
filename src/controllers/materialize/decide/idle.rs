//! No rollout is wanted: either nothing differs from what is deployed, or nobody asked.

use super::{Decision, Deployed, Gate, Observed, Reason, Report, Rule, Step};

/// The first row that matches:
///
/// | changes | seen | action |
/// | --- | --- | --- |
/// | any | stalled | no step; the pass fails |
/// | no | active generation not applied in this pass | apply it |
/// | yes | active generation not restored in this pass | restore it |
/// | any | other generations exist | report first, then delete them |
/// | yes | | `WaitingForApproval` |
/// | no | | `Applied` |
pub(super) fn decide(seen: &Observed) -> Decision {
    if let Gate::Stalled(text) = &seen.gate {
        return Decision::new(Rule::Stalled, Step::Fail(text.clone()));
    }
    let active = seen.reported.active;
    if active > 0 && !seen.done.upkeep && seen.active != Deployed::Terminating {
        let step = if seen.changes() {
            Step::Restore(active)
        } else {
            Step::Apply(active)
        };
        return Decision::new(Rule::Upkeep, step);
    }
    let (rule, report) = if seen.changes() {
        (Rule::WaitForApproval, await_approval(seen))
    } else {
        (Rule::UpToDate, up_to_date(seen))
    };
    if seen.leftovers && !seen.done.cleaned {
        return Decision::maybe_reporting(Rule::CleanUp, report, Step::CleanUp);
    }
    Decision::maybe_reporting(rule, report, Step::Wait(None))
}

/// `WaitingForApproval`, unless it is said already; after a time-out that stays until the resource is edited.
fn await_approval(seen: &Observed) -> Option<Report> {
    let said = matches!(
        seen.reported.reason,
        Some(Reason::WaitingForApproval | Reason::RolloutTimeout)
    );
    if said && !seen.stale() {
        return None;
    }
    let message = format!(
        "Changes detected, waiting for approval for generation {}: set spec.requestRollout to a new UUID (v1alpha1), \
         or the annotation materialize.cloud/force-rollout to a new value (v1)",
        seen.next()
    );
    Some(Report {
        completed: seen.request,
        hash: seen.deployed_hash(),
        started_at: None,
        ..seen.report(Reason::WaitingForApproval, message)
    })
}

/// `Applied`, which also completes a request that changed nothing.
fn up_to_date(seen: &Observed) -> Option<Report> {
    let said = seen.reported.reason == Some(Reason::Applied);
    let known = seen.reported.hash == seen.deployed_hash();
    if said && known && !seen.stale() && !seen.requested() {
        return None;
    }
    let message = if said && !seen.requested() && !seen.stale() {
        seen.reported.message.clone()
    } else {
        format!("No changes from generation {}", seen.reported.active)
    };
    Some(Report {
        completed: seen.request,
        hash: seen.deployed_hash(),
        started_at: None,
        ..seen.report(Reason::Applied, message)
    })
}
