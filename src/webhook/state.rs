//! Whether this replica's webhook wants traffic (decision C2).

use std::sync::{Arc, Mutex, PoisonError};

pub use crate::telemetry::Readiness;

/// Readiness that comes once and stays, also while the replica drains. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StickyReadiness(Arc<Mutex<Readiness>>);

// === impl StickyReadiness ===

impl StickyReadiness {
    /// Not ready yet, for this reason.
    pub fn not_yet(reason: impl Into<String>) -> Self {
        Self(Arc::new(Mutex::new(Readiness::NotReady(reason.into()))))
    }

    /// Ready or not, and why not.
    pub fn get(&self) -> Readiness {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says what is still missing; nothing happens once it is ready.
    pub fn waits_for(&self, reason: impl Into<String>) {
        let mut readiness = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *readiness != Readiness::Ready {
            *readiness = Readiness::NotReady(reason.into());
        }
    }

    /// Ready from now on.
    pub fn ready(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Readiness::Ready;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ready_stays_ready() {
        let readiness = StickyReadiness::not_yet("a");
        assert_eq!(readiness.get(), Readiness::NotReady("a".to_owned()));
        readiness.waits_for("b");
        assert_eq!(readiness.get(), Readiness::NotReady("b".to_owned()));
        readiness.ready();
        readiness.waits_for("c");
        assert_eq!(readiness.get(), Readiness::Ready);
    }
}
