//! The rules of the protocol that the tests switch off one at a time, to show that each is needed.

/// One switch per rule. Production runs with all of them on; there is no other constructor outside the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, one per rule")]
pub(super) struct Rules {
    /// A permit counts from before its request was sent, not from the answer (L3).
    pub(super) count_from_request: bool,
    /// What a read proves counts from before the write that it proves, not from the read (L3).
    pub(super) count_from_proven_write: bool,
    /// A read that shows only a new version proves no renewal (L3).
    pub(super) version_is_no_renewal: bool,
    /// This replica's identity in a Lease that it did not write is a stranger's (L6).
    pub(super) own_identity_is_not_trusted: bool,
    /// A Lease that looks released is believed only with the count last seen, directly after its holder (L6).
    pub(super) doubt_releases: bool,
    /// What a release seems to free is still waited for if an earlier holder was pushed aside meanwhile (L6).
    pub(super) remember_displaced_holders: bool,
    /// What this process wrote is its own only for as long as nobody can have taken it over (L6).
    pub(super) own_writes_age: bool,
    /// The permit ends before the release is sent (L9).
    pub(super) revoke_before_release: bool,
    /// The permit ends at the renew deadline by itself (L9).
    pub(super) stop_at_deadline: bool,
    /// A candidate waits for the lease duration (L4).
    pub(super) wait_for_expiry: bool,
    /// A candidate that has seen a Lease waits before it creates a new one (L5).
    pub(super) wait_for_absence: bool,
    /// After a gap a new version restarts the wait (L4).
    pub(super) gap_restarts_wait: bool,
    /// A candidate acquires at all.
    pub(super) acquire: bool,
}

// === impl Rules ===

impl Rules {
    /// Every rule in force.
    pub(super) const ALL: Rules = Rules {
        count_from_request: true,
        count_from_proven_write: true,
        version_is_no_renewal: true,
        own_identity_is_not_trusted: true,
        doubt_releases: true,
        remember_displaced_holders: true,
        own_writes_age: true,
        revoke_before_release: true,
        stop_at_deadline: true,
        wait_for_expiry: true,
        wait_for_absence: true,
        gap_restarts_wait: true,
        acquire: true,
    };
}
