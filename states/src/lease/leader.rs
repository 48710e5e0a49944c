//! A leader: it renews by conditional writes, and believes only their answers and reads that started after them
//! (decisions L2, L3, L5, L9a).

use std::time::Duration;

use super::messages::{Answer, Loss, Operation};
use super::sight::Source;
use super::state::{InFlight, Leader, Role};
use super::step::Step;
use super::values::{Lease, Moment, Spec};

/// After so many failures in a row a leader pauses between its requests.
const FAILURES_WITHOUT_PAUSE: u8 = 2;

// === impl Step ===

impl Step<'_> {
    /// The watch delivered a Lease: a reason to read, unless it is known, or one of this leader's own writes.
    pub(super) fn leader_sees(&mut self, lease: &Lease) {
        let Role::Leader(leader) = &self.state.role else {
            return;
        };
        let in_flight = self
            .state
            .in_flight
            .as_ref()
            .and_then(|request| request.operation.spec());
        let mut own = self.state.written.iter().map(|write| &write.spec).chain(in_flight);
        if lease.version > leader.stored.version && !own.any(|spec| lease.spec.proves(spec)) {
            self.leader_doubts();
        }
    }

    pub(super) fn leader_doubts(&mut self) {
        let spacing = self.state.timings.retry_period() / 2;
        let earliest = self
            .state
            .last_read
            .map_or(Moment::ZERO, |last| last.saturating_add(spacing));
        if let Role::Leader(leader) = &mut self.state.role
            && leader.doubt.is_none()
        {
            leader.doubt = Some(self.now.at);
            leader.next_at = leader.next_at.min(self.now.at.max(earliest));
        }
    }

    pub(super) fn leader_answered(&mut self, request: &InFlight, answer: Answer) {
        match (&request.operation, answer) {
            (Operation::Read, Answer::Lease(lease)) => self.leader_reads(lease, request.sent_at),
            (Operation::Read, Answer::Absent) => {
                self.lose(Loss::LeaseMissing);
                self.look_at_absence(true);
            }
            (Operation::Read, Answer::Refused { retry_after } | Answer::Unknown { retry_after }) => {
                self.leader_pauses(retry_after);
            }
            (Operation::Read, Answer::Conflict) => self.leader_pauses(None),
            (Operation::Replace { version, spec, .. }, Answer::Lease(stored)) => {
                if stored.version == *version {
                    // Nothing was stored, whatever the answer says: the next try has another time.
                    self.leader_pauses(None);
                } else if stored.spec.proves(spec) {
                    self.leader_renewed(stored, request.sent_at, request.sent_at);
                } else {
                    self.remember_write(request);
                    self.leader_must_read(None);
                }
            }
            (_, Answer::Conflict | Answer::Absent) => self.leader_must_read(None),
            (_, Answer::Refused { retry_after }) => self.leader_pauses(retry_after),
            (_, Answer::Unknown { retry_after }) => {
                self.remember_write(request);
                self.leader_must_read(retry_after);
            }
            // A create belongs to a candidate; it can't lead while one is under way.
            (Operation::Create(_), Answer::Lease(_)) => self.remember_write(request),
        }
    }

    /// What a read proves (decision L3).
    fn leader_reads(&mut self, lease: Lease, sent_at: Moment) {
        let pause = self.pause(None);
        let Role::Leader(leader) = &mut self.state.role else {
            return;
        };
        let landed = self
            .state
            .written
            .iter()
            .position(|write| lease.spec.proves(&write.spec));
        if let Some(landed) = landed {
            let write = self.state.written.swap_remove(landed);
            let from = if self.rules.count_from_proven_write {
                write.sent_at
            } else {
                self.now.at
            };
            self.leader_renewed(lease, from, sent_at);
            return;
        }
        let only_version = lease.spec.same_renewal(&leader.stored.spec)
            || self
                .state
                .written
                .iter()
                .any(|write| lease.spec.same_renewal(&write.spec));
        if only_version {
            let moved = lease.version != leader.stored.version;
            leader.stored = lease;
            if leader.doubt.is_some_and(|since| since <= sent_at) {
                leader.doubt = None;
            }
            leader.next_at = if leader.failures > FAILURES_WITHOUT_PAUSE {
                pause
            } else {
                leader
                    .renewed
                    .saturating_add(self.state.timings.retry_period())
                    .max(self.now.at)
            };
            if moved && !self.rules.version_is_no_renewal {
                let stored = leader.stored.clone();
                self.leader_renewed(stored, self.now.at, sent_at);
            }
            return;
        }
        let loss = match lease.spec.held_by() {
            None => Loss::HolderMissing,
            Some(holder) if *holder == self.state.identity => Loss::IdentityInUse,
            Some(holder) => Loss::ForeignHolder(holder.clone()),
        };
        self.lose(loss);
        self.look(lease, Source::ReadByLeader(sent_at));
    }

    /// A write that was sent at `sent_at` is stored. The request that showed it was sent at `asked_at`, and settles
    /// every doubt that is older.
    fn leader_renewed(&mut self, stored: Lease, sent_at: Moment, asked_at: Moment) {
        let from = if self.rules.count_from_request {
            sent_at
        } else {
            self.now.at
        };
        let until = self.state.permit_end(from);
        self.state.written.clear();
        let retry_period = self.state.timings.retry_period();
        if let Role::Leader(leader) = &mut self.state.role {
            leader.stored = stored;
            if until > leader.until {
                leader.until = until;
                leader.renewed = from;
                self.actions.push(super::Action::Extended { until });
            }
            leader.failures = 0;
            if leader.doubt.is_some_and(|since| since <= asked_at) {
                leader.doubt = None;
            }
            leader.next_at = match leader.doubt {
                Some(_) => self.now.at,
                None => leader.renewed.saturating_add(retry_period).max(self.now.at),
            };
        }
    }

    /// A write failed, or nobody knows: the Lease must be read before it is written again.
    fn leader_must_read(&mut self, retry_after: Option<Duration>) {
        self.leader_pauses(retry_after);
        if let Role::Leader(leader) = &mut self.state.role {
            if retry_after.is_none() && leader.failures <= FAILURES_WITHOUT_PAUSE {
                leader.next_at = self.now.at;
            }
            leader.doubt.get_or_insert(self.now.at);
        }
    }

    /// A request failed: the next one comes after a pause.
    fn leader_pauses(&mut self, retry_after: Option<Duration>) {
        let pause = self.pause(retry_after);
        if let Role::Leader(leader) = &mut self.state.role {
            leader.failures = leader.failures.saturating_add(1);
            leader.next_at = pause;
        }
    }

    /// Half a retry period, or as long as the server asked for, but never more than half of what is left of the
    /// permit: an API server that recovers before the deadline must be met in time.
    fn pause(&self, retry_after: Option<Duration>) -> Moment {
        let Role::Leader(Leader { until, .. }) = &self.state.role else {
            return self.now.at;
        };
        let usual = self.state.timings.retry_period() / 2;
        let left = until.saturating_sub(self.now.at);
        let pause = retry_after.unwrap_or_default().max(usual).min(left / 2);
        self.now.at.saturating_add(if left < usual / 2 { left } else { pause })
    }

    pub(super) fn leader_proceeds(&mut self) -> Option<Moment> {
        let Role::Leader(leader) = &self.state.role else {
            return None;
        };
        let until = leader.until;
        if let Some(in_flight) = &self.state.in_flight {
            return Some(in_flight.deadline.min(until));
        }
        if leader.next_at > self.now.at {
            return Some(leader.next_at.min(until));
        }
        let left = until.saturating_sub(self.now.at);
        if leader.doubt.is_some() {
            return Some(self.send(Operation::Read, left));
        }
        let Lease { uid, version, spec } = leader.stored.clone();
        let renew_time = self.renew_time(Some(&spec));
        let spec = Spec {
            renew_time: Some(renew_time),
            duration_seconds: Some(self.state.timings.duration_seconds()),
            transitions: Some(spec.transition_count()),
            ..spec
        };
        Some(self.send(Operation::Replace { uid, version, spec }, left))
    }
}
