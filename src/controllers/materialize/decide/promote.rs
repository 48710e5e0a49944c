//! Past the point of no return: the candidate is promoted, whatever the spec says by now.
//!
//! Nothing but completing it leads out of `Promoting`: no time-out, no revert, no refused upgrade, no stall
//! (decision R16).

use super::{Answer, Decision, Deployed, Observed, Question, Reason, Report, Rule, Step, Workload};

/// | candidate | environmentd | action |
/// | --- | --- | --- |
/// | being deleted | | wait until it is gone |
/// | missing | | apply it from the current spec (decision R20) |
/// | there, not yet restored in this pass | | restore it |
/// | there | not asked | ask it to promote itself |
/// | there | refuses or makes no sense | failed pass; it goes on being asked |
/// | there | not yet | wait; it goes on being asked |
/// | there | leads | move traffic, `Applied` |
pub(super) fn decide(seen: &Observed) -> Decision {
    let next = seen.next();
    let workload = match &seen.candidate {
        Deployed::Terminating => return Decision::new(Rule::AwaitDisappearance, Step::Wait(None)),
        Deployed::Missing => return Decision::new(Rule::Deploy, Step::Apply(next)),
        Deployed::Running(workload) => workload,
    };
    if !seen.done.deployed {
        let unchanged = !workload.differs_from(&seen.hash_if_next);
        let step = if unchanged {
            Step::Apply(next)
        } else {
            Step::Restore(next)
        };
        return Decision::new(Rule::Upkeep, step);
    }
    match seen.answer_to(Question::Promote) {
        None => Decision::new(Rule::AwaitLeader, Step::Ask(Question::Promote)),
        Some(Answer::NotYet(_) | Answer::Ready) => Decision::new(Rule::AwaitLeader, Step::Wait(None)),
        Some(Answer::Refused(text) | Answer::Unreadable(text)) => {
            let text = format!("environmentd of generation {next} was not promoted: {text}");
            Decision::new(Rule::PromotionFailed, Step::Fail(text))
        }
        Some(Answer::Leader) => Decision::new(
            Rule::Complete,
            Step::SwitchTraffic(next, Box::new(completed(seen, workload))),
        ),
    }
}

/// What is deployed, not what the spec of this pass says (decision R1): the spec may have been edited meanwhile.
fn completed(seen: &Observed, workload: &Workload) -> Report {
    let next = seen.next();
    let (request, hash) = match &workload.record {
        Some(record) => (record.request, record.hash.clone()),
        // Made by another operator: a dry run in the next pass finds out whether it differs (decision R4).
        None => (seen.request, String::new()),
    };
    Report {
        reason: Reason::Applied,
        message: format!("Successfully applied changes for generation {next}"),
        active: next,
        completed: request,
        image: workload.image.clone().or_else(|| Some(seen.image.clone())),
        hash,
        started_at: None,
    }
}
