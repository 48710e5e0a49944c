//! How often a resource that is not ready is looked at: what keeps its pods from starting is not all watched.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Moment};

/// The first pause.
const SHORTEST: Duration = Duration::from_secs(5);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// When each resource that is not ready is looked at next.
#[derive(Debug)]
pub(super) struct Pace {
    clock: Clock,
    looks: Mutex<HashMap<String, Look>>,
}

#[derive(Debug)]
struct Look {
    cause: String,
    pause: Duration,
    due: Moment,
}

// === impl Pace ===

impl Pace {
    /// Nothing is looked at yet.
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            looks: Mutex::default(),
        }
    }

    /// How long until the resource `uid` is to be looked at again: 5 s, twice as long each time up to 30 s, and
    /// from the beginning when the `cause` changes. A pass between two looks changes nothing.
    pub(super) fn next(&self, uid: &str, cause: &str) -> Duration {
        let now = self.clock.now();
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = match looks.get(uid) {
            Some(look) if look.cause == cause && now < look.due => return look.due.saturating_since(now),
            Some(look) if look.cause == cause => (look.pause * 2).min(LONGEST),
            _ => SHORTEST,
        };
        let look = Look {
            cause: cause.to_owned(),
            pause,
            due: now + pause,
        };
        looks.insert(uid.to_owned(), look);
        pause
    }

    /// The resource is as it should be, or gone.
    pub(super) fn forget(&self, uid: &str) {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn backs_off_from_five_to_thirty_seconds() {
        let pace = Pace::new(Clock::tokio());
        for expected in [5, 10, 20, 30, 30] {
            let pause = pace.next("u", "no image");
            assert_eq!(pause, seconds(expected));
            tokio::time::advance(pause).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_in_between_keeps_the_moment() {
        let pace = Pace::new(Clock::tokio());
        pace.next("u", "no image");
        tokio::time::advance(seconds(2)).await;
        assert_eq!(pace.next("u", "no image"), seconds(3));
    }

    #[tokio::test(start_paused = true)]
    async fn begins_anew_with_another_cause_and_after_success() {
        let pace = Pace::new(Clock::tokio());
        tokio::time::advance(pace.next("u", "no image")).await;
        assert_eq!(pace.next("u", "no image"), seconds(10));
        assert_eq!(pace.next("u", "no node"), seconds(5));
        tokio::time::advance(seconds(5)).await;
        pace.forget("u");
        assert_eq!(pace.next("u", "no node"), seconds(5));
    }
}
