//! What a connection is doing and since when, and until when it may.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use super::limits::Limits;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Doing {
    /// Its TLS handshake.
    Handshake,
    /// Nothing: it waits for a request, or for its client to take what was written.
    Idle,
    /// The head of a request has begun to arrive.
    Head,
    /// A request is being answered.
    Request,
}

/// The activity of one connection.
#[derive(Debug)]
pub(super) struct Activity(Mutex<State>);

#[derive(Clone, Copy, Debug)]
struct State {
    doing: Doing,
    since: Instant,
    /// Whether a request was ever answered.
    used: bool,
}

/// Order in which connections are closed when there are too many: those that never had a request first, then by age.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Rank {
    used: bool,
    since: Instant,
}

// === impl Activity ===

impl Activity {
    /// That of a connection that was just accepted.
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            doing: Doing::Handshake,
            since: Instant::now(),
            used: false,
        }))
    }

    /// The handshake has ended, or a request has been answered.
    pub(super) fn idle(&self) {
        self.change(|state| {
            state.used |= state.doing == Doing::Request;
            Some(Doing::Idle)
        });
    }

    /// Bytes have arrived.
    pub(super) fn received(&self) {
        self.change(|state| (state.doing == Doing::Idle).then_some(Doing::Head));
    }

    /// The head of a request is complete.
    pub(super) fn request(&self) {
        self.change(|_| Some(Doing::Request));
    }

    /// Its place among those that may be closed; none while a request is in flight.
    pub(super) fn rank(&self) -> Option<Rank> {
        let State { doing, since, used } = self.state();
        (doing != Doing::Request).then_some(Rank { used, since })
    }

    /// Until when it may go on as it does. `closing`: since when the connection is to be closed, if it is.
    pub(super) fn due(&self, limits: &Limits, closing: Option<Instant>) -> Instant {
        let State { doing, since, .. } = self.state();
        match (doing, closing) {
            // Everything in an answer has its own limit; this one only has to be later.
            (Doing::Request, _) => since + limits.read + 2 * limits.queue + limits.flush,
            (_, Some(closing)) => since.max(closing) + limits.flush,
            (Doing::Handshake, None) => since + limits.handshake,
            (Doing::Idle, None) => since + limits.idle,
            (Doing::Head, None) => since + limits.head,
        }
    }

    fn state(&self) -> State {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, next: impl FnOnce(&mut State) -> Option<Doing>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(doing) = next(&mut state) {
            state.doing = doing;
            state.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn seconds(duration: Duration) -> u64 {
        duration.as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn each_state_has_its_own_time() {
        let limits = Limits::PRODUCTION;
        let activity = Activity::new();
        let left = |closing| seconds(activity.due(&limits, closing) - Instant::now());
        assert_eq!(left(None), 5, "handshake");
        activity.idle();
        assert_eq!(left(None), 120);
        activity.received();
        tokio::time::advance(Duration::from_secs(2)).await;
        activity.received();
        assert_eq!(left(None), 3, "further bytes of a head bring no further time");
        activity.request();
        activity.received();
        assert_eq!(left(None), 75);
        assert_eq!(left(Some(Instant::now())), 75, "what has begun is answered");
        activity.idle();
        assert_eq!(left(Some(Instant::now())), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn unused_connections_are_closed_first_then_the_oldest_and_never_a_busy_one() {
        let make = || async {
            tokio::time::advance(Duration::from_secs(1)).await;
            Activity::new()
        };
        let (used, busy, young, unused) = (make().await, make().await, make().await, make().await);
        for activity in [&used, &busy, &young] {
            activity.idle();
            activity.request();
        }
        used.idle();
        tokio::time::advance(Duration::from_secs(1)).await;
        young.idle();
        assert!(busy.rank().is_none());
        assert!(unused.rank() < used.rank() && used.rank() < young.rank());
    }
}
