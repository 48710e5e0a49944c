//! What the API server says happened to the operator's Lease, read from the audit log as it grows.

use std::cell::{Ref, RefCell};
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::cluster::audit::{Event, Position};
use crate::scenarios::context::Context;

/// The requests of a scenario's namespace and of its replicas.
pub(crate) struct Ledger<'a> {
    context: &'a Context,
    read: RefCell<Read>,
}

struct Read {
    until: Position,
    events: Vec<Event>,
}

/// The holder in a Lease as the API server answered it; empty if there is none.
pub(crate) fn holder_of(event: &Event) -> &str {
    event
        .response()
        .pointer("/spec/holderIdentity")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// How often the Lease has changed hands, says the Lease.
pub(crate) fn transitions_of(event: &Event) -> Option<i64> {
    event
        .response()
        .pointer("/spec/leaseTransitions")
        .and_then(Value::as_i64)
}

// === impl Ledger ===

impl<'a> Ledger<'a> {
    /// That of a scenario, from its beginning.
    pub(crate) fn of(context: &'a Context) -> Self {
        Self {
            context,
            read: RefCell::new(Read {
                until: context.begun,
                events: Vec::new(),
            }),
        }
    }

    /// Everything so far, in the order of the answers.
    pub(crate) fn events(&self) -> Result<Ref<'_, Vec<Event>>> {
        {
            let mut read = self.read.borrow_mut();
            let Read { until, events } = &mut *read;
            let more = self.context.cluster.audit_further(until, &self.context.namespace)?;
            events.extend(more);
        }
        Ok(Ref::map(self.read.borrow(), |read| &read.events))
    }

    /// The requests about the Lease, failed ones and reads included.
    pub(crate) fn lease_requests(&self) -> Result<Vec<Event>> {
        let namespace = &self.context.namespace;
        let events = self.events()?;
        let of_lease = events
            .iter()
            .filter(|event| event.resource() == "leases" && event.namespace() == namespace);
        Ok(of_lease.cloned().collect())
    }

    /// What was written to the Lease, in the order in which it was stored.
    pub(crate) fn writes(&self) -> Result<Vec<Event>> {
        let mut writes: Vec<(i128, Event)> = Vec::new();
        for event in self.lease_requests()? {
            if event.is_write() {
                writes.push((event.received()?, event));
            }
        }
        // Answers may overtake each other in the log. Versions order what was stored; a deletion has none and stands by its time.
        writes.sort_by_key(|(received, _)| *received);
        for lives in writes.split_mut(|(_, event)| removes(event)) {
            lives.sort_by_key(|(_, event)| version(event));
        }
        Ok(writes.into_iter().map(|(_, event)| event).collect())
    }

    /// The writes by which a replica became the holder: what stood in the Lease before was not its own. A replica that takes up what it wrote itself, before
    /// an outage for example, only renews.
    pub(crate) fn acquisitions(&self) -> Result<Vec<Event>> {
        let mut acquisitions = Vec::new();
        let mut author = None;
        let mut spec = Value::Null;
        for event in self.writes()? {
            let stored = event.response()["spec"].clone();
            if removes(&event) {
                (author, spec) = (None, Value::Null);
                continue;
            }
            if stored == spec || event.verb() == "delete" {
                continue;
            }
            let replica = self.replica(&event).map(str::to_owned);
            let holds = !holder_of(&event).is_empty();
            if holds && replica.is_some() && (replica != author || event.verb() == "create") {
                acquisitions.push(event);
            }
            author = replica.filter(|_| holds);
            spec = stored;
        }
        Ok(acquisitions)
    }

    /// The replica that sent a request, if one of this scenario did.
    pub(crate) fn replica<'e>(&self, event: &'e Event) -> Option<&'e str> {
        let account = event.user().strip_prefix("system:serviceaccount:")?;
        account.strip_prefix(&self.context.namespace)?.strip_prefix(':')
    }

    /// Waits until the last write has left a holder that `wanted` accepts; gives that holder.
    pub(crate) fn wait_for_holder(&self, what: &str, limit: Duration, wanted: impl Fn(&str) -> bool) -> Result<String> {
        self.context.wait_for(what, limit, || {
            let writes = self.writes()?;
            let holder = writes.last().map(holder_of).unwrap_or_default();
            Ok((!holder.is_empty() && wanted(holder)).then(|| holder.to_owned()))
        })
    }

    /// Waits until a replica has become the holder more than `before` times in all; gives the write by which it did.
    pub(crate) fn wait_for_acquisition(&self, what: &str, limit: Duration, before: usize) -> Result<Event> {
        self.context
            .wait_for(what, limit, || Ok(self.acquisitions()?.get(before).cloned()))
    }

    /// Waits until a replica writes itself into the Lease for the first time after `count` writes of any kind.
    pub(crate) fn wait_for_a_leader(&self, what: &str, limit: Duration, count: usize) -> Result<Event> {
        self.context.wait_for(what, limit, || {
            let writes = self.writes()?;
            let mut later = writes.into_iter().skip(count);
            Ok(later.find(|event| self.replica(event).is_some() && !holder_of(event).is_empty()))
        })
    }

    /// Waits until the named replica has renewed once more.
    pub(crate) fn wait_for_renewal(&self, replica: &str, limit: Duration) -> Result<Event> {
        let count = |writes: &[Event]| {
            writes
                .iter()
                .filter(|event| self.replica(event) == Some(replica))
                .count()
        };
        let before = count(&self.writes()?);
        self.context
            .wait_for(&format!("{replica} renews its Lease"), limit, || {
                let writes = self.writes()?;
                Ok((count(&writes) > before)
                    .then(|| {
                        writes
                            .iter()
                            .rfind(|event| self.replica(event) == Some(replica))
                            .cloned()
                    })
                    .flatten())
            })
    }
}

/// Whether nothing is left after it; what a finalizer holds stays.
pub(crate) fn removes(event: &Event) -> bool {
    event.verb() == "delete" && event.response()["kind"] != "Lease"
}

fn version(event: &Event) -> u64 {
    let version = event.response().pointer("/metadata/resourceVersion");
    version
        .and_then(Value::as_str)
        .and_then(|version| version.parse().ok())
        .unwrap_or_default()
}
