//! What must hold in every scenario, whatever was done to it.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::LEASE_DURATION;
use super::ledger::{Ledger, holder_of, removes};
use crate::cluster::audit::Event;

/// Verbs that replicas may use on Leases (decision L8).
const VERBS: [&str; 5] = ["get", "list", "watch", "create", "update"];

/// Whatever replicas asked about the Lease was well formed, and none took it from a holder that had not been silent for its whole duration.
pub(super) fn election(ledger: &Ledger<'_>) -> Result<()> {
    for event in ledger.lease_requests()? {
        if ledger.replica(&event).is_some() {
            well_formed(&event)?;
        }
    }
    take_overs(&ledger.writes()?, |event| ledger.replica(event).is_some())
}

/// Whether each write by which a replica took the Lease from another holder came after that one's silence.
fn take_overs(writes: &[Event], is_by_a_replica: impl Fn(&Event) -> bool) -> Result<()> {
    let mut spec = Value::Null;
    let mut holder = String::new();
    let mut changed = i128::MIN;
    for event in writes {
        let received = event.received()?;
        if removes(event) {
            (spec, holder) = (Value::Null, String::new());
            continue;
        }
        if event.verb() == "create" {
            // What was there before has vanished, if only because its last finalizer was removed.
            holder.clear();
        }
        let taken = holder_of(event);
        if is_by_a_replica(event) && !holder.is_empty() && !taken.is_empty() && taken != holder {
            ensure!(
                received - changed >= LEASE_DURATION,
                "{taken} took the Lease from {holder} when it had been silent for {} µs: {}",
                received - changed,
                event.line()
            );
        }
        taken.clone_into(&mut holder);
        if event.response()["spec"] != spec {
            spec = event.response()["spec"].clone();
            changed = received;
        }
    }
    Ok(())
}

fn well_formed(event: &Event) -> Result<()> {
    ensure!(
        VERBS.contains(&event.verb()),
        "a replica used the verb {} on Leases: {}",
        event.verb(),
        event.line()
    );
    ensure!(
        !matches!(event.code(), 400 | 422),
        "the API server refused what a replica sent: {}",
        event.line()
    );
    if !matches!(event.verb(), "create" | "update") {
        return Ok(());
    }
    let sent = event.request();
    if sent.is_null() {
        // The log has no object of what was refused before anybody looked at it.
        return Ok(());
    }
    if event.verb() == "update" {
        for field in ["resourceVersion", "uid"] {
            let value = sent["metadata"][field].as_str().unwrap_or_default();
            ensure!(!value.is_empty(), "an update without {field}: {}", event.line());
        }
    }
    for field in ["acquireTime", "renewTime"] {
        if let Some(time) = sent["spec"][field].as_str() {
            let digits = time
                .rsplit_once('.')
                .map(|(_, digits)| digits.trim_end_matches('Z').len());
            ensure!(
                digits == Some(6),
                "{field} is {time}, without exactly six digits: {}",
                event.line()
            );
        }
    }
    let duration = &sent["spec"]["leaseDurationSeconds"];
    ensure!(
        duration.is_null() || *duration == 15,
        "leaseDurationSeconds is {duration}: {}",
        event.line()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(verb: &str, second: u32, spec: &Value) -> Event {
        let lease = json!({ "kind": "Lease", "metadata": { "resourceVersion": "1", "uid": "u" }, "spec": spec });
        Event::of(json!({
            "verb": verb, "requestReceivedTimestamp": format!("2026-12-01T17:00:{second:02}.000000Z"),
            "responseStatus": { "code": 200 }, "requestObject": lease, "responseObject": lease,
        }))
    }

    fn held(second: u32, holder: &str) -> Event {
        let time = format!("2026-12-01T17:00:{second:02}.000000Z");
        let spec = json!({ "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": time });
        written("update", second, &spec)
    }

    #[test]
    fn a_lease_may_be_taken_after_fifteen_seconds_of_silence_and_not_before() {
        assert!(take_overs(&[held(0, "a"), held(2, "a"), held(17, "b")], |_| true).is_ok());
        assert!(take_overs(&[held(0, "a"), held(2, "a"), held(16, "b")], |_| true).is_err());
    }

    #[test]
    fn a_write_that_changes_no_specification_does_not_prolong_the_silence() {
        let spec = json!({ "holderIdentity": "a" });
        let annotated = [written("update", 0, &spec), written("patch", 9, &spec), held(15, "b")];
        assert!(take_overs(&annotated, |_| true).is_ok());
    }

    #[test]
    fn a_released_lease_is_free_and_what_outsiders_write_is_theirs() {
        let released = written("update", 3, &json!({ "leaseTransitions": 0 }));
        assert!(take_overs(&[held(2, "a"), released, held(4, "b")], |_| true).is_ok());
        assert!(take_overs(&[held(2, "a"), held(4, "ghost")], |_| false).is_ok());
    }

    #[test]
    fn a_time_without_six_digits_and_a_write_without_version_are_found() {
        assert!(well_formed(&held(0, "a")).is_ok());
        let spec = json!({ "holderIdentity": "a", "renewTime": "2026-12-01T17:00:00.123Z" });
        assert!(well_formed(&written("update", 0, &spec)).is_err());
        assert!(well_formed(&written("patch", 0, &json!({}))).is_err());
        let released = json!({ "holderIdentity": "", "leaseDurationSeconds": 1 });
        assert!(well_formed(&written("update", 0, &released)).is_err());
        let sent = json!({ "verb": "update", "requestObject": { "metadata": { "uid": "u" } } });
        assert!(well_formed(&Event::of(sent)).is_err());
    }
}
