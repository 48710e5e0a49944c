//! The faults that a test orders through a `ConfigMap`, and how much of each has been used up. No I/O.
//!
//! What is counted is counted by one process: a new start counts anew. `crashBeforeDurable` alone is counted in the catalogue.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

/// The key of the `ConfigMap`.
pub(crate) const KEY: &str = "faults.json";

/// The document: faults for every generation, and instead of them others for single ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    #[serde(default)]
    all: Faults,
    #[serde(default)]
    generations: BTreeMap<u64, Faults>,
}

/// What goes wrong for one generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct Faults {
    /// The SQL port stays closed this long after the start.
    pub(crate) ready_delay_ms: u64,
    /// The SQL port stays closed.
    pub(crate) never_ready: bool,
    /// `Initializing` lasts this long after the start.
    pub(crate) initializing_ms: Option<u64>,
    /// `Initializing` never ends by itself.
    pub(crate) stuck_initializing: bool,
    pub(crate) promote: Call,
    pub(crate) skip_catchup: Call,
    pub(crate) status: Option<BadStatus>,
    pub(crate) after_promote: AfterPromote,
}

/// How a call goes wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct Call {
    /// So many calls are answered by 400 before one is heard.
    pub(crate) fail: u32,
    /// Each answer comes this late; what was asked for happens first.
    pub(crate) delay_ms: u64,
}

/// How `GET /api/leader/status` goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct BadStatus {
    pub(crate) kind: BadStatusKind,
    /// So many answers; without it all of them.
    #[serde(default)]
    pub(crate) times: Option<u32>,
    /// How late `slow` answers.
    #[serde(default)]
    pub(crate) delay_ms: u64,
}

/// What is answered instead of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum BadStatusKind {
    /// 200 with an HTML page, as a proxy in between would.
    Html,
    /// 200 with bytes that are no UTF-8.
    Garbage,
    /// 200 with JSON whose status nobody knows.
    Unknown,
    /// 200 with 64 MiB.
    Huge,
    /// The right answer, late.
    Slow,
    /// 307 to another host.
    Redirect,
    /// 500.
    Error,
    /// No answer.
    Hang,
}

/// What happens between the answer to a promotion and the new start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(crate) struct AfterPromote {
    /// Connections are refused this long.
    pub(crate) refuse_ms: u64,
    /// The process crashes once, with the promotion written: its container restarts.
    pub(crate) crash: bool,
    /// So many times the process crashes before the promotion is written.
    pub(crate) crash_before_durable: u32,
}

/// The faults in force, and how many answers they have spoilt.
#[derive(Debug, Default)]
pub(crate) struct Book {
    faults: Faults,
    promotes: u32,
    skips: u32,
    statuses: u32,
}

/// How long `Initializing` lasts unless a fault says otherwise.
const INITIALIZING: Duration = Duration::from_millis(300);

// === impl Document ===

impl Document {
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The faults of a generation.
    pub(crate) fn of(&self, generation: u64) -> &Faults {
        self.generations.get(&generation).unwrap_or(&self.all)
    }
}

// === impl Faults ===

impl Faults {
    /// Whether the SQL port is open, so long after the start.
    pub(crate) fn open(&self, since_start: Duration) -> bool {
        !self.never_ready && since_start >= Duration::from_millis(self.ready_delay_ms)
    }

    /// Whether `Initializing` is over, so long after the start.
    pub(crate) fn caught_up(&self, since_start: Duration) -> bool {
        !self.stuck_initializing && since_start >= self.initializing_ms.map_or(INITIALIZING, Duration::from_millis)
    }
}

// === impl Book ===

impl Book {
    /// Takes over other faults, which begin to count anew; the same again change nothing.
    pub(crate) fn set(&mut self, faults: &Faults) -> bool {
        if self.faults == *faults {
            return false;
        }
        *self = Self {
            faults: faults.clone(),
            ..Self::default()
        };
        true
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Whether this promotion is refused.
    pub(crate) fn refuse_promote(&mut self) -> bool {
        count(&mut self.promotes, Some(self.faults.promote.fail))
    }

    /// Whether this skipping of the catch-up is refused.
    pub(crate) fn refuse_skip(&mut self) -> bool {
        count(&mut self.skips, Some(self.faults.skip_catchup.fail))
    }

    /// What spoils this status.
    pub(crate) fn spoil_status(&mut self) -> Option<BadStatus> {
        let bad = self.faults.status.clone()?;
        count(&mut self.statuses, bad.times).then_some(bad)
    }
}

fn count(used: &mut u32, limit: Option<u32>) -> bool {
    let left = limit.is_none_or(|limit| *used < limit);
    if left {
        *used = used.saturating_add(1);
    }
    left
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_generation_has_its_own_faults_or_those_of_all() {
        let document =
            Document::parse(r#"{"all":{"neverReady":true},"generations":{"2":{"readyDelayMs":5}}}"#).unwrap();
        assert!(document.of(1).never_ready);
        assert!(!document.of(2).never_ready);
        assert_eq!(document.of(2).ready_delay_ms, 5);
        assert_eq!(Document::parse("{}").unwrap().of(7), &Faults::default());
    }

    #[test]
    fn a_misspelt_fault_is_an_error_and_not_silently_nothing() {
        for wrong in [
            r#"{"all":{"neverready":true}}"#,
            r#"{"generation":{}}"#,
            r#"{"all":{"promote":{"times":1}}}"#,
            r#"{"all":{"status":{"kind":"HTML"}}}"#,
            r#"{"all":{"status":{}}}"#,
            "\"neverReady\"",
        ] {
            assert!(Document::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn refusals_are_counted_and_counted_anew_for_other_faults() {
        let mut book = Book::default();
        assert!(!book.refuse_promote());
        let faults = Document::parse(r#"{"all":{"promote":{"fail":2},"skipCatchup":{"fail":1}}}"#).unwrap();
        assert!(book.set(faults.of(1)));
        assert_eq!(
            [book.refuse_promote(), book.refuse_promote(), book.refuse_promote()],
            [true, true, false]
        );
        assert_eq!([book.refuse_skip(), book.refuse_skip()], [true, false]);
        assert!(!book.set(faults.of(1)));
        assert!(!book.refuse_promote());
        assert!(book.set(&Faults::default()));
        assert!(book.set(faults.of(1)));
        assert!(book.refuse_promote());
    }

    #[test]
    fn a_status_is_spoilt_for_a_number_of_times_or_always() {
        let mut book = Book::default();
        assert_eq!(book.spoil_status(), None);
        book.set(
            Document::parse(r#"{"all":{"status":{"kind":"html","times":1}}}"#)
                .unwrap()
                .of(1),
        );
        assert_eq!(book.spoil_status().unwrap().kind, BadStatusKind::Html);
        assert_eq!(book.spoil_status(), None);
        book.set(
            Document::parse(r#"{"all":{"status":{"kind":"slow","delayMs":9}}}"#)
                .unwrap()
                .of(1),
        );
        for _ in 0..3 {
            assert_eq!(book.spoil_status().unwrap().delay_ms, 9);
        }
    }

    #[test]
    fn ports_and_catch_up_follow_the_time_since_the_start() {
        let ms = Duration::from_millis;
        let faults = Faults {
            ready_delay_ms: 100,
            initializing_ms: Some(50),
            ..Faults::default()
        };
        assert!(!faults.open(ms(99)) && faults.open(ms(100)));
        assert!(!faults.caught_up(ms(49)) && faults.caught_up(ms(50)));
        assert!(Faults::default().open(ms(0)) && !Faults::default().caught_up(ms(0)));
        assert!(
            !Faults {
                never_ready: true,
                ..Faults::default()
            }
            .open(ms(u64::MAX))
        );
        assert!(
            !Faults {
                stuck_initializing: true,
                ..Faults::default()
            }
            .caught_up(ms(u64::MAX))
        );
    }
}
