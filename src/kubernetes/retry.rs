//! Repeats requests that failed for a passing reason. The clients themselves never do.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// How often and how long something is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Pause after the first failure; it doubles with each further one.
    pub first_pause: Duration,
    /// Longest pause.
    pub longest_pause: Duration,
    /// Bound on everything together, attempts included; none: without end.
    pub total: Option<Duration>,
}

/// Whether it is worth trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The reason may pass.
    Retry,
    /// It would fail again.
    GiveUp,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum RetryError<E> {
    /// The last attempt failed, and no further one was due.
    #[error(transparent)]
    Failed(E),
    /// The time was over before any attempt had ended.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
}

/// Calls `attempt` until it succeeds, `judge` gives it up, or the time is over. `judge` sees every failure and the
/// number of its attempt, from 1, so that it may log it.
///
/// # Errors
/// See [`RetryError`].
pub async fn retry<T, E, F>(
    bounds: Bounds,
    mut attempt: impl FnMut() -> F,
    mut judge: impl FnMut(&E, u32) -> Verdict,
) -> Result<T, RetryError<E>>
where
    F: Future<Output = Result<T, E>>,
{
    let deadline = bounds.total.map(|total| Instant::now() + total);
    let mut pause = bounds.first_pause.min(bounds.longest_pause);
    let mut last = None;
    for number in 1.. {
        let outcome = match deadline {
            Some(deadline) => timeout_at(deadline, attempt()).await.ok(),
            None => Some(attempt().await),
        };
        match outcome {
            Some(Ok(value)) => return Ok(value),
            Some(Err(error)) => {
                let verdict = judge(&error, number);
                // No pause at whose end the time is over.
                let too_late = deadline.is_some_and(|deadline| Instant::now() + pause >= deadline);
                if verdict == Verdict::GiveUp || too_late {
                    return Err(RetryError::Failed(error));
                }
                last = Some(error);
            }
            None => break,
        }
        sleep(pause).await;
        pause = (pause * 2).min(bounds.longest_pause);
    }
    Err(last.map_or(
        RetryError::TimedOut(bounds.total.unwrap_or_default()),
        RetryError::Failed,
    ))
}

/// Whether a request that failed so may succeed later: anything but a refusal of the request itself. 401 and 403
/// count as passing, because permissions are often granted after the start.
pub fn is_transient(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => matches!(status.code, 401 | 403 | 408 | 409 | 429 | 500..),
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::Auth(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const BOUNDS: Bounds = Bounds {
        first_pause: Duration::from_secs(1),
        longest_pause: Duration::from_secs(4),
        total: Some(Duration::from_secs(20)),
    };

    /// Fails `failures` times, then says how often it was called.
    async fn failing(
        bounds: Bounds,
        failures: u32,
        verdict: Verdict,
    ) -> (Result<u32, RetryError<&'static str>>, Duration) {
        let (start, calls) = (Instant::now(), Cell::new(0));
        let attempt = || {
            calls.set(calls.get() + 1);
            std::future::ready(if calls.get() > failures {
                Ok(calls.get())
            } else {
                Err("no")
            })
        };
        (retry(bounds, attempt, |_, _| verdict).await, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_the_longest() {
        let (result, took) = failing(BOUNDS, 4, Verdict::Retry).await;
        assert_eq!(result.unwrap(), 5);
        assert_eq!(took, Duration::from_secs(1 + 2 + 4 + 4));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_given_up_is_not_tried_again() {
        let (result, took) = failing(BOUNDS, 4, Verdict::GiveUp).await;
        assert!(matches!(result, Err(RetryError::Failed("no"))));
        assert_eq!(took, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_total_bounds_attempts_and_pauses() {
        let (result, took) = failing(BOUNDS, u32::MAX, Verdict::Retry).await;
        assert!(matches!(result, Err(RetryError::Failed("no"))));
        assert_eq!(
            took,
            Duration::from_secs(1 + 2 + 4 + 4 + 4 + 4),
            "a pause that ends at 23 s is not begun"
        );
        let hanging = retry(BOUNDS, std::future::pending::<Result<(), &str>>, |_, _| Verdict::Retry).await;
        assert!(matches!(hanging, Err(RetryError::TimedOut(total)) if total == Duration::from_secs(20)));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_total_there_is_no_end() {
        let (result, took) = failing(Bounds { total: None, ..BOUNDS }, 1000, Verdict::Retry).await;
        assert_eq!(result.unwrap(), 1001);
        assert_eq!(took, Duration::from_secs(1 + 2 + 4 * 998));
    }
}
