//! Lease values as plain data. Any content that the API server can store, and any that it can't, is a value here.

use std::sync::Arc;
use std::time::Duration;

/// A moment on the monotonic clock of this process, as the time since an arbitrary start.
///
/// The clock must also advance while the machine is suspended (`CLOCK_BOOTTIME`, decision L9).
pub type Moment = Duration;

/// The identity of a replica, or the holder that a Lease names. Compared for equality, never by prefix (decision L6).
pub type Identity = Arc<str>;

/// `metadata.uid` of a Lease.
pub type Uid = Arc<str>;

/// `metadata.resourceVersion`, which Kubernetes lets clients compare as an integer (decision L2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(pub u64);

/// A Lease as it was read, listed, watched, or returned by a write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// `metadata.uid`; tells a Lease from one that was deleted and created again.
    pub uid: Uid,
    /// `metadata.resourceVersion`.
    pub version: ResourceVersion,
    /// `spec`; a missing or null one is [`Spec::default`].
    pub spec: Spec,
}

/// The `spec` of a Lease. Every field may be missing and hold any value; nothing here is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spec {
    /// `holderIdentity`. An empty string means the same as a missing one; one blank is a holder like any other.
    pub holder: Option<Identity>,
    /// `acquireTime` in microseconds since the Unix epoch.
    pub acquire_time: Option<i64>,
    /// `renewTime` in microseconds since the Unix epoch.
    pub renew_time: Option<i64>,
    /// `leaseDurationSeconds`. Written, but never read: expiry is this replica's own duration (decision L4).
    pub duration_seconds: Option<i32>,
    /// `leaseTransitions`.
    pub transitions: Option<i32>,
    /// `strategy`, carried along.
    pub strategy: Option<Arc<str>>,
    /// `preferredHolder`, carried along.
    pub preferred_holder: Option<Arc<str>>,
}

/// What [`step`](super::step()) must be told besides the observation: both clocks and one random number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The monotonic clock, on which everything is judged.
    pub at: Moment,
    /// The wall clock in microseconds since the Unix epoch. Only written into the Lease, never compared with it.
    pub wall_micros: i64,
    /// A random number, uniform over all values of its type; spreads retries of several replicas.
    pub jitter: u32,
}

// === impl Spec ===

impl Spec {
    /// Whoever holds the Lease: a holder that is neither missing nor empty.
    pub fn held_by(&self) -> Option<&Identity> {
        self.holder.as_ref().filter(|holder| !holder.is_empty())
    }

    /// Whether this is what a release leaves behind: no holder and no `renewTime` (decision L6). Whether it is
    /// believed is another question.
    pub(super) fn looks_released(&self) -> bool {
        self.held_by().is_none() && self.renew_time.is_none()
    }

    /// `leaseTransitions` as a count: missing or negative is 0.
    pub(super) fn transition_count(&self) -> i32 {
        self.transitions.unwrap_or(0).max(0)
    }

    /// Whether both name the same holder at the same point of its term: equal holder, `acquireTime` and `renewTime`.
    pub(super) fn same_renewal(&self, other: &Spec) -> bool {
        self.holder == other.holder && self.acquire_time == other.acquire_time && self.renew_time == other.renew_time
    }

    /// Whether a read of this spec shows that exactly `sent` was stored (decision L3).
    pub(super) fn proves(&self, sent: &Spec) -> bool {
        self.same_renewal(sent) && self.transitions == sent.transitions
    }

    /// What a release writes over this spec (decision L7).
    pub(super) fn released(&self) -> Spec {
        Spec {
            holder: None,
            acquire_time: None,
            renew_time: None,
            duration_seconds: None,
            transitions: Some(self.transition_count()),
            strategy: self.strategy.clone(),
            preferred_holder: self.preferred_holder.clone(),
        }
    }
}

// === impl Now ===

impl Now {
    /// `jitter` as a fraction of `whole`: at least zero, always less than `whole` unless that is zero.
    pub(super) fn jittered(&self, whole: Duration) -> Duration {
        let micros = whole.as_micros() * u128::from(self.jitter) / (u128::from(u32::MAX) + 1);
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}
