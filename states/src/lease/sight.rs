//! What a candidate has seen of the Lease, and from when on that leaves it free.
//!
//! A candidate never compares a time that somebody else wrote with a clock. It knows when *it* saw the spec change, on
//! its own clock, and waits the lease duration from there (decision L4).

use super::rules::Rules;
use super::state::Written;
use super::timings::Timings;
use super::values::{Identity, Lease, Moment, ResourceVersion};

/// The newest thing known of the Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sight {
    pub(super) known: Known,
    /// Whether a Lease was ever seen.
    pub(super) lease_seen: bool,
    /// Whether a Lease with a holder was ever seen.
    pub(super) holder_seen: bool,
    /// The version of the newest Lease that was seen.
    pub(super) newest: Option<ResourceVersion>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Known {
    /// Nothing was observed since this process started.
    #[default]
    Nothing,
    /// A quorum read found no Lease.
    Absent {
        /// From when on a new one may be created.
        create_at: Moment,
        /// Until when a holder that was pushed aside may still have a permit.
        displaced_until: Moment,
    },
    /// A Lease was read, watched, or written by this process.
    Lease(Seen),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    pub(super) lease: Lease,
    /// When it was last observed.
    pub(super) at: Moment,
    /// From when on it may be taken over.
    pub(super) free_at: Moment,
    /// Until when a holder that was pushed aside by its present one may still have a permit.
    pub(super) displaced_until: Moment,
    /// Whether this process wrote it.
    pub(super) own: bool,
    /// Whether it is a release that was believed.
    pub(super) released: bool,
}

/// How an observation came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// An event of a watch without a gap: every change since the last one was seen.
    Event,
    /// The list of a watch: changes may have been missed, and it may come from a cache.
    List,
    /// A quorum read that was sent at this moment.
    Read(Moment),
    /// As `Read`, by a leader whose permit was valid: nobody else can have held the Lease before.
    ReadByLeader(Moment),
}

/// Who is looking, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Viewer<'a> {
    pub(super) rules: &'a Rules,
    pub(super) identity: &'a Identity,
    pub(super) timings: &'a Timings,
    /// Writes of this process whose outcome is open.
    pub(super) written: &'a [Written],
    pub(super) now: Moment,
}

// === impl Sight ===

impl Sight {
    /// The Lease, if one is there as far as known.
    pub(super) fn lease(&self) -> Option<&Lease> {
        match &self.known {
            Known::Lease(seen) => Some(&seen.lease),
            Known::Nothing | Known::Absent { .. } => None,
        }
    }

    /// Takes in a Lease that was observed. Returns whether it is news: false for what is older than something already
    /// known (decision L2), which changes nothing.
    pub(super) fn see(&mut self, lease: Lease, source: Source, viewer: Viewer<'_>) -> bool {
        if self.is_stale(&lease, source) {
            return false;
        }
        self.newest = Some(lease.version);
        self.lease_seen = true;
        let seen = match std::mem::take(&mut self.known) {
            Known::Lease(before) if before.is_unchanged_by(&lease, source, viewer.rules) => Seen {
                lease,
                at: viewer.now,
                ..before
            },
            before => self.judge(&before, lease, source, viewer),
        };
        self.holder_seen |= seen.lease.spec.held_by().is_some();
        self.known = Known::Lease(seen);
        true
    }

    /// Takes in a Lease that this process has just stored, or is known to have stored: it may replace that very
    /// version at any time.
    pub(super) fn wrote(&mut self, lease: Lease, now: Moment) {
        self.newest = Some(lease.version);
        self.lease_seen = true;
        self.holder_seen = true;
        self.known = Known::Lease(Seen {
            lease,
            at: now,
            free_at: now,
            displaced_until: Moment::ZERO,
            own: true,
            released: false,
        });
    }

    /// Takes in a quorum read that found no Lease (decision L5). `at_once`: a leader with a valid permit saw it.
    pub(super) fn see_absence(&mut self, at_once: bool, viewer: Viewer<'_>) {
        let waited = viewer.now.saturating_add(viewer.timings.lease_duration());
        let wait = self.lease_seen && !at_once && viewer.rules.wait_for_absence;
        let displaced_until = match &self.known {
            Known::Absent { .. } => return,
            Known::Nothing => Moment::ZERO,
            Known::Lease(before) if at_once => before.displaced_until,
            Known::Lease(_) => waited,
        };
        self.known = Known::Absent {
            create_at: if wait { waited } else { viewer.now },
            displaced_until,
        };
    }

    /// A create was sent: from now on its unknown outcome is a Lease that was seen, and another one waits.
    pub(super) fn creating(&mut self, viewer: Viewer<'_>) {
        if let Known::Absent { create_at, .. } = &mut self.known
            && self.lease_seen
        {
            *create_at = viewer.now.saturating_add(viewer.timings.lease_duration());
        }
    }

    fn is_stale(&self, lease: &Lease, source: Source) -> bool {
        let older = self.newest.is_some_and(|newest| lease.version < newest);
        let known_already = self.newest == Some(lease.version);
        match (&self.known, source) {
            // A cache can only repeat what is known, or bring back a Lease that a quorum read found gone.
            (Known::Lease(seen), Source::Event | Source::List) => {
                older || (known_already && seen.lease.uid == lease.uid)
            }
            (_, Source::Event | Source::List) => older || known_already,
            // A quorum read is right about everything that was known when it was sent, even after etcd was restored
            // from a backup and counts from an older version.
            (Known::Lease(seen), Source::Read(sent) | Source::ReadByLeader(sent)) => older && seen.at >= sent,
            (_, Source::Read(_) | Source::ReadByLeader(_)) => false,
        }
    }

    /// From when on a Lease is free whose spec has just changed.
    fn judge(&self, before: &Known, lease: Lease, source: Source, viewer: Viewer<'_>) -> Seen {
        let Viewer {
            rules,
            identity,
            timings,
            written,
            now,
        } = viewer;
        let expiry = now.saturating_add(timings.lease_duration());
        let own = written.iter().any(|write| {
            lease.spec.proves(&write.spec)
                && (!rules.own_writes_age || now < write.sent_at.saturating_add(timings.renew_deadline()))
        });
        let own_before_restart =
            lease.spec.held_by() == Some(identity) && (*before == Known::Nothing || !rules.own_identity_is_not_trusted);
        let release = self.believed_release(before, &lease, rules);
        let displaced_until = match before {
            _ if release.is_some() => release.unwrap_or_default(),
            Known::Nothing => Moment::ZERO,
            Known::Absent { displaced_until, .. } => *displaced_until,
            Known::Lease(seen) if seen.has_same_holder(&lease) => seen.displaced_until,
            Known::Lease(seen) if matches!(source, Source::Event | Source::ReadByLeader(_)) => seen.free_at,
            Known::Lease(_) => expiry,
        };
        let free_at = if own || own_before_restart {
            now
        } else if let Some(displaced_until) = release {
            if rules.remember_displaced_holders {
                displaced_until
            } else {
                now
            }
        } else if rules.wait_for_expiry {
            expiry
        } else {
            now
        };
        Seen {
            lease,
            at: now,
            free_at,
            displaced_until,
            own,
            released: release.is_some(),
        }
    }

    /// Whether `lease` looks released and is believed (decision L6); if so, until when a holder that the releasing one
    /// had pushed aside may still have a permit.
    fn believed_release(&self, before: &Known, lease: &Lease, rules: &Rules) -> Option<Moment> {
        if !lease.spec.looks_released() {
            return None;
        }
        if !rules.doubt_releases {
            return Some(Moment::ZERO);
        }
        match before {
            Known::Nothing => Some(Moment::ZERO),
            Known::Absent { displaced_until, .. } => (!self.holder_seen).then_some(*displaced_until),
            Known::Lease(seen) => {
                let same_count =
                    seen.lease.uid == lease.uid && seen.lease.spec.transition_count() == lease.spec.transition_count();
                let after_holder = seen.lease.spec.held_by().is_some() || seen.released;
                (same_count && after_holder).then_some(seen.displaced_until)
            }
        }
    }
}

// === impl Seen ===

impl Seen {
    fn is_unchanged_by(&self, lease: &Lease, source: Source, rules: &Rules) -> bool {
        let unchanged = self.lease.uid == lease.uid && self.lease.spec == lease.spec;
        let gap = source != Source::Event && rules.gap_restarts_wait;
        unchanged && (!gap || self.lease.version == lease.version)
    }

    fn has_same_holder(&self, lease: &Lease) -> bool {
        lease.spec.held_by().is_some() && self.lease.spec.held_by() == lease.spec.held_by()
    }
}
