//! Rules of leaving (decisions L7, L9, L9a).

use super::*;
use crate::lease::NotReleased;

#[test]
fn the_permit_ends_before_anything_is_sent() {
    let (mut replica, _) = Replica::leading();
    replica.at = 1_000;
    let actions = replica.observe(Observation::Release);
    assert_eq!(actions[0], Action::Revoked(Loss::Resigned));
    assert!(matches!(actions[1], Action::Send(_)), "{actions:?}");
}

#[test]
fn resigning_ends_the_permit_and_keeps_the_lease() {
    let (mut replica, _) = Replica::leading();
    replica.at = 1_000;
    assert_eq!(replica.observe(Observation::Resign), [Action::Revoked(Loss::Resigned)]);
    assert!(replica.elapse_to(4_000).is_empty(), "nothing is renewed any more");
    assert!(replica.elapse_to(40_000).is_empty(), "nothing is acquired any more");
}

#[test]
fn a_release_clears_holder_times_and_duration_and_keeps_the_count_and_strategy() {
    let (mut replica, before) = Replica::leading();
    replica.at = 1_000;
    replica.observe(Observation::Resign);
    let write = replica.observe(Observation::Release).request();
    let expected = Operation::Replace {
        uid: before.uid,
        version: before.version,
        spec: released(6),
    };
    assert_eq!(write.operation, expected);
    assert_eq!(
        replica.answer(&write, Answer::Lease(stored(&write, 3))),
        [Action::Released]
    );
    assert!(replica.observe(Observation::Release).is_empty(), "said once");
}

#[test]
fn a_standby_releases_nothing() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    assert_eq!(replica.observe(Observation::Release), [Action::Released]);
}

#[test]
fn a_replica_that_never_started_releases_nothing() {
    assert_eq!(Replica::new().observe(Observation::Release), [Action::Released]);
}

#[test]
fn a_release_during_the_first_read_is_clean() {
    let mut replica = Replica::new();
    let read = replica.observe(Observation::Started).request();
    assert!(replica.observe(Observation::Resign).sends_nothing());
    let actions = replica.answer(&read, Answer::Lease(lease(7, released(5))));
    assert!(actions.sends_nothing(), "no campaign after the end");
    assert_eq!(replica.observe(Observation::Release), [Action::Released]);
}

#[test]
fn a_candidate_that_holds_nothing_does_not_wait_for_its_read() {
    let mut replica = Replica::new();
    let read = replica.observe(Observation::Started).request();
    replica.observe(Observation::Resign);
    assert_eq!(replica.observe(Observation::Release), [Action::Released]);
    let late = replica.answer(&read, Answer::Lease(lease(7, held("me", WALL, 5))));
    assert!(
        late.is_empty(),
        "the answer that nobody waits for changes nothing: {late:?}"
    );
    assert!(replica.elapse_to(40_000).is_empty());
}

#[test]
fn a_read_after_a_write_of_unknown_outcome_is_awaited() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(1, released(5))));
    let write = actions.request();
    let doubtful = replica.answer(&write, UNKNOWN);
    let read = replica.next_request(doubtful);
    assert_eq!(read.operation, Operation::Read);
    replica.observe(Observation::Resign);
    assert!(!replica.observe(Observation::Release).contains(&Action::Released));
    let release = replica.answer(&read, Answer::Lease(stored(&write, 2))).request();
    assert_eq!(written(&release), released(6));
}

#[test]
fn a_renewal_under_way_is_awaited_and_what_it_stored_is_released() {
    let (mut replica, _) = Replica::leading();
    let write = replica.elapse_to(2_000).request();
    assert!(replica.observe(Observation::Release).sends_nothing());
    let release = replica.answer(&write, Answer::Lease(stored(&write, 3))).request();
    assert!(matches!(
        &release.operation,
        Operation::Replace {
            version: ResourceVersion(3),
            ..
        }
    ));
}

#[test]
fn an_acquisition_under_way_counts_as_held() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(1, released(5))));
    let write = actions.request();
    assert!(replica.observe(Observation::Resign).sends_nothing());
    assert!(replica.observe(Observation::Release).sends_nothing());
    let actions = replica.answer(&write, Answer::Lease(stored(&write, 2)));
    assert!(!actions.granted(), "too late to lead");
    assert_eq!(written(&actions.request()), released(6));
}

#[test]
fn a_create_of_unknown_outcome_counts_as_held() {
    let (mut replica, actions) = Replica::found(Answer::Absent);
    let create = actions.request();
    replica.observe(Observation::Release);
    let read = replica.answer(&create, UNKNOWN).request();
    assert_eq!(read.operation, Operation::Read);
    let release = replica.answer(&read, Answer::Lease(stored(&create, 2))).request();
    assert_eq!(written(&release), released(0));
}

#[test]
fn an_acquisition_that_lost_leaves_nothing_to_release() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(1, released(5))));
    let write = actions.request();
    replica.observe(Observation::Release);
    assert_eq!(replica.answer(&write, Answer::Conflict), [Action::Released]);
}

#[test]
fn after_a_conflict_a_release_reads_once_and_releases_what_this_process_wrote() {
    let (mut replica, before) = Replica::leading();
    let release = replica.observe(Observation::Release).request();
    let read = replica.answer(&release, Answer::Conflict).request();
    assert_eq!(read.operation, Operation::Read);
    let annotated = Lease {
        version: ResourceVersion(9),
        ..before
    };
    let again = replica.answer(&read, Answer::Lease(annotated)).request();
    assert!(matches!(
        &again.operation,
        Operation::Replace {
            version: ResourceVersion(9),
            ..
        }
    ));
    assert_eq!(
        replica.answer(&again, Answer::Lease(stored(&again, 10))),
        [Action::Released]
    );
}

#[test]
fn a_renewal_that_landed_unnoticed_is_released() {
    let (mut replica, _) = Replica::leading();
    let write = replica.elapse_to(2_000).request();
    let read = replica.answer(&write, UNKNOWN).request();
    replica.observe(Observation::Resign);
    replica.answer(&read, UNKNOWN);
    let release = replica.observe(Observation::Release).request();
    let again = replica.answer(&release, Answer::Conflict);
    let read = if again.sends_nothing() {
        replica.elapse().request()
    } else {
        again.request()
    };
    let release = replica.answer(&read, Answer::Lease(stored(&write, 3))).request();
    assert_eq!(written(&release), released(6));
}

#[test]
fn a_successors_lease_is_left_alone() {
    let (mut replica, _) = Replica::leading();
    let release = replica.observe(Observation::Release).request();
    let read = replica.answer(&release, Answer::Conflict).request();
    let actions = replica.answer(&read, Answer::Lease(lease(9, held("ghost", WALL, 7))));
    assert_eq!(actions, [Action::NotReleased(NotReleased::NotOurs)]);
}

#[test]
fn another_process_with_this_identity_is_left_alone() {
    let (mut replica, before) = Replica::leading();
    let release = replica.observe(Observation::Release).request();
    let read = replica.answer(&release, Answer::Conflict).request();
    let other = Spec {
        renew_time: Some(WALL + 77),
        ..before.spec
    };
    assert_eq!(
        replica.answer(&read, Answer::Lease(lease(9, other))),
        [Action::NotReleased(NotReleased::NotOurs)]
    );
}

#[test]
fn a_deleted_lease_needs_no_release() {
    let (mut replica, _) = Replica::leading();
    let release = replica.observe(Observation::Release).request();
    let read = replica.answer(&release, Answer::Conflict).request();
    assert_eq!(replica.answer(&read, Answer::Absent), [Action::Released]);
}

#[test]
fn a_release_of_unknown_outcome_is_read() {
    let (mut replica, _) = Replica::leading();
    let release = replica.observe(Observation::Release).request();
    let read = replica.answer(&release, UNKNOWN).request();
    assert_eq!(
        replica.answer(&read, Answer::Lease(stored(&release, 3))),
        [Action::Released]
    );
}

#[test]
fn a_release_gives_up_in_the_end() {
    let (mut replica, _) = Replica::leading();
    let mut actions = replica.observe(Observation::Release);
    let mut requests = 0;
    while actions != [Action::NotReleased(NotReleased::Failed)] {
        actions = match actions.iter().find_map(sent).cloned() {
            Some(request) => {
                requests += 1;
                replica.answer(&request, REFUSED)
            }
            None => replica.elapse(),
        };
        assert!(requests < 10);
    }
    assert_eq!(requests, 4);
}

#[test]
fn a_lost_lease_is_not_released() {
    let (mut replica, _) = Replica::leading();
    let write = replica.elapse_to(2_000).request();
    let read = replica.answer(&write, Answer::Conflict).request();
    replica.answer(&read, Answer::Lease(lease(9, held("ghost", WALL, 7))));
    assert_eq!(replica.observe(Observation::Release), [Action::Released]);
}

#[test]
fn a_lease_whose_permit_expired_but_that_nobody_touched_is_released() {
    let (mut replica, before) = Replica::leading();
    let write = replica.elapse_to(2_000).request();
    replica.answer(&write, REFUSED);
    let again = replica.elapse_to(10_000).request();
    replica.answer(&again, REFUSED);
    let release = replica.observe(Observation::Release).request();
    assert!(matches!(&release.operation, Operation::Replace { version, spec, .. }
        if *version == before.version && *spec == released(6)));
}

#[test]
fn transitions_that_were_missing_are_released_as_0() {
    let spec = Spec {
        transitions: None,
        ..held("me", WALL, 0)
    };
    assert_eq!(spec.released(), released(0));
}
