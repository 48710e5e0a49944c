//! What a proxy has seen.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::rules::Target;

/// One request. Times are those of [`super::Proxy::now`].
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// When its first byte came.
    pub(crate) first_byte: Duration,
    /// What was asked.
    pub(crate) target: Target,
    /// What happened to it.
    pub(crate) fault: Option<&'static str>,
    /// The HTTP status that the client was given.
    pub(crate) status: Option<u16>,
}

/// All requests, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: Mutex<Vec<Entry>>,
}

// === impl Journal ===

impl Journal {
    /// Those that `wanted` keeps.
    pub(crate) fn entries(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().filter(|entry| wanted(entry)).cloned().collect()
    }

    /// How many `wanted` keeps.
    pub(crate) fn count(&self, wanted: impl Fn(&Entry) -> bool) -> usize {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().filter(|entry| wanted(entry)).count()
    }

    /// Adds one and says where it stands.
    pub(super) fn add(&self, entry: Entry) -> usize {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.push(entry);
        entries.len() - 1
    }

    /// Completes one.
    pub(super) fn change(&self, index: usize, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get_mut(index) {
            change(entry);
        }
    }
}
