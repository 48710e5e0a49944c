//! Which environments do not run what their spec says: the gauge `environmentd_needs_update`.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The environments that need an update, by namespace and name (decision R10). Clones share one set.
#[derive(Clone)]
pub struct NeedsUpdate {
    set: Arc<Mutex<BTreeSet<(String, String)>>>,
    gauge: Arc<dyn Fn(u64) + Send + Sync>,
}

// === impl NeedsUpdate ===

impl NeedsUpdate {
    /// An empty set that tells `gauge` its size whenever that may have changed.
    pub fn new(gauge: impl Fn(u64) + Send + Sync + 'static) -> Self {
        let needs_update = NeedsUpdate {
            set: Arc::default(),
            gauge: Arc::new(gauge),
        };
        needs_update.reset();
        needs_update
    }

    /// Records whether the environment `namespace`/`name` needs an update.
    pub fn set(&self, namespace: &str, name: &str, needs_update: bool) {
        self.change(|set| {
            let key = (namespace.to_owned(), name.to_owned());
            if needs_update {
                set.insert(key)
            } else {
                set.remove(&key)
            };
        });
    }

    /// Empties the set: this replica does not lead, and so does not know.
    pub fn reset(&self) {
        self.change(BTreeSet::clear);
    }

    /// The gauge is told under the lock, so that it never ends on an older size.
    fn change(&self, change: impl FnOnce(&mut BTreeSet<(String, String)>)) {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut set);
        (self.gauge)(u64::try_from(set.len()).unwrap_or(u64::MAX));
    }
}

impl fmt::Debug for NeedsUpdate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NeedsUpdate")
            .field("set", &self.set)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn counts_by_namespace_and_name_and_forgets_when_leadership_ends() {
        let gauge = Arc::new(AtomicU64::new(7));
        let shown = Arc::clone(&gauge);
        let needs_update = NeedsUpdate::new(move |size| shown.store(size, Ordering::SeqCst));
        let count = || gauge.load(Ordering::SeqCst);
        assert_eq!(count(), 0);
        needs_update.set("a", "mz", true);
        needs_update.set("b", "mz", true);
        needs_update.set("b", "mz", true);
        assert_eq!(count(), 2, "the same name in two namespaces");
        needs_update.set("a", "mz", false);
        assert_eq!(count(), 1);
        needs_update.clone().reset();
        assert_eq!(count(), 0);
    }
}
