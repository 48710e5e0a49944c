//! What the election says in the log: why this replica does not get the Lease, who holds it, what is missing. Each
//! cause once, and at most once a minute, with Lease, namespace, verb and holder.

use std::sync::Arc;

use states::lease::{Identity, Loss, NotReleased};
use tracing::{error, info, warn};

use super::LEASE_NAME;
use super::complaints::Complaints;
use super::observer::Observer;
use super::requests::{RequestError, Verb};
use crate::clock::Clock;

/// Tells the log what happens to the Lease.
pub(in crate::leadership) struct Narrator {
    namespace: String,
    clock: Clock,
    observer: Arc<dyn Observer>,
    complaints: Complaints<(Verb, Kind)>,
    /// The verb whose failure was said last, until a request succeeds again. Watching does not count: polling succeeds
    /// without it.
    failing: Option<Verb>,
    holder: Option<Identity>,
}

/// Kinds of failures that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Forbidden,
    Refused,
    Unknown,
}

// === impl Narrator ===

impl Narrator {
    pub(in crate::leadership) fn new(namespace: String, clock: Clock, observer: Arc<dyn Observer>) -> Self {
        Narrator {
            namespace,
            clock,
            observer,
            complaints: Complaints::new(),
            failing: None,
            holder: None,
        }
    }

    /// A request failed. Conflicts and an absent Lease are part of the protocol and worth no word.
    pub(in crate::leadership) fn failed(&mut self, verb: Verb, error: &RequestError) {
        let kind = match error {
            RequestError::Conflict | RequestError::Absent | RequestError::Gone => return,
            RequestError::Forbidden(_) => Kind::Forbidden,
            RequestError::Refused { .. } => Kind::Refused,
            RequestError::Unknown { .. } => Kind::Unknown,
        };
        if !self.complaints.due((verb, kind), self.clock.now()) {
            return;
        }
        if !matches!(verb, Verb::List | Verb::Watch) {
            self.failing = Some(verb);
        }
        let (namespace, holder) = (self.namespace.as_str(), self.holder.as_deref().unwrap_or("unknown"));
        match (kind, verb) {
            (Kind::Forbidden, Verb::List | Verb::Watch) => warn!(
                lease = LEASE_NAME, namespace, %verb, holder, %error,
                "not allowed to watch the Lease, so it is polled every 2 to 3 s and a release is noticed that much \
                 later: grant get, list, watch and update on this Lease and create on leases in this namespace",
            ),
            (Kind::Forbidden, _) => error!(
                lease = LEASE_NAME, namespace, %verb, holder, %error,
                "this replica can't lead, it lacks a permission: grant get, list, watch and update on this Lease and \
                 create on leases in this namespace",
            ),
            _ => {
                warn!(
                    lease = LEASE_NAME, namespace, %verb, holder, %error,
                    "a request on the Lease failed; it is tried again",
                );
            }
        }
    }

    /// A request succeeded.
    pub(in crate::leadership) fn succeeded(&mut self) {
        if let Some(verb) = self.failing.take() {
            info!(lease = LEASE_NAME, namespace = self.namespace, %verb, "requests on the Lease succeed again");
        }
    }

    /// The Lease names this holder. `expected`: this replica leads, or is just writing itself into it.
    pub(in crate::leadership) fn holder(&mut self, holder: Option<&Identity>, own: &Identity, expected: bool) {
        if self.holder.as_ref() == holder {
            return;
        }
        self.holder = holder.cloned();
        self.observer.holder(holder.map(|holder| &**holder));
        let (lease, namespace) = (LEASE_NAME, self.namespace.as_str());
        match holder {
            Some(holder) if holder == own && expected => {}
            Some(holder) if holder == own => info!(
                lease, namespace, %holder,
                "the Lease names this replica although it does not lead: it did before a restart, or another process \
                 uses the same identity",
            ),
            Some(holder) => info!(lease, namespace, %holder, "the Lease is held by another"),
            None => info!(lease, namespace, "the Lease has no holder"),
        }
    }

    /// The term ended.
    pub(in crate::leadership) fn lost(&self, loss: &Loss) {
        let (lease, namespace) = (LEASE_NAME, self.namespace.as_str());
        match loss {
            Loss::Resigned => {}
            Loss::IdentityInUse => error!(
                lease,
                namespace,
                holder = self.holder.as_deref(),
                "lost the Lease: it names this replica with times that this process did not write. Another process \
                 uses the same identity: give each replica its own with --leader-election-identity",
            ),
            loss => warn!(lease, namespace, "lost the Lease: {loss}"),
        }
    }

    /// The release was given up.
    pub(in crate::leadership) fn not_released(&self, why: NotReleased) {
        let (lease, namespace) = (LEASE_NAME, self.namespace.as_str());
        match why {
            NotReleased::NotOurs => info!(
                lease,
                namespace, "the Lease is not as this replica wrote it and was left alone"
            ),
            NotReleased::Failed => warn!(
                lease,
                namespace, "the Lease could not be released; it expires by itself"
            ),
        }
    }
}
