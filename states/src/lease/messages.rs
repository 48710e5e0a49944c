//! What goes into a step and what comes out of it.

use std::fmt;
use std::time::Duration;

use super::values::{Identity, Lease, Moment, ResourceVersion, Spec, Uid};

/// Tells the requests of one [`State`](super::State) apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Something that the replica saw, or was told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Observation {
    /// The replica may campaign from now on. Given once, first.
    Started,
    /// The moment of the last [`Action::WaitUntil`] has come.
    Elapsed,
    /// The watch delivered `ADDED` or `MODIFIED`, or its list found the Lease.
    Seen {
        /// The Lease as it was delivered.
        lease: Lease,
        /// True for what a list found: changes may have been missed before it (decision L4). False for an event of a
        /// watch that has run without a gap since the last `Seen` or `Missing`.
        after_gap: bool,
    },
    /// The watch delivered `DELETED`, or its list found no Lease. No proof of absence, only a reason to read.
    Missing,
    /// Whether the Lease can be watched. A new [`State`](super::State) believes so; `false` (no permission) makes a
    /// candidate poll (decision L2).
    Watchable(bool),
    /// The answer to the request under way.
    Answer {
        /// The request that is answered.
        to: RequestId,
        /// What is known of it.
        answer: Answer,
    },
    /// The replica is to stop: the permit ends now, nothing is renewed or acquired any more. Comes before `Release`.
    Resign,
    /// The work is done: let go of the Lease if it is held. Implies `Resign`. Ends with [`Action::Released`] or
    /// [`Action::NotReleased`]; the driver bounds the whole.
    Release,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// 200 or 201 with a Lease: what was read, or what is now stored.
    Lease(Lease),
    /// 404 to a read: there is no Lease. (A 404 whose body names the namespace is `Refused`.)
    Absent,
    /// 409: the Lease is not at the version (or not the one) that the write was based on, or exists already.
    Conflict,
    /// Certainly not carried out: the connection could not be opened, 4xx (400, 401, 403, 404 to a write, 422, 429).
    Refused {
        /// `Retry-After` of the answer.
        retry_after: Option<Duration>,
    },
    /// Nobody can say: no answer in time, connection lost, 5xx, or an answer that does not decode.
    Unknown {
        /// `Retry-After` of the answer.
        retry_after: Option<Duration>,
    },
}

/// One thing for the driver to do. The actions of a step are carried out in their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send this request on the lease's own connection, once, without automatic retry.
    Send(Request),
    /// Report [`Observation::Elapsed`] at this moment; replaces the moment given before. A step without it leaves
    /// the earlier one in force only if there is nothing left to wait for.
    WaitUntil(Moment),
    /// The Lease was acquired: this replica leads. The permit is valid while `now < until`.
    Granted {
        /// The first moment at which the permit is no longer valid, on the clock of [`Now::at`](super::Now).
        until: Moment,
        /// `leaseTransitions` of the term that begins.
        term: i32,
    },
    /// The permit of the current term now lasts longer.
    Extended {
        /// The first moment at which the permit is no longer valid.
        until: Moment,
    },
    /// The permit is no longer valid. To be carried out before anything else (decision L9).
    Revoked(Loss),
    /// The release is done: the Lease has no holder, or this replica never held it.
    Released,
    /// The release was given up; the Lease expires by itself, or is another's.
    NotReleased(NotReleased),
}

/// A request about the one Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Comes back in [`Observation::Answer`].
    pub id: RequestId,
    /// When to stop waiting for an answer (decision L10).
    pub deadline: Moment,
    /// What to do.
    pub operation: Operation,
}

/// The verb and content of a [`Request`]. Leases are only ever read, created and replaced (decision L8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `get`, quorum.
    Read,
    /// `create` with this spec.
    Create(Spec),
    /// `update`: the object last seen at `version`, with its `spec` replaced.
    Replace {
        /// `metadata.uid` that must be sent.
        uid: Uid,
        /// `metadata.resourceVersion` that must be sent.
        version: ResourceVersion,
        /// The new spec.
        spec: Spec,
    },
}

/// Why a permit ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// No renewal succeeded within the renew deadline.
    DeadlinePassed,
    /// The Lease names another holder.
    ForeignHolder(Identity),
    /// The Lease names no holder: an outsider cleared it.
    HolderMissing,
    /// The Lease was deleted.
    LeaseMissing,
    /// The Lease names this identity, but with times that this process did not write: another process uses the same
    /// identity, or an outsider wrote an old state back. To be logged at error (decision L3).
    IdentityInUse,
    /// [`Observation::Resign`] or [`Observation::Release`].
    Resigned,
}

/// Why a release was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotReleased {
    /// The Lease is not as this process wrote it (or is gone): it was left alone.
    NotOurs,
    /// The requests of the release failed; the Lease expires by itself.
    Failed,
}

// === impl Loss ===

impl Loss {
    /// The kind of loss, one of a fixed set: a label of metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Loss::DeadlinePassed => "deadline_passed",
            Loss::ForeignHolder(_) => "foreign_holder",
            Loss::HolderMissing => "holder_missing",
            Loss::LeaseMissing => "lease_missing",
            Loss::IdentityInUse => "identity_in_use",
            Loss::Resigned => "resigned",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::DeadlinePassed => f.write_str("no renewal succeeded within the renew deadline"),
            Loss::ForeignHolder(holder) => write!(f, "the Lease names another holder: {holder:?}"),
            Loss::HolderMissing => f.write_str("the holder of the Lease was cleared"),
            Loss::LeaseMissing => f.write_str("the Lease was deleted"),
            Loss::IdentityInUse => f.write_str("another process uses this identity"),
            Loss::Resigned => f.write_str("this replica resigned"),
        }
    }
}
