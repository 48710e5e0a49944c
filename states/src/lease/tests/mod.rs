//! Tests of the protocol, one per rule, and the replica on which they play.

mod acquiring;
mod arbitrary;
mod leading;
mod releasing;

use std::time::Duration;

use super::messages::{Action, Answer, Loss, Observation, Operation, Request};
use super::{Lease, Moment, Now, PRODUCTION, ResourceVersion, Spec, Standing, State, step};

/// Wall clock at the start of every test: 2026-01-01T00:00:00Z in microseconds.
const WALL: i64 = 1_767_225_600_000_000;
const SECOND: i64 = 1_000_000;

/// One replica, and a clock that the test moves.
struct Replica {
    state: Option<State>,
    /// Milliseconds since the start.
    at: u64,
    jitter: u32,
    /// The moment of the last `WaitUntil`.
    wake: Option<Moment>,
}

// === impl Replica ===

impl Replica {
    /// A replica `me` that has not started.
    fn new() -> Replica {
        Replica {
            state: Some(State::new("me", PRODUCTION)),
            at: 0,
            jitter: 0,
            wake: None,
        }
    }

    /// A replica that has started and whose first read was answered with `answer`.
    fn found(answer: Answer) -> (Replica, Vec<Action>) {
        let mut replica = Replica::new();
        let read = replica.observe(Observation::Started).request();
        assert_eq!(read.operation, Operation::Read, "a replica looks before it writes");
        let actions = replica.answer(&read, answer);
        (replica, actions)
    }

    /// A replica that leads since 0 s with `foreign(…)` taken over; its Lease is at version 2.
    fn leading() -> (Replica, Lease) {
        let (mut replica, actions) = Replica::found(Answer::Lease(lease(1, released(5))));
        let write = actions.request();
        let stored = stored(&write, 2);
        let actions = replica.answer(&write, Answer::Lease(stored.clone()));
        assert_eq!(actions.first(), Some(&Action::Granted { until: s(10), term: 6 }));
        (replica, stored)
    }

    fn observe(&mut self, observation: Observation) -> Vec<Action> {
        let now = Now {
            at: Duration::from_millis(self.at),
            wall_micros: WALL + i64::try_from(self.at).unwrap() * 1000,
            jitter: self.jitter,
        };
        let (state, actions) = step(self.state.take().unwrap(), observation, now);
        self.state = Some(state);
        for action in &actions {
            if let Action::WaitUntil(moment) = action {
                self.wake = Some(*moment);
            }
        }
        actions
    }

    fn answer(&mut self, request: &Request, answer: Answer) -> Vec<Action> {
        self.observe(Observation::Answer { to: request.id, answer })
    }

    fn event(&mut self, lease: Lease) -> Vec<Action> {
        self.observe(Observation::Seen {
            lease,
            after_gap: false,
        })
    }

    /// Moves the clock to `millis` and reports `Elapsed`.
    fn elapse_to(&mut self, millis: u64) -> Vec<Action> {
        assert!(self.at <= millis, "time does not run backwards");
        self.at = millis;
        self.observe(Observation::Elapsed)
    }

    /// Moves the clock to the moment that the replica waits for.
    fn elapse(&mut self) -> Vec<Action> {
        let wake = self.wake.expect("a moment to wait for");
        self.elapse_to(u64::try_from(wake.as_micros().div_ceil(1000)).unwrap())
    }

    /// The request among `actions`, or the next one that time brings.
    fn next_request(&mut self, mut actions: Vec<Action>) -> Request {
        while actions.sends_nothing() {
            actions = self.elapse();
        }
        actions.request()
    }

    fn until(&self) -> Option<Moment> {
        match self.state.as_ref().unwrap().standing() {
            Standing::Leader { until, .. } => Some(until),
            Standing::Idle | Standing::Candidate => None,
        }
    }
}

/// What tests ask of the actions of a step.
trait Actions {
    /// The one request that was sent.
    fn request(&self) -> Request;
    fn sends_nothing(&self) -> bool;
    fn loss(&self) -> Option<&Loss>;
    fn granted(&self) -> bool;
}

impl Actions for Vec<Action> {
    fn request(&self) -> Request {
        let sent: Vec<_> = self.iter().filter_map(sent).collect();
        assert_eq!(sent.len(), 1, "exactly one request in {self:?}");
        sent[0].clone()
    }

    fn sends_nothing(&self) -> bool {
        !self.iter().any(|action| sent(action).is_some())
    }

    fn loss(&self) -> Option<&Loss> {
        self.iter().find_map(|action| match action {
            Action::Revoked(loss) => Some(loss),
            _ => None,
        })
    }

    fn granted(&self) -> bool {
        self.iter().any(|action| matches!(action, Action::Granted { .. }))
    }
}

fn sent(action: &Action) -> Option<&Request> {
    match action {
        Action::Send(request) => Some(request),
        _ => None,
    }
}

fn s(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

fn ms(millis: u64) -> Moment {
    Duration::from_millis(millis)
}

fn lease(version: u64, spec: Spec) -> Lease {
    Lease {
        uid: "uid-1".into(),
        version: ResourceVersion(version),
        spec,
    }
}

fn held(holder: &str, renew_time: i64, transitions: i32) -> Spec {
    Spec {
        holder: Some(holder.into()),
        acquire_time: Some(WALL),
        renew_time: Some(renew_time),
        duration_seconds: Some(15),
        transitions: Some(transitions),
        ..Spec::default()
    }
}

fn released(transitions: i32) -> Spec {
    Spec {
        transitions: Some(transitions),
        ..Spec::default()
    }
}

fn written(request: &Request) -> Spec {
    request.operation.spec().expect("a write").clone()
}

/// The Lease that the API server returns for a write.
fn stored(request: &Request, version: u64) -> Lease {
    let uid = match &request.operation {
        Operation::Replace { uid, .. } => uid.clone(),
        _ => "uid-created".into(),
    };
    Lease {
        uid,
        version: ResourceVersion(version),
        spec: written(request),
    }
}

const UNKNOWN: Answer = Answer::Unknown { retry_after: None };
const REFUSED: Answer = Answer::Refused { retry_after: None };
