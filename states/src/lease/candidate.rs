//! A candidate: it watches, waits, and acquires by one conditional write (decisions L2, L4, L5, L6).

use std::time::Duration;

use super::messages::{Answer, Operation};
use super::sight::{Known, Source, Viewer};
use super::state::{Candidate, InFlight, Role, State};
use super::step::Step;
use super::values::{Moment, Spec};

// === impl Step ===

impl Step<'_> {
    pub(super) fn candidate_sees(&mut self, lease: super::Lease, source: Source) {
        if self.look(lease, source)
            && let Role::Candidate(candidate) = &mut self.state.role
        {
            // Newer than whatever the doubt was about.
            candidate.doubt = None;
            candidate.read_at = None;
            self.plan_polling();
        }
    }

    /// The watch says that the Lease is gone. Only a read can tell since when it is known to be. Before the first look
    /// that is no news: a read is due, or under way, anyhow.
    pub(super) fn candidate_misses(&mut self) {
        if matches!(self.state.sight.known, Known::Lease(_)) {
            self.candidate_doubts(self.now.at);
        }
    }

    pub(super) fn candidate_answered(&mut self, request: &InFlight, answer: Answer) {
        match (&request.operation, answer) {
            (Operation::Read, Answer::Lease(lease)) => {
                self.look(lease, Source::Read(request.sent_at));
                self.candidate_trusts(request.sent_at);
            }
            (Operation::Read, Answer::Absent) => {
                self.look_at_absence(false);
                self.candidate_trusts(request.sent_at);
            }
            (Operation::Read, Answer::Refused { retry_after } | Answer::Unknown { retry_after }) => {
                self.candidate_read_failed(retry_after);
            }
            (Operation::Read, Answer::Conflict) => self.candidate_read_failed(None),
            (operation, Answer::Lease(stored)) => self.candidate_wrote(operation, stored, request),
            (operation, Answer::Conflict | Answer::Absent) => {
                let outrun = match operation {
                    Operation::Replace { version, .. } => {
                        self.state.sight.lease().is_some_and(|lease| lease.version > *version)
                    }
                    _ => self.state.sight.lease().is_some(),
                };
                self.candidate_pauses(None);
                if !outrun {
                    let spread = self.now.jittered(self.state.timings.retry_period() / 2);
                    self.candidate_doubts(self.now.at.saturating_add(spread));
                }
            }
            (_, Answer::Refused { retry_after }) => self.candidate_pauses(retry_after),
            (_, Answer::Unknown { retry_after }) => {
                self.remember_write(request);
                self.candidate_pauses(retry_after);
                self.candidate_doubts(self.now.at);
            }
        }
    }

    /// The answer to a write shows what is stored now.
    fn candidate_wrote(&mut self, operation: &Operation, stored: super::Lease, request: &InFlight) {
        let unchanged = matches!(operation, Operation::Replace { version, .. } if *version == stored.version);
        let as_sent = operation.spec().is_some_and(|sent| stored.spec.proves(sent));
        if as_sent && !unchanged && self.now.at < self.state.permit_end(request.sent_at) {
            self.lead(stored, request.sent_at);
        } else {
            // Something between this replica and the store changes or delays what it writes.
            self.remember_write(request);
            self.candidate_pauses(None);
            self.candidate_doubts(self.now.at);
        }
    }

    pub(super) fn candidate_proceeds(&mut self) -> Option<Moment> {
        if let Some(in_flight) = &self.state.in_flight {
            return Some(in_flight.deadline);
        }
        let at = self.now.at;
        let never_looked = self.state.sight.known == Known::Nothing;
        let Role::Candidate(candidate) = &mut self.state.role else {
            return None;
        };
        if candidate.not_before.is_some_and(|moment| moment <= at) {
            candidate.not_before = None;
        }
        if never_looked && candidate.doubt.is_none() {
            candidate.doubt = Some(at);
        }
        if candidate.doubt.is_some() && candidate.read_at.is_none() {
            candidate.read_at = Some(at);
        }
        let read_at = candidate.read_at;
        let attempt_at = self.attempt_at();
        if read_at.is_some_and(|moment| moment <= at) {
            if let Role::Candidate(candidate) = &mut self.state.role {
                candidate.read_at = None;
            }
            return Some(self.send(Operation::Read, Duration::MAX));
        }
        if attempt_at.is_some_and(|moment| moment <= at) {
            return Some(self.attempt());
        }
        match (read_at, attempt_at) {
            (Some(read), Some(attempt)) => Some(read.min(attempt)),
            (read, attempt) => read.or(attempt),
        }
    }

    /// When the Lease may be acquired, as far as known.
    fn attempt_at(&self) -> Option<Moment> {
        let Role::Candidate(Candidate {
            not_before,
            doubt: None,
            ..
        }) = &self.state.role
        else {
            return None;
        };
        let free_at = match &self.state.sight.known {
            Known::Nothing => return None,
            Known::Absent { create_at, .. } => *create_at,
            Known::Lease(seen) => seen.free_at,
        };
        (self.rules.acquire).then(|| free_at.max(not_before.unwrap_or_default()))
    }

    fn attempt(&mut self) -> Moment {
        let operation = match self.state.sight.lease().cloned() {
            None => {
                let spec = self.acquired(None);
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
                sight.creating(viewer);
                Operation::Create(spec)
            }
            Some(lease) => Operation::Replace {
                spec: self.acquired(Some(&lease.spec)),
                uid: lease.uid,
                version: lease.version,
            },
        };
        self.send(operation, Duration::MAX)
    }

    /// The spec with which this replica acquires a Lease over `before` (decision L7).
    fn acquired(&mut self, before: Option<&Spec>) -> Spec {
        let renew_time = self.renew_time(before);
        let carried = before.cloned().unwrap_or_default();
        let keeps = carried.held_by() == Some(&self.state.identity);
        let count = carried.transition_count();
        Spec {
            acquire_time: carried.acquire_time.filter(|_| keeps).or(Some(renew_time)),
            renew_time: Some(renew_time),
            holder: Some(self.state.identity.clone()),
            duration_seconds: Some(self.state.timings.duration_seconds()),
            transitions: Some(if keeps || before.is_none() {
                count
            } else {
                count.saturating_add(1)
            }),
            strategy: carried.strategy,
            preferred_holder: carried.preferred_holder,
        }
    }

    /// There is a reason to read at `read_at` before anything is written.
    fn candidate_doubts(&mut self, read_at: Moment) {
        let spacing = self.state.timings.retry_period() / 2;
        let earliest = self
            .state
            .last_read
            .map_or(Moment::ZERO, |last| last.saturating_add(spacing));
        if let Role::Candidate(candidate) = &mut self.state.role {
            candidate.doubt = Some(self.now.at);
            let read_at = read_at.max(earliest);
            candidate.read_at = Some(candidate.read_at.map_or(read_at, |planned| planned.min(read_at)));
        }
    }

    /// A read that was sent at `sent_at` settles every doubt that is older.
    fn candidate_trusts(&mut self, sent_at: Moment) {
        if let Role::Candidate(candidate) = &mut self.state.role
            && candidate.doubt.is_some_and(|since| since <= sent_at)
        {
            candidate.doubt = None;
            candidate.read_at = None;
        }
        self.plan_polling();
    }

    fn candidate_read_failed(&mut self, retry_after: Option<Duration>) {
        let next = self.next_attempt(retry_after);
        if let Role::Candidate(candidate) = &mut self.state.role {
            candidate.read_at = Some(next);
        }
    }

    /// No further attempt to acquire before a pause is over.
    fn candidate_pauses(&mut self, retry_after: Option<Duration>) {
        let next = self.next_attempt(retry_after);
        if let Role::Candidate(candidate) = &mut self.state.role {
            candidate.not_before = Some(next);
        }
    }

    /// Now + the retry period × [1.0, 1.5), or as long as the server asked for, but no longer than a lease lasts.
    fn next_attempt(&self, retry_after: Option<Duration>) -> Moment {
        let retry = self.state.timings.retry_period();
        let pause = retry.saturating_add(self.now.jittered(retry / 2));
        let asked = retry_after.unwrap_or_default().min(self.state.timings.lease_duration());
        self.now.at.saturating_add(pause.max(asked))
    }

    /// Where the Lease can't be watched a candidate polls.
    pub(super) fn plan_polling(&mut self) {
        let next = self.next_attempt(None);
        if let Role::Candidate(candidate) = &mut self.state.role {
            if !self.state.watchable {
                candidate.read_at.get_or_insert(next);
            } else if candidate.doubt.is_none() {
                candidate.read_at = None;
            }
        }
    }
}
