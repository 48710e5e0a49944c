//! After the permit: let go of the Lease, but only of what this process wrote (decision L9a).

use super::messages::{Action, Answer, Loss, NotReleased, Operation};
use super::sight::Known;
use super::state::{InFlight, Leader, Resigned, Role};
use super::step::Step;
use super::values::{Lease, Moment};

/// The most requests that one release sends.
const MOST_TRIES: u8 = 4;

// === impl Step ===

impl Step<'_> {
    pub(super) fn resign(&mut self, release: bool) {
        if self.rules.revoke_before_release || release {
            self.leave();
        }
        if let Role::Resigned(resigned) = &mut self.state.role {
            resigned.release |= release;
        }
    }

    /// Ends whatever this replica was doing. What is under way goes on and counts as held.
    fn leave(&mut self) {
        let held = match std::mem::replace(&mut self.state.role, Role::Idle) {
            Role::Leader(Leader { stored, .. }) => {
                if self.rules.revoke_before_release {
                    self.actions.push(Action::Revoked(Loss::Resigned));
                }
                Some(stored)
            }
            Role::Idle | Role::Candidate(_) => match &self.state.sight.known {
                Known::Lease(seen) if seen.own => Some(seen.lease.clone()),
                _ => None,
            },
            Role::Resigned(resigned) => {
                self.state.role = Role::Resigned(resigned);
                return;
            }
        };
        self.state.role = Role::Resigned(Resigned {
            doubt: held.is_none() && !self.state.written.is_empty(),
            held,
            release: false,
            tries: 0,
            next_at: None,
            done: false,
        });
    }

    pub(super) fn resigned_answered(&mut self, request: &InFlight, answer: Answer) {
        let Role::Resigned(resigned) = &mut self.state.role else {
            return;
        };
        let releases = request.operation.spec().is_some_and(|spec| spec.held_by().is_none());
        let maybe_held = resigned.held.is_some() || !self.state.written.is_empty();
        match (&request.operation, answer) {
            // Whatever was read before the release was asked for may have changed by then.
            (Operation::Read, _) if !resigned.release => resigned.doubt |= maybe_held,
            (Operation::Read, Answer::Lease(lease)) => self.resigned_reads(lease),
            (Operation::Read, Answer::Absent) => self.finish(Action::Released),
            (Operation::Read, _) => {
                resigned.doubt = true;
                self.resigned_pauses();
            }
            (_, Answer::Lease(_)) if releases => self.finish(Action::Released),
            (operation, Answer::Lease(stored)) => {
                // The last renewal or acquisition was still under way.
                if operation.spec().is_some_and(|sent| stored.spec.proves(sent)) {
                    self.state.written.clear();
                    resigned.held = Some(stored);
                } else {
                    resigned.doubt = true;
                }
            }
            (_, Answer::Conflict | Answer::Absent) => resigned.doubt |= maybe_held,
            (_, Answer::Refused { .. }) => {
                if releases {
                    self.resigned_pauses();
                }
            }
            (_, Answer::Unknown { .. }) => {
                resigned.doubt = true;
                if !releases {
                    self.remember_write(request);
                }
            }
        }
    }

    fn resigned_reads(&mut self, lease: Lease) {
        let Role::Resigned(resigned) = &mut self.state.role else {
            return;
        };
        let held = resigned.held.as_ref().map(|held| &held.spec);
        let mut own = self.state.written.iter().map(|write| &write.spec).chain(held);
        if own.any(|spec| lease.spec.same_renewal(spec)) && lease.spec.held_by().is_some() {
            resigned.held = Some(lease);
            resigned.doubt = false;
        } else if lease.spec.held_by().is_none() || resigned.held.is_none() {
            self.finish(Action::Released);
        } else {
            self.finish(Action::NotReleased(NotReleased::NotOurs));
        }
    }

    fn resigned_pauses(&mut self) {
        let next = self.now.at.saturating_add(self.state.timings.retry_period() / 2);
        if let Role::Resigned(resigned) = &mut self.state.role {
            resigned.next_at = Some(next);
        }
    }

    fn finish(&mut self, result: Action) {
        if let Role::Resigned(resigned) = &mut self.state.role {
            resigned.done = true;
            if !self.rules.revoke_before_release {
                self.actions.push(Action::Revoked(Loss::Resigned));
            }
            self.actions.push(result);
        }
    }

    pub(super) fn resigned_proceeds(&mut self) -> Option<Moment> {
        let Role::Resigned(resigned) = &mut self.state.role else {
            return None;
        };
        if resigned.done {
            return None;
        }
        if resigned.release && resigned.held.is_none() && !resigned.doubt {
            let writes = |request: &InFlight| request.operation.spec().is_some();
            // Nothing is held, so no read could change what is to be done: its answer is not awaited.
            if !self.state.in_flight.as_ref().is_some_and(writes) {
                self.state.in_flight = None;
                self.finish(Action::Released);
                return None;
            }
        }
        if let Some(in_flight) = &self.state.in_flight {
            return Some(in_flight.deadline);
        }
        if !resigned.release {
            return None;
        }
        if let Some(next) = resigned.next_at
            && next > self.now.at
        {
            return Some(next);
        }
        resigned.next_at = None;
        let operation = match &resigned.held {
            Some(Lease { uid, version, spec }) if !resigned.doubt => Operation::Replace {
                uid: uid.clone(),
                version: *version,
                spec: spec.released(),
            },
            _ => Operation::Read,
        };
        if resigned.tries == MOST_TRIES {
            self.finish(Action::NotReleased(NotReleased::Failed));
            return None;
        }
        resigned.tries += 1;
        Some(self.send(operation, self.state.timings.request_bound()))
    }
}
