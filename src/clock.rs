//! The one place that time comes from.
//!
//! Belongs here: reading clocks and waiting for a moment. Does not belong here: any decision about time; those take a
//! [`Moment`] as a value. Everything else in this crate may use `tokio::time::sleep` and `timeout`, which the paused
//! clock of the tests controls, but never reads a clock itself (`clippy.toml` sees to it).

use std::ops::{Add, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// The longest nap of [`Clock::sleep_until`]. Tokio's timers stand still while the machine is suspended and the clock
/// of the permit does not, so a longer nap could end that much too late after a resume.
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// A moment on the monotonic clock of this process: the time since an arbitrary start.
///
/// Moments of different [`Clock`]s or processes are not comparable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

/// A source of time: the machine's in production, tokio's in tests. Cheap to clone.
///
/// In production a [`Moment`] is read from `CLOCK_BOOTTIME`, which never jumps and also advances while the machine is
/// suspended (decision L9): a permit must not survive a lid that was closed for an hour.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Boottime,
    Tokio {
        start: tokio::time::Instant,
        suspended: Arc<AtomicU64>,
    },
}

// === impl Moment ===

impl Moment {
    /// The start of the clock.
    pub const START: Moment = Moment(Duration::ZERO);

    /// The time between the start of the clock and this moment.
    pub fn since_start(self) -> Duration {
        self.0
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    pub fn saturating_since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl From<Duration> for Moment {
    fn from(since_start: Duration) -> Self {
        Moment(since_start)
    }
}

impl From<Moment> for Duration {
    fn from(moment: Moment) -> Self {
        moment.0
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, rest: Duration) -> Moment {
        Moment(self.0.saturating_add(rest))
    }
}

impl Sub<Duration> for Moment {
    type Output = Moment;

    fn sub(self, rest: Duration) -> Moment {
        Moment(self.0.saturating_sub(rest))
    }
}

// === impl Clock ===

impl Clock {
    /// The machine's clock, for production.
    pub fn boottime() -> Self {
        Clock {
            source: Source::Boottime,
        }
    }

    /// Tokio's clock, for tests under `tokio::time::pause`. It starts at [`Moment::START`], its wall clock at
    /// 2026-01-01T00:00:00Z.
    pub fn tokio() -> Self {
        let start = tokio::time::Instant::now();
        Clock {
            source: Source::Tokio {
                start,
                suspended: Arc::default(),
            },
        }
    }

    /// Lets a clock of [`Clock::tokio`] advance by `time` while no timer does, as if the machine had been suspended.
    /// Does nothing to the machine's clock.
    pub fn suspend(&self, time: Duration) {
        if let Source::Tokio { suspended, .. } = &self.source {
            let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            suspended.fetch_add(nanoseconds, Ordering::SeqCst);
        }
    }

    /// The present moment.
    pub fn now(&self) -> Moment {
        match &self.source {
            Source::Boottime => {
                let now = clock_gettime(ClockId::Boottime);
                let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
                let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
                Moment(Duration::new(seconds, nanoseconds))
            }
            Source::Tokio { start, suspended } => {
                let suspended = Duration::from_nanos(suspended.load(Ordering::SeqCst));
                Moment(start.elapsed() + suspended)
            }
        }
    }

    /// The present wall-clock time, for what people read. Never used to judge expiry.
    pub fn timestamp(&self) -> Timestamp {
        match &self.source {
            Source::Boottime => Timestamp::now(),
            Source::Tokio { .. } => {
                let start = Timestamp::constant(1_767_225_600, 0);
                let passed = SignedDuration::try_from(self.now().since_start()).unwrap_or(SignedDuration::MAX);
                start.checked_add(passed).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Waits until `moment` has come; returns at once if it has already. After a suspend it returns at most a second
    /// late.
    pub async fn sleep_until(&self, moment: Moment) {
        loop {
            let rest = moment.saturating_since(self.now());
            if rest.is_zero() {
                return;
            }
            tokio::time::sleep(rest.min(LONGEST_NAP)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_machines_clock_never_goes_back() {
        let clock = Clock::boottime();
        let first = clock.now();
        assert!(clock.now() >= first);
        assert!(first > Moment::START);
    }

    #[tokio::test(start_paused = true)]
    async fn sleeps_exactly_until_the_moment() {
        let clock = Clock::tokio();
        clock.sleep_until(Moment::from(Duration::from_millis(15_250))).await;
        assert_eq!(clock.now().since_start(), Duration::from_millis(15_250));
        clock.sleep_until(Moment::from(Duration::from_secs(3))).await;
        assert_eq!(
            clock.now().since_start(),
            Duration::from_millis(15_250),
            "a past moment is not waited for"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspended_machine_wakes_soon_after_the_moment() {
        let clock = Clock::tokio();
        let start = tokio::time::Instant::now();
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(Moment::from(Duration::from_secs(10))).await }
        });
        tokio::task::yield_now().await;
        clock.suspend(Duration::from_hours(1));
        sleeper.await.unwrap();
        assert!(
            start.elapsed() <= LONGEST_NAP,
            "timers ran for {:?} after the resume",
            start.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_tests_wall_clock_follows_the_paused_clock() {
        let clock = Clock::tokio();
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(clock.timestamp(), "2026-01-01T00:01:01Z".parse::<Timestamp>().unwrap());
    }
}
