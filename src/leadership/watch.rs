//! The watch on the one Lease, with which a candidate learns of a release at once (decision L2): list, then watch,
//! restarted with back-off, bounded by the API server's time-out and by an idle limit of its own (decision L16).

use std::time::Duration;

use futures::{AsyncBufReadExt as _, StreamExt as _};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::requests::{LeaseRequests, RequestError, Verb};
use crate::clock::Clock;

/// The middle of the time after which the API server ends a watch; each one is up to a tenth shorter or longer.
const WATCH_SECONDS: u64 = 200;
/// How much longer than that a watch may be silent.
const IDLE_MARGIN: Duration = Duration::from_secs(10);
/// Bound of the list and of opening the watch.
const OPEN_BOUND: Duration = Duration::from_secs(5);
/// A watch that lived at least this long is restarted without a pause.
const HEALTHY: Duration = Duration::from_secs(5);
/// The first and the longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// How often a watch that is not permitted is tried again.
const PERMISSION_PAUSE: Duration = Duration::from_mins(1);

/// What the watch has to tell.
#[derive(Debug)]
pub(in crate::leadership) enum News {
    /// The Lease as a list found it, or that there is none: changes may have been missed before.
    Listed(Option<Value>),
    /// The Lease changed or was created; nothing was missed since the news before.
    Changed(Value),
    /// The Lease was deleted.
    Deleted,
    /// The watch failed and will be tried again.
    Failed(Verb, RequestError),
}

/// A running watch; ends when it is dropped.
#[derive(Debug)]
pub(in crate::leadership) struct LeaseWatch {
    news: mpsc::Receiver<News>,
    _task: AbortOnDropHandle<()>,
}

/// Why one connection's worth of watching ended.
enum End {
    /// The API server's time-out: go on from the same version.
    TimedOut,
    /// Start anew from a list.
    Relist,
    /// As above, after saying why.
    Failed(RequestError),
    /// Nobody listens any more.
    Unheard,
}

struct Watcher {
    requests: LeaseRequests,
    clock: Clock,
    news: mpsc::Sender<News>,
    random: StdRng,
}

// === impl LeaseWatch ===

impl LeaseWatch {
    /// Starts to watch, on the runtime of the caller.
    pub(in crate::leadership) fn start(requests: LeaseRequests, clock: Clock, seed: u64) -> Self {
        let (sender, news) = mpsc::channel(16);
        let watcher = Watcher {
            requests,
            clock,
            news: sender,
            random: StdRng::seed_from_u64(seed),
        };
        LeaseWatch {
            news,
            _task: AbortOnDropHandle::new(tokio::spawn(watcher.run())),
        }
    }

    /// The next piece of news. Loses nothing when it is dropped unfinished.
    pub(in crate::leadership) async fn next(&mut self) -> News {
        match self.news.recv().await {
            Some(news) => news,
            // The task ends only with its listener.
            None => std::future::pending().await,
        }
    }
}

// === impl Watcher ===

impl Watcher {
    async fn run(mut self) {
        let mut failures = 0;
        loop {
            let started = self.clock.now();
            let (verb, error) = match self.list_and_watch().await {
                (_, End::Unheard) => return,
                (verb, End::Failed(error)) => (verb, Some(error)),
                (verb, End::TimedOut | End::Relist) => (verb, None),
            };
            failures = if self.clock.now().saturating_since(started) >= HEALTHY {
                0
            } else {
                failures + 1
            };
            let mut pause = self.pause(failures);
            if let Some(error) = error {
                if matches!(error, RequestError::Forbidden(_)) {
                    pause = PERMISSION_PAUSE;
                }
                if self.news.send(News::Failed(verb, error)).await.is_err() {
                    return;
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Until something happens that only a new list mends. Says which of the two requests ended it.
    async fn list_and_watch(&mut self) -> (Verb, End) {
        let (lease, mut version) = match self.requests.list(OPEN_BOUND).await {
            Ok(listed) => listed,
            Err(error) => return (Verb::List, End::Failed(error)),
        };
        if self.news.send(News::Listed(lease)).await.is_err() {
            return (Verb::List, End::Unheard);
        }
        loop {
            let started = self.clock.now();
            match self.watch(&mut version).await {
                // A watch that the API server ends at once is none: it must not be asked for again and again.
                End::TimedOut if self.clock.now().saturating_since(started) >= HEALTHY => {}
                end => return (Verb::Watch, end),
            }
        }
    }

    /// One watch, from `version` on, which it moves along.
    async fn watch(&mut self, version: &mut String) -> End {
        let seconds = self
            .random
            .random_range(WATCH_SECONDS * 9 / 10..=WATCH_SECONDS * 11 / 10);
        let stream = match self.requests.watch(version, seconds, OPEN_BOUND).await {
            Ok(stream) => stream,
            Err(RequestError::Gone) => return End::Relist,
            Err(error) => return End::Failed(error),
        };
        let idle = Duration::from_secs(seconds) + IDLE_MARGIN;
        let mut lines = stream.lines();
        loop {
            let line = match tokio::time::timeout(idle, lines.next()).await {
                Ok(Some(Ok(line))) => line,
                Ok(None) => return End::TimedOut,
                Ok(Some(Err(error))) => return End::Failed(RequestError::unknown(format!("the watch broke: {error}"))),
                Err(_) => return End::Failed(RequestError::unknown(format!("the watch was silent for {idle:?}"))),
            };
            let Ok(mut event) = serde_json::from_str::<Value>(&line) else {
                return End::Failed(RequestError::unknown("the watch sent something that is no JSON"));
            };
            let object = event["object"].take();
            if let Some(newer) = object.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
                newer.clone_into(version);
            }
            let news = match event["type"].as_str() {
                Some("ADDED" | "MODIFIED") => News::Changed(object),
                Some("DELETED") => News::Deleted,
                Some("BOOKMARK") => continue,
                Some("ERROR") if object["code"] == 410 => return End::Relist,
                _ => {
                    let message = object["message"].as_str().unwrap_or("an event of unknown type");
                    return End::Failed(RequestError::unknown(format!("the watch ended: {message}")));
                }
            };
            if self.news.send(news).await.is_err() {
                return End::Unheard;
            }
        }
    }

    /// The pause after so many failures in a row: none after the first end of a healthy watch, else doubling.
    fn pause(&mut self, failures: u32) -> Duration {
        let (first, longest) = PAUSES;
        match failures.checked_sub(1) {
            None => Duration::ZERO,
            Some(doublings) => {
                let pause = first.saturating_mul(2_u32.saturating_pow(doublings)).min(longest);
                pause.mul_f64(self.random.random_range(1.0..1.5))
            }
        }
    }
}
