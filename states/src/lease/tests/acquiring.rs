//! Rules of a candidate (decisions L2, L4 to L7).

use super::*;
use crate::lease::timings::Timings;

fn is_replace(request: &Request, expected: u64) -> bool {
    matches!(&request.operation, Operation::Replace { version, .. } if version.0 == expected)
}

#[test]
fn nothing_is_sent_before_started() {
    let mut replica = Replica::new();
    assert!(replica.event(lease(1, released(0))).sends_nothing());
    assert!(replica.observe(Observation::Elapsed).sends_nothing());
    let write = replica.observe(Observation::Started).request();
    assert!(is_replace(&write, 1), "what the watch had shown is used: {write:?}");
}

#[test]
fn fresh_creation_writes_every_field_and_transitions_0() {
    let (mut replica, actions) = Replica::found(Answer::Absent);
    let write = actions.request();
    let expected = Spec {
        holder: Some("me".into()),
        acquire_time: Some(WALL),
        renew_time: Some(WALL),
        duration_seconds: Some(15),
        transitions: Some(0),
        strategy: None,
        preferred_holder: None,
    };
    assert_eq!(write.operation, Operation::Create(expected));
    let actions = replica.answer(&write, Answer::Lease(stored(&write, 1)));
    assert_eq!(actions[0], Action::Granted { until: s(10), term: 0 });
}

#[test]
fn take_over_adds_1_and_carries_uid_version_and_strategy() {
    let before = Spec {
        strategy: Some("OldestEmulationVersion".into()),
        preferred_holder: Some("ghost".into()),
        ..released(41)
    };
    let (_, actions) = Replica::found(Answer::Lease(lease(7, before)));
    let Operation::Replace { uid, version, spec } = actions.request().operation else {
        panic!("a replace: {actions:?}");
    };
    assert_eq!((&*uid, version), ("uid-1", ResourceVersion(7)));
    assert_eq!(spec.transitions, Some(42));
    assert_eq!(spec.strategy.as_deref(), Some("OldestEmulationVersion"));
    assert_eq!(spec.preferred_holder.as_deref(), Some("ghost"));
}

#[test]
fn transitions_saturate() {
    let (_, actions) = Replica::found(Answer::Lease(lease(7, released(i32::MAX))));
    assert_eq!(written(&actions.request()).transitions, Some(i32::MAX));
}

#[test]
fn negative_transitions_count_as_0() {
    let (_, actions) = Replica::found(Answer::Lease(lease(7, released(-3))));
    assert_eq!(written(&actions.request()).transitions, Some(1));
}

#[test]
fn an_empty_spec_is_free_at_once() {
    let (_, actions) = Replica::found(Answer::Lease(lease(7, Spec::default())));
    assert!(is_replace(&actions.request(), 7));
}

#[test]
fn an_empty_holder_without_renew_time_is_free_at_once() {
    let (_, actions) = Replica::found(Answer::Lease(lease(
        7,
        Spec {
            holder: Some("".into()),
            ..released(5)
        },
    )));
    assert!(is_replace(&actions.request(), 7));
}

#[test]
fn an_empty_holder_with_renew_time_was_cleared_by_an_outsider_and_is_waited_out() {
    let cleared = Spec {
        holder: None,
        ..held("", WALL, 5)
    };
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(7, cleared)));
    assert!(actions.sends_nothing());
    assert!(replica.elapse_to(14_999).sends_nothing());
    assert!(is_replace(&replica.elapse_to(15_000).request(), 7));
}

#[test]
fn one_blank_is_a_holder_like_any_other() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(
        7,
        Spec {
            holder: Some(" ".into()),
            ..released(0)
        },
    )));
    assert!(actions.sends_nothing());
    assert!(replica.elapse_to(14_999).sends_nothing());
    assert!(!replica.elapse_to(15_000).sends_nothing());
}

#[test]
fn identities_are_compared_for_equality() {
    for holder in ["me0", "m", "ME", "me ", " me"] {
        let (_, actions) = Replica::found(Answer::Lease(lease(7, held(holder, WALL, 0))));
        assert!(actions.sends_nothing(), "{holder:?} is foreign");
    }
}

#[test]
fn neither_times_nor_duration_of_the_lease_are_judged() {
    for (renew_time, duration) in [
        (Some(0), Some(15)),
        (Some(4_070_908_800_000_000), Some(15)),
        (Some(WALL), Some(1)),
        (Some(WALL), Some(3600)),
        (None, None),
        (Some(i64::MIN), Some(-1)),
    ] {
        let spec = Spec {
            renew_time,
            duration_seconds: duration,
            ..held("ghost", 0, 41)
        };
        let (mut replica, actions) = Replica::found(Answer::Lease(lease(7, spec)));
        assert!(actions.sends_nothing());
        assert!(replica.elapse_to(14_999).sends_nothing());
        assert!(is_replace(&replica.elapse_to(15_000).request(), 7));
    }
}

#[test]
fn expiry_counts_from_the_last_change_that_was_observed() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 0))));
    replica.elapse_to(10_000);
    assert!(replica.event(lease(8, held("ghost", WALL + SECOND, 0))).sends_nothing());
    assert!(replica.elapse_to(24_999).sends_nothing());
    assert!(is_replace(&replica.elapse_to(25_000).request(), 8));
}

#[test]
fn a_metadata_edit_does_not_restart_the_wait_but_moves_the_version() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 0))));
    replica.elapse_to(10_000);
    replica.event(lease(8, held("ghost", WALL, 0)));
    assert!(is_replace(&replica.elapse_to(15_000).request(), 8));
}

#[test]
fn any_change_of_the_spec_restarts_the_wait() {
    let changes: [fn(&mut Spec); 4] = [
        |spec| spec.duration_seconds = Some(16),
        |spec| spec.transitions = Some(1),
        |spec| spec.strategy = Some("x".into()),
        |spec| spec.holder = None,
    ];
    for change in changes {
        let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 0))));
        replica.elapse_to(10_000);
        let mut spec = held("ghost", WALL, 0);
        change(&mut spec);
        replica.event(lease(8, spec));
        assert!(replica.elapse_to(24_999).sends_nothing());
        assert!(!replica.elapse_to(25_000).sends_nothing());
    }
}

#[test]
fn after_a_gap_a_new_version_restarts_the_wait_though_the_spec_is_the_same() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 0))));
    replica.elapse_to(10_000);
    replica.observe(Observation::Seen {
        lease: lease(8, held("ghost", WALL, 0)),
        after_gap: true,
    });
    assert!(replica.elapse_to(24_999).sends_nothing());
    assert!(!replica.elapse_to(25_000).sends_nothing());
}

#[test]
fn after_a_gap_the_same_version_continues_the_wait() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 0))));
    replica.elapse_to(10_000);
    replica.observe(Observation::Seen {
        lease: lease(7, held("ghost", WALL, 0)),
        after_gap: true,
    });
    assert!(is_replace(&replica.elapse_to(15_000).request(), 7));
}

#[test]
fn an_older_version_never_replaces_a_newer_one() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    assert!(replica.event(lease(6, released(5))).sends_nothing());
    assert!(
        replica
            .observe(Observation::Seen {
                lease: lease(6, released(5)),
                after_gap: true
            })
            .sends_nothing()
    );
    // 10 is newer than 7 as an integer, though not as a string.
    assert!(!replica.event(lease(10, released(5))).sends_nothing());
}

#[test]
fn a_quorum_read_of_an_older_version_is_taken_after_a_restore_of_etcd() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7000, held("ghost", WALL, 5))));
    let write = replica.elapse_to(15_000).request();
    let conflict = replica.answer(&write, Answer::Conflict);
    let read = replica.next_request(conflict);
    replica.answer(&read, Answer::Lease(lease(30, held("ghost", WALL, 5))));
    let again = replica.elapse_to(15_000 + 15_000).request();
    assert!(is_replace(&again, 30), "{again:?}");
}

#[test]
fn a_release_is_believed_with_the_count_last_seen() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    replica.elapse_to(3_000);
    let write = replica.event(lease(8, released(5))).request();
    assert!(is_replace(&write, 8), "at once: {write:?}");
    assert_eq!(written(&write).transitions, Some(6));
}

#[test]
fn a_forged_release_with_another_count_is_waited_out() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    replica.elapse_to(3_000);
    assert!(replica.event(lease(8, released(4))).sends_nothing());
    assert!(
        replica
            .event(lease(
                9,
                Spec {
                    holder: Some("".into()),
                    ..released(4)
                }
            ))
            .sends_nothing()
    );
    assert!(replica.elapse_to(17_999).sends_nothing());
    assert!(is_replace(&replica.elapse_to(18_000).request(), 9));
}

#[test]
fn a_release_in_two_edits_of_an_outsider_is_waited_out() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    replica.elapse_to(3_000);
    assert!(
        replica
            .event(lease(
                8,
                Spec {
                    holder: None,
                    ..held("", WALL, 5)
                }
            ))
            .sends_nothing()
    );
    assert!(
        replica.event(lease(9, released(5))).sends_nothing(),
        "its holder did not write this"
    );
    assert!(replica.elapse_to(17_999).sends_nothing());
}

#[test]
fn what_an_intruder_releases_is_not_free_before_the_holder_it_pushed_aside_has_expired() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("leader", WALL, 5))));
    replica.elapse_to(1_000);
    replica.event(lease(8, held("intruder", WALL + SECOND, 6)));
    replica.elapse_to(2_000);
    assert!(
        replica.event(lease(9, released(6))).sends_nothing(),
        "the leader may not know yet"
    );
    assert!(replica.elapse_to(14_999).sends_nothing());
    assert!(
        is_replace(&replica.elapse_to(15_000).request(), 9),
        "15 s after the leader was last seen"
    );
}

#[test]
fn a_new_leader_that_took_a_released_lease_may_release_it_at_once() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("a", WALL, 5))));
    replica.elapse_to(1_000);
    let write = replica.event(lease(8, released(5))).request();
    replica.event(lease(9, held("b", WALL, 6)));
    assert!(
        replica.answer(&write, Answer::Conflict).sends_nothing(),
        "the watch has shown who won"
    );
    replica.elapse_to(9_000);
    assert!(is_replace(&replica.event(lease(10, released(6))).request(), 10));
}

#[test]
fn own_identity_in_the_first_observation_is_free_at_once_and_keeps_count_and_acquire_time() {
    let (_, actions) = Replica::found(Answer::Lease(lease(7, held("me", WALL - SECOND, 5))));
    let write = actions.request();
    assert!(is_replace(&write, 7));
    assert_eq!(written(&write), held("me", WALL, 5));
}

#[test]
fn own_identity_later_is_waited_out_like_a_foreign_one() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    replica.elapse_to(3_000);
    assert!(replica.event(lease(8, held("me", WALL + 1, 5))).sends_nothing());
    assert!(replica.elapse_to(17_999).sends_nothing());
    assert!(!replica.elapse_to(18_000).sends_nothing());
}

#[test]
fn own_identity_after_an_absence_is_waited_out() {
    let (mut replica, actions) = Replica::found(Answer::Absent);
    let create = actions.request();
    replica.answer(&create, Answer::Conflict);
    let read = replica.elapse().request();
    assert!(
        replica
            .answer(&read, Answer::Lease(lease(8, held("me", WALL - SECOND, 5))))
            .sends_nothing()
    );
}

#[test]
fn an_identical_write_is_avoided() {
    let (_, actions) = Replica::found(Answer::Lease(lease(7, held("me", WALL, 5))));
    assert_eq!(written(&actions.request()).renew_time, Some(WALL + 1));
}

#[test]
fn an_answer_with_an_unchanged_version_acquires_nothing() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(7, released(5))));
    let write = actions.request();
    assert!(!replica.answer(&write, Answer::Lease(stored(&write, 7))).granted());
}

#[test]
fn an_answer_that_names_another_holder_acquires_nothing() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(7, released(5))));
    let write = actions.request();
    assert!(
        !replica
            .answer(&write, Answer::Lease(lease(8, held("ghost", WALL, 6))))
            .granted()
    );
}

#[test]
fn acquisition_counts_from_before_the_request() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(7, released(5))));
    let write = actions.request();
    replica.at = 4_000;
    let actions = replica.answer(&write, Answer::Lease(stored(&write, 8)));
    assert_eq!(actions[0], Action::Granted { until: s(10), term: 6 });
}

#[test]
fn an_answer_later_than_a_permit_lasts_acquires_nothing() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(7, released(5))));
    let write = actions.request();
    replica.at = 12_000;
    assert!(!replica.answer(&write, Answer::Lease(stored(&write, 8))).granted());
}

#[test]
fn after_a_conflict_a_candidate_reads_once_jittered_and_takes_what_it_finds() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(7, released(5))));
    let write = actions.request();
    replica.at = 2_000;
    replica.jitter = u32::MAX / 2;
    assert!(replica.answer(&write, Answer::Conflict).sends_nothing());
    let read = replica.elapse_to(2_500).request();
    assert_eq!(read.operation, Operation::Read);
    assert!(
        replica
            .answer(&read, Answer::Lease(lease(9, held("ghost", WALL, 6))))
            .sends_nothing()
    );
    assert!(replica.elapse_to(17_499).sends_nothing());
    assert!(is_replace(&replica.elapse_to(17_500).request(), 9));
}

#[test]
fn conflicts_without_end_cost_at_most_one_request_a_second() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(1, released(5))));
    let mut request = Some(actions.request());
    let mut requests = 0;
    let mut version = 1;
    while replica.at < 60_000 {
        let actions = match request.take() {
            Some(sent) => {
                requests += 1;
                version += 1;
                let answer = match sent.operation {
                    Operation::Read => Answer::Lease(lease(version, released(5))),
                    _ => Answer::Conflict,
                };
                replica.answer(&sent, answer)
            }
            None => replica.elapse(),
        };
        request = actions.iter().find_map(sent).cloned();
    }
    assert!(requests <= 60, "{requests} in a minute");
    assert!(requests >= 20, "it goes on trying: {requests}");
}

#[test]
fn refusals_and_silence_are_retried_for_ever_at_most_once_a_second() {
    for answer in [REFUSED, UNKNOWN] {
        let mut replica = Replica::new();
        let mut request = Some(replica.observe(Observation::Started).request());
        let mut requests = 0;
        while replica.at < 60_000 {
            let actions = match request.take() {
                Some(sent) => {
                    requests += 1;
                    replica.answer(&sent, answer.clone())
                }
                None => replica.elapse(),
            };
            request = actions.iter().find_map(sent).cloned();
        }
        assert!((20..=60).contains(&requests), "{requests} in a minute");
    }
}

#[test]
fn retry_after_is_honoured_but_not_beyond_a_lease_duration() {
    let mut replica = Replica::new();
    let read = replica.observe(Observation::Started).request();
    replica.answer(
        &read,
        Answer::Refused {
            retry_after: Some(s(8)),
        },
    );
    assert!(replica.elapse_to(7_999).sends_nothing());
    let read = replica.elapse_to(8_000).request();
    replica.answer(
        &read,
        Answer::Refused {
            retry_after: Some(s(3600)),
        },
    );
    assert!(!replica.elapse_to(23_000).sends_nothing());
}

#[test]
fn an_acquisition_of_unknown_outcome_is_read_and_written_again() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(7, released(5))));
    let write = actions.request();
    replica.at = 1_000;
    let read = replica.answer(&write, UNKNOWN).request();
    assert_eq!(read.operation, Operation::Read);
    let landed = stored(&write, 8);
    let actions = replica.answer(&read, Answer::Lease(landed));
    assert!(!actions.granted(), "a read never makes a leader");
    let again = replica.elapse_to(3_000).request();
    assert!(
        is_replace(&again, 8),
        "its own write is free at once, after the pause: {again:?}"
    );
    assert_eq!(written(&again).transitions, Some(6), "still the same change of holder");
    let actions = replica.answer(&again, Answer::Lease(stored(&again, 9)));
    assert_eq!(actions[0], Action::Granted { until: s(13), term: 6 });
}

#[test]
fn an_own_write_that_is_found_later_than_a_permit_lasts_is_waited_out() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(7, released(5))));
    let write = actions.request();
    let mut actions = replica.answer(&write, UNKNOWN);
    let mut read = replica.next_request(actions);
    while replica.at < 10_000 {
        actions = replica.answer(&read, UNKNOWN);
        read = replica.next_request(actions);
    }
    let found_at = replica.at;
    assert!(
        replica.answer(&read, Answer::Lease(stored(&write, 8))).sends_nothing(),
        "another may have held it since"
    );
    assert!(replica.elapse_to(found_at + 14_999).sends_nothing());
    assert!(is_replace(&replica.elapse_to(found_at + 15_000).request(), 8));
}

#[test]
fn a_request_is_given_up_at_its_deadline_and_its_late_answer_ignored() {
    let (mut replica, actions) = Replica::found(Answer::Lease(lease(7, released(5))));
    let write = actions.request();
    assert_eq!(write.deadline, s(5));
    let read = replica.elapse_to(5_000).request();
    assert_eq!(read.operation, Operation::Read);
    assert!(!replica.answer(&write, Answer::Lease(stored(&write, 8))).granted());
}

#[test]
fn a_missing_lease_is_created_15_s_after_its_absence_was_first_read() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    replica.elapse_to(10_000);
    let read = replica.observe(Observation::Missing).request();
    replica.at = 10_100;
    assert!(replica.answer(&read, Answer::Absent).sends_nothing());
    assert!(replica.observe(Observation::Missing).sends_nothing(), "known already");
    assert!(replica.elapse_to(25_099).sends_nothing());
    let create = replica.elapse_to(25_100).request();
    assert_eq!(written(&create).transitions, Some(0));
    assert!(matches!(create.operation, Operation::Create(_)));
}

#[test]
fn a_watch_that_says_missing_is_only_a_reason_to_read() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    replica.elapse_to(5_000);
    let read = replica.observe(Observation::Missing).request();
    assert_eq!(read.operation, Operation::Read);
    assert!(
        replica
            .answer(&read, Answer::Lease(lease(7, held("ghost", WALL, 5))))
            .sends_nothing()
    );
    assert!(is_replace(&replica.elapse_to(15_000).request(), 7), "the wait went on");
}

#[test]
fn a_watch_that_always_says_missing_costs_at_most_one_read_a_second() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    let mut reads = 0;
    for tick in 1..100 {
        replica.at = tick * 100;
        let actions = replica.observe(Observation::Missing);
        if let Some(read) = actions.iter().find_map(sent).cloned() {
            reads += 1;
            replica.answer(&read, Answer::Lease(lease(7, held("ghost", WALL, 5))));
        }
    }
    assert!((9..=10).contains(&reads), "{reads} in 10 s");
}

#[test]
fn a_stale_watch_does_not_bring_back_a_deleted_lease() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    replica.elapse_to(1_000);
    let read = replica.observe(Observation::Missing).request();
    replica.answer(&read, Answer::Absent);
    replica.event(lease(7, held("ghost", WALL, 5)));
    let create = replica.elapse_to(16_000).request();
    assert!(matches!(create.operation, Operation::Create(_)), "{create:?}");
}

#[test]
fn a_lost_create_is_repeated_at_once_only_if_no_lease_was_ever_seen() {
    let (mut replica, actions) = Replica::found(Answer::Absent);
    let create = actions.request();
    let unknown = replica.answer(&create, UNKNOWN);
    let read = replica.next_request(unknown);
    assert_eq!((&read.operation, replica.at), (&Operation::Read, 1_000));
    assert!(replica.answer(&read, Answer::Absent).sends_nothing());
    assert!(matches!(
        replica.elapse_to(2_000).request().operation,
        Operation::Create(_)
    ));
}

#[test]
fn without_permission_to_watch_a_candidate_polls_every_retry_period_jittered() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    replica.observe(Observation::Watchable(false));
    for (jitter, polled_at) in [(u32::MAX, 2_000), (0, 5_000)] {
        assert!(replica.elapse_to(polled_at - 1).sends_nothing());
        let read = replica.elapse_to(polled_at).request();
        assert_eq!(read.operation, Operation::Read);
        replica.jitter = jitter;
        replica.answer(&read, Answer::Lease(lease(7, held("ghost", WALL, 5))));
    }
    replica.jitter = u32::MAX / 2;
    let mut write = None;
    while replica.at < 15_000 {
        let request = replica.elapse().request();
        if request.operation == Operation::Read {
            replica.answer(&request, Answer::Lease(lease(7, held("ghost", WALL, 5))));
        } else {
            write = Some(request);
        }
    }
    assert_eq!(replica.at, 15_000, "polling the same version does not restart the wait");
    assert!(is_replace(&write.expect("an attempt"), 7));
}

#[test]
fn a_candidate_that_polls_sees_a_release() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    replica.observe(Observation::Watchable(false));
    let read = replica.elapse().request();
    assert!(is_replace(
        &replica.answer(&read, Answer::Lease(lease(8, released(5)))).request(),
        8
    ));
}

#[test]
fn a_watching_candidate_sends_nothing_while_the_leader_renews() {
    let (mut replica, _) = Replica::found(Answer::Lease(lease(7, held("ghost", WALL, 5))));
    for renewal in 1..600_u64 {
        replica.at = renewal * 2_000;
        let renewed = held("ghost", WALL + i64::try_from(renewal).unwrap() * 2 * SECOND, 5);
        assert!(replica.event(lease(7 + renewal, renewed)).sends_nothing());
    }
}

#[test]
fn other_timings_are_obeyed() {
    let timings = Timings::new(s(30), s(20), s(4)).unwrap();
    let mut replica = Replica {
        state: Some(State::new("me", timings)),
        ..Replica::new()
    };
    let read = replica.observe(Observation::Started).request();
    assert_eq!(read.deadline, s(10));
    replica.answer(&read, Answer::Lease(lease(7, held("ghost", WALL, 5))));
    assert!(replica.elapse_to(29_999).sends_nothing());
    assert_eq!(written(&replica.elapse_to(30_000).request()).duration_seconds, Some(30));
}
