//! What a person reads while the program works: one line a step, with the time it took.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Result;

use crate::clock::Stopwatch;

/// The steps of one command, timed one by one and together.
#[derive(Debug)]
pub(crate) struct Progress {
    begun: Stopwatch,
}

// === impl Progress ===

impl Progress {
    /// Begins to measure.
    pub(crate) fn start() -> Self {
        Self {
            begun: Stopwatch::start(),
        }
    }

    /// Runs one step and prints its name and duration when it has succeeded; a failure is told by `main`.
    pub(crate) fn step<T>(&self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let watch = Stopwatch::start();
        let value = work()?;
        line(&format!(
            "{:>8} {:>8}  {name}",
            seconds(self.begun.elapsed()),
            format!("+{}", seconds(watch.elapsed()))
        ));
        Ok(value)
    }

    /// The time since the first step began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

/// Prints one line; a reader that has gone away is no reason to stop working.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// A duration for people: `0.12s`, `75.3s`.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.2}s", duration.as_secs_f64())
}
