//! The one module of this program that reads clocks and sleeps.
//!
//! Everything else measures with a [`Stopwatch`], gives up at a [`Deadline`] and waits between two looks with [`pause`].

use std::time::{Duration, Instant, SystemTime};

/// How long something has taken so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

/// The moment at which something must have happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

// === impl Stopwatch ===

impl Stopwatch {
    /// Starts to measure.
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is where the program reads the clock"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

// === impl Deadline ===

impl Deadline {
    /// The moment that lies `duration` ahead.
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is where the program reads the clock"
    )]
    pub(crate) fn after(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// Whichever of the two moments comes first.
    pub(crate) fn earlier(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// What is left, zero once it has passed.
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is where the program reads the clock"
    )]
    pub(crate) fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it is too late.
    pub(crate) fn has_passed(self) -> bool {
        self.remaining().is_zero()
    }
}

/// The time of the wall clock in microseconds since 1970, to be compared with that of the API server's audit log on the same machine.
#[expect(
    clippy::disallowed_methods,
    reason = "this module is where the program reads the clock"
)]
pub(crate) fn wall_clock() -> i128 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_1970.map_or(0, |time| i128::try_from(time.as_micros()).unwrap_or(i128::MAX))
}

/// Waits between two looks at something that cannot be awaited (a process, a socket file, a cgroup).
#[expect(clippy::disallowed_methods, reason = "this module is where the program sleeps")]
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Looks every `interval` until `look` finds something, fails, or the deadline passes (`None`).
pub(crate) fn poll<T, E>(
    deadline: Deadline,
    interval: Duration,
    mut look: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    loop {
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
        if deadline.has_passed() {
            return Ok(None);
        }
        pause(interval.min(deadline.remaining()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_looks_at_least_once_even_when_the_deadline_has_passed() {
        let found = poll(Deadline::after(Duration::ZERO), Duration::from_mins(1), || {
            Ok::<_, ()>(Some(7))
        });
        assert_eq!(found, Ok(Some(7)));
    }

    #[test]
    fn a_poll_that_never_finds_anything_ends_with_none() {
        let found = poll(Deadline::after(Duration::ZERO), Duration::from_mins(1), || {
            Ok::<Option<u8>, ()>(None)
        });
        assert_eq!(found, Ok(None));
    }

    #[test]
    fn the_earlier_deadline_wins() {
        let near = Deadline::after(Duration::ZERO);
        let far = Deadline::after(Duration::from_hours(1));
        assert!(near.earlier(far).has_passed());
        assert!(far.earlier(near).has_passed());
        assert!(!far.has_passed());
    }
}
