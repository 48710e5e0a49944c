//! Holds back the first passes until everything has been listed once.
//!
//! Else each object that is listed after its owner's first pass would start a second one.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// How long the first passes are held back at most: a kind that can't be listed must not stop everything.
const PATIENCE: Duration = Duration::from_secs(5);

/// The first lists that are still awaited. Clones share one count.
#[derive(Clone, Debug)]
pub(in crate::controllers::materialize) struct Starting {
    awaited: watch::Sender<usize>,
    open: Arc<AtomicBool>,
}

/// One first list that is awaited.
#[derive(Debug)]
pub(in crate::controllers::materialize) struct FirstList {
    starting: Starting,
    awaited: bool,
}

// === impl Starting ===

impl Starting {
    /// Nothing is awaited yet.
    pub(in crate::controllers::materialize) fn new() -> Self {
        Starting {
            awaited: watch::Sender::new(0),
            open: Arc::default(),
        }
    }

    /// One more list to wait for.
    pub(in crate::controllers::materialize) fn expect(&self) -> FirstList {
        self.awaited.send_modify(|awaited| *awaited += 1);
        FirstList {
            starting: self.clone(),
            awaited: true,
        }
    }

    /// Ends when every list has arrived, or after five seconds.
    pub(in crate::controllers::materialize) fn done(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut awaited = self.awaited.subscribe();
        let open = Arc::clone(&self.open);
        async move {
            // Either the time is over, or nobody is left to wait for: the passes begin in any case.
            let _ = tokio::time::timeout(PATIENCE, awaited.wait_for(|awaited| *awaited == 0)).await;
            open.store(true, Ordering::SeqCst);
        }
    }
}

impl Default for Starting {
    fn default() -> Self {
        Self::new()
    }
}

// === impl FirstList ===

impl FirstList {
    /// Whether passes have begun: what is listed from now on may be news to them.
    pub(in crate::controllers::materialize) fn is_late(&self) -> bool {
        self.starting.open.load(Ordering::SeqCst)
    }

    /// The list has arrived.
    pub(in crate::controllers::materialize) fn arrived(&mut self) {
        if std::mem::take(&mut self.awaited) {
            self.starting.awaited.send_modify(|awaited| *awaited -= 1);
        }
    }
}

impl Drop for FirstList {
    fn drop(&mut self) {
        self.arrived();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_for_every_list() {
        let starting = Starting::new();
        let (mut first, mut second) = (starting.expect(), starting.expect());
        let mut done = Box::pin(starting.done());
        first.arrived();
        first.arrived();
        assert!(futures::poll!(&mut done).is_pending());
        assert!(!second.is_late());
        second.arrived();
        done.await;
        assert!(second.is_late());
    }

    #[tokio::test(start_paused = true)]
    async fn does_not_wait_for_ever() {
        let starting = Starting::new();
        let denied = starting.expect();
        starting.done().await;
        assert!(denied.is_late());
    }
}
