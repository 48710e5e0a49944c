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
}

// === impl Activity ===

impl Activity {
    /// That of a connection that was just accepted.
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            doing: Doing::Handshake,
            since: Instant::now(),
        }))
    }

    /// The handshake has ended, or a request has been answered.
    pub(super) fn idle(&self) {
        self.change(|_| Some(Doing::Idle));
    }

    /// Bytes have arrived.
    pub(super) fn received(&self) {
        self.change(|doing| (doing == Doing::Idle).then_some(Doing::Head));
    }

    /// The head of a request is complete.
    pub(super) fn request(&self) {
        self.change(|_| Some(Doing::Request));
    }

    /// Since when it has no request in flight; none while it has one.
    pub(super) fn spare_since(&self) -> Option<Instant> {
        let State { doing, since } = self.state();
        (doing != Doing::Request).then_some(since)
    }

    /// Until when it may go on as it does. `closing`: since when the connection is to be closed, if it is.
    pub(super) fn due(&self, limits: &Limits, closing: Option<Instant>) -> Instant {
        let State { doing, since } = self.state();
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

    fn change(&self, next: impl FnOnce(Doing) -> Option<Doing>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(doing) = next(state.doing) {
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
    async fn it_can_be_spared_unless_a_request_is_in_flight() {
        let activity = Activity::new();
        let start = Instant::now();
        assert_eq!(activity.spare_since(), Some(start));
        tokio::time::advance(Duration::from_secs(1)).await;
        activity.idle();
        let idle = Instant::now();
        assert_eq!(activity.spare_since(), Some(idle));
        activity.request();
        assert_eq!(activity.spare_since(), None);
        tokio::time::advance(Duration::from_secs(1)).await;
        activity.idle();
        assert_eq!(activity.spare_since(), Some(Instant::now()));
    }
}
