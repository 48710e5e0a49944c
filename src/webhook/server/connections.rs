//! The open connections, and which of them is closed when there are too many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::activity::Activity;

/// All open connections. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    open: HashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    activity: Arc<Activity>,
    closing: CancellationToken,
}

/// A connection's place among the others; left when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    connections: Connections,
    id: u64,
    /// What the connection is doing.
    pub(super) activity: Arc<Activity>,
    /// Is cancelled when the connection is to be closed.
    pub(super) closing: CancellationToken,
}

// === impl Connections ===

impl Connections {
    /// Registers a connection. Its token is cancelled with `closing`, or alone.
    pub(super) fn enter(&self, closing: &CancellationToken) -> Place {
        let (activity, closing) = (Arc::new(Activity::new()), closing.child_token());
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        let entry = Entry {
            activity: activity.clone(),
            closing: closing.clone(),
        };
        state.open.insert(id, entry);
        Place {
            connections: self.clone(),
            id,
            activity,
            closing,
        }
    }

    /// How many are open and not about to be closed.
    pub(super) fn count(&self) -> usize {
        self.state().open.len()
    }

    /// Begins to close the one that has been without a request in flight for the longest time; says no if all have a request in flight.
    pub(super) fn close_one(&self) -> bool {
        let mut state = self.state();
        let spare = state
            .open
            .iter()
            .filter_map(|(id, entry)| Some((entry.activity.spare_since()?, *id)));
        let Some((_, id)) = spare.min() else {
            return false;
        };
        if let Some(entry) = state.open.remove(&id) {
            entry.closing.cancel();
        }
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Place ===

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.state().open.remove(&self.id);
    }
}
