//! The status that follows from a report, and what of it is written.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn report(reason: UpToDateReason, message: &str) -> Report {
    Report {
        reason,
        message: message.to_owned(),
        active: 1,
        completed: Uuid::from_u128(1),
        image: Some("i".to_owned()),
        hash: "h".to_owned(),
        started_at: None,
    }
}

fn stall() -> Stall {
    Stall::BackendSecretNotFound {
        namespace: "ns".to_owned(),
        name: "s".to_owned(),
    }
}

fn applying() -> MaterializeStatus {
    let empty = MaterializeStatus {
        resource_id: "abc".to_owned(),
        ..MaterializeStatus::default()
    };
    next(
        &empty,
        Some(&report(UpToDateReason::Applying, "m")),
        None,
        Some(3),
        at("2026-01-01T00:00:00Z"),
    )
}

fn annotated(value: &str) -> Materialize {
    let mut materialize = Materialize::default();
    materialize.spec.environmentd_image_ref = "i".to_owned();
    materialize
        .annotations_mut()
        .insert(ANNOTATION_LAST_KNOWN_ACTIVE_GENERATION.to_owned(), value.to_owned());
    materialize
}

#[test]
fn the_initial_status() {
    let mut materialize = annotated("0");
    materialize.annotations_mut().clear();
    let status = initial(&materialize, "abc".to_owned()).unwrap();
    let expected = MaterializeStatus {
        resource_id: "abc".to_owned(),
        last_completed_rollout_environmentd_image_ref: Some("i".to_owned()),
        ..MaterializeStatus::default()
    };
    assert_eq!(status, expected);
}

#[test]
fn the_annotation_seeds_the_active_generation() {
    assert_eq!(initial(&annotated("7"), String::new()).unwrap().active_generation, 7);
    let largest = i64::MAX.unsigned_abs();
    assert_eq!(
        initial(&annotated(&largest.to_string()), String::new())
            .unwrap()
            .active_generation,
        largest
    );
    for bad in [
        "abc",
        "-1",
        "18446744073709551616",
        "9223372036854775808",
        "",
        "1.5",
        " 7",
    ] {
        let stall = initial(&annotated(bad), String::new()).unwrap_err();
        assert_eq!(stall.reason(), "InvalidAnnotation", "{bad}");
    }
}

#[test]
fn a_status_that_only_says_that_the_annotation_is_wrong_is_not_initialised() {
    let mut materialize = annotated("abc");
    assert!(is_uninitialised(&materialize));
    let Err(stall) = initial(&materialize, "abc".to_owned()) else {
        panic!("refused")
    };
    let empty = MaterializeStatus {
        resource_id: "abc".to_owned(),
        ..MaterializeStatus::default()
    };
    materialize.status = Some(next(&empty, None, Some(&stall), Some(1), at("2026-01-01T00:00:00Z")));
    assert!(is_uninitialised(&materialize));
    materialize.status = Some(applying());
    assert!(!is_uninitialised(&materialize));
}

#[test]
fn transition_time_changes_with_the_status_of_the_condition_only() {
    let (first, later) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T01:00:00Z"));
    let parked = next(
        &applying(),
        Some(&report(UpToDateReason::ReadyToPromote, "p")),
        None,
        Some(4),
        later,
    );
    let condition = &parked.conditions[0];
    assert_eq!(
        (condition.reason.as_str(), condition.status.as_str()),
        ("ReadyToPromote", "Unknown")
    );
    assert_eq!(
        (condition.last_transition_time.0, condition.observed_generation),
        (first, Some(4))
    );
    let applied = next(
        &parked,
        Some(&report(UpToDateReason::Applied, "a")),
        None,
        Some(4),
        later,
    );
    assert_eq!(
        (
            applied.conditions[0].status.as_str(),
            applied.conditions[0].last_transition_time.0
        ),
        ("True", later)
    );
}

#[test]
fn stalled_comes_second_and_goes_away() {
    let now = at("2026-01-01T00:00:00Z");
    let stalled = next(&applying(), None, Some(&stall()), Some(3), now);
    let types: Vec<&str> = stalled
        .conditions
        .iter()
        .map(|condition| condition.type_.as_str())
        .collect();
    assert_eq!(types, ["UpToDate", "Stalled"]);
    assert_eq!(
        stalled.conditions[0],
        applying().conditions[0],
        "what was said before stays"
    );
    assert_eq!(
        (
            stalled.conditions[1].status.as_str(),
            stalled.conditions[1].reason.as_str()
        ),
        ("True", "BackendSecretNotFound")
    );
    assert_eq!(next(&stalled, None, None, Some(3), now).conditions.len(), 1);
}

#[test]
fn the_same_but_for_times_is_the_same() {
    let later = next(
        &applying(),
        Some(&report(UpToDateReason::Applying, "m")),
        None,
        Some(3),
        at("2026-02-01T00:00:00Z"),
    );
    assert!(same(&applying(), &later));
    let message = next(
        &applying(),
        Some(&report(UpToDateReason::Applying, "n")),
        None,
        Some(3),
        at("2026-02-01T00:00:00Z"),
    );
    assert!(!same(&applying(), &message) && same_but_for_messages(&applying(), &message));
    let generation = next(
        &applying(),
        Some(&report(UpToDateReason::Applying, "m")),
        None,
        Some(4),
        at("2026-02-01T00:00:00Z"),
    );
    assert!(!same_but_for_messages(&applying(), &generation));
}

#[test]
fn what_is_stored_is_what_the_decision_reads() {
    let started = at("2026-01-01T00:00:00Z");
    let report = Report {
        started_at: Some(started),
        ..report(UpToDateReason::Applying, "m")
    };
    let status = next(&applying(), Some(&report), None, Some(3), at("2026-01-02T00:00:00Z"));
    let read = reported(&status);
    assert_eq!(
        (read.reason, read.observed_generation),
        (Some(UpToDateReason::Applying), Some(3))
    );
    assert_eq!(
        (read.active, read.completed, read.hash.as_str()),
        (1, Uuid::from_u128(1), "h")
    );
    assert_eq!(read.started_at, Some(started));
}

#[test]
fn without_a_clock_of_its_own_the_condition_s_time_serves_while_a_rollout_runs() {
    assert_eq!(reported(&applying()).started_at, Some(at("2026-01-01T00:00:00Z")));
    let empty = MaterializeStatus::default();
    let now = at("2026-01-01T00:00:00Z");
    for (reason, clock) in [
        (UpToDateReason::FailedDeploy, Some(now)),
        (UpToDateReason::ReadyToPromote, Some(now)),
        (UpToDateReason::Applied, None),
        (UpToDateReason::WaitingForApproval, None),
    ] {
        let status = next(&empty, Some(&report(reason, "m")), None, Some(3), now);
        assert_eq!(reported(&status).started_at, clock, "{reason:?}");
    }
}

#[test]
fn only_our_own_keys_are_written_and_absent_ones_are_cleared() {
    let mut status = applying();
    status.last_completed_rollout_hash = Some("v1's own".to_owned());
    let written = own_keys(&status).unwrap();
    let keys: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = KEYS.to_vec();
    expected.sort_unstable();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    assert_eq!(written["rolloutStartedAt"], Value::Null);
}
