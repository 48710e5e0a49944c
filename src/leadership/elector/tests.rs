#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]
//! Electors against the stand-in for an API server, on a paused clock.

use std::time::Duration;

use serde_json::json;
use states::lease::PRODUCTION;
use tokio_util::task::AbortOnDropHandle;

use super::super::standin::{ApiServer, Fault, Line};
use super::*;

/// One replica with an elector of its own. Dropping it is a crash.
struct Replica {
    line: Line,
    events: mpsc::UnboundedReceiver<Event>,
    commands: mpsc::UnboundedSender<Command>,
    _task: AbortOnDropHandle<()>,
}

impl Replica {
    fn start(server: &ApiServer, clock: &Clock, identity: &str, prepare: impl FnOnce(&Line)) -> Self {
        let line = server.line();
        prepare(&line);
        let setup = Setup {
            identity: identity.into(),
            requests: LeaseRequests::new(line.client(), "ns".to_owned()),
            clock: clock.clone(),
            timings: PRODUCTION,
            observer: Arc::new(()),
            seed: 7,
        };
        let (sender, events) = mpsc::unbounded_channel();
        let (commands, receiver) = mpsc::unbounded_channel();
        let task = AbortOnDropHandle::new(tokio::spawn(Elector::new(setup, sender, receiver).run()));
        Replica {
            line,
            events,
            commands,
            _task: task,
        }
    }

    async fn event(&mut self) -> Event {
        self.events.recv().await.expect("the elector runs on")
    }

    async fn acquired(&mut self) -> Permit {
        match self.event().await {
            Event::Acquired(permit) => permit,
            other => panic!("expected to lead, got {other:?}"),
        }
    }

    async fn lost(&mut self) -> Loss {
        match self.event().await {
            Event::Lost(loss) => loss,
            other => panic!("expected a loss, got {other:?}"),
        }
    }

    async fn release(&mut self) -> bool {
        self.commands.send(Command::Release).unwrap();
        loop {
            if let Event::ReleaseEnded { released } = self.event().await {
                return released;
            }
        }
    }
}

fn plain(server: &ApiServer, clock: &Clock, identity: &str) -> Replica {
    Replica::start(server, clock, identity, |_| {})
}

fn server() -> (ApiServer, Clock) {
    let clock = Clock::tokio();
    (ApiServer::new(&clock), clock)
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// How long it is since `earlier`.
fn since(clock: &Clock, earlier: Moment) -> Duration {
    clock.now().saturating_since(earlier)
}

fn last_renewal(server: &ApiServer) -> Moment {
    server.seen_verb("update").last().expect("there was a renewal").at
}

#[tokio::test(start_paused = true)]
async fn the_first_replica_creates_the_lease_at_once() {
    let (server, clock) = server();
    let mut replica = plain(&server, &clock, "pod-1");
    let permit = replica.acquired().await;
    assert!(permit.is_valid());
    assert_eq!(permit.remaining(), Duration::from_secs(10));
    assert_eq!(clock.now(), Moment::START);
    assert_eq!(
        (server.holder().as_deref(), server.transitions()),
        (Some("pod-1"), Some(0))
    );
    assert_eq!(server.lease().unwrap()["spec"]["leaseDurationSeconds"], 15);
}

#[tokio::test(start_paused = true)]
async fn a_leader_sends_one_update_per_renewal_and_a_standby_nothing() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    let permit = leader.acquired().await;
    let _standby = plain(&server, &clock, "pod-2");
    seconds(1).await;
    let before = server.seen().len();
    seconds(60).await;
    let seen = server.seen();
    let requests = &seen[before..];
    assert!(
        requests.iter().all(|seen| seen.verb == "update" && seen.status == 200),
        "{requests:?}"
    );
    assert_eq!(requests.len(), 30);
    assert!(permit.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_release_is_taken_over_at_once() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    let permit = leader.acquired().await;
    let mut standby = plain(&server, &clock, "pod-2");
    seconds(5).await;
    assert!(leader.release().await);
    assert!(!permit.is_valid());
    let released = server
        .seen_verb("update")
        .into_iter()
        .rfind(|seen| seen.body["spec"]["holderIdentity"].is_null());
    let released = released.expect("the Lease was released");
    assert_eq!(
        released.body["spec"],
        json!({"leaseTransitions": 0}),
        "no holder, times or duration"
    );
    let permit = standby.acquired().await;
    assert!(
        since(&clock, released.at) <= Duration::from_millis(50),
        "took {:?}",
        since(&clock, released.at)
    );
    assert_eq!((server.holder().as_deref(), permit.term()), (Some("pod-2"), 1));
}

#[tokio::test(start_paused = true)]
async fn a_crash_is_waited_out_for_the_lease_duration() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    leader.acquired().await;
    let mut standby = plain(&server, &clock, "pod-2");
    seconds(7).await;
    drop(leader);
    let renewal = last_renewal(&server);
    standby.acquired().await;
    let waited = since(&clock, renewal);
    assert!(
        (Duration::from_secs(15)..=Duration::from_millis(15_500)).contains(&waited),
        "took over after {waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_loses_its_permit_before_another_gets_one() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    let old = leader.acquired().await;
    let mut standby = plain(&server, &clock, "pod-2");
    seconds(5).await;
    leader.line.cut();
    let renewal = last_renewal(&server);
    assert_eq!(leader.lost().await, Loss::DeadlinePassed);
    assert_eq!(since(&clock, renewal), Duration::from_secs(10));
    assert!(!old.is_valid());
    let new = standby.acquired().await;
    assert!(since(&clock, renewal) >= Duration::from_secs(15));
    // Back on the line it is a candidate like any other.
    leader.line.mend();
    seconds(60).await;
    assert!(new.is_valid());
    assert_eq!(server.holder().as_deref(), Some("pod-2"));
    assert!(leader.events.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_foreign_holder_ends_the_term_and_is_waited_out() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    let old = leader.acquired().await;
    seconds(5).await;
    let edited = clock.now();
    server.edit(|lease| lease["spec"]["holderIdentity"] = json!("not-a-real-candidate"));
    assert_eq!(leader.lost().await, Loss::ForeignHolder("not-a-real-candidate".into()));
    assert!(since(&clock, edited) <= Duration::from_secs(2));
    let new = leader.acquired().await;
    assert!(since(&clock, edited) >= Duration::from_secs(15));
    assert!(new.is_valid() && !old.is_valid());
    assert_eq!(
        (server.holder().as_deref(), server.transitions()),
        (Some("pod-1"), Some(1))
    );
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_created_anew() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    let old = leader.acquired().await;
    seconds(5).await;
    let uid = server.lease().unwrap()["metadata"]["uid"].clone();
    let deleted = clock.now();
    server.delete();
    assert_eq!(leader.lost().await, Loss::LeaseMissing);
    leader.acquired().await;
    assert!(!old.is_valid());
    assert!(since(&clock, deleted) <= Duration::from_secs(2));
    assert_eq!(server.transitions(), Some(0));
    assert_ne!(server.lease().unwrap()["metadata"]["uid"], uid);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_costs_a_read_and_no_term() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    let permit = leader.acquired().await;
    seconds(3).await;
    let before = server.seen_verb("get").len();
    leader.line.fault("update", Fault::ReplyLost);
    seconds(30).await;
    assert!(permit.is_valid());
    assert!(leader.events.try_recv().is_err());
    assert_eq!(server.seen_verb("get").len() - before, 1);
}

#[tokio::test(start_paused = true)]
async fn server_errors_for_a_while_cost_no_term() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    let permit = leader.acquired().await;
    seconds(3).await;
    for code in [500, 503, 429] {
        leader.line.fault("update", Fault::Status(code));
    }
    leader.line.fault("get", Fault::Lost);
    seconds(30).await;
    assert!(permit.is_valid());
    assert!(leader.events.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_label_that_somebody_sets_survives_renewals_and_the_release() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    let permit = leader.acquired().await;
    seconds(3).await;
    server.edit(|lease| lease["metadata"]["labels"] = json!({"team": "data"}));
    seconds(10).await;
    assert!(permit.is_valid(), "a metadata edit is no loss");
    assert_eq!(server.lease().unwrap()["metadata"]["labels"]["team"], "data");
    assert!(leader.release().await);
    assert_eq!(server.lease().unwrap()["metadata"]["labels"]["team"], "data");
}

#[tokio::test(start_paused = true)]
async fn without_the_permission_to_watch_a_candidate_polls() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    leader.acquired().await;
    let mut standby = Replica::start(&server, &clock, "pod-2", |line| line.forbid(&["list", "watch"]));
    seconds(5).await;
    let before = server.seen_verb("get").len();
    seconds(60).await;
    let polls = server.seen_verb("get").len() - before;
    assert!(
        (20..=31).contains(&polls),
        "{polls} polls in a minute, at 2 s × [1.0, 1.5)"
    );
    assert!(leader.release().await);
    let released = clock.now();
    standby.acquired().await;
    assert!(since(&clock, released) <= Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn permissions_that_are_granted_later_are_used_soon() {
    let (server, clock) = server();
    let all = ["get", "list", "watch", "create", "update"];
    let mut replica = Replica::start(&server, &clock, "pod-1", |line| line.forbid(&all));
    seconds(90).await;
    replica.line.forbid(&[]);
    let granted = clock.now();
    replica.acquired().await;
    assert!(since(&clock, granted) <= Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_black_holed_release_ends_and_is_told() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    let permit = leader.acquired().await;
    leader.line.cut();
    let released = tokio::time::timeout(Duration::from_secs(20), leader.release()).await;
    assert!(!permit.is_valid());
    assert_ne!(released, Ok(true), "nobody knows whether it was stored");
    drop(clock);
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_is_mended() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    leader.acquired().await;
    let mut standby = plain(&server, &clock, "pod-2");
    seconds(10).await;
    server.break_watches();
    seconds(10).await;
    assert!(leader.release().await);
    let released = clock.now();
    standby.acquired().await;
    assert!(since(&clock, released) <= Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn an_elector_that_has_gone_takes_its_permit_along() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    let permit = leader.acquired().await;
    drop(leader);
    permit.revoked().await;
    assert!(!permit.is_valid());
    assert_eq!(clock.now(), Moment::START);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_can_not_be_opened_is_tried_again() {
    for fault in [Fault::Status(410), Fault::Status(500), Fault::Lost] {
        let (server, clock) = server();
        let mut leader = plain(&server, &clock, "pod-1");
        leader.acquired().await;
        let mut standby = Replica::start(&server, &clock, "pod-2", |line| {
            line.fault("list", fault);
            line.fault("watch", fault);
        });
        seconds(10).await;
        let requests = server.seen_verb("list").len() + server.seen_verb("watch").len();
        assert!(requests <= 10, "{requests} requests in 10 s after {fault:?}");
        assert!(leader.release().await);
        let released = clock.now();
        standby.acquired().await;
        assert!(since(&clock, released) <= Duration::from_millis(50), "after {fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn while_everything_is_refused_at_most_one_request_a_second_is_sent() {
    let (server, clock) = server();
    let replica = Replica::start(&server, &clock, "pod-1", |line| {
        line.forbid(&["get", "list", "watch", "create", "update"]);
    });
    seconds(60).await;
    assert!(
        replica.line.passed() <= 60,
        "{} requests in a minute",
        replica.line.passed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_dead_but_open_costs_one_conflict_and_is_replaced() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    let permit = leader.acquired().await;
    let mut standby = plain(&server, &clock, "pod-2");
    seconds(10).await;
    server.freeze_watches();
    seconds(40).await;
    assert!(permit.is_valid());
    let conflicts = server
        .seen_verb("update")
        .iter()
        .filter(|seen| seen.status == 409)
        .count();
    assert_eq!(conflicts, 1);
    assert!(leader.release().await);
    let released = clock.now();
    standby.acquired().await;
    assert!(since(&clock, released) <= Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_reply_counts_from_its_request() {
    let (server, clock) = server();
    let mut leader = plain(&server, &clock, "pod-1");
    let permit = leader.acquired().await;
    leader.line.fault("update", Fault::ReplyDelayed(Duration::from_secs(3)));
    seconds(5).await;
    // Sent at 2 s, answered at 5 s: valid until 12 s.
    assert_eq!(clock.now(), Moment::from(Duration::from_secs(5)));
    tokio::task::yield_now().await;
    assert!(permit.remaining() <= Duration::from_secs(10));
    seconds(30).await;
    assert!(permit.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_any_content_neither_panics_nor_gives_leadership_away() {
    for spec in [
        json!(null),
        json!({"holderIdentity": 5}),
        json!({"holderIdentity": "ghost", "leaseTransitions": -1}),
        json!({"holderIdentity": " ", "leaseTransitions": 2_147_483_647_i64}),
        json!("text"),
    ] {
        let (server, clock) = server();
        server.edit(|lease| lease["spec"] = spec.clone());
        let mut replica = plain(&server, &clock, "pod-1");
        let permit = replica.acquired().await;
        assert!(permit.is_valid(), "{spec}");
        let held = spec["holderIdentity"].is_string() || spec["holderIdentity"].is_number();
        assert_eq!(
            clock.now() >= Moment::from(Duration::from_secs(15)),
            held,
            "{spec} at {:?}",
            clock.now()
        );
        assert!(server.transitions() <= Some(2_147_483_647));
    }
}
