//! Keeps the log readable: each cause is said once, and again at most once a minute while it lasts.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use crate::clock::Moment;

/// The least time between two log lines of the same cause.
const PAUSE: Duration = Duration::from_mins(1);

/// When which cause was last complained about.
#[derive(Debug)]
pub(in crate::leadership) struct Complaints<C> {
    said: HashMap<C, Moment>,
}

// === impl Complaints ===

impl<C: Eq + Hash> Complaints<C> {
    pub(in crate::leadership) fn new() -> Self {
        Complaints { said: HashMap::new() }
    }

    /// Whether `cause` is to be said now. Assumes that it then is.
    pub(in crate::leadership) fn due(&mut self, cause: C, now: Moment) -> bool {
        let due = self
            .said
            .get(&cause)
            .is_none_or(|last| now.saturating_since(*last) >= PAUSE);
        if due {
            self.said.insert(cause, now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_said_once_a_minute() {
        let mut complaints = Complaints::new();
        let at = |seconds| Moment::from(Duration::from_secs(seconds));
        assert!(complaints.due("a", at(0)));
        assert!(complaints.due("b", at(1)));
        assert!(!complaints.due("a", at(59)));
        assert!(complaints.due("a", at(60)));
        assert!(!complaints.due("b", at(60)));
    }
}
