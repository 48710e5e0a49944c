//! What leadership shows of itself besides its log lines: an interface that `telemetry` implements with metrics and
//! the status page, so that this folder knows no registry.

use std::time::Duration;

use crate::clock::Moment;

/// Learns what happens to the leadership of this replica. Every method returns at once.
pub trait Observer: Send + Sync {
    /// A phase was left and another entered: `orchestratord_phase`, `orchestratord_leadership_transitions_total`.
    fn transition(&self, transition: &Transition);

    /// Whether this replica leads: `orchestratord_is_leader`.
    fn is_leader(&self, leads: bool);

    /// Leadership ended: everything that only a leader knows is reset, above all `environmentd_needs_update`.
    fn reset_leader_gauges(&self);

    /// A renewal was answered after `took`: `orchestratord_lease_renew_duration_seconds`.
    fn renewal(&self, took: Duration);

    /// The Lease was last renewed at `at`, counted from before the request; `None` when this replica does not hold it:
    /// `orchestratord_lease_seconds_since_renewal`.
    fn renewed_at(&self, at: Option<Moment>);

    /// Who holds the Lease as far as this replica knows; `None` if nobody does.
    fn holder(&self, holder: Option<&str>);

    /// A task of the leader did not end within a second after it was aborted and was left behind.
    fn task_left_behind(&self, task: &'static str);
}

/// One transition between phases, as logged (decision O5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The phase that was left.
    pub from: &'static str,
    /// The phase that was entered.
    pub to: &'static str,
    /// Why.
    pub cause: &'static str,
    /// `leaseTransitions` of the term that began or ended; `None` for a transition that has to do with none.
    pub term: Option<i32>,
    /// How long the phase that was left had lasted.
    pub held_for: Duration,
}

/// Watches nothing.
impl Observer for () {
    fn transition(&self, _transition: &Transition) {}
    fn is_leader(&self, _leads: bool) {}
    fn reset_leader_gauges(&self) {}
    fn renewal(&self, _took: Duration) {}
    fn renewed_at(&self, _at: Option<Moment>) {}
    fn holder(&self, _holder: Option<&str>) {}
    fn task_left_behind(&self, _task: &'static str) {}
}
