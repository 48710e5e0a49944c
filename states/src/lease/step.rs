//! One step: take in an observation, then do what is due.

use std::time::Duration;

use super::messages::{Action, Answer, Loss, Observation, Operation, Request, RequestId};
use super::rules::Rules;
use super::sight::{Source, Viewer};
use super::state::{Candidate, InFlight, Leader, Role, State, Written};
use super::values::{Lease, Moment, Now, Spec};

/// Takes in `observation` at `now` and says what to do. `now.at` must never be earlier than in the step before.
///
/// Never fails and never panics, whatever the Lease contains and in whatever order observations come.
#[must_use]
pub fn step(state: State, observation: Observation, now: Now) -> (State, Vec<Action>) {
    step_under(&Rules::ALL, state, observation, now)
}

/// [`step`] with single rules switched off.
pub(super) fn step_under(rules: &Rules, state: State, observation: Observation, now: Now) -> (State, Vec<Action>) {
    let mut step = Step {
        rules,
        state,
        now,
        actions: Vec::new(),
    };
    step.observe(observation);
    step.proceed();
    (step.state, step.actions)
}

/// A step that is being taken.
pub(super) struct Step<'a> {
    pub(super) rules: &'a Rules,
    pub(super) state: State,
    pub(super) now: Now,
    pub(super) actions: Vec<Action>,
}

// === impl Step ===

impl Step<'_> {
    fn observe(&mut self, observation: Observation) {
        self.end_term_at_deadline();
        match observation {
            Observation::Started => {
                if self.state.role == Role::Idle {
                    self.campaign();
                }
            }
            Observation::Elapsed => {}
            Observation::Seen { lease, after_gap } => self.seen(lease, after_gap),
            Observation::Missing => self.missing(),
            Observation::Watchable(watchable) => {
                self.state.watchable = watchable;
                self.plan_polling();
            }
            Observation::Answer { to, answer } => {
                if let Some(in_flight) = self.state.in_flight.take_if(|in_flight| in_flight.id == to) {
                    self.answered(&in_flight, answer);
                }
            }
            Observation::Resign => self.resign(false),
            Observation::Release => self.resign(true),
        }
        let at = self.now.at;
        if let Some(overdue) = self.state.in_flight.take_if(|in_flight| in_flight.deadline <= at) {
            self.answered(&overdue, Answer::Unknown { retry_after: None });
        }
        self.forget_old_writes();
    }

    fn seen(&mut self, lease: Lease, after_gap: bool) {
        match &self.state.role {
            Role::Idle | Role::Candidate(_) => {
                self.candidate_sees(lease, if after_gap { Source::List } else { Source::Event });
            }
            Role::Leader(_) => self.leader_sees(&lease),
            Role::Resigned(_) => {}
        }
    }

    fn missing(&mut self) {
        match &self.state.role {
            Role::Candidate(_) => self.candidate_misses(),
            Role::Leader(_) => self.leader_doubts(),
            Role::Idle | Role::Resigned(_) => {}
        }
    }

    fn answered(&mut self, request: &InFlight, answer: Answer) {
        match &self.state.role {
            Role::Idle => {}
            Role::Candidate(_) => self.candidate_answered(request, answer),
            Role::Leader(_) => self.leader_answered(request, answer),
            Role::Resigned(_) => self.resigned_answered(request, answer),
        }
    }

    /// What is due now, and when something will be due next.
    fn proceed(&mut self) {
        let next = match &self.state.role {
            Role::Idle => None,
            Role::Candidate(_) => self.candidate_proceeds(),
            Role::Leader(_) => self.leader_proceeds(),
            Role::Resigned(_) => self.resigned_proceeds(),
        };
        if let Some(next) = next {
            self.actions.push(Action::WaitUntil(next));
        }
    }

    pub(super) fn campaign(&mut self) {
        self.state.role = Role::Candidate(Candidate::default());
        self.plan_polling();
    }

    fn end_term_at_deadline(&mut self) {
        if let Role::Leader(leader) = &self.state.role
            && leader.until <= self.now.at
            && self.rules.stop_at_deadline
        {
            self.lose(Loss::DeadlinePassed);
        }
    }

    /// Ends the term. What this process wrote last stays known as its own.
    pub(super) fn lose(&mut self, loss: Loss) {
        if let Role::Leader(Leader { stored, .. }) = std::mem::replace(&mut self.state.role, Role::Idle) {
            self.actions.push(Action::Revoked(loss));
            self.state.sight.wrote(stored, self.now.at);
            self.campaign();
        }
    }

    /// Begins a term with a write that is known to be stored and was sent at `sent_at`.
    pub(super) fn lead(&mut self, stored: Lease, sent_at: Moment) {
        let from = if self.rules.count_from_request {
            sent_at
        } else {
            self.now.at
        };
        let until = self.state.permit_end(from);
        self.state.written.clear();
        self.state.sight.wrote(stored.clone(), self.now.at);
        self.actions.push(Action::Granted {
            until,
            term: stored.spec.transition_count(),
        });
        self.state.role = Role::Leader(Leader {
            stored,
            renewed: from,
            until,
            next_at: from.saturating_add(self.state.timings.retry_period()),
            doubt: None,
            failures: 0,
        });
    }

    /// Sends a request that may take `at_most`, and no longer than the bound of every request.
    pub(super) fn send(&mut self, operation: Operation, at_most: Duration) -> Moment {
        let id = RequestId(self.state.next_id);
        self.state.next_id += 1;
        let sent_at = self.now.at;
        let deadline = sent_at.saturating_add(at_most.min(self.state.timings.request_bound()));
        if operation == Operation::Read {
            self.state.last_read = Some(sent_at);
        }
        self.state.in_flight = Some(InFlight {
            id,
            sent_at,
            deadline,
            operation: operation.clone(),
        });
        self.actions.push(Action::Send(Request {
            id,
            deadline,
            operation,
        }));
        deadline
    }

    /// A `renewTime` that no write of this process had, and that differs from the one it replaces: an identical write
    /// would not be stored (decision L3).
    pub(super) fn renew_time(&mut self, replaced: Option<&Spec>) -> i64 {
        let after_last = self
            .state
            .last_renew_time
            .map_or(i64::MIN, |last| last.saturating_add(1));
        let mut time = self.now.wall_micros.max(after_last);
        if replaced.is_some_and(|spec| spec.renew_time == Some(time)) {
            time = time.saturating_add(1);
        }
        self.state.last_renew_time = Some(time);
        time
    }

    /// Remembers a write of which nobody knows whether it was, or will be, stored.
    pub(super) fn remember_write(&mut self, request: &InFlight) {
        if let Some(spec) = request.operation.spec() {
            self.state.written.push(Written {
                spec: spec.clone(),
                sent_at: request.sent_at,
            });
        }
    }

    /// A write that is older than a permit could be proves nothing any more.
    fn forget_old_writes(&mut self) {
        if self.rules.own_writes_age {
            let State { written, timings, .. } = &mut self.state;
            written.retain(|write| self.now.at < write.sent_at.saturating_add(timings.renew_deadline()));
        }
    }

    /// Hands a Lease to the sight of this replica. Returns whether it is news.
    pub(super) fn look(&mut self, lease: Lease, source: Source) -> bool {
        let mut written = self.state.written.clone();
        if let Some(in_flight) = &self.state.in_flight
            && let Some(spec) = in_flight.operation.spec()
        {
            written.push(Written {
                spec: spec.clone(),
                sent_at: in_flight.sent_at,
            });
        }
        let State {
            sight,
            identity,
            timings,
            ..
        } = &mut self.state;
        let viewer = Viewer {
            rules: self.rules,
            identity,
            timings,
            written: &written,
            now: self.now.at,
        };
        sight.see(lease, source, viewer)
    }

    /// Hands the absence of the Lease to the sight of this replica.
    pub(super) fn look_at_absence(&mut self, at_once: bool) {
        let State {
            sight,
            identity,
            timings,
            ..
        } = &mut self.state;
        let viewer = Viewer {
            rules: self.rules,
            identity,
            timings,
            written: &[],
            now: self.now.at,
        };
        sight.see_absence(at_once, viewer);
    }
}

// === impl State ===

impl State {
    /// The end of a permit that counts from `from`.
    pub(super) fn permit_end(&self, from: Moment) -> Moment {
        from.saturating_add(self.timings.renew_deadline())
    }
}

// === impl Operation ===

impl Operation {
    /// What this writes.
    pub(super) fn spec(&self) -> Option<&Spec> {
        match self {
            Operation::Read => None,
            Operation::Create(spec) | Operation::Replace { spec, .. } => Some(spec),
        }
    }
}
