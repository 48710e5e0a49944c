//! One test for each row of the tables, named after it. The values start from a settled resource and change only
//! what the row is about.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use proptest::prelude::{Just, ProptestConfig, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generate;
use uuid::Uuid;

use super::*;

const OLD: Uuid = Uuid::from_u128(1);
const NEW: Uuid = Uuid::from_u128(2);
const OLD_IMAGE: &str = "materialize/environmentd:v26.1.0";
const NEW_IMAGE: &str = "materialize/environmentd:v26.2.0";

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    now().checked_sub(SignedDuration::from_secs(seconds)).unwrap()
}

fn workload(request: Uuid, hash: &str, image: &str) -> Workload {
    Workload {
        record: Some(Record {
            request,
            hash: hash.to_owned(),
            listeners: None,
        }),
        replaces: Some("hash-1".to_owned()),
        image: Some(image.to_owned()),
        ready: true,
        ..Workload::default()
    }
}

/// Generation 1 runs `OLD` and is what the spec says.
fn settled() -> Observed {
    Observed {
        now: now(),
        generation: Some(5),
        reported: Reported {
            active: 1,
            reason: Some(Reason::Applied),
            observed_generation: Some(5),
            message: "Successfully applied changes for generation 1".to_owned(),
            completed: OLD,
            image: Some(OLD_IMAGE.to_owned()),
            hash: "hash-1".to_owned(),
            started_at: None,
        },
        request: OLD,
        image: OLD_IMAGE.to_owned(),
        strategy: Strategy::WaitUntilReady,
        force_promote: false,
        timeout: Duration::from_hours(24),
        refusal: None,
        gate: Gate::Open,
        hash_if_active: "hash-1".to_owned(),
        hash_if_next: "hash-2".to_owned(),
        active: Deployed::Running(workload(OLD, "hash-1", OLD_IMAGE)),
        candidate: Deployed::Missing,
        leftovers: false,
        answer: None,
        done: Done {
            upkeep: true,
            deployed: false,
            cleaned: false,
        },
    }
}

/// A new image, not requested.
fn edited() -> Observed {
    Observed {
        generation: Some(6),
        image: NEW_IMAGE.to_owned(),
        hash_if_active: "new-1".to_owned(),
        hash_if_next: "new-2".to_owned(),
        ..settled()
    }
}

/// A new image, requested.
fn requested() -> Observed {
    Observed {
        request: NEW,
        ..edited()
    }
}

/// The requested candidate exists and is applied, in `Applying` since a minute.
fn applying() -> Observed {
    let mut seen = requested();
    seen.reported.reason = Some(Reason::Applying);
    seen.reported.observed_generation = Some(6);
    seen.reported.hash = String::new();
    seen.reported.started_at = Some(ago(60));
    seen.candidate = Deployed::Running(workload(NEW, "new-2", NEW_IMAGE));
    seen.leftovers = true;
    seen.done.deployed = true;
    seen
}

fn promoting() -> Observed {
    let mut seen = applying();
    seen.reported.reason = Some(Reason::Promoting);
    seen.reported.hash = "new-2".to_owned();
    seen
}

/// Nothing exists yet but the initial status.
fn fresh() -> Observed {
    let mut seen = requested();
    seen.reported = Reported {
        image: Some(NEW_IMAGE.to_owned()),
        ..Reported::default()
    };
    seen.active = Deployed::Missing;
    seen
}

/// `ImmediatelyPromoteCausingDowntime`: generation 1 is gone, the candidate exists.
fn downtime() -> Observed {
    let mut seen = applying();
    seen.strategy = Strategy::ImmediatelyPromoteCausingDowntime;
    seen.reported.hash = "hash-1".to_owned();
    seen.active = Deployed::Missing;
    seen
}

fn not_ready(seen: &mut Observed, trouble: Option<&str>) {
    if let Deployed::Running(workload) = &mut seen.candidate {
        workload.ready = false;
        workload.trouble = trouble.map(ToOwned::to_owned);
    }
}

fn foreign(differs: bool) -> Deployed {
    Deployed::Running(Workload {
        differs,
        image: Some(OLD_IMAGE.to_owned()),
        ready: true,
        ..Workload::default()
    })
}

fn report(decision: &Decision) -> &Report {
    decision.report.as_ref().expect("a report")
}

#[track_caller]
fn assert_decides(seen: &Observed, rule: Rule, reason: Option<Reason>, step: &Step) -> Decision {
    let decision = decide(seen);
    let got = (
        decision.rule,
        decision.report.as_ref().map(|report| report.reason),
        &decision.step,
    );
    assert_eq!(got, (rule, reason, step));
    decision
}

// ---- dispatch (what leads to which table) --------------------------------------------------------------------------

#[test]
fn dispatch_promoting_wins_over_everything() {
    for (request, hash) in [(OLD, "hash-1"), (OLD, "new-1"), (NEW, "hash-1"), (NEW, "new-1")] {
        let mut seen = promoting();
        seen.request = request;
        seen.hash_if_active = hash.to_owned();
        seen.refusal = Some("refused".to_owned());
        seen.reported.started_at = Some(ago(1_000_000));
        assert_decides(&seen, Rule::AwaitLeader, None, &Step::Ask(Question::Promote));
    }
}

#[test]
fn dispatch_changes_and_requested_rolls_out() {
    let decision = assert_decides(&requested(), Rule::Deploy, Some(Reason::Applying), &Step::Apply(2));
    let report = report(&decision);
    assert_eq!(report.message, "Applying changes for generation 2");
    assert_eq!((report.active, report.completed, report.hash.as_str()), (1, OLD, ""));
    assert_eq!(report.image.as_deref(), Some(OLD_IMAGE), "nothing was completed yet");
    assert_eq!(report.started_at, Some(now()));
}

#[test]
fn dispatch_changes_not_requested_awaits_approval() {
    let decision = assert_decides(
        &edited(),
        Rule::WaitForApproval,
        Some(Reason::WaitingForApproval),
        &Step::Wait(None),
    );
    let message = &report(&decision).message;
    assert!(
        message.contains("generation 2") && message.contains("requestRollout"),
        "{message}"
    );
    assert!(message.contains("materialize.cloud/force-rollout"), "{message}");
}

#[test]
fn dispatch_nothing_differs_and_nothing_is_requested() {
    let decision = assert_decides(&settled(), Rule::UpToDate, None, &Step::Wait(None));
    assert_eq!(decision.report, None, "no write when nothing changed");
}

#[test]
fn dispatch_requested_but_nothing_differs_completes_as_a_no_op() {
    let seen = Observed {
        request: NEW,
        generation: Some(6),
        ..settled()
    };
    let decision = assert_decides(&seen, Rule::UpToDate, Some(Reason::Applied), &Step::Wait(None));
    let report = report(&decision);
    assert_eq!(
        (report.completed, report.active, report.hash.as_str()),
        (NEW, 1, "hash-1")
    );
    assert_eq!(report.message, "No changes from generation 1");
}

// ---- rollout: from nothing -----------------------------------------------------------------------------------------

#[test]
fn the_first_rollout_makes_generation_one() {
    let decision = assert_decides(&fresh(), Rule::Deploy, Some(Reason::Applying), &Step::Apply(1));
    assert_eq!(
        report(&decision).image.as_deref(),
        Some(NEW_IMAGE),
        "the completed image follows the spec"
    );
}

#[test]
fn the_first_rollout_has_nothing_to_look_after_or_to_tear_down() {
    for strategy in [
        Strategy::WaitUntilReady,
        Strategy::ManuallyPromote,
        Strategy::ImmediatelyPromoteCausingDowntime,
    ] {
        let mut seen = Observed { strategy, ..fresh() };
        seen.done = Done::default();
        assert_decides(&seen, Rule::Deploy, Some(Reason::Applying), &Step::Apply(1));
    }
}

#[test]
fn the_generation_number_never_overflows() {
    let mut seen = requested();
    seen.reported.active = u64::MAX;
    assert_decides(&seen, Rule::Deploy, Some(Reason::Applying), &Step::Apply(u64::MAX));
}

// ---- rollout: time-out ---------------------------------------------------------------------------------------------

fn overdue() -> Observed {
    let mut seen = applying();
    seen.timeout = Duration::from_mins(1);
    seen
}

#[test]
fn timeout_cancels_and_completes_the_request() {
    let decision = assert_decides(&overdue(), Rule::TimedOut, Some(Reason::RolloutTimeout), &Step::Again);
    let report = report(&decision);
    assert_eq!(
        report.message,
        "Rollout to generation 2 cancelled after exceeding the timeout of 1m"
    );
    assert_eq!(
        (report.completed, report.active, report.hash.as_str()),
        (NEW, 1, "hash-1")
    );
    assert_eq!((report.image.as_deref(), report.started_at), (Some(OLD_IMAGE), None));
}

#[test]
fn timeout_is_reached_exactly_and_not_before() {
    let mut seen = overdue();
    seen.reported.started_at = Some(ago(59));
    assert_eq!(decide(&seen).rule, Rule::AwaitCatchUp);
    seen.reported.started_at = Some(ago(60));
    assert_eq!(decide(&seen).rule, Rule::TimedOut);
}

#[test]
fn timeout_then_tears_the_candidate_down_and_stays_said() {
    let mut seen = overdue();
    seen.reported.reason = Some(Reason::RolloutTimeout);
    seen.reported.completed = NEW;
    seen.reported.started_at = None;
    assert_decides(&seen, Rule::CleanUp, None, &Step::CleanUp);
    seen.done.cleaned = true;
    assert_decides(&seen, Rule::WaitForApproval, None, &Step::Wait(None));
}

#[test]
fn timeout_becomes_waiting_for_approval_when_the_resource_is_edited() {
    let mut seen = edited();
    seen.reported.reason = Some(Reason::RolloutTimeout);
    assert_decides(
        &seen,
        Rule::WaitForApproval,
        Some(Reason::WaitingForApproval),
        &Step::Wait(None),
    );
}

#[test]
fn timeout_spans_ready_to_promote_and_failures_and_refusals() {
    for reason in [Reason::ReadyToPromote, Reason::FailedDeploy] {
        let mut seen = overdue();
        seen.reported.reason = Some(reason);
        seen.refusal = Some("refused".to_owned());
        assert_eq!(decide(&seen).rule, Rule::TimedOut, "{reason:?}");
    }
}

#[test]
fn timeout_is_judged_while_stalled() {
    let seen = Observed {
        gate: Gate::Stalled("no Secret".to_owned()),
        ..overdue()
    };
    assert_eq!(decide(&seen).rule, Rule::TimedOut);
}

#[test]
fn timeout_is_not_judged_when_forced_or_without_a_candidate() {
    assert_ne!(
        decide(&Observed {
            force_promote: true,
            ..overdue()
        })
        .rule,
        Rule::TimedOut
    );
    assert_ne!(
        decide(&Observed {
            candidate: Deployed::Missing,
            ..overdue()
        })
        .rule,
        Rule::TimedOut
    );
    let immediately = Observed {
        strategy: Strategy::ImmediatelyPromoteCausingDowntime,
        ..overdue()
    };
    assert_ne!(decide(&immediately).rule, Rule::TimedOut);
}

#[test]
fn timeout_of_zero_and_of_four_hundred_years() {
    assert_eq!(
        decide(&Observed {
            timeout: Duration::ZERO,
            ..applying()
        })
        .rule,
        Rule::TimedOut
    );
    assert_eq!(
        decide(&Observed {
            timeout: Duration::MAX,
            ..applying()
        })
        .rule,
        Rule::AwaitCatchUp
    );
}

#[test]
fn timeout_is_waited_for() {
    let mut seen = applying();
    not_ready(&mut seen, None);
    let moment = ago(60).checked_add(SignedDuration::from_hours(24)).unwrap();
    assert_decides(&seen, Rule::AwaitPod, Some(Reason::Applying), &Step::Wait(Some(moment)));
    seen = Observed {
        answer: Some((Question::Status, Answer::Ready)),
        strategy: Strategy::ManuallyPromote,
        ..applying()
    };
    assert_decides(
        &seen,
        Rule::Park,
        Some(Reason::ReadyToPromote),
        &Step::Wait(Some(moment)),
    );
}

// ---- rollout: the clock --------------------------------------------------------------------------------------------

#[test]
fn clock_runs_on_for_the_same_candidate() {
    let mut seen = applying();
    not_ready(&mut seen, None);
    assert_eq!(report(&decide(&seen)).started_at, Some(ago(60)));
    seen.generation = Some(7); // forcePromote or a label was edited
    assert_eq!(report(&decide(&seen)).started_at, Some(ago(60)));
}

#[test]
fn clock_restarts_when_another_request_or_spec_supersedes() {
    for (request, hash) in [(Uuid::from_u128(3), "new-2"), (NEW, "newer-2")] {
        let mut seen = applying();
        seen.generation = Some(7);
        seen.request = request;
        seen.hash_if_next = hash.to_owned();
        seen.done.deployed = false;
        assert_eq!(report(&decide(&seen)).started_at, Some(now()));
    }
}

#[test]
fn clock_starts_at_the_next_whole_second() {
    let start = |now: &str| {
        report(&decide(&Observed {
            now: now.parse().unwrap(),
            ..requested()
        }))
        .started_at
    };
    assert_eq!(start("2026-03-01T12:00:00Z"), Some(now()));
    assert_eq!(
        start("2026-03-01T11:59:59.000000001Z"),
        Some(now()),
        "else the rollout would time out early"
    );
}

#[test]
fn clock_is_kept_over_failures() {
    let mut seen = applying();
    seen.reported.reason = Some(Reason::FailedDeploy);
    not_ready(&mut seen, None);
    assert_eq!(report(&decide(&seen)).started_at, Some(ago(60)));
}

// ---- rollout: gates ------------------------------------------------------------------------------------------------

#[test]
fn upgrade_window_refuses_and_tears_nothing_down() {
    let seen = Observed {
        refusal: Some("Refusing upgrade".to_owned()),
        ..requested()
    };
    let decision = assert_decides(&seen, Rule::Refused, Some(Reason::FailedDeploy), &Step::Wait(None));
    let report = report(&decision);
    assert_eq!(report.message, "Refusing upgrade");
    assert_eq!((report.completed, report.hash.as_str()), (OLD, "hash-1"));
}

#[test]
fn upgrade_window_is_judged_mid_rollout_and_the_timeout_still_waited_for() {
    let seen = Observed {
        refusal: Some("Refusing upgrade".to_owned()),
        ..applying()
    };
    let moment = ago(60).checked_add(SignedDuration::from_hours(24)).unwrap();
    assert_decides(
        &seen,
        Rule::Refused,
        Some(Reason::FailedDeploy),
        &Step::Wait(Some(moment)),
    );
}

#[test]
fn stalled_starts_nothing() {
    let gate = Gate::Stalled("the Secret is missing".to_owned());
    for seen in [fresh(), requested(), edited(), settled(), applying()] {
        let seen = Observed {
            gate: gate.clone(),
            ..seen
        };
        assert_decides(
            &seen,
            Rule::Stalled,
            None,
            &Step::Fail("the Secret is missing".to_owned()),
        );
    }
}

#[test]
fn stalled_does_not_hold_up_a_promotion() {
    let seen = Observed {
        gate: Gate::Stalled("the Secret is missing".to_owned()),
        ..promoting()
    };
    assert_decides(&seen, Rule::AwaitLeader, None, &Step::Ask(Question::Promote));
}

// ---- rollout: the candidate ----------------------------------------------------------------------------------------

#[test]
fn rollout_looks_after_the_active_generation_first() {
    let mut seen = requested();
    seen.done = Done::default();
    assert_decides(&seen, Rule::Upkeep, None, &Step::Restore(1));
}

#[test]
fn rollout_waits_for_an_earlier_candidate_to_disappear() {
    let seen = Observed {
        candidate: Deployed::Terminating,
        ..requested()
    };
    assert_decides(
        &seen,
        Rule::AwaitDisappearance,
        Some(Reason::Applying),
        &Step::Wait(None),
    );
}

#[test]
fn rollout_applies_in_every_pass_and_says_so_once() {
    let mut seen = applying();
    seen.done.deployed = false;
    assert_decides(&seen, Rule::Deploy, None, &Step::Apply(2));
}

#[test]
fn superseding_reuses_the_number_and_goes_back_to_applying() {
    for reason in [Reason::Applying, Reason::ReadyToPromote] {
        let mut seen = applying();
        seen.reported.reason = Some(reason);
        seen.generation = Some(7);
        seen.request = Uuid::from_u128(3);
        seen.hash_if_next = "newer-2".to_owned();
        seen.done.deployed = false;
        assert_decides(&seen, Rule::Deploy, Some(Reason::Applying), &Step::Apply(2));
    }
}

#[test]
fn failed_deploy_stays_until_the_outcome_changes() {
    let mut seen = applying();
    seen.reported.reason = Some(Reason::FailedDeploy);
    seen.done.deployed = false;
    assert_decides(&seen, Rule::Deploy, None, &Step::Apply(2));
}

#[test]
fn pod_not_ready_waits_and_says_why() {
    let mut seen = applying();
    not_ready(&mut seen, Some("pod mzx-environmentd-2-0: ImagePullBackOff"));
    let decision = decide(&seen);
    assert_eq!(decision.rule, Rule::AwaitPod);
    assert_eq!(
        report(&decision).message,
        "Applying changes for generation 2: pod mzx-environmentd-2-0: ImagePullBackOff"
    );
}

#[test]
fn parked_stays_parked_when_its_pod_restarts() {
    let mut seen = applying();
    seen.reported.reason = Some(Reason::ReadyToPromote);
    not_ready(&mut seen, None);
    assert_eq!(decide(&seen).report, None);
}

// ---- rollout: environmentd's answer --------------------------------------------------------------------------------

fn answered(answer: Answer) -> Observed {
    Observed {
        answer: Some((Question::Status, answer)),
        ..applying()
    }
}

#[test]
fn ready_pod_is_asked() {
    assert_decides(&applying(), Rule::AwaitCatchUp, None, &Step::Ask(Question::Status));
}

#[test]
fn initializing_waits() {
    let decision = decide(&answered(Answer::NotYet("it has not caught up".to_owned())));
    assert_eq!(decision.rule, Rule::AwaitCatchUp);
    assert_eq!(
        report(&decision).message,
        "Applying changes for generation 2: it has not caught up"
    );
}

#[test]
fn unreadable_answer_is_a_failed_deploy() {
    let text = "Failed to apply changes for generation 2: not JSON".to_owned();
    let seen = answered(Answer::Unreadable("not JSON".to_owned()));
    let decision = assert_decides(
        &seen,
        Rule::Failed,
        Some(Reason::FailedDeploy),
        &Step::Fail(text.clone()),
    );
    let report = report(&decision);
    assert_eq!(
        (&report.message, report.completed, report.started_at),
        (&text, OLD, Some(ago(60)))
    );
}

#[test]
fn wait_until_ready_promotes_when_ready() {
    for answer in [Answer::Ready, Answer::Leader] {
        let decision = assert_decides(
            &answered(answer),
            Rule::EnterPromoting,
            Some(Reason::Promoting),
            &Step::Again,
        );
        let report = report(&decision);
        assert_eq!(report.message, "Attempting to promote generation 2");
        assert_eq!(
            (report.active, report.completed, report.hash.as_str()),
            (1, OLD, "new-2")
        );
    }
}

#[test]
fn manually_promote_parks_with_the_hash_and_the_clock() {
    let seen = Observed {
        strategy: Strategy::ManuallyPromote,
        ..answered(Answer::Ready)
    };
    let decision = decide(&seen);
    assert_eq!(
        (decision.rule, report(&decision).reason),
        (Rule::Park, Reason::ReadyToPromote)
    );
    assert_eq!(
        (report(&decision).hash.as_str(), report(&decision).started_at),
        ("new-2", Some(ago(60)))
    );
    assert_eq!(report(&decision).message, "Ready to promote generation 2");
}

#[test]
fn force_promote_skips_the_catch_up() {
    for strategy in [Strategy::WaitUntilReady, Strategy::ManuallyPromote] {
        let mut seen = Observed {
            strategy,
            force_promote: true,
            ..applying()
        };
        assert_decides(&seen, Rule::AwaitCatchUp, None, &Step::Ask(Question::SkipCatchUp));
        seen.answer = Some((Question::SkipCatchUp, Answer::Ready));
        assert_decides(&seen, Rule::EnterPromoting, Some(Reason::Promoting), &Step::Again);
    }
}

#[test]
fn an_answer_to_another_question_is_no_answer() {
    let seen = Observed {
        force_promote: true,
        ..answered(Answer::Ready)
    };
    assert_decides(&seen, Rule::AwaitCatchUp, None, &Step::Ask(Question::SkipCatchUp));
}

#[test]
fn skip_catch_up_refused_is_a_failed_deploy() {
    let mut seen = Observed {
        force_promote: true,
        ..applying()
    };
    seen.answer = Some((Question::SkipCatchUp, Answer::Refused("too early".to_owned())));
    let text = "Failed to apply changes for generation 2: too early".to_owned();
    assert_decides(&seen, Rule::Failed, Some(Reason::FailedDeploy), &Step::Fail(text));
}

// ---- rollout: ImmediatelyPromoteCausingDowntime --------------------------------------------------------------------

#[test]
fn immediately_tears_the_active_generation_down_first() {
    for active in [
        Deployed::Running(workload(OLD, "hash-1", OLD_IMAGE)),
        Deployed::Terminating,
    ] {
        let mut seen = Observed {
            strategy: Strategy::ImmediatelyPromoteCausingDowntime,
            active,
            ..requested()
        };
        seen.done = Done::default();
        let decision = assert_decides(&seen, Rule::TearDownFirst, Some(Reason::Applying), &Step::TearDown(1));
        assert_eq!(
            report(&decision).hash,
            "hash-1",
            "by which a revert brings generation 1 back"
        );
    }
}

#[test]
fn immediately_then_applies_the_candidate() {
    let seen = Observed {
        strategy: Strategy::ImmediatelyPromoteCausingDowntime,
        active: Deployed::Missing,
        ..requested()
    };
    assert_decides(&seen, Rule::Deploy, Some(Reason::Applying), &Step::Apply(2));
}

#[test]
fn immediately_reverted_before_the_candidate_exists_brings_the_active_generation_back() {
    let mut seen = Observed {
        generation: Some(7),
        active: Deployed::Missing,
        ..settled()
    };
    seen.reported.reason = Some(Reason::Applying);
    seen.done = Done::default();
    assert_decides(&seen, Rule::Upkeep, None, &Step::Apply(1));
}

#[test]
fn downtime_is_neither_timed_out_nor_torn_down() {
    let seen = Observed {
        strategy: Strategy::WaitUntilReady,
        timeout: Duration::ZERO,
        ..downtime()
    };
    assert_decides(&seen, Rule::AwaitCatchUp, None, &Step::Ask(Question::Status));
}

#[test]
fn downtime_with_only_the_request_restored_promotes_what_is_deployed() {
    let mut seen = Observed {
        request: OLD,
        generation: Some(7),
        ..downtime()
    };
    seen.done.deployed = false;
    let decision = assert_decides(&seen, Rule::Deploy, Some(Reason::Applying), &Step::Restore(2));
    assert!(
        report(&decision).message.contains("can no longer be cancelled"),
        "{}",
        report(&decision).message
    );
    seen.done.deployed = true;
    seen.answer = Some((Question::SkipCatchUp, Answer::Ready));
    assert_decides(&seen, Rule::EnterPromoting, Some(Reason::Promoting), &Step::Again);
}

#[test]
fn downtime_with_everything_restored_applies_the_old_spec_to_the_candidate() {
    let mut seen = Observed {
        request: OLD,
        generation: Some(7),
        image: OLD_IMAGE.to_owned(),
        hash_if_active: "hash-1".to_owned(),
        hash_if_next: "hash-2".to_owned(),
        ..downtime()
    };
    seen.done.deployed = false;
    assert_decides(&seen, Rule::Deploy, Some(Reason::Applying), &Step::Apply(2));
}

// ---- promote -------------------------------------------------------------------------------------------------------

#[test]
fn promote_asks_and_waits() {
    assert_decides(&promoting(), Rule::AwaitLeader, None, &Step::Ask(Question::Promote));
    for answer in [Answer::NotYet("connection refused".to_owned()), Answer::Ready] {
        let seen = Observed {
            answer: Some((Question::Promote, answer)),
            ..promoting()
        };
        assert_decides(&seen, Rule::AwaitLeader, None, &Step::Wait(None));
    }
}

#[test]
fn promote_does_not_need_a_ready_pod() {
    let mut seen = promoting();
    not_ready(&mut seen, None);
    assert_eq!(decide(&seen).step, Step::Ask(Question::Promote));
}

#[test]
fn promote_refused_fails_the_pass_and_keeps_the_reason() {
    for answer in [
        Answer::Refused("initialising".to_owned()),
        Answer::Unreadable("HTML".to_owned()),
    ] {
        let seen = Observed {
            answer: Some((Question::Promote, answer)),
            ..promoting()
        };
        let decision = decide(&seen);
        assert_eq!((decision.rule, &decision.report), (Rule::PromotionFailed, &None));
        assert!(matches!(decision.step, Step::Fail(_)));
    }
}

#[test]
fn promote_completes_with_what_is_deployed_not_with_the_spec() {
    let mut seen = Observed {
        answer: Some((Question::Promote, Answer::Leader)),
        ..promoting()
    };
    seen.request = Uuid::from_u128(3);
    seen.image = "materialize/environmentd:v26.9.9".to_owned();
    seen.hash_if_next = "newer-2".to_owned();
    let decision = decide(&seen);
    let Step::SwitchTraffic(2, report) = &decision.step else {
        panic!("{decision:?}")
    };
    assert_eq!(
        (report.reason, report.active, report.completed),
        (Reason::Applied, 2, NEW)
    );
    assert_eq!(
        (report.image.as_deref(), report.hash.as_str()),
        (Some(NEW_IMAGE), "new-2")
    );
    assert_eq!(
        (report.message.as_str(), report.started_at),
        ("Successfully applied changes for generation 2", None)
    );
}

#[test]
fn promote_restores_the_candidate_only_to_what_is_deployed() {
    let mut seen = promoting();
    seen.done.deployed = false;
    assert_decides(&seen, Rule::Upkeep, None, &Step::Apply(2));
    seen.hash_if_next = "newer-2".to_owned();
    assert_decides(&seen, Rule::Upkeep, None, &Step::Restore(2));
}

#[test]
fn promote_with_its_statefulset_deleted_makes_it_again() {
    let mut seen = Observed {
        candidate: Deployed::Terminating,
        ..promoting()
    };
    assert_decides(&seen, Rule::AwaitDisappearance, None, &Step::Wait(None));
    seen.candidate = Deployed::Missing;
    assert_decides(&seen, Rule::Deploy, None, &Step::Apply(2));
}

#[test]
fn an_edit_while_promoting_is_rolled_out_or_shown_afterwards() {
    let mut seen = settled();
    seen.reported.active = 2;
    seen.reported.completed = NEW;
    seen.active = Deployed::Running(workload(NEW, "new-2", NEW_IMAGE));
    seen.hash_if_active = "newer-2".to_owned();
    seen.generation = Some(8);
    seen.request = NEW;
    assert_eq!(decide(&seen).rule, Rule::WaitForApproval);
    seen.request = Uuid::from_u128(3);
    assert_eq!(decide(&seen).rule, Rule::Deploy);
}

// ---- idle ----------------------------------------------------------------------------------------------------------

#[test]
fn cancel_by_restoring_the_request_tears_the_candidate_down() {
    let mut seen = Observed {
        request: OLD,
        generation: Some(7),
        ..applying()
    };
    let decision = assert_decides(&seen, Rule::CleanUp, Some(Reason::WaitingForApproval), &Step::CleanUp);
    let report = report(&decision);
    assert_eq!(
        (report.completed, report.image.as_deref(), report.hash.as_str()),
        (OLD, Some(OLD_IMAGE), "hash-1")
    );
    assert_eq!(report.started_at, None);
    seen.done.cleaned = true;
    assert_eq!(decide(&seen).step, Step::Wait(None));
}

#[test]
fn full_revert_ends_in_applied_of_the_active_generation() {
    for reason in [Reason::Applying, Reason::ReadyToPromote, Reason::FailedDeploy] {
        let mut seen = applying();
        seen.reported.reason = Some(reason);
        seen.generation = Some(7);
        seen.request = OLD;
        seen.image = OLD_IMAGE.to_owned();
        seen.hash_if_active = "hash-1".to_owned();
        let decision = assert_decides(&seen, Rule::CleanUp, Some(Reason::Applied), &Step::CleanUp);
        assert_eq!(report(&decision).hash, "hash-1");
    }
}

#[test]
fn clean_up_follows_what_exists_not_the_condition() {
    let mut seen = settled();
    seen.leftovers = true;
    assert_decides(&seen, Rule::CleanUp, None, &Step::CleanUp);
}

#[test]
fn idle_applies_what_is_deployed_and_never_an_unapproved_spec() {
    let mut seen = settled();
    seen.done = Done::default();
    assert_decides(&seen, Rule::Upkeep, None, &Step::Apply(1));
    let mut seen = edited();
    seen.done = Done::default();
    assert_decides(&seen, Rule::Upkeep, None, &Step::Restore(1));
}

#[test]
fn a_deleted_active_statefulset_comes_back_while_the_spec_is_the_deployed_one() {
    let mut seen = Observed {
        active: Deployed::Missing,
        ..settled()
    };
    seen.done = Done::default();
    assert_decides(&seen, Rule::Upkeep, None, &Step::Apply(1));
}

#[test]
fn waiting_for_approval_is_said_once() {
    let mut seen = edited();
    seen.reported.reason = Some(Reason::WaitingForApproval);
    seen.reported.observed_generation = Some(6);
    assert_decides(&seen, Rule::WaitForApproval, None, &Step::Wait(None));
}

#[test]
fn waiting_for_approval_ends_when_nothing_differs_any_more() {
    let mut seen = settled();
    seen.reported.reason = Some(Reason::WaitingForApproval);
    assert_decides(&seen, Rule::UpToDate, Some(Reason::Applied), &Step::Wait(None));
}

#[test]
fn a_change_of_the_operator_shows_as_waiting_for_approval() {
    let seen = Observed {
        hash_if_active: "rendered anew".to_owned(),
        ..settled()
    };
    assert_decides(
        &seen,
        Rule::WaitForApproval,
        Some(Reason::WaitingForApproval),
        &Step::Wait(None),
    );
}

#[test]
fn a_stale_condition_is_written_again() {
    let seen = Observed {
        generation: Some(6),
        ..settled()
    };
    assert_decides(&seen, Rule::UpToDate, Some(Reason::Applied), &Step::Wait(None));
}

// ---- objects of another operator -----------------------------------------------------------------------------------

#[test]
fn another_operators_generation_is_adopted_where_nothing_differs() {
    let mut seen = Observed {
        active: foreign(false),
        ..settled()
    };
    seen.reported.hash = "their hash".to_owned();
    let decision = assert_decides(&seen, Rule::UpToDate, Some(Reason::Applied), &Step::Wait(None));
    assert_eq!(report(&decision).hash, "hash-1");
    assert_eq!(report(&decision).message, seen.reported.message, "adopted silently");
}

#[test]
fn another_operators_generation_waits_for_approval_where_it_differs() {
    let mut seen = Observed {
        active: foreign(true),
        ..settled()
    };
    seen.reported.hash = "hash-1".to_owned();
    assert_eq!(decide(&seen).rule, Rule::WaitForApproval);
}

#[test]
fn another_operators_candidate_goes_on_as_deployed() {
    let mut seen = Observed {
        candidate: foreign(true),
        ..applying()
    };
    seen.done.deployed = false;
    assert_decides(&seen, Rule::Deploy, None, &Step::Restore(2));
    seen.candidate = foreign(false);
    assert_decides(&seen, Rule::Deploy, None, &Step::Apply(2));
}

// ---- properties ----------------------------------------------------------------------------------------------------

fn deployed() -> impl Generate<Value = Deployed> {
    let hash = prop_oneof![Just("hash-1"), Just("new-1"), Just("new-2")];
    prop_oneof![
        Just(Deployed::Missing),
        Just(Deployed::Terminating),
        any::<bool>().prop_map(foreign),
        (hash, any::<bool>(), any::<bool>()).prop_map(|(hash, new, ready)| {
            Deployed::Running(Workload {
                ready,
                ..workload(if new { NEW } else { OLD }, hash, NEW_IMAGE)
            })
        }),
    ]
}

fn observed() -> impl Generate<Value = Observed> {
    let reason = proptest::option::of(proptest::sample::select(Reason::ALL.to_vec()));
    let strategy = proptest::sample::select(vec![
        Strategy::WaitUntilReady,
        Strategy::ManuallyPromote,
        Strategy::ImmediatelyPromoteCausingDowntime,
    ]);
    let question = proptest::sample::select(vec![Question::Status, Question::SkipCatchUp, Question::Promote]);
    let answer = prop_oneof![
        Just(Answer::Ready),
        Just(Answer::Leader),
        Just(Answer::NotYet("n".to_owned())),
        Just(Answer::Refused("r".to_owned())),
        Just(Answer::Unreadable("u".to_owned())),
    ];
    let flags = any::<[bool; 11]>();
    (
        0..3_u64,
        reason,
        strategy,
        deployed(),
        deployed(),
        proptest::option::of((question, answer)),
        flags,
    )
        .prop_map(|(generation, reason, strategy, active, candidate, answer, flags)| {
            let [
                stale,
                requested,
                changed,
                force,
                refused,
                stalled,
                overdue,
                leftovers,
                upkeep,
                applied,
                cleaned,
            ] = flags;
            let mut seen = if changed { edited() } else { settled() };
            seen.reported.active = generation;
            seen.reported.reason = reason;
            seen.reported.observed_generation = Some(if stale { 1 } else { 6 });
            seen.generation = Some(6);
            seen.reported.started_at = overdue.then(|| ago(1_000_000));
            seen.request = if requested { NEW } else { OLD };
            seen.strategy = strategy;
            seen.force_promote = force;
            seen.refusal = refused.then(|| "refused".to_owned());
            seen.gate = if stalled {
                Gate::Stalled("stalled".to_owned())
            } else {
                Gate::Open
            };
            seen.active = if generation == 0 { Deployed::Missing } else { active };
            seen.candidate = candidate;
            seen.answer = answer;
            seen.leftovers = leftovers;
            seen.done = Done {
                upkeep,
                deployed: applied,
                cleaned,
            };
            seen
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    /// Invariants 1 and 2: the active generation grows by one and only with `Applied`; out of `Promoting` leads
    /// nothing but that.
    #[test]
    fn only_a_completed_promotion_moves_the_active_generation(seen in observed()) {
        let decision = decide(&seen);
        let promoting = seen.reported.reason == Some(Reason::Promoting);
        if let Some(report) = &decision.report {
            prop_assert_eq!(report.active, seen.reported.active);
            prop_assert!(!promoting, "{:?}", report);
        }
        if let Step::SwitchTraffic(generation, report) = &decision.step {
            prop_assert!(promoting);
            prop_assert_eq!(seen.answer.clone(), Some((Question::Promote, Answer::Leader)));
            prop_assert_eq!((*generation, report.active), (seen.next(), seen.next()));
            prop_assert_eq!(report.reason, Reason::Applied);
        }
    }

    /// Property P4: the active generation is deleted only by the strategy that says so, and nothing while Promoting.
    #[test]
    fn deletions_spare_what_is_protected(seen in observed()) {
        let decision = decide(&seen);
        match decision.step {
            Step::TearDown(generation) => {
                prop_assert_eq!(generation, seen.reported.active);
                prop_assert_eq!(seen.strategy, Strategy::ImmediatelyPromoteCausingDowntime);
                prop_assert!(seen.requested() && seen.changes() && seen.gate == Gate::Open);
                prop_assert!(seen.reported.reason != Some(Reason::Promoting));
            }
            Step::CleanUp => {
                prop_assert!(seen.reported.reason != Some(Reason::Promoting) && !seen.downtime_begun());
                prop_assert!(!(seen.requested() && seen.changes()));
            }
            _ => {}
        }
    }

    /// A pod of a superseded spec is never promoted: `Promoting` is entered only right after the apply of this pass.
    #[test]
    fn promoting_is_entered_only_with_a_ready_and_current_candidate(seen in observed()) {
        let decision = decide(&seen);
        if decision.report.as_ref().is_some_and(|report| report.reason == Reason::Promoting) {
            prop_assert!(seen.done.deployed);
            prop_assert!(matches!(&seen.candidate, Deployed::Running(workload) if workload.ready));
            prop_assert!(matches!(&seen.answer, Some((_, Answer::Ready | Answer::Leader))));
        }
    }

    /// What was reported is not reported again: a pass over an unchanged object writes nothing.
    #[test]
    fn a_report_settles(seen in observed()) {
        let decision = decide(&seen);
        let Some(first) = &decision.report else { return Ok(()) };
        let mut again = seen.clone();
        again.reported = Reported {
            active: first.active,
            reason: Some(first.reason),
            observed_generation: seen.generation,
            message: first.message.clone(),
            completed: first.completed,
            image: first.image.clone(),
            hash: first.hash.clone(),
            started_at: first.started_at,
        };
        if let Some(second) = decide(&again).report {
            // A time-out of zero, or moving on within the same pass, may lead further; the same reason must not differ.
            if second.reason == first.reason {
                prop_assert_eq!(&second, first);
            }
        }
    }
}
