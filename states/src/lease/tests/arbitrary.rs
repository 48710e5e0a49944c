//! Whatever a Lease contains and in whatever order observations come: no panic, and no permit that was not earned.

use proptest::prelude::*;

use super::*;

fn identity() -> impl Strategy<Value = Option<super::super::Identity>> {
    prop_oneof![
        Just(None),
        Just(Some("".into())),
        Just(Some(" ".into())),
        Just(Some("me".into())),
        Just(Some("me0".into())),
        Just(Some("m".into())),
        ".{0,8}".prop_map(|text| Some(text.as_str().into())),
        Just(Some("x".repeat(3000).as_str().into())),
    ]
}

fn number() -> impl Strategy<Value = Option<i32>> {
    prop_oneof![
        Just(None),
        Just(Some(i32::MAX)),
        Just(Some(i32::MIN)),
        (-2..20).prop_map(Some),
        any::<i32>().prop_map(Some)
    ]
}

fn time() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        Just(None),
        Just(Some(i64::MAX)),
        Just(Some(i64::MIN)),
        Just(Some(0)),
        (WALL..WALL + 60 * SECOND).prop_map(Some)
    ]
}

fn spec() -> impl Strategy<Value = Spec> {
    (identity(), time(), time(), number(), number()).prop_map(
        |(holder, acquire_time, renew_time, duration_seconds, transitions)| Spec {
            holder,
            acquire_time,
            renew_time,
            duration_seconds,
            transitions,
            strategy: None,
            preferred_holder: None,
        },
    )
}

fn any_lease() -> impl Strategy<Value = Lease> {
    (
        prop_oneof![Just("uid-1"), Just("uid-2"), Just("")],
        prop_oneof![0..30_u64, any::<u64>()],
        spec(),
    )
        .prop_map(|(uid, version, spec)| Lease {
            uid: uid.into(),
            version: ResourceVersion(version),
            spec,
        })
}

/// Something that may happen; the request that an answer is for is chosen when it is played.
#[derive(Clone, Debug)]
enum Play {
    Wait(u64),
    Wake,
    Observe(Observation),
    Answer(Answer),
    /// The API server does what was asked.
    Obey(u64),
    /// An answer to a request that was given up or never made.
    Stray(u64, Answer),
}

fn answer() -> impl Strategy<Value = Answer> {
    let retry_after = prop_oneof![
        Just(None),
        (0..100_u64).prop_map(|seconds| Some(s(seconds))),
        Just(Some(Duration::MAX))
    ];
    prop_oneof![
        any_lease().prop_map(Answer::Lease),
        Just(Answer::Absent),
        Just(Answer::Conflict),
        retry_after
            .clone()
            .prop_map(|retry_after| Answer::Refused { retry_after }),
        retry_after.prop_map(|retry_after| Answer::Unknown { retry_after }),
    ]
}

fn play() -> impl Strategy<Value = Play> {
    prop_oneof![
        3 => (0..6_000_u64).prop_map(Play::Wait),
        4 => Just(Play::Wake),
        1 => Just(Play::Observe(Observation::Started)),
        1 => Just(Play::Observe(Observation::Missing)),
        1 => any::<bool>().prop_map(|watchable| Play::Observe(Observation::Watchable(watchable))),
        3 => (any_lease(), any::<bool>()).prop_map(|(lease, after_gap)| Play::Observe(Observation::Seen { lease, after_gap })),
        4 => answer().prop_map(Play::Answer),
        8 => (1..3_u64).prop_map(Play::Obey),
        1 => (any::<u64>(), answer()).prop_map(|(id, answer)| Play::Stray(id, answer)),
    ]
}

/// Plays against one replica and checks after each step what must hold of any.
#[expect(clippy::too_many_lines, reason = "one list of what must hold")]
fn run(plays: Vec<Play>, last: Option<Observation>) {
    let mut replica = Replica::new();
    let mut open: Option<Request> = None;
    let mut permit: Option<Moment> = None;
    let mut renew_times: Vec<i64> = Vec::new();
    let mut acknowledged: Option<Moment> = None;
    let mut sent_at = Moment::ZERO;
    let mut version = 100;
    replica.observe(Observation::Watchable(true));
    let mut queue: Vec<Play> = vec![Play::Observe(Observation::Started)];
    queue.extend(plays);
    queue.extend(last.map(Play::Observe));
    for play in queue {
        let observation = match play {
            Play::Wait(millis) => {
                replica.at += millis;
                Observation::Elapsed
            }
            Play::Wake => {
                let wake = replica
                    .wake
                    .map_or(replica.at, |wake| u64::try_from(wake.as_millis()).unwrap());
                replica.at = replica.at.max(wake);
                Observation::Elapsed
            }
            Play::Observe(observation) => observation,
            Play::Stray(id, answer) => Observation::Answer {
                to: super::super::RequestId(id.max(1 << 40)),
                answer,
            },
            Play::Answer(answer) => match open.take() {
                Some(request) => {
                    if let (Answer::Lease(lease), Some(spec)) = (&answer, request.operation.spec())
                        && lease.spec.proves(spec)
                    {
                        acknowledged = Some(sent_at);
                    }
                    Observation::Answer { to: request.id, answer }
                }
                None => Observation::Elapsed,
            },
            Play::Obey(skipped) => match open.take() {
                Some(request) if request.operation != Operation::Read => {
                    version += skipped;
                    acknowledged = Some(sent_at);
                    Observation::Answer {
                        to: request.id,
                        answer: Answer::Lease(stored(&request, version)),
                    }
                }
                Some(request) => Observation::Answer {
                    to: request.id,
                    answer: UNKNOWN,
                },
                None => Observation::Elapsed,
            },
        };
        let now = ms(replica.at);
        let actions = replica.observe(observation);
        for action in &actions {
            match action {
                Action::Send(request) => {
                    assert!(
                        open.is_none() || now >= open.as_ref().unwrap().deadline,
                        "one request at a time"
                    );
                    assert!(request.deadline > now && request.deadline <= now + s(5));
                    if let Some(spec) = request.operation.spec()
                        && spec.held_by().is_some()
                    {
                        let renew_time = spec.renew_time.expect("a renewal has a time");
                        assert!(
                            renew_times
                                .last()
                                .is_none_or(|last| *last < renew_time || *last == i64::MAX)
                        );
                        renew_times.push(renew_time);
                        assert_eq!(spec.duration_seconds, Some(15));
                        assert!(spec.transitions >= Some(0), "the API server refuses negative ones");
                    }
                    open = Some(request.clone());
                    sent_at = now;
                }
                Action::Granted { until, .. } => {
                    assert_eq!(permit, None, "no term begins before the last has ended");
                    assert_eq!(acknowledged.map(|sent| sent + s(10)), Some(*until), "earned by a write");
                    assert!(*until > now);
                    permit = Some(*until);
                }
                Action::Extended { until } => {
                    assert!(permit.is_some_and(|permit| permit < *until && now < permit));
                    assert!(*until <= now + s(10));
                    permit = Some(*until);
                }
                Action::Revoked(_) => {
                    assert!(permit.take().is_some(), "something to revoke");
                    assert_eq!(actions.first(), Some(action), "before everything else");
                }
                Action::WaitUntil(moment) => assert!(*moment > now, "no busy loop: {actions:?}"),
                Action::Released | Action::NotReleased(_) => {}
            }
        }
        if open.as_ref().is_some_and(|request| request.deadline <= now) && actions.iter().filter_map(sent).count() == 0
        {
            open = None;
        }
        assert!(
            permit.is_none_or(|until| now < until),
            "an expired permit is revoked in the first step after"
        );
        assert_eq!(replica.until(), permit);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_lease_and_no_order_of_observations_breaks_the_protocol(plays in prop::collection::vec(play(), 0..60)) {
        run(plays, None);
    }

    #[test]
    fn a_release_at_any_time_is_orderly(plays in prop::collection::vec(play(), 0..30), rest in prop::collection::vec(play(), 0..10)) {
        let mut all = plays;
        all.push(Play::Observe(Observation::Release));
        all.extend(rest);
        run(all, Some(Observation::Release));
    }
}
