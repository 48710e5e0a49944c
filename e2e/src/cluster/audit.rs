//! The API server's audit log: who did what and when, in the server's own words. Scenarios judge by it, never by what a replica says about itself.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Cluster;

/// One request that was answered.
#[derive(Clone, Debug)]
pub(crate) struct Event(Value);

// === impl Event ===

impl Event {
    /// Names the request; a watch has several events.
    pub(crate) fn id(&self) -> &str {
        self.text("/auditID")
    }

    /// Who asked: `system:serviceaccount:NAMESPACE:NAME`.
    pub(crate) fn user(&self) -> &str {
        self.text("/user/username")
    }

    /// What was asked: `update`, `patch`, ….
    pub(crate) fn verb(&self) -> &str {
        self.text("/verb")
    }

    /// The resource in the plural; empty for requests about none.
    pub(crate) fn resource(&self) -> &str {
        self.text("/objectRef/resource")
    }

    /// The object's namespace, empty where there is none.
    pub(crate) fn namespace(&self) -> &str {
        self.text("/objectRef/namespace")
    }

    /// The object's name.
    pub(crate) fn name(&self) -> &str {
        self.text("/objectRef/name")
    }

    /// The HTTP status.
    pub(crate) fn code(&self) -> u64 {
        self.0
            .pointer("/responseStatus/code")
            .and_then(Value::as_u64)
            .unwrap_or_default()
    }

    /// Whether it changed something.
    pub(crate) fn is_write(&self) -> bool {
        !matches!(self.verb(), "get" | "list" | "watch") && (200..300).contains(&self.code())
    }

    /// When the server got it, in microseconds since 1970.
    pub(crate) fn received(&self) -> Result<i128> {
        microseconds(self.text("/requestReceivedTimestamp"))
            .with_context(|| format!("the audit event {} has no usable time", self.0))
    }

    /// When the answer was complete, in microseconds since 1970.
    pub(crate) fn answered(&self) -> Result<i128> {
        microseconds(self.text("/stageTimestamp"))
            .with_context(|| format!("the audit event {} has no usable time", self.0))
    }

    /// The object as it was sent; only Leases are logged with it.
    pub(crate) fn request(&self) -> &Value {
        self.0.get("requestObject").unwrap_or(&Value::Null)
    }

    /// The object as it was stored; only Leases are logged with it.
    pub(crate) fn response(&self) -> &Value {
        self.0.get("responseObject").unwrap_or(&Value::Null)
    }

    /// The whole event, one line of JSON.
    pub(crate) fn line(&self) -> String {
        self.0.to_string()
    }

    /// One that a test has made up.
    #[cfg(test)]
    pub(crate) fn of(value: Value) -> Self {
        Self(value)
    }

    fn text(&self, pointer: &str) -> &str {
        self.0.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

/// A place in the audit log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position(u64);

// === impl Cluster ===

impl Cluster {
    /// The end of the audit log now.
    pub(crate) fn audit_end(&self) -> Result<Position> {
        let path = self.level.audit_log();
        Ok(Position(
            fs::metadata(&path)
                .with_context(|| format!("looking at {}", path.display()))?
                .len(),
        ))
    }

    /// The complete events after a position whose lines contain `text`, and moves the position behind what was read. Cheaper than [`Cluster::audit`]
    /// for whoever looks again and again.
    pub(crate) fn audit_further(&self, since: &mut Position, text: &str) -> Result<Vec<Event>> {
        let path = self.level.audit_log();
        let mut bytes = Vec::new();
        File::open(&path)
            .and_then(|mut file| {
                file.seek(SeekFrom::Start(since.0))?;
                file.read_to_end(&mut bytes)
            })
            .with_context(|| format!("reading {}", path.display()))?;
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        since.0 += complete as u64;
        Ok(String::from_utf8_lossy(&bytes[..complete])
            .lines()
            .filter(|line| line.contains(text))
            .filter_map(|line| serde_json::from_str(line).ok())
            .map(Event)
            .collect())
    }

    /// All events after a position that `wanted` keeps, in the order in which they were answered.
    pub(crate) fn audit(&self, since: Position, wanted: impl Fn(&Event) -> bool) -> Result<Vec<Event>> {
        let path = self.level.audit_log();
        let mut text = String::new();
        File::open(&path)
            .and_then(|mut file| {
                file.seek(SeekFrom::Start(since.0))?;
                file.read_to_string(&mut text)
            })
            .with_context(|| format!("reading {}", path.display()))?;
        // The last line may be half written.
        Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .map(Event)
            .filter(wanted)
            .collect())
    }
}

/// A time of Kubernetes (`2026-12-01T17:00:00.123456Z`) in microseconds since 1970.
pub(crate) fn microseconds(time: &str) -> Option<i128> {
    let (date, clock) = time.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let mut clock = clock.split(':');
    let (hour, minute): (i64, i64) = (clock.next()?.parse().ok()?, clock.next()?.parse().ok()?);
    let (second, fraction) = clock.next()?.split_once('.').unwrap_or_default();
    let fraction: i128 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    // Days from 1970 in the proleptic Gregorian calendar, with years that begin in March.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days =
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * month + 2) / 5 + day
            - 1
            - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second.parse::<i64>().ok()?;
    Some(i128::from(seconds) * 1_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_from_1970() {
        assert_eq!(microseconds("1970-01-01T00:00:00.000001Z"), Some(1));
        // `date -u -d 2026-12-01T17:06:40Z +%s`
        assert_eq!(microseconds("2026-12-01T17:06:40.5Z"), Some(1_796_144_800_500_000));
        // `date -u -d 2024-02-29T23:59:59Z +%s`
        assert_eq!(microseconds("2024-02-29T23:59:59.000000Z"), Some(1_709_251_199_000_000));
        assert_eq!(microseconds("yesterday"), None);
    }
}
