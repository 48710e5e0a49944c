//! The permit of one term: the proof that this replica may write on behalf of the leader.
//!
//! It is minted, extended and revoked only inside `leadership`; everyone else can only ask it. It ends on its own at
//! the renew deadline, so a leader that hears nothing more, not even its own revocation, stops writing in time
//! (decision L9). It also counts the mutating requests that have passed the fence, so that the Lease is released only
//! after the last of them (decision L9b).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Moment};

/// The deadline of a permit that was revoked. No moment lies before it.
const REVOKED: u64 = 0;

/// The right to write as the leader during one term. Clones share one state: all of them end together.
#[derive(Clone)]
pub struct Permit {
    shared: Arc<Shared>,
}

struct Shared {
    term: i32,
    clock: Clock,
    /// Nanoseconds since the start of `clock`, or [`REVOKED`].
    deadline: AtomicU64,
    revoked: CancellationToken,
    writes: watch::Sender<Writes>,
}

/// The mutating requests of a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::leadership) struct Writes {
    /// Passed the fence and not answered yet.
    pub(in crate::leadership) open: usize,
    /// Given up without an answer after the permit had ended: the API server may still act on them.
    pub(in crate::leadership) abandoned: usize,
}

/// One mutating request on its way. It counts as open until this is dropped.
pub(in crate::leadership) struct OpenWrite {
    permit: Permit,
    limit: Moment,
}

// === impl Permit ===

impl Permit {
    /// A permit for the term `term` that is valid until `deadline`.
    pub(in crate::leadership) fn mint(term: i32, deadline: Moment, clock: Clock) -> Self {
        let shared = Shared {
            term,
            clock,
            deadline: AtomicU64::new(nanoseconds(deadline)),
            revoked: CancellationToken::new(),
            writes: watch::Sender::new(Writes::default()),
        };
        Permit {
            shared: Arc::new(shared),
        }
    }

    /// The number of this term: `leaseTransitions` of the Lease.
    pub fn term(&self) -> i32 {
        self.shared.term
    }

    /// Whether a write may be sent now: not revoked, and the renew deadline lies ahead.
    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// The time left until the renew deadline; zero once the permit has ended.
    pub fn remaining(&self) -> Duration {
        self.deadline().saturating_since(self.shared.clock.now())
    }

    /// Ends when the permit is revoked. Passing its deadline does not end this by itself: the election then revokes it.
    pub async fn revoked(&self) {
        self.shared.revoked.cancelled().await;
    }

    /// Moves the deadline after a renewal. Never moves it back, and does nothing to a revoked permit.
    pub(in crate::leadership) fn extend(&self, deadline: Moment) {
        let later = nanoseconds(deadline);
        let move_on = |current| (current != REVOKED && current < later).then_some(later);
        // An error means that there was nothing to move.
        let _ = self
            .shared
            .deadline
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, move_on);
    }

    /// Ends the permit for good.
    pub(in crate::leadership) fn revoke(&self) {
        self.shared.deadline.store(REVOKED, Ordering::SeqCst);
        self.shared.revoked.cancel();
    }

    /// Lets a mutating request through, or `None` if the permit has ended.
    ///
    /// The request is counted *before* the permit is looked at: whoever revokes it and then waits for the count to
    /// reach zero misses none.
    pub(in crate::leadership) fn begin_write(&self) -> Option<OpenWrite> {
        self.shared.writes.send_modify(|writes| writes.open += 1);
        let write = OpenWrite {
            permit: self.clone(),
            limit: self.deadline(),
        };
        (self.shared.clock.now() < write.limit).then_some(write)
    }

    /// Waits until no mutating request is open. Returns how many were abandoned after the permit had ended.
    pub(in crate::leadership) async fn writes_settled(&self) -> usize {
        let mut writes = self.shared.writes.subscribe();
        // The sender lives as long as `self`, so the wait can't fail.
        match writes.wait_for(|writes| writes.open == 0).await {
            Ok(settled) => settled.abandoned,
            Err(_) => 0,
        }
    }

    /// The mutating requests of this term as they are now.
    pub(in crate::leadership) fn writes(&self) -> Writes {
        *self.shared.writes.borrow()
    }

    fn deadline(&self) -> Moment {
        Moment::from(Duration::from_nanos(self.shared.deadline.load(Ordering::SeqCst)))
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Permit")
            .field("term", &self.term())
            .field("remaining", &self.remaining())
            .field("writes", &self.writes())
            .finish()
    }
}

// === impl OpenWrite ===

impl OpenWrite {
    /// Whether the request may still be handed to the connection: the deadline that it began under lies ahead.
    /// A revocation alone does not stop it, it had passed the fence before.
    pub(in crate::leadership) fn in_time(&self) -> bool {
        self.permit.shared.clock.now() < self.limit
    }

    /// Waits for the deadline that the request began under.
    pub(in crate::leadership) async fn limit(&self) {
        self.permit.shared.clock.sleep_until(self.limit).await;
    }

    /// The permit that let the request through.
    pub(in crate::leadership) fn permit(&self) -> &Permit {
        &self.permit
    }

    /// Gives the request up without an answer.
    pub(in crate::leadership) fn abandon(self) {
        if !self.permit.is_valid() {
            self.permit.shared.writes.send_modify(|writes| writes.abandoned += 1);
        }
    }
}

impl Drop for OpenWrite {
    fn drop(&mut self) {
        self.permit.shared.writes.send_modify(|writes| writes.open -= 1);
    }
}

fn nanoseconds(moment: Moment) -> u64 {
    u64::try_from(moment.since_start().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from(Duration::from_secs(seconds))
    }

    #[tokio::test(start_paused = true)]
    async fn ends_at_the_deadline_and_not_before() {
        let permit = Permit::mint(1, at(10), Clock::tokio());
        tokio::time::advance(Duration::from_nanos(9_999_999_999)).await;
        assert!(permit.is_valid());
        tokio::time::advance(Duration::from_nanos(1)).await;
        assert!(!permit.is_valid(), "the deadline itself is outside the permit");
        assert!(permit.begin_write().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn ends_while_the_machine_is_suspended() {
        let clock = Clock::tokio();
        let permit = Permit::mint(1, at(10), clock.clone());
        clock.suspend(Duration::from_secs(11));
        assert!(!permit.is_valid());
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_extends_and_never_shortens() {
        let permit = Permit::mint(1, at(10), Clock::tokio());
        permit.extend(at(12));
        permit.extend(at(11));
        assert_eq!(permit.remaining(), Duration::from_secs(12));
    }

    #[tokio::test(start_paused = true)]
    async fn a_revoked_permit_stays_revoked() {
        let permit = Permit::mint(1, at(10), Clock::tokio());
        let clone = permit.clone();
        permit.revoke();
        permit.extend(at(20));
        assert!(!clone.is_valid());
        clone.revoked().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_write_is_not_left_open() {
        let permit = Permit::mint(1, at(10), Clock::tokio());
        permit.revoke();
        assert!(permit.begin_write().is_none());
        assert_eq!(permit.writes(), Writes { open: 0, abandoned: 0 });
    }

    #[tokio::test(start_paused = true)]
    async fn settles_only_when_the_last_write_has_ended() {
        let permit = Permit::mint(1, at(10), Clock::tokio());
        let first = permit.begin_write().unwrap();
        let second = permit.begin_write().unwrap();
        permit.revoke();
        let mut settled = Box::pin(permit.writes_settled());
        assert!(futures::poll!(&mut settled).is_pending());
        drop(first);
        assert!(futures::poll!(&mut settled).is_pending());
        second.abandon();
        assert_eq!(settled.await, 1);
    }
}
