//! When each status was last written: a message alone is not rewritten too often (decision R18).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Moment};

/// The last write of each resource's status.
#[derive(Debug)]
pub(super) struct Messages {
    clock: Clock,
    written: Mutex<HashMap<String, Moment>>,
}

// === impl Messages ===

impl Messages {
    /// Nothing was written yet.
    pub(super) fn new(clock: Clock) -> Self {
        Messages {
            clock,
            written: Mutex::default(),
        }
    }

    /// Notes that the status of the resource `uid` was written.
    pub(super) fn written(&self, uid: &str) {
        let now = self.clock.now();
        self.written
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(uid.to_owned(), now);
    }

    /// How long until `interval` has passed since the last write; `None` if it has, or if there was none.
    pub(super) fn time_left(&self, uid: &str, interval: Duration) -> Option<Duration> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let past = self.clock.now().saturating_since(*written.get(uid)?);
        interval.checked_sub(past).filter(|left| !left.is_zero())
    }

    /// Forgets the resource.
    pub(super) fn forget(&self, uid: &str) {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_message_waits_for_the_rest_of_the_interval() {
        let messages = Messages::new(Clock::tokio());
        let interval = Duration::from_secs(30);
        assert_eq!(messages.time_left("u", interval), None);
        messages.written("u");
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(messages.time_left("u", interval), Some(Duration::from_secs(20)));
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(messages.time_left("u", interval), None);
    }
}
