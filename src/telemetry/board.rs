//! What this replica shows of itself: its phase, the Lease as it knows it, and the last transitions.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;
use states::phase::Phase;

use super::Metrics;
use crate::{
    clock::{Clock, Moment},
    leadership::{Observer, Transition},
};

/// How many transitions are kept.
const KEPT_TRANSITIONS: usize = 50;

/// The state that the HTTP servers show. Cheap to clone; everything it learns also goes to the metrics.
#[derive(Clone, Debug)]
pub struct Board {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    identity: String,
    clock: Clock,
    metrics: Metrics,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: &'static str,
    starting: String,
    leads: bool,
    term: Option<i32>,
    holder: Option<String>,
    last_renewal: Option<Timestamp>,
    transitions: VecDeque<PastTransition>,
}

/// Whether this replica wants traffic (decision L12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It serves, as candidate or as leader.
    Ready,
    /// It does not, for this reason.
    NotReady(String),
}

/// The status page's content (decision O6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Version of this program.
    pub version: &'static str,
    /// Identity of this replica.
    pub identity: String,
    /// Phase of this replica.
    pub phase: &'static str,
    /// Whether this replica leads.
    pub leader: bool,
    /// What the start-up waits for; absent after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting: Option<String>,
    /// `leaseTransitions` of this replica's current or last term.
    pub term: Option<i32>,
    /// Who holds the Lease as far as this replica knows.
    pub holder: Option<String>,
    /// When this replica last renewed the Lease (RFC 3339); absent unless it holds it.
    pub last_renewal: Option<String>,
    /// The last transitions, the newest first.
    pub transitions: Vec<PastTransition>,
}

/// One transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PastTransition {
    /// When it happened (RFC 3339).
    pub at: String,
    /// The phase that was left.
    pub from: &'static str,
    /// The phase that was entered.
    pub to: &'static str,
    /// Why.
    pub cause: &'static str,
    /// `leaseTransitions` of the term that began or ended.
    pub term: Option<i32>,
    /// How long the phase that was left had lasted.
    pub held_for_seconds: u64,
}

// === impl Board ===

impl Board {
    /// The board of a process that has just begun.
    pub fn new(identity: String, clock: Clock, metrics: Metrics) -> Self {
        let state = State {
            phase: Phase::Starting.name(),
            starting: "the process has just begun".to_owned(),
            leads: false,
            term: None,
            holder: None,
            last_renewal: None,
            transitions: VecDeque::with_capacity(KEPT_TRANSITIONS),
        };
        Self {
            inner: Arc::new(Inner {
                identity,
                clock,
                metrics,
                state: Mutex::new(state),
            }),
        }
    }

    /// The metrics that are shown beside it.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Says what the start-up waits for, as a text for people: the reason of a `/readyz` that is not ready.
    pub fn starting(&self, what: impl Into<String>) {
        self.state().starting = what.into();
    }

    /// Whether this replica is on its way out: from here on it writes nothing that others go by.
    pub fn is_draining(&self) -> bool {
        let phase = self.state().phase;
        ![Phase::Starting, Phase::Candidate, Phase::Leader]
            .iter()
            .any(|stays| stays.name() == phase)
    }

    /// Whether this replica wants traffic.
    pub fn readiness(&self) -> Readiness {
        let state = self.state();
        let is = |phase: Phase| state.phase == phase.name();
        if is(Phase::Candidate) || is(Phase::Leader) {
            Readiness::Ready
        } else if is(Phase::Starting) {
            Readiness::NotReady(format!("starting: {}", state.starting))
        } else {
            Readiness::NotReady("draining: this replica is shutting down".to_owned())
        }
    }

    /// Everything that the status page shows.
    pub fn status(&self) -> Status {
        let state = self.state();
        Status {
            version: env!("CARGO_PKG_VERSION"),
            identity: self.inner.identity.clone(),
            phase: state.phase,
            leader: state.leads,
            starting: (state.phase == Phase::Starting.name()).then(|| state.starting.clone()),
            term: state.term,
            holder: state.holder.clone(),
            last_renewal: state.last_renewal.map(|at| at.to_string()),
            transitions: state.transitions.iter().rev().cloned().collect(),
        }
    }

    /// A panic elsewhere must not take the status page along.
    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Board {
    fn transition(&self, transition: &Transition) {
        let &Transition {
            from,
            to,
            cause,
            term,
            held_for,
        } = transition;
        self.inner.metrics.set_phase(to);
        self.inner.metrics.count_transition(from, to, cause);
        let at = self.inner.clock.timestamp().to_string();
        let mut state = self.state();
        state.phase = to;
        state.term = term.or(state.term);
        if state.transitions.len() == KEPT_TRANSITIONS {
            state.transitions.pop_front();
        }
        state.transitions.push_back(PastTransition {
            at,
            from,
            to,
            cause,
            term,
            held_for_seconds: held_for.as_secs(),
        });
    }

    fn is_leader(&self, leads: bool) {
        self.inner.metrics.set_leader(leads);
        self.state().leads = leads;
    }

    fn reset_leader_gauges(&self) {
        self.inner.metrics.set_needs_update(0);
    }

    fn renewal(&self, took: Duration) {
        self.inner.metrics.observe_renewal(took);
    }

    fn renewed_at(&self, at: Option<Moment>) {
        self.inner.metrics.set_renewed_at(at);
        let ago = at.map(|at| self.inner.clock.now().saturating_since(at));
        let now = self.inner.clock.timestamp();
        self.state().last_renewal = ago.map(|ago| now.saturating_sub(ago).unwrap_or(now));
    }

    fn holder(&self, holder: Option<&str>) {
        let mut state = self.state();
        if state.holder.as_deref() != holder {
            state.holder = holder.map(str::to_owned);
        }
    }

    fn task_left_behind(&self, task: &'static str) {
        self.inner.metrics.count_task_left_behind(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> Board {
        let clock = Clock::boottime();
        Board::new("pod-a".to_owned(), clock.clone(), Metrics::new(clock).unwrap())
    }

    fn transition(from: &'static str, to: &'static str, term: Option<i32>) -> Transition {
        Transition {
            from,
            to,
            cause: "test",
            term,
            held_for: Duration::from_millis(61_900),
        }
    }

    #[test]
    fn readiness_follows_the_phase() {
        let board = board();
        board.starting("registering CRDs");
        assert_eq!(
            board.readiness(),
            Readiness::NotReady("starting: registering CRDs".to_owned())
        );
        for (from, to, ready) in [
            ("Starting", "Candidate", true),
            ("Candidate", "Leader", true),
            ("Leader", "Candidate", true),
            ("Candidate", "Releasing", false),
            ("Releasing", "Lingering", false),
            ("Lingering", "Closing", false),
            ("Closing", "Exited", false),
        ] {
            board.transition(&transition(from, to, None));
            assert_eq!(board.readiness() == Readiness::Ready, ready, "{to}");
        }
    }

    #[test]
    fn the_status_says_who_leads_and_since_which_renewal() {
        let board = board();
        board.transition(&transition("Candidate", "Leader", Some(7)));
        board.is_leader(true);
        board.holder(Some("pod-a"));
        board.renewed_at(Some(board.inner.clock.now()));
        let status = board.status();
        assert_eq!((status.phase, status.leader, status.term), ("Leader", true, Some(7)));
        assert_eq!(
            (status.identity.as_str(), status.holder.as_deref()),
            ("pod-a", Some("pod-a"))
        );
        assert!(status.last_renewal.is_some());
        assert_eq!(status.transitions[0].held_for_seconds, 61);
        board.renewed_at(None);
        board.holder(None);
        assert_eq!((board.status().last_renewal, board.status().holder), (None, None));
    }

    #[test]
    fn the_last_fifty_transitions_are_kept_newest_first() {
        let board = board();
        for term in 0..60 {
            board.transition(&transition("Candidate", "Leader", Some(term)));
        }
        let terms: Vec<_> = board
            .status()
            .transitions
            .iter()
            .map(|transition| transition.term)
            .collect();
        assert_eq!(terms, (10..60).rev().map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn leaving_leader_resets_what_only_a_leader_knows() {
        let board = board();
        board.metrics().set_needs_update(5);
        board.is_leader(true);
        board.is_leader(false);
        board.reset_leader_gauges();
        let text = board.metrics().render().unwrap();
        assert!(
            text.contains("\nenvironmentd_needs_update 0\n") && text.contains("\norchestratord_is_leader 0\n"),
            "{text}"
        );
    }
}
