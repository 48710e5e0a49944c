//! What one replica knows between two steps.

use super::messages::{Operation, RequestId};
use super::sight::Sight;
use super::timings::Timings;
use super::values::{Identity, Lease, Moment, Spec};

/// Everything that one replica remembers about the election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) identity: Identity,
    pub(super) timings: Timings,
    /// The greatest `renewTime` that this process has sent.
    pub(super) last_renew_time: Option<i64>,
    /// The id of the next request.
    pub(super) next_id: u64,
    /// The one request under way.
    pub(super) in_flight: Option<InFlight>,
    /// Writes of unknown outcome that may still turn out to be stored.
    pub(super) written: Vec<Written>,
    /// What is known of the Lease.
    pub(super) sight: Sight,
    /// Whether the Lease can be watched.
    pub(super) watchable: bool,
    /// When a read was last sent.
    pub(super) last_read: Option<Moment>,
    pub(super) role: Role,
}

/// Where a replica stands, for people and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Before [`Observation::Started`](super::Observation::Started), or after `Resign`: it does not campaign.
    Idle,
    /// It campaigns.
    Candidate,
    /// It holds a permit.
    Leader {
        /// The first moment at which the permit is no longer valid.
        until: Moment,
        /// When the write that the permit rests on was sent.
        renewed: Moment,
        /// `leaseTransitions` of this term.
        term: i32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct InFlight {
    pub(super) id: RequestId,
    pub(super) sent_at: Moment,
    pub(super) deadline: Moment,
    pub(super) operation: Operation,
}

/// A write whose outcome nobody knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Written {
    pub(super) spec: Spec,
    pub(super) sent_at: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Idle,
    Candidate(Candidate),
    Leader(Leader),
    Resigned(Resigned),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Candidate {
    /// No attempt to acquire before this moment.
    pub(super) not_before: Option<Moment>,
    /// When to read next, if at all.
    pub(super) read_at: Option<Moment>,
    /// Since when there is a reason to read before anything is written.
    pub(super) doubt: Option<Moment>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leader {
    /// The Lease as last known to be stored by this process.
    pub(super) stored: Lease,
    /// When the write that the permit rests on was sent.
    pub(super) renewed: Moment,
    /// The permit is valid before this moment.
    pub(super) until: Moment,
    /// When the next request is due.
    pub(super) next_at: Moment,
    /// Since when there is a reason to read before anything is written.
    pub(super) doubt: Option<Moment>,
    /// Requests in a row that failed.
    pub(super) failures: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Resigned {
    /// The Lease as last known to be stored by this process.
    pub(super) held: Option<Lease>,
    /// Whether the release was asked for.
    pub(super) release: bool,
    /// Whether the outcome of a write must be read before anything is written.
    pub(super) doubt: bool,
    /// Requests of the release that were sent.
    pub(super) tries: u8,
    /// When the next request is due.
    pub(super) next_at: Option<Moment>,
    /// Whether the result was delivered.
    pub(super) done: bool,
}

// === impl State ===

impl State {
    /// A replica that has seen nothing yet and believes that it may watch. `identity` must be unique among replicas
    /// and must not be empty: an empty holder means "nobody" (the arguments are checked where they are parsed).
    pub fn new(identity: impl Into<Identity>, timings: Timings) -> State {
        State {
            identity: identity.into(),
            timings,
            last_renew_time: None,
            next_id: 1,
            in_flight: None,
            written: Vec::new(),
            sight: Sight::default(),
            watchable: true,
            last_read: None,
            role: Role::Idle,
        }
    }

    /// The identity that this replica writes as holder.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Where this replica stands.
    pub fn standing(&self) -> Standing {
        match &self.role {
            Role::Idle | Role::Resigned(_) => Standing::Idle,
            Role::Candidate(_) => Standing::Candidate,
            Role::Leader(leader) => Standing::Leader {
                until: leader.until,
                renewed: leader.renewed,
                term: leader.stored.spec.transition_count(),
            },
        }
    }

    /// The Lease as this replica last saw or wrote it.
    pub fn lease(&self) -> Option<&Lease> {
        match &self.role {
            Role::Leader(leader) => Some(&leader.stored),
            _ => self.sight.lease(),
        }
    }
}
