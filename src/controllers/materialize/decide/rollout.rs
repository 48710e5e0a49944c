//! A rollout is wanted: the spec differs from what is deployed and its request has not been completed.

use super::{Answer, Decision, Deployed, Gate, Observed, Question, Reason, Report, Rule, Step, Strategy, Workload};

/// What to do with the candidate's objects.
enum Target {
    /// Apply the current spec.
    Current,
    /// Leave them as they are deployed.
    AsDeployed,
}

/// The first row that matches:
///
/// | seen | action |
/// | --- | --- |
/// | candidate exists, not forced, longer than `rolloutRequestTimeout` | `RolloutTimeout`; the candidate is torn down |
/// | stalled | no step; the pass fails |
/// | upgrade window refuses | `FailedDeploy`; nothing is torn down |
/// | objects of the active generation not looked after in this pass | restore them |
/// | `ImmediatelyPromoteCausingDowntime`, active generation exists | `Applying`, tear the active generation down |
/// | candidate being deleted | `Applying`, wait until it is gone |
/// | candidate not applied in this pass | `Applying`, apply it |
/// | pod not ready | wait |
/// | environmentd | see [`judge`] |
///
/// Once the active generation is gone for the candidate, neither time-out nor cancellation is left (decision R2).
pub(super) fn decide(seen: &Observed) -> Decision {
    if let Some(decision) = timed_out(seen) {
        return decision;
    }
    if let Gate::Stalled(text) = &seen.gate {
        return Decision::new(Rule::Stalled, Step::Fail(text.clone()));
    }
    let target = target(seen);
    if let (Some(refusal), Target::Current) = (&seen.refusal, &target) {
        let report = seen.report(Reason::FailedDeploy, refusal.clone());
        return Decision::reporting(Rule::Refused, report, Step::Wait(seen.deadline()));
    }
    let immediately = seen.strategy == Strategy::ImmediatelyPromoteCausingDowntime;
    if seen.reported.active > 0 && !seen.done.upkeep && !immediately && !seen.downtime_begun() {
        return Decision::new(Rule::Upkeep, Step::Restore(seen.reported.active));
    }
    let approved = seen.requested() && seen.changes();
    if immediately && approved && seen.reported.active > 0 && seen.active != Deployed::Missing {
        let detail = format!("deleting generation {} first", seen.reported.active);
        let report = applying(seen, &target, Some(&detail));
        return Decision::reporting(Rule::TearDownFirst, report, Step::TearDown(seen.reported.active));
    }
    if seen.candidate == Deployed::Terminating {
        let report = applying(seen, &target, Some("waiting for an earlier candidate to be deleted"));
        return Decision::reporting(Rule::AwaitDisappearance, report, Step::Wait(None));
    }
    if !seen.done.deployed {
        let step = match target {
            Target::Current => Step::Apply(seen.next()),
            Target::AsDeployed => Step::Restore(seen.next()),
        };
        return Decision::maybe_reporting(Rule::Deploy, announcement(seen, &target), step);
    }
    match &seen.candidate {
        Deployed::Running(workload) if workload.ready => judge(seen, &target, workload),
        Deployed::Running(workload) => {
            let detail = workload
                .trouble
                .clone()
                .unwrap_or_else(|| "its pod is not ready".to_owned());
            await_it(seen, &target, Rule::AwaitPod, &detail)
        }
        // Deleted by somebody right after it was applied: the next pass applies it again.
        Deployed::Missing | Deployed::Terminating => Decision::new(Rule::AwaitDisappearance, Step::Wait(None)),
    }
}

/// What the environmentd of a ready pod says:
///
/// | forced | answer | action |
/// | --- | --- | --- |
/// | no | not asked | ask for its status |
/// | yes | not asked | ask it to skip the catch-up |
/// | any | not yet | wait; it goes on being asked |
/// | any | refuses, makes no sense | `FailedDeploy`, failed pass |
/// | no, `ManuallyPromote` | ready | `ReadyToPromote` |
/// | otherwise | ready | `Promoting` |
fn judge(seen: &Observed, target: &Target, workload: &Workload) -> Decision {
    let next = seen.next();
    let question = if seen.forces() {
        Question::SkipCatchUp
    } else {
        Question::Status
    };
    let hash = workload
        .record
        .as_ref()
        .map_or_else(|| seen.hash_if_next.clone(), |record| record.hash.clone());
    match seen.answer_to(question) {
        None => Decision::new(Rule::AwaitCatchUp, Step::Ask(question)),
        Some(Answer::NotYet(detail)) => await_it(seen, target, Rule::AwaitCatchUp, detail),
        Some(Answer::Refused(text) | Answer::Unreadable(text)) => {
            let message = format!("Failed to apply changes for generation {next}: {text}");
            let report = seen.report(Reason::FailedDeploy, message.clone());
            Decision::reporting(Rule::Failed, report, Step::Fail(message))
        }
        Some(Answer::Ready | Answer::Leader) => {
            let parks = seen.strategy == Strategy::ManuallyPromote && !seen.forces() && seen.requested();
            let (rule, reason, message, step) = if parks {
                let message = format!("Ready to promote generation {next}");
                (Rule::Park, Reason::ReadyToPromote, message, Step::Wait(seen.deadline()))
            } else {
                let message = format!("Attempting to promote generation {next}");
                (Rule::EnterPromoting, Reason::Promoting, message, Step::Again)
            };
            Decision::reporting(
                rule,
                Report {
                    hash,
                    ..seen.report(reason, message)
                },
                step,
            )
        }
    }
}

/// The time-out row. It is judged whenever the candidate exists, refusals and failures included (decision R18).
fn timed_out(seen: &Observed) -> Option<Decision> {
    let running = matches!(seen.candidate, Deployed::Running(_));
    if !running || seen.forces() || seen.downtime_begun() || seen.now < seen.times_out_at()? {
        return None;
    }
    let message = format!(
        "Rollout to generation {} cancelled after exceeding the timeout of {}",
        seen.next(),
        humantime::format_duration(seen.timeout)
    );
    let report = Report {
        completed: seen.request,
        hash: seen.deployed_hash(),
        started_at: None,
        ..seen.report(Reason::RolloutTimeout, message)
    };
    Some(Decision::reporting(Rule::TimedOut, report, Step::Again))
}

/// What becomes of the candidate's objects (decisions R2 and R4).
fn target(seen: &Observed) -> Target {
    let Deployed::Running(workload) = &seen.candidate else {
        return Target::Current;
    };
    let cancelled = seen.downtime_begun() && !seen.requested();
    let keeps = match &workload.record {
        // Another operator's candidate goes on as it was deployed.
        None => workload.differs,
        // The request id alone was restored after the downtime had begun: what is deployed is promoted.
        Some(_) => cancelled && workload.replaces.as_deref() != Some(seen.hash_if_active.as_str()),
    };
    if keeps { Target::AsDeployed } else { Target::Current }
}

/// Whether the candidate already is what is to be deployed.
fn is_deployed(seen: &Observed, target: &Target) -> bool {
    match (&seen.candidate, target) {
        (Deployed::Running(_), Target::AsDeployed) => true,
        (Deployed::Running(workload), Target::Current) => match &workload.record {
            Some(record) => record.hash == seen.hash_if_next && record.request == seen.request,
            None => !workload.differs,
        },
        _ => false,
    }
}

/// The report that precedes the apply, if there has to be one.
///
/// None while the same candidate is parked or has failed: `FailedDeploy` stays until the outcome changes.
fn announcement(seen: &Observed, target: &Target) -> Option<Report> {
    let kept = match seen.reported.reason {
        Some(Reason::ReadyToPromote) => is_deployed(seen, target),
        Some(Reason::FailedDeploy) => !seen.stale(),
        Some(Reason::Applying) => !seen.stale() && is_deployed(seen, target),
        _ => false,
    };
    (!kept).then(|| applying(seen, target, None))
}

/// Waiting for the candidate: parked stays parked, everything else is `Applying` with the detail.
fn await_it(seen: &Observed, target: &Target, rule: Rule, detail: &str) -> Decision {
    let report = match seen.reported.reason {
        Some(Reason::ReadyToPromote) => None,
        _ => Some(applying(seen, target, Some(detail))),
    };
    Decision::maybe_reporting(rule, report, Step::Wait(seen.deadline()))
}

/// `Applying`. `resourcesHash` is blanked: a half-applied rollout must never look like an unchanged one. Only where the
/// active generation is deleted first it stays: it is then the only witness of what was deployed, by which a revert
/// brings that back (decisions R2 and R20).
fn applying(seen: &Observed, target: &Target, detail: Option<&str>) -> Report {
    let next = seen.next();
    let mut message = format!("Applying changes for generation {next}");
    if seen.downtime_begun() && !seen.requested() {
        message.push_str("; this rollout can no longer be cancelled, because the generation before it is gone");
    }
    if let Some(detail) = detail {
        message.push_str(": ");
        message.push_str(detail);
    }
    // The clock runs on for the same candidate and over retries of the same spec (decision R18).
    let same = is_deployed(seen, target)
        || (!seen.stale() && matches!(seen.reported.reason, Some(Reason::Applying | Reason::FailedDeploy)));
    let started_at = seen.reported.started_at.filter(|_| same).or(Some(seen.clock_start()));
    let hash = match seen.strategy {
        Strategy::ImmediatelyPromoteCausingDowntime => seen.deployed_hash(),
        Strategy::WaitUntilReady | Strategy::ManuallyPromote => String::new(),
    };
    Report {
        hash,
        started_at,
        ..seen.report(Reason::Applying, message)
    }
}
