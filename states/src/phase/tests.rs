//! Each transition, the order of its effects, and what is refused.

use std::time::Duration;

use futures::executor::block_on;
use proptest::prelude::*;

use super::{Bounds, Cause, Effects, Event, Phase, Phases, Transition};
use crate::lease::{Loss, Moment};

const SIGTERM: i32 = 15;
const SIGINT: i32 = 2;

/// Records the effects, and lets one second pass at each look at the clock.
#[derive(Default)]
struct Recorder {
    calls: Vec<String>,
    transitions: Vec<Transition>,
    clock: std::cell::Cell<u64>,
}

impl Effects for Recorder {
    fn now(&self) -> Moment {
        self.clock.set(self.clock.get() + 1);
        Duration::from_secs(self.clock.get())
    }

    async fn transitioned(&mut self, transition: &Transition) {
        self.calls.push(format!("-> {}", transition.to));
        self.transitions.push(transition.clone());
    }

    async fn refused(&mut self, phase: Phase, event: &Event) {
        self.calls.push(format!("refused {event:?} in {phase}"));
    }

    async fn campaign(&mut self) {
        self.calls.push("campaign".into());
    }

    async fn mint_permit(&mut self, term: i32) {
        self.calls.push(format!("mint permit {term}"));
    }

    async fn set_leader_gauge(&mut self) {
        self.calls.push("leader gauge 1".into());
    }

    async fn spawn_tasks(&mut self, term: i32) {
        self.calls.push(format!("spawn tasks {term}"));
    }

    async fn revoke_permit(&mut self) {
        self.calls.push("revoke permit".into());
    }

    async fn reset_gauges(&mut self) {
        self.calls.push("reset gauges".into());
    }

    async fn abort_tasks(&mut self) {
        self.calls.push("abort tasks".into());
    }

    async fn settle(&mut self, bounds: &Bounds) {
        assert_eq!(*bounds, Bounds::PRODUCTION);
        self.calls.push("settle".into());
    }

    async fn release(&mut self, bounds: &Bounds) {
        assert_eq!(*bounds, Bounds::PRODUCTION);
        self.calls.push("release".into());
    }

    async fn linger(&mut self, _bounds: &Bounds) {
        self.calls.push("linger".into());
    }

    async fn close(&mut self, _bounds: &Bounds) {
        self.calls.push("close".into());
    }
}

fn acquired(term: i32) -> Event {
    Event::Acquired { term }
}

fn lost() -> Event {
    Event::Lost(Loss::DeadlinePassed)
}

fn play(webhook: bool, events: &[Event]) -> Phases<Recorder> {
    let mut phases = Phases::new(Recorder::default(), webhook, Bounds::PRODUCTION);
    for event in events {
        block_on(phases.handle(event));
    }
    phases
}

fn calls(phases: &Phases<Recorder>) -> Vec<&str> {
    phases.effects().calls.iter().map(String::as_str).collect()
}

const LEADING: [Event; 2] = [Event::Ready, Event::Acquired { term: 7 }];
const ENTERED: [&str; 6] = [
    "campaign",
    "-> Candidate",
    "mint permit 7",
    "leader gauge 1",
    "spawn tasks 7",
    "-> Leader",
];

fn leading_and(events: &[Event]) -> Vec<Event> {
    LEADING.iter().chain(events).cloned().collect()
}

#[test]
fn a_replica_starts_campaigns_and_leads() {
    let phases = play(true, &LEADING);
    assert_eq!(calls(&phases), ENTERED);
    assert_eq!(phases.phase(), Phase::Leader);
    assert_eq!(phases.exit_code(), None);
}

#[test]
fn a_loss_revokes_resets_aborts_settles_and_rejoins_in_process() {
    let phases = play(true, &leading_and(&[lost()]));
    assert_eq!(
        calls(&phases)[6..],
        ["revoke permit", "reset gauges", "abort tasks", "settle", "-> Candidate"]
    );
    let phases = play(true, &leading_and(&[lost(), Event::Settled, acquired(9)]));
    assert_eq!(
        calls(&phases)[11..],
        ["mint permit 9", "leader gauge 1", "spawn tasks 9", "-> Leader"]
    );
}

#[test]
fn a_new_term_waits_until_the_old_one_has_settled() {
    let phases = play(true, &leading_and(&[lost(), acquired(9)]));
    assert_eq!(phases.phase(), Phase::Candidate, "tasks of the old term may still run");
    let phases = play(true, &leading_and(&[lost(), acquired(9), Event::Settled]));
    assert_eq!(phases.phase(), Phase::Leader);
    assert_eq!(phases.effects().transitions.last().unwrap().term, Some(9));
}

#[test]
fn a_term_that_was_lost_before_the_old_one_had_settled_never_begins() {
    let events = [lost(), acquired(9), lost(), Event::Settled];
    let phases = play(true, &leading_and(&events));
    assert_eq!(phases.phase(), Phase::Candidate);
    assert!(!calls(&phases).contains(&"mint permit 9"));
    assert!(!calls(&phases).iter().any(|call| call.starts_with("refused")));
}

#[test]
fn several_terms_in_one_process() {
    let mut events = LEADING.to_vec();
    for term in 8..13 {
        events.extend([lost(), Event::Settled, acquired(term)]);
    }
    let phases = play(true, &events);
    let spawned: Vec<_> = calls(&phases)
        .into_iter()
        .filter(|call| call.starts_with("spawn"))
        .collect();
    assert_eq!(spawned.len(), 6);
    assert_eq!(
        calls(&phases).iter().filter(|call| **call == "campaign").count(),
        1,
        "the elector goes on by itself"
    );
}

#[test]
fn a_leader_that_is_terminated_drains_in_three_leaves_and_exits_0() {
    for signal in [SIGTERM, SIGINT] {
        let events = leading_and(&[
            Event::Terminate(signal),
            Event::Released,
            Event::LingerOver,
            Event::Closed,
        ]);
        let phases = play(true, &events);
        let expected = [
            "revoke permit",
            "reset gauges",
            "abort tasks",
            "release",
            "-> Releasing",
            "linger",
            "-> Lingering",
            "close",
            "-> Closing",
            "-> Exited(0)",
        ];
        assert_eq!(calls(&phases)[6..], expected);
        assert_eq!(phases.exit_code(), Some(0));
    }
}

#[test]
fn without_a_webhook_lingering_and_closing_are_skipped() {
    let phases = play(false, &leading_and(&[Event::Terminate(SIGTERM), Event::Released]));
    assert_eq!(calls(&phases)[9..], ["release", "-> Releasing", "-> Exited(0)"]);
    assert_eq!(play(false, &[Event::Terminate(SIGTERM)]).exit_code(), Some(0));
}

#[test]
fn a_standby_drains_too() {
    let phases = play(true, &[Event::Ready, Event::Terminate(SIGTERM)]);
    assert_eq!(
        calls(&phases)[2..],
        ["release", "-> Releasing"],
        "an acquisition may be under way"
    );
}

#[test]
fn a_signal_cuts_a_start_up_and_nothing_is_released() {
    let phases = play(true, &[Event::Terminate(SIGTERM)]);
    assert_eq!(calls(&phases), ["linger", "-> Lingering"]);
    let phases = play(
        true,
        &[
            Event::Terminate(SIGTERM),
            Event::Ready,
            Event::LingerOver,
            Event::Closed,
        ],
    );
    assert_eq!(
        phases.exit_code(),
        Some(0),
        "a start-up that ends too late changes nothing"
    );
    assert!(!calls(&phases).contains(&"campaign"));
}

#[test]
fn a_second_signal_exits_at_once_from_every_leaf() {
    let drains = [Event::Terminate(SIGTERM), Event::Released, Event::LingerOver];
    for leaf in 1..=3 {
        let mut events = leading_and(&drains[..leaf]);
        events.push(Event::Terminate(SIGINT));
        let phases = play(true, &events);
        assert_eq!(phases.exit_code(), Some(128 + SIGINT));
        assert_eq!(
            phases.effects().transitions.last().unwrap().cause,
            Cause::SecondSignal(SIGINT)
        );
    }
}

#[test]
fn a_failed_start_up_exits_1() {
    assert_eq!(play(true, &[Event::StartupFailed]).exit_code(), Some(1));
}

#[test]
fn a_task_that_ends_by_itself_drains_all_leaves_and_exits_1() {
    for before in [&LEADING[..], &LEADING[..1]] {
        let mut events = before.to_vec();
        events.extend([
            Event::TaskEnded("materialize"),
            Event::Released,
            Event::LingerOver,
            Event::Closed,
        ]);
        assert_eq!(play(true, &events).exit_code(), Some(1));
    }
    assert_eq!(
        play(true, &[Event::TaskEnded("webhook"), Event::LingerOver, Event::Closed]).exit_code(),
        Some(1)
    );
}

#[test]
fn a_first_signal_after_a_task_ended_does_not_cut_the_drain_and_a_second_does() {
    let mut events = leading_and(&[Event::TaskEnded("console"), Event::Terminate(SIGTERM)]);
    assert_eq!(play(true, &events).phase(), Phase::Releasing);
    events.push(Event::Terminate(SIGTERM));
    assert_eq!(play(true, &events).exit_code(), Some(128 + SIGTERM));
}

#[test]
fn a_task_that_ends_while_draining_does_not_change_the_exit_code() {
    let events = leading_and(&[
        Event::Terminate(SIGTERM),
        Event::TaskEnded("console"),
        Event::Released,
        Event::LingerOver,
        Event::Closed,
    ]);
    assert_eq!(play(true, &events).exit_code(), Some(0));
}

#[test]
fn a_signal_while_unsettled_drains() {
    let phases = play(
        true,
        &leading_and(&[lost(), acquired(9), Event::Terminate(SIGTERM), Event::Settled]),
    );
    assert_eq!(phases.phase(), Phase::Releasing);
    assert!(!calls(&phases).contains(&"mint permit 9"));
}

#[test]
fn a_transition_record_has_the_fields_of_its_log_line() {
    let phases = play(true, &leading_and(&[lost()]));
    let expected = Transition {
        from: Phase::Leader,
        to: Phase::Candidate,
        cause: Cause::Lost(Loss::DeadlinePassed),
        term: Some(7),
        held_for: Duration::from_secs(1),
    };
    assert_eq!(phases.effects().transitions.last(), Some(&expected));
    assert_eq!(phases.effects().transitions[0].term, None);
}

#[test]
fn impossible_transitions_are_refused() {
    let cases: [(&[Event], Event); 12] = [
        (&[], acquired(1)),
        (&[], lost()),
        (&[], Event::Released),
        (&[], Event::Settled),
        (&LEADING[..1], Event::Ready),
        (&LEADING[..1], lost()),
        (&LEADING[..1], Event::Settled),
        (&LEADING[..1], Event::StartupFailed),
        (&LEADING, acquired(8)),
        (&LEADING, Event::Ready),
        (&LEADING, Event::Closed),
        (&LEADING, Event::LingerOver),
    ];
    for (before, event) in cases {
        let mut phases = play(true, before);
        let (phase, calls) = (phases.phase(), phases.effects().calls.len());
        block_on(phases.handle(&event));
        assert_eq!(phases.phase(), phase, "{event:?}");
        assert_eq!(
            phases.effects().calls[calls..],
            [format!("refused {event:?} in {phase}")]
        );
    }
}

#[test]
fn the_leaves_of_a_drain_can_not_be_skipped_or_repeated() {
    let phases = play(
        true,
        &leading_and(&[Event::Terminate(SIGTERM), Event::Closed, Event::LingerOver]),
    );
    assert_eq!(phases.phase(), Phase::Releasing);
    let phases = play(
        true,
        &leading_and(&[
            Event::Terminate(SIGTERM),
            Event::Released,
            Event::Released,
            Event::Closed,
        ]),
    );
    assert_eq!(phases.phase(), Phase::Lingering);
    let phases = play(
        true,
        &leading_and(&[Event::Terminate(SIGTERM), acquired(9), Event::Ready, lost()]),
    );
    assert_eq!(phases.phase(), Phase::Releasing, "nothing leads back");
}

#[test]
fn the_bounds_of_a_shutdown_are_15_s_together() {
    let bounds = Bounds::PRODUCTION;
    assert_eq!(bounds.release + bounds.linger + bounds.close, Duration::from_secs(15));
    assert!(bounds.request < bounds.release && bounds.task < bounds.release);
}

#[test]
fn names_of_phases_are_those_of_the_metric() {
    let phases = [
        Phase::Starting,
        Phase::Candidate,
        Phase::Leader,
        Phase::Releasing,
        Phase::Lingering,
        Phase::Closing,
        Phase::Exited(0),
    ];
    assert_eq!(phases.map(|phase| phase.name()), Phase::NAMES);
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Ready),
        Just(Event::StartupFailed),
        (0..5).prop_map(acquired),
        Just(lost()),
        Just(Event::Terminate(SIGTERM)),
        Just(Event::TaskEnded("balancer")),
        Just(Event::Settled),
        Just(Event::Released),
        Just(Event::LingerOver),
        Just(Event::Closed),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_effects_come_in_their_order(webhook: bool, ready: bool, events in prop::collection::vec(event(), 0..40)) {
        let start = if ready { vec![Event::Ready] } else { Vec::new() };
        let phases = play(webhook, &[start, events].concat());
        // What each effect may directly follow, refusals aside.
        let (mut permit, mut gauge, mut tasks, mut unsettled, mut exited) = (false, false, false, false, false);
        for call in calls(&phases) {
            prop_assert!(!exited, "{call} after the exit");
            match call {
                call if call.starts_with("mint permit") => {
                    prop_assert!(!permit && !gauge && !tasks);
                    permit = true;
                }
                "leader gauge 1" => {
                    prop_assert!(permit && !gauge);
                    gauge = true;
                }
                call if call.starts_with("spawn tasks") => {
                    prop_assert!(permit && gauge && !tasks);
                    tasks = true;
                }
                "revoke permit" => {
                    prop_assert!(permit);
                    permit = false;
                }
                "reset gauges" => {
                    prop_assert!(!permit && gauge);
                    gauge = false;
                }
                "abort tasks" => {
                    prop_assert!(!permit && !gauge && tasks);
                    (tasks, unsettled) = (false, true);
                }
                "settle" => {
                    prop_assert!(!tasks && unsettled);
                    unsettled = false;
                }
                "release" | "linger" | "close" => prop_assert!(!permit && !gauge && !tasks),
                call if call.starts_with("-> Exited") => {
                    prop_assert!(!permit && !gauge && !tasks);
                    exited = true;
                }
                _ => {}
            }
        }
        prop_assert_eq!(phases.phase() == Phase::Leader, permit && gauge && tasks);
        for pair in phases.effects().transitions.windows(2) {
            prop_assert_eq!(pair[0].to, pair[1].from);
        }
    }
}
